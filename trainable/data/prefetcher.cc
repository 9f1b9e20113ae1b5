#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "attune/data_loader.h"

namespace attune::inline sdk::trainable {
namespace {

// Of a failed batch, so many samples are named.
constexpr std::size_t kSamplesNamed = 8;

std::string Failure(const std::exception_ptr& error, const std::vector<std::size_t>& samples,
                    int rank) {
  std::string text = "data loader: rank " + std::to_string(rank) + ": the dataset failed on";
  for (std::size_t i = 0; i < samples.size() && i < kSamplesNamed; ++i) {
    text += (i == 0 ? " samples " : ", ") + std::to_string(samples[i]);
  }
  if (samples.size() > kSamplesNamed) text += ", …";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return text + ": " + exception.what();
  } catch (...) {
    return text + ": an exception that does not derive from std::exception";
  }
}

void Check(std::int64_t dataset_size, const DataLoaderOptions& options, int world_size) {
  const std::string batch = std::to_string(options.batch_size);
  if (options.batch_size < world_size) {
    throw Error("PrepareDataLoader: batch_size: a batch of " + batch +
                " samples cannot be shared by " + std::to_string(world_size) +
                " workers; it counts the samples of all workers together, and every worker needs "
                "one");
  }
  const std::int64_t needed = options.drop_last ? options.batch_size : world_size;
  if (dataset_size < needed) {
    throw Error("PrepareDataLoader: the dataset's " + std::to_string(dataset_size) +
                " samples are fewer than " +
                (options.drop_last ? "one batch of " + batch + ", and drop_last leaves nothing"
                                   : "the " + std::to_string(world_size) + " workers"));
  }
  if (options.threads < 0 || options.prefetch_factor < 1) {
    throw Error("PrepareDataLoader: threads (" + std::to_string(options.threads) +
                ") has to be 0 or more, prefetch_factor (" +
                std::to_string(options.prefetch_factor) + ") 1 or more");
  }
}

}  // namespace

struct Prefetcher::State {
  struct Job {
    std::vector<std::size_t> samples;
    std::int64_t epoch = 0;   // where the gang is
    std::int64_t offset = 0;  // after it
    bool last = false;        // of its epoch
    bool taken = false;
    bool done = false;
    std::shared_ptr<void> batch;
    std::exception_ptr error;
  };

  const DataLoaderOptions options;
  Context& context;
  const Fetch fetch;
  DistributedSampler place;  // after what was handed out
  DistributedSampler ahead;  // after what is in `jobs`
  bool epoch_ended = false;

  std::mutex mutex;
  std::condition_variable work;           // for the threads: a job, or the end
  std::condition_variable done;           // for the training thread
  std::deque<std::shared_ptr<Job>> jobs;  // in the order in which they are handed out
  bool stopping = false;
  std::vector<std::thread> threads;

  void Run(const std::shared_ptr<Job>& job, int thread) const {
    try {
      job->batch = fetch(thread, job->samples);
    } catch (...) {
      job->error = std::current_exception();
    }
  }

  void ReadAhead(int thread) {
    std::unique_lock lock(mutex);
    while (true) {
      std::shared_ptr<Job> job;
      work.wait(lock, [&] {
        for (const auto& candidate : jobs) {
          if (!candidate->taken) job = candidate;
          if (job) break;
        }
        return stopping || job;
      });
      if (stopping) return;
      job->taken = true;
      lock.unlock();
      Run(job, thread);
      lock.lock();
      job->done = true;
      done.notify_one();
    }
  }

  std::shared_ptr<Job> NextJob() {
    auto job = std::make_shared<Job>();
    auto samples = ahead.NextShare(options.batch_size);
    if (!samples) {  // a place that was loaded can be at an epoch's end
      ahead.set_epoch(ahead.epoch() + 1);
      samples = ahead.NextShare(options.batch_size);
    }
    job->samples = std::move(*samples);
    const std::int64_t left = ahead.size() - ahead.offset();
    job->last = left == 0 || (options.drop_last && left < options.batch_size);
    if (job->last) ahead.set_epoch(ahead.epoch() + 1);
    job->epoch = ahead.epoch();
    job->offset = ahead.offset();
    return job;
  }

  void FillUp() {
    const std::size_t wanted = threads.empty() ? 1 : threads.size() * options.prefetch_factor;
    const std::lock_guard lock(mutex);
    while (jobs.size() < wanted) jobs.push_back(NextJob());
    work.notify_all();
  }

  std::shared_ptr<Job> Await() {
    if (threads.empty()) {
      const std::shared_ptr<Job> job = jobs.front();
      jobs.pop_front();
      Run(job, 0);
      return job;
    }
    std::unique_lock lock(mutex);
    const std::shared_ptr<Job> job = jobs.front();
    done.wait(lock, [&] { return job->done; });
    jobs.pop_front();
    return job;
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

Prefetcher::Prefetcher(std::int64_t dataset_size, const DataLoaderOptions& options,
                       Context& context, Fetch fetch) {
  Check(dataset_size, options, context.world_size());
  DistributedSampler sampler = context.PrepareSampler(
      dataset_size, {.shuffle = options.shuffle, .drop_last = options.drop_last});
  state_.reset(new State{.options = options,
                         .context = context,
                         .fetch = std::move(fetch),
                         .place = sampler,
                         .ahead = sampler});
  for (int thread = 0; thread < options.threads; ++thread) {
    state_->threads.emplace_back([state = state_.get(), thread] { state->ReadAhead(thread); });
  }
}

Prefetcher::~Prefetcher() = default;

std::shared_ptr<void> Prefetcher::Next() {
  State& state = *state_;
  state.FillUp();
  const auto job = state.Await();
  if (job->error) throw Error(Failure(job->error, job->samples, state.context.rank()));
  state.place.MoveTo(job->epoch, job->offset);
  state.epoch_ended = job->last;
  state.FillUp();
  state.context.Heartbeat();
  return job->batch;
}

bool Prefetcher::epoch_ended() const { return state_->epoch_ended; }

const DistributedSampler& Prefetcher::place() const { return state_->place; }

void Prefetcher::MoveTo(const DistributedSampler& place) {
  const std::lock_guard lock(state_->mutex);
  state_->jobs.clear();
  state_->place = state_->ahead = place;
}

}  // namespace attune::inline sdk::trainable
