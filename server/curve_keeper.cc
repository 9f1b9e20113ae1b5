#include "server/curve_keeper.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "core/state/state.h"
#include "logging/log.h"
#include "server/conductor/retry_delay.h"
#include "server/store/thinned/curve_file.h"

namespace attune::server {
namespace {

// The time in which events are collected before they are written together.
constexpr std::chrono::milliseconds kCollectDelay{250};
// A write of many curves takes longer. It is then followed by a pause of this many times its
// duration, so that writing takes at most a tenth of one CPU.
constexpr int kPauseFactor = 9;
constexpr std::chrono::seconds kPauseMax{5};

// While a long log is read, changes are written only this often.
constexpr std::chrono::seconds kWriteInterval{10};
constexpr uint64_t kEventsPerRead = 4'096;
constexpr uint64_t kLongLog = 1'000'000;  // building the table from this many events is logged

// The memory for curves. If no event has come for a while, none are kept.
constexpr size_t kMemoryMax = size_t{128} << 20;
constexpr std::chrono::minutes kIdleTime{1};

}  // namespace

CurveKeeper::CurveKeeper(std::string database)
    : database_(std::move(database)), thread_([this] { Run(); }) {}

CurveKeeper::~CurveKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
    stopped_.notify_all();
  }
  thread_.join();
}

void CurveKeeper::OnStarted(const Brain& brain) {
  const std::lock_guard lock(mutex_);
  identity_ = IdentityOf(brain.state());
  started_ = durable_ = brain.state().last_seq;
  changed_.notify_all();
}

void CurveKeeper::OnState(EventSeq durable, const Status&) {
  const std::lock_guard lock(mutex_);
  durable_ = durable;
  changed_.notify_all();
}

bool CurveKeeper::IsStopping() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

EventSeq CurveKeeper::Durable() {
  const std::lock_guard lock(mutex_);
  return durable_;
}

void CurveKeeper::Run() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stop_ || identity_; });
  while (!stop_) {
    lock.unlock();
    if (const Status followed = Follow(); followed.ok()) {
      retry_ = {};
    } else {
      Fail(followed.error());
    }
    lock.lock();
    if (retry_.count() > 0) {
      stopped_.wait_for(lock, retry_, [this] { return stop_; });
    } else {
      WaitForEvents(lock);
    }
  }
}

// Waits until there are new events, and then collects more.
void CurveKeeper::WaitForEvents(std::unique_lock<std::mutex>& lock) {
  const auto has_events = [this] { return stop_ || durable_ > table_->seq(); };
  // Returns after a while without events, so that a file that was deleted is made again.
  if (!changed_.wait_for(lock, kIdleTime, has_events)) {
    table_->Forget(0);
    return;
  }
  const auto until = std::max(Clock::now() + kCollectDelay, next_write_);
  stopped_.wait_until(lock, until, [this] { return stop_; });
}

Status CurveKeeper::Follow() {
  if (table_ != nullptr && !table_->IsInPlace()) table_.reset();
  if (table_ == nullptr) {
    if (Status opened = Open(); !opened.ok()) return opened;
  }
  return CatchUp();
}

Status CurveKeeper::Open() {
  std::unique_lock lock(mutex_);
  // A file that this server has written follows the log. An older one may belong to another log,
  // or to a part of the log that the start has not found.
  const LogIdentity identity = followed_.value_or(*identity_);
  const EventSeq last = followed_ ? durable_ : started_;
  lock.unlock();
  auto opened = CurveTable::Open(database_, identity, last);
  if (!opened.ok()) return opened.error();
  table_ = std::move(opened).value();
  return {};
}

Status CurveKeeper::CatchUp() {
  const EventSeq first = table_->seq();
  const bool was_built = table_->built();
  if (was_built && first >= Durable()) return {};
  const bool is_long = Durable().value > first.value + kLongLog;
  if (is_long) logging::Info("the table of thinned curves is being built in the background");
  auto written = Clock::now();
  for (bool more = true; more && !IsStopping();) {
    const auto left = table_->Read(Durable(), kEventsPerRead);
    if (!left.ok()) return left.error();
    more = *left;
    if (more && table_->bytes() <= kMemoryMax && Clock::now() - written < kWriteInterval) continue;
    if (Status done = Write(!more); !done.ok()) return done;
    written = Clock::now();
  }
  if (is_long && !was_built && table_->built())
    logging::Info("the table of thinned curves is complete");
  return {};
}

Status CurveKeeper::Write(bool built) {
  const auto begun = Clock::now();
  if (Status written = table_->Write(built); !written.ok()) return written;
  if (table_->bytes() > kMemoryMax) table_->Forget(kMemoryMax / 2);
  followed_ = table_->identity();
  const auto end = Clock::now();
  next_write_ = end + std::min<Clock::duration>(kPauseFactor * (end - begun), kPauseMax);
  return {};
}

// What was read but not written is read again later.
void CurveKeeper::Fail(const Error& error) {
  table_.reset();
  if (error.code == ErrorCode::kCorrupt) RemoveCurveFile(CurveFileOf(database_));
  logging::Log(
      retry_.count() > 0 ? logging::Level::kDebug : logging::Level::kWarn,
      "cannot keep the table of thinned curves up to date: {}; the server tries again later",
      error.message);
  retry_ = NextRetryDelay(retry_);
}

}  // namespace attune::server
