#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "attune/data_loader.h"

namespace attune::inline sdk::trainable {
namespace {

std::string FailureText(const std::exception_ptr& error, const std::string& what, int rank) {
  const std::string text = "data loader: rank " + std::to_string(rank) + ": " + what + ": ";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return text + exception.what();
  } catch (...) {
    return text + "an exception that does not derive from std::exception";
  }
}

}  // namespace

struct Prefetcher::State {
  struct Job {
    BatchSource::Request request;
    bool claimed = false;
    bool done = false;
    std::shared_ptr<void> batch;
    std::exception_ptr error;
  };

  const DataLoaderOptions options;
  Context& context;
  const Fetch fetch;
  BatchSource::Place place;  // the position after the last returned batch
  bool epoch_ended = false;

  std::mutex mutex;
  std::condition_variable work;           // for the threads: a job, or the end
  std::condition_variable done;           // for the training thread
  std::deque<std::shared_ptr<Job>> jobs;  // in the order in which they are returned
  bool source_busy = false;               // a thread uses the source without holding the mutex
  bool stopping = false;
  const std::unique_ptr<BatchSource> source;
  std::vector<std::thread> threads;

  // Requests the next batch from the source; jobs do so in their order.
  void RequestBatch(Job& job) const {
    try {
      job.request = source->Next();
    } catch (...) {
      job.error = std::current_exception();
    }
  }

  void Run(Job& job, int thread) const {
    if (job.error) return;
    try {
      job.batch = fetch(thread, job.request.content.get());
    } catch (...) {
      job.error = std::current_exception();
    }
  }

  std::shared_ptr<Job> FirstUnclaimed() const {
    for (const auto& job : jobs) {
      if (!job->claimed) return job;
    }
    return nullptr;
  }

  void ReadAhead(int thread) {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stopping || (!source_busy && FirstUnclaimed() != nullptr); });
      if (stopping) return;
      const std::shared_ptr<Job> job = FirstUnclaimed();
      job->claimed = source_busy = true;
      lock.unlock();
      RequestBatch(*job);
      lock.lock();
      source_busy = false;
      work.notify_all();
      done.notify_one();
      lock.unlock();
      Run(*job, thread);
      lock.lock();
      job->done = true;
      done.notify_one();
    }
  }

  void FillUp() {
    const std::size_t wanted = threads.empty() ? 1 : threads.size() * options.prefetch_factor;
    const std::lock_guard lock(mutex);
    while (jobs.size() < wanted) jobs.push_back(std::make_shared<Job>());
    work.notify_all();
  }

  std::shared_ptr<Job> Await() {
    std::unique_lock lock(mutex);
    const std::shared_ptr<Job> job = jobs.front();
    if (threads.empty()) {
      RequestBatch(*job);
      Run(*job, 0);
    } else {
      done.wait(lock, [&] { return job->done; });
    }
    jobs.pop_front();
    return job;
  }

  // Discards batches that were read ahead, and calls `move`, which may use the source.
  void MoveSource(const std::function<void()>& move) {
    std::unique_lock lock(mutex);
    jobs.clear();
    done.wait(lock, [&] { return !source_busy; });
    move();
  }

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      work.notify_all();
    }
    for (std::thread& thread : threads) thread.join();
  }
};

Prefetcher::Prefetcher(std::unique_ptr<BatchSource> source, const DataLoaderOptions& options,
                       Context& context, Fetch fetch)
    : state_(new State{.options = options,
                       .context = context,
                       .fetch = std::move(fetch),
                       .source = std::move(source)}) {
  for (int thread = 0; thread < options.threads; ++thread) {
    state_->threads.emplace_back([state = state_.get(), thread] { state->ReadAhead(thread); });
  }
}

Prefetcher::~Prefetcher() = default;

std::shared_ptr<void> Prefetcher::Next() {
  State& state = *state_;
  state.FillUp();
  const auto job = state.Await();
  if (job->error) {
    const std::string what = state.source->NameOf(job->request, state.place);
    throw Error(FailureText(job->error, what, state.context.rank()));
  }
  state.place = job->request.after;
  state.epoch_ended = job->request.last;
  state.FillUp();
  state.context.Heartbeat();
  return job->batch;
}

bool Prefetcher::epoch_ended() const { return state_->epoch_ended; }

BatchSource::Place Prefetcher::place() const { return state_->place; }

void Prefetcher::MoveTo(const BatchSource::Place& place) {
  if (place.epoch < 0 || place.offset < 0) {
    throw Error("data loader: there is no position " + std::to_string(place.offset) + " of epoch " +
                std::to_string(place.epoch));
  }
  state_->MoveSource([&] {
    state_->source->MoveTo(place);
    state_->place = place;
  });
}

TensorMap Prefetcher::state_dict() const { return state_->source->StateAt(state_->place); }

void Prefetcher::load_state_dict(const TensorMap& state) {
  state_->MoveSource([&] { state_->place = state_->source->Load(state); });
}

}  // namespace attune::inline sdk::trainable
