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

std::string Failure(const std::exception_ptr& error, const std::string& what, int rank) {
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
    bool taken = false;
    bool done = false;
    std::shared_ptr<void> batch;
    std::exception_ptr error;
  };

  const DataLoaderOptions options;
  Context& context;
  const Fetch fetch;
  BatchSource::Place place;  // after what was handed out
  bool epoch_ended = false;

  std::mutex mutex;
  std::condition_variable work;           // for the threads: a job, or the end
  std::condition_variable done;           // for the training thread
  std::deque<std::shared_ptr<Job>> jobs;  // in the order in which they are handed out
  bool asking = false;                    // somebody uses the source, without holding the mutex
  bool stopping = false;
  const std::unique_ptr<BatchSource> source;
  std::vector<std::thread> threads;

  // Asks the source which batch it is; jobs do so in their order.
  void Ask(Job& job) const {
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

  std::shared_ptr<Job> FirstUntaken() const {
    for (const auto& job : jobs) {
      if (!job->taken) return job;
    }
    return nullptr;
  }

  void ReadAhead(int thread) {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stopping || (!asking && FirstUntaken() != nullptr); });
      if (stopping) return;
      const std::shared_ptr<Job> job = FirstUntaken();
      job->taken = asking = true;
      lock.unlock();
      Ask(*job);
      lock.lock();
      asking = false;
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
      Ask(*job);
      Run(*job, 0);
    } else {
      done.wait(lock, [&] { return job->done; });
    }
    jobs.pop_front();
    return job;
  }

  // Forgets what was read ahead, and lets `move` use the source.
  void Move(const std::function<void()>& move) {
    std::unique_lock lock(mutex);
    jobs.clear();
    done.wait(lock, [&] { return !asking; });
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
    throw Error(Failure(job->error, what, state.context.rank()));
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
    throw Error("data loader: there is no place " + std::to_string(place.offset) + " of epoch " +
                std::to_string(place.epoch));
  }
  state_->Move([&] {
    state_->source->MoveTo(place);
    state_->place = place;
  });
}

TensorMap Prefetcher::state_dict() const { return state_->source->StateAt(state_->place); }

void Prefetcher::load_state_dict(const TensorMap& state) {
  state_->Move([&] { state_->place = state_->source->Load(state); });
}

}  // namespace attune::inline sdk::trainable
