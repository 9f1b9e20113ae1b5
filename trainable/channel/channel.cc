#include "trainable/channel/channel.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <utility>

#include "channel/sockets.h"

namespace attune::trainable {

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

void Channel::Send(std::string line) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return outgoing_.size() < kMaxPendingBytes || closed_; });
    outgoing_ += line;
  }
  Wake();
}

bool Channel::Flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return outgoing_.empty() || closed_; }) &&
         outgoing_.empty();
}

void Channel::Flush() {
  std::unique_lock lock(mutex_);
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
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      if (closed_) polled[0].fd = -1;
      if (!outgoing_.empty()) polled[0].events |= POLLOUT;
    }
    if (poll(polled, 2, -1) < 0) continue;  // EINTR is its only error here
    if (polled[1].revents != 0) {
      eventfd_t ignored;
      eventfd_read(wake_.get(), &ignored);
    }
    if ((polled[0].revents & POLLOUT) != 0) WriteSome();
    if ((polled[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) ReadSome();
  }
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
      problem = message.error();
      break;
    }
    incoming_.push_back(std::move(message.value()));
  }
  if (lines_.is_too_long()) problem = lines_.TooLong();
  if (!problem.empty()) {
    failure_ = std::make_exception_ptr(Error("channel: the executor wrote " + problem));
  }
}

void Channel::WriteSome() {
  const std::lock_guard lock(mutex_);
  channel::SendSome(socket_.get(), outgoing_);  // should the peer be gone, the read side says so
  changed_.notify_all();
}

}  // namespace attune::trainable
