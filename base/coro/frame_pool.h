// Allocator of coroutine frames: a free list per thread and size class, so that in steady state nothing is allocated
// from the heap. A frame may be freed on another thread than the one that allocated it; it then joins that thread's
// list.
#pragma once

#include <cstddef>

namespace gannet::coro {

// Never fails (if the heap is exhausted, the program stops). Thread-safe.
void* AllocateFrame(size_t bytes);
void FreeFrame(void* frame, size_t bytes) noexcept;

// Number of frames that this thread has allocated so far, and number of those that came from the heap. The latter is
// constant in steady state. For tests.
size_t FramesOfThisThread();
size_t HeapFramesOfThisThread();

}  // namespace gannet::coro
