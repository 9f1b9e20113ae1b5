#pragma once

namespace attune::inline sdk {

// For programs that drive training from their own main(), with TorchTrainer or WorkerGroup: comes
// first there. From here on this process is the driver, which may do what it likes: start threads,
// use tensors. Workers are forked from what the process was at this call, in milliseconds, and
// never return from it; their Context::args() are the program's.
//
// Everything ends with the driver, however it ends: no worker outlives it.
//
// What is done before is done once for all workers, and its memory is shared: the place to read
// data that each needs. What is done later, setenv() too, they do not see.
//
// The driver has one child, which ends with it: wait for children of your own by their pids.
//
// Throws attune::Error when it is called twice, and in a program that an executor has started,
// which trains by attune::Main().
//
// REQUIRES: nothing has touched a tensor or started a thread before; the latter is checked.
void Init(int argc, char** argv);

}  // namespace attune::inline sdk
