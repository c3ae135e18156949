// A stack of its own, and the switch from one to another: 20 instructions, no system call. x86-64 only.
#pragma once

#include <cstddef>

namespace gannet::rdma::sim {

// Belongs to one thread of the operating system. Exceptions must not leave a fiber's entry.
class Fiber {
 public:
  // Must not return; argument as given.
  using Entry = void (*)(void* argument);

  // The stack that the thread is on already.
  Fiber() = default;
  // Gives its stack back to the pool, if it has one still.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Takes a stack (from a pool, untouched pages cost nothing); the first switch to this fiber calls `entry`.
  void Prepare(Entry entry, void* argument);
  // Goes on in `to`; returns when somebody switches to `from` again. `from` is the fiber that runs.
  static void Switch(Fiber* from, Fiber* to);
  // The fiber will not run again: its next switch away is its last.
  void Finish() { finished_ = true; }
  // Never frees its stack: other objects may still point into it, or a leak checker may read it.
  void Abandon();

 private:
  static void Begin();
  void Arrived();

  void* stack_pointer_ = nullptr;
  std::byte* stack_ = nullptr;  // lowest usable byte
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  bool finished_ = false;
  // For sanitizers.
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  void* tsan_fiber_ = nullptr;
};

}  // namespace gannet::rdma::sim
