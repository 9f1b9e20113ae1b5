#pragma once

namespace attune::inline sdk {

// Prepares a program that trains from its own main(), with TorchTrainer or WorkerGroup. Call it
// first in main(). Afterwards this process is the driver: it may start threads and use tensors.
// Workers are forked in milliseconds from the state of the process at this call, and never return
// from it. Their Context::args() are the program's arguments.
//
// Workers end with the driver, however the driver ends.
//
// Work before this call is done once for all workers, and its memory is shared: read data that
// every worker needs here. Workers do not see later changes, including setenv().
//
// The driver has one child process, which ends with it. Wait for your own children by their process
// ids.
//
// Throws attune::Error if it is called twice, or in a program that an executor started. Such a
// program trains with attune::Main().
//
// REQUIRES: the process has not used a tensor or started a thread before. Threads are checked.
void Init(int argc, char** argv);

}  // namespace attune::inline sdk
