// Where coroutine frames come from: a free list per thread and size class, so that steady state asks the heap for
// nothing. A frame may be freed on another thread than the one that made it; it then joins that thread's list.
#pragma once

#include <cstddef>

namespace gannet::coro {

// Never fails (a heap that is exhausted stops the program). Thread-safe.
void* AllocateFrame(size_t bytes);
void FreeFrame(void* frame, size_t bytes) noexcept;

// Frames this thread has asked of the heap so far; constant in steady state. For tests.
size_t HeapFramesOfThisThread();

}  // namespace gannet::coro
