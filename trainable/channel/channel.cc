#include "trainable/channel/channel.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <utility>

#include "system/sockets.h"

namespace attune::inline sdk::trainable {

using std::chrono::milliseconds;

Channel::Channel(UniqueFd socket, std::function<void()> on_executor_gone)
    : socket_(std::move(socket)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      on_executor_gone_(std::move(on_executor_gone)) {
  if (!wake_.valid()) ThrowErrno("eventfd");
  thread_ = std::thread([this] { Run(); });
}

Channel::~Channel() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  Wake();
  thread_.join();
}

void Channel::Send(std::string lines) {
  const auto lock = Queue(lines);
  Write();
}

void Channel::SendSoon(std::string lines) {
  const auto lock = Queue(lines);
  if (write_at_) return;
  const auto now = Clock::now();
  if (now - written_ >= kGathering) return Write();
  write_at_ = now + kGathering;
  Wake();
}

bool Channel::Flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  Write();
  return changed_.wait_for(lock, timeout, [this] { return outgoing_.empty() || closed_; }) &&
         outgoing_.empty();
}

void Channel::Flush() {
  std::unique_lock lock(mutex_);
  Write();
  changed_.wait(lock, [this] { return outgoing_.empty() || closed_; });
}

FromExecutor Channel::Receive() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !incoming_.empty() || failure_ || closed_; });
  return *TakeNext(std::move(lock));
}

std::optional<FromExecutor> Channel::Poll() { return TakeNext(std::unique_lock(mutex_)); }

std::optional<FromExecutor> Channel::TakeNext(std::unique_lock<std::mutex> lock) {
  if (!incoming_.empty()) {
    FromExecutor message = std::move(incoming_.front());
    incoming_.pop_front();
    return message;
  }
  const std::exception_ptr failure = failure_;
  const bool closed = closed_;
  lock.unlock();  // an exception that nobody catches unwinds nothing, and is told over this channel
  if (failure) std::rethrow_exception(failure);
  if (closed) throw Error("channel: the executor closed it");
  return std::nullopt;
}

void Channel::Leave() {
  const std::lock_guard lock(mutex_);
  leaving_ = true;
}

void Channel::WaitForExecutorToClose(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return closed_; });
}

void Channel::Wake() const { eventfd_write(wake_.get(), 1); }

void Channel::Run() {
  while (true) {
    pollfd polled[] = {{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    int timeout = -1;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      if (closed_) polled[0].fd = -1;
      const auto now = Clock::now();  // once: a second look might be behind write_at_
      if (write_at_ && *write_at_ <= now) WriteGathered();
      if (write_at_) {
        timeout = static_cast<int>(ceil<milliseconds>(*write_at_ - now).count());
      } else if (!outgoing_.empty()) {
        polled[0].events |= POLLOUT;
      }
    }
    if (poll(polled, 2, timeout) < 0) continue;  // EINTR is its only error here
    if (polled[1].revents != 0) {
      eventfd_t ignored;
      eventfd_read(wake_.get(), &ignored);
    }
    if ((polled[0].revents & POLLOUT) != 0) {
      const std::lock_guard lock(mutex_);
      WriteSome();
    }
    if ((polled[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) ReadSome();
  }
}

void Channel::WriteGathered() {
  const bool any = !outgoing_.empty();
  WriteSome();
  // Where lines keep coming the thread is awake for the next ones as well.
  write_at_.reset();
  if (any && outgoing_.empty()) write_at_ = written_ + kGathering;
}

void Channel::ReadSome() {
  std::unique_lock lock(mutex_);
  // Nothing after a failure can be trusted; only the end matters.
  if (failure_) lines_ = channel::LineReader();
  if (channel::ReceiveSome(socket_.get(), lines_)) {
    if (failure_) return;
    TakeLines();
  } else {
    closed_ = true;
    outgoing_.clear();  // nobody will read it
  }
  changed_.notify_all();
  const bool surprised = closed_ && !leaving_;
  lock.unlock();
  if (surprised && on_executor_gone_) on_executor_gone_();
}

void Channel::TakeLines() {
  std::string problem;
  while (const auto line = lines_.Next()) {
    auto message = channel::ParseFromExecutor(*line);
    if (!message.ok()) {
      problem = message.error().message;
      break;
    }
    if (const auto* refused = std::get_if<channel::Refused>(&message.value())) {
      failure_ =
          std::make_exception_ptr(Error("the executor refuses this process: " + refused->message));
      return;
    }
    incoming_.push_back(std::move(message.value()));
  }
  if (lines_.is_too_long()) problem = lines_.TooLong();
  if (!problem.empty()) {
    failure_ = std::make_exception_ptr(Error("channel: the executor wrote " + problem));
  }
}

std::unique_lock<std::mutex> Channel::Queue(const std::string& lines) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return outgoing_.size() < kMaxPendingBytes || closed_; });
  if (!closed_) outgoing_ += lines;
  return lock;
}

void Channel::Write() {
  WriteSome();
  if (!outgoing_.empty() && !write_at_) Wake();
}

void Channel::WriteSome() {
  SendSome(socket_.get(), outgoing_);  // should the peer be gone, the read side says so
  written_ = Clock::now();
  changed_.notify_all();
}

}  // namespace attune::inline sdk::trainable
