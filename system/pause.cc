#include "system/pause.h"

#include <condition_variable>
#include <mutex>

namespace attune {

bool PauseUnlessStopped(std::chrono::milliseconds pause, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, pause, [] { return false; });
  return stop.stop_requested();
}

}  // namespace attune
