#include "executor/health/health_watch.h"

#include <algorithm>
#include <utility>

#include "executor/health/size_text.h"

namespace attune::agent {

namespace {

// Maximum number of files of a gang that are measured, and number of largest files in the message.
constexpr size_t kGangFilesMax = 10'000;
constexpr size_t kLargestOfGang = 3;

// A disk is nearly short if less than this multiple of the minimum is free.
constexpr uint64_t kNearMultiple = 8;

bool IsNearlyShort(const HostHealth& seen) {
  return seen.disk_free_bytes / kNearMultiple < seen.disk_bytes_min;
}

}  // namespace

HealthWatch::HealthWatch(HealthCheck check, Events events, std::chrono::milliseconds every)
    : check_(std::move(check)),
      events_(std::move(events)),
      every_(every),
      thread_([this] { Run(); }) {}

HealthWatch::~HealthWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void HealthWatch::OnGangStarted(const gang::AttemptId& attempt, Folders folders) {
  const std::lock_guard lock(mutex_);
  gangs_[attempt] = std::move(folders);
}

void HealthWatch::OnGangGone(const gang::AttemptId& attempt) {
  const std::lock_guard lock(mutex_);
  gangs_.erase(attempt);
}

void HealthWatch::OnDiskFull(uint64_t room_bytes, gang::BootClock::time_point now) {
  if (!check_.judges_disk()) return;
  const std::lock_guard lock(mutex_);
  full_.OnFull(room_bytes, now);
  check_now_ = true;
  changed_.notify_all();
}

HostHealth HealthWatch::Latest(gang::BootClock::time_point now) const {
  const std::lock_guard lock(mutex_);
  HostHealth latest = latest_;
  latest.Add(full_.Problem(check_.data_dir(), now));
  if (!at_.empty() && now - since_ >= kAnswerTimeout)
    latest.problem = at_ + " has not answered for " +
                     std::to_string(kAnswerTimeout / std::chrono::seconds(1)) + " s";
  return latest;
}

void HealthWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    check_now_ = false;
    lock.unlock();
    const gang::BootClock::time_point began = gang::BootClock::now();
    const HostHealth seen = check_.Check([this](std::string at) {
      const std::lock_guard begins(mutex_);
      at_ = std::move(at);
      since_ = gang::BootClock::now();
    });
    lock.lock();
    latest_ = seen;
    full_.OnCheck(seen.disk_free_bytes, began);
    at_.clear();
    lock.unlock();
    events_.checked(seen);
    LookForFiller(seen);
    lock.lock();
    changed_.wait_for(lock, IsNearlyShort(seen) ? std::min(every_, kEveryIfNearlyShort) : every_,
                      [this] { return stop_ || check_now_; });
  }
}

// Measures the files of gangs only if a disk is nearly short, because folders may be large.
void HealthWatch::LookForFiller(const HostHealth& seen) {
  if (!IsNearlyShort(seen)) return growth_.Add({}, gang::BootClock::now());
  std::map<gang::AttemptId, Folders> gangs;
  {
    const std::lock_guard lock(mutex_);
    gangs = gangs_;
  }
  std::map<gang::AttemptId, DiskUse> uses;
  for (const auto& [attempt, folders] : gangs)
    uses[attempt] = MeasureDiskUse(folders, kGangFilesMax, kLargestOfGang);
  growth_.Add(uses, gang::BootClock::now());
  if (seen.disk_free_bytes >= seen.disk_bytes_min) return;
  const auto filler = growth_.TakeFiller(seen.disk_bytes_min);
  if (!filler) return;
  OnGangGone(filler->attempt);  // so that it is reported only once
  events_.fills_disk(filler->attempt, "its files grew by " + SizeText(filler->grown_bytes) +
                                          " within a minute, and the disk of its host has " +
                                          SizeText(seen.disk_free_bytes) + " left (" +
                                          check_.data_dir().string() + "), less than " +
                                          SizeText(seen.disk_bytes_min) + "; " +
                                          LargestFiles(uses.at(filler->attempt)));
}

}  // namespace attune::agent
