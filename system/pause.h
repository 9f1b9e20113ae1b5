#pragma once

#include <chrono>
#include <stop_token>

namespace attune {

// Waits for this long, or until `stop` is requested. Returns whether it was requested.
bool PauseUnlessStopped(std::chrono::milliseconds pause, const std::stop_token& stop);

}  // namespace attune
