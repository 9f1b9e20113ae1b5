#include "executor/agent/outbox.h"

#include <utility>

#include "executor/agent/messages.h"

namespace attune::agent {

void Outbox::Add(v1::Fact fact) {
  fact.set_seq(++last_seq_);
  const size_t bytes = fact.ByteSizeLong();
  facts_.push_back({std::move(fact), bytes});
  memory_bytes_ += bytes + kFactOverheadBytes;
  UpdateFull();
}

v1::Facts Outbox::TakeBatch() {
  v1::Facts batch;
  size_t bytes = 0;
  while (has_unsent() && batch.facts_size() < kFactsPerMessage) {
    const Entry& entry = facts_[sent_];
    bytes += entry.bytes;
    if (bytes > kFactBytesPerMessage && batch.facts_size() > 0) break;
    *batch.add_facts() = entry.fact;
    ++sent_;
    sent_bytes_ += entry.bytes;
  }
  return batch;
}

std::vector<gang::AttemptId> Outbox::Acknowledge(uint64_t seq) {
  std::vector<gang::AttemptId> ended;
  while (!facts_.empty() && facts_.front().fact.seq() <= seq) {
    const Entry& entry = facts_.front();
    if (entry.fact.has_ended()) ended.push_back(FromProto(entry.fact.attempt()));
    memory_bytes_ -= entry.bytes + kFactOverheadBytes;
    if (sent_ > 0) {
      --sent_;
      sent_bytes_ -= entry.bytes;
    }
    facts_.pop_front();
  }
  UpdateFull();
  return ended;
}

void Outbox::UpdateFull() {
  full_ = memory_bytes_ >= (full_ ? kOutboxBytesMax / 2 : kOutboxBytesMax);
}

}  // namespace attune::agent
