// Prefaulter: has the kernel back memory with pages before it is first touched, in a thread of its own.
//
// The first touch of a page stops the thread that does it until the kernel has found and cleared one: 0.1 ms for a huge
// page, and some ms in a virtual machine whose host has to find it too. An allocator that hands memory out in the order
// of its addresses knows what is touched next. So the pages for an eighth more than what is in use, 16 MiB at most, are
// got ahead; that much more is resident, and no more. Memory in use below 16 MiB is left alone.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

namespace gannet::rdma {

class Prefaulter {
 public:
  // Memory from `begin` on, mapped and writable until this is destroyed.
  Prefaulter(std::byte* begin, size_t bytes);
  ~Prefaulter();
  Prefaulter(const Prefaulter&) = delete;
  Prefaulter& operator=(const Prefaulter&) = delete;

  // The first `used` bytes are in use now. Never less than before; from one thread at a time. Does not wait for pages.
  void Advance(size_t used) {
    if (used >= wake_at_) [[unlikely]]
      Wake(used);
  }

  // As if in use up to `end`, but for what is got ahead of it: for whoever knows what will be needed. As Advance.
  void Reserve(size_t end);

  // Waits until what was asked for is there, or the kernel refused; returns how far from `begin` pages were got.
  size_t Drain();

 private:
  void Wake(size_t used);
  void Run();

  std::byte* const begin_;
  const size_t bytes_;
  size_t wake_at_;  // the caller's own

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  size_t wanted_ = 0;
  size_t got_ = 0;
  bool stop_ = false;   // the object is going, or the kernel cannot do it
  std::thread thread_;  // started at the first need
};

}  // namespace gannet::rdma
