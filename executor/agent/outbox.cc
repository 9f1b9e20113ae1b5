#include "executor/agent/outbox.h"

#include <utility>

#include "executor/agent/messages.h"

namespace attune::agent {

void Outbox::Add(v1::Fact fact) {
  fact.set_seq(++last_seq_);
  facts_.push_back(std::move(fact));
}

v1::Facts Outbox::TakeBatch() {
  v1::Facts batch;
  size_t bytes = 0;
  while (has_unsent() && batch.facts_size() < kFactsPerMessage) {
    const v1::Fact& fact = facts_[sent_];
    bytes += fact.ByteSizeLong();
    if (bytes > kFactBytesPerMessage && batch.facts_size() > 0) break;
    *batch.add_facts() = fact;
    ++sent_;
  }
  return batch;
}

std::vector<gang::AttemptId> Outbox::Acknowledge(uint64_t seq) {
  std::vector<gang::AttemptId> ended;
  while (!facts_.empty() && facts_.front().seq() <= seq) {
    if (facts_.front().has_ended()) ended.push_back(FromProto(facts_.front().attempt()));
    facts_.pop_front();
    if (sent_ > 0) --sent_;
  }
  return ended;
}

}  // namespace attune::agent
