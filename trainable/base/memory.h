#pragma once

namespace attune::inline sdk::trainable {

// Keeps freed memory in the process, because the next step needs it again. By default glibc returns
// large blocks to the kernel, which clears their pages again in every step, and each such block
// raises these limits. Limits that the user has set have precedence.
void KeepFreedMemory();

// Makes the malloc() arenas of the two threads that each rank starts. A thread without an arena
// makes one, and the kernel clears a huge page of 2 MB for it. A process that is forked later takes
// these arenas instead, and copies only the small pages that it writes.
//
// REQUIRES: the process has one thread.
void MakeArenasOfRanks();

}  // namespace attune::inline sdk::trainable
