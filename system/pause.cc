#include "system/pause.h"

#include <condition_variable>
#include <mutex>

namespace attune {

// GCC 12 warns of std::condition_variable_any, which takes a stop_token itself.
bool PauseUnlessStopped(std::chrono::milliseconds pause, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable stopped;
  const std::stop_callback wake(stop, [&] {
    const std::lock_guard lock(mutex);
    stopped.notify_all();
  });
  std::unique_lock lock(mutex);
  return stopped.wait_for(lock, pause, [&] { return stop.stop_requested(); });
}

}  // namespace attune
