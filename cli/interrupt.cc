#include "cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "base/check.h"

namespace attune::cli {
namespace {

int signal_pipe[2];
std::atomic<int> signal_count = 0;

// A signal handler, which may only call async-signal-safe functions.
void OnSignal(int) {
  if (signal_count.fetch_add(1) > 0) _exit(130);
  const int saved = errno;
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(signal_pipe[1], &byte, 1);
  errno = saved;
}

void InstallHandlers(Interrupt& interrupt) {
  ATTUNE_CHECK(pipe2(signal_pipe, O_CLOEXEC) == 0);
  std::thread([&interrupt] {
    char byte;
    while (read(signal_pipe[0], &byte, 1) < 0 && errno == EINTR) {
    }
    if (!interrupt.has_listener()) _exit(130);
    interrupt.Request();
  }).detach();

  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ATTUNE_CHECK(sigaction(SIGINT, &action, nullptr) == 0);
  ATTUNE_CHECK(sigaction(SIGTERM, &action, nullptr) == 0);
}

}  // namespace

Interrupt& Interrupt::OfProcess() {
  // Never destroyed, because the signal thread may outlive static objects.
  static Interrupt* const interrupt = [] {
    auto* made = new Interrupt;
    InstallHandlers(*made);
    return made;
  }();
  return *interrupt;
}

void Interrupt::Request() {
  const std::lock_guard lock(mutex_);
  requested_ = true;
  changed_.notify_all();
  for (const auto& [key, wake] : wakes_) wake();
}

bool Interrupt::requested() const {
  const std::lock_guard lock(mutex_);
  return requested_;
}

void Interrupt::Wait() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  changed_.wait(lock, [this] { return requested_; });
  --waiting_;
}

bool Interrupt::has_listener() const {
  const std::lock_guard lock(mutex_);
  return waiting_ > 0 || !wakes_.empty();
}

Interrupt::Subscription::Subscription(Interrupt& interrupt, std::function<void()> wake)
    : interrupt_(interrupt) {
  const std::lock_guard lock(interrupt_.mutex_);
  if (interrupt_.requested_) wake();
  key_ = interrupt_.next_key_++;
  interrupt_.wakes_.emplace(key_, std::move(wake));
}

Interrupt::Subscription::~Subscription() {
  const std::lock_guard lock(interrupt_.mutex_);
  interrupt_.wakes_.erase(key_);
}

}  // namespace attune::cli
