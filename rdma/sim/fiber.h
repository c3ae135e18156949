// A fiber: a stack, and the switch from one stack to another (20 instructions, no system call). x86-64 only.
#pragma once

#include <cstddef>

namespace gannet::rdma::sim {

// Belongs to one thread of the operating system. Exceptions must not leave a fiber's entry.
class Fiber {
 public:
  // Must not return. `argument` is the one given to Prepare.
  using Entry = void (*)(void* argument);

  // A fiber for the stack that the thread already runs on.
  Fiber() = default;
  // Returns its stack to the pool, unless it was abandoned.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Takes a stack from a pool (untouched pages cost nothing). The first switch to this fiber calls `entry`.
  void Prepare(Entry entry, void* argument);
  // Continues in `to`; returns at the next switch to `from`. `from` must be the running fiber.
  static void Switch(Fiber* from, Fiber* to);
  // The fiber will not run again: its next switch away is its last.
  void Finish() { finished_ = true; }
  // Gives up the stack without freeing it: other objects may still point into it, and leak checkers may read it.
  void Abandon();

 private:
  static void Begin();
  void Arrived();

  void* stack_pointer_ = nullptr;
  std::byte* stack_ = nullptr;  // lowest usable byte
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  bool finished_ = false;
  // The fiber's stack as sanitizers see it.
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  void* tsan_fiber_ = nullptr;
};

}  // namespace gannet::rdma::sim
