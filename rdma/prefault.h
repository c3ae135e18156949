// Prefaulter: makes the kernel back memory with pages before it is first touched, from a thread of its own.
//
// The first touch of a page blocks the touching thread until the kernel has found and cleared a page: 0.1 ms for a huge
// page, and some ms in a virtual machine whose host must find a page, too. An allocator that hands out memory in
// address order knows which memory is touched next. So the prefaulter gets the pages for an eighth of the memory in use
// ahead of it, 16 MiB at most; no more than that becomes resident early. It does nothing while less than 16 MiB are in
// use.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

namespace gannet::rdma {

class Prefaulter {
 public:
  // The memory at `begin` stays mapped and writable until this is destroyed.
  Prefaulter(std::byte* begin, size_t bytes);
  ~Prefaulter();
  Prefaulter(const Prefaulter&) = delete;
  Prefaulter& operator=(const Prefaulter&) = delete;

  // Tells that the first `used` bytes are in use now. `used` never shrinks. One thread at a time. Does not wait for
  // pages.
  void Advance(size_t used) {
    if (used >= wake_at_) [[unlikely]]
      Wake(used);
  }

  // Gets the pages up to `end`, and none beyond: for callers that know how much they will need. Threads as in Advance.
  void Reserve(size_t end);

  // Waits until the requested pages are there or the kernel has refused. Returns the number of bytes from `begin` that
  // have pages.
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
  bool stop_ = false;   // the object is being destroyed, or the kernel has refused
  std::thread thread_;  // started at the first need
};

}  // namespace gannet::rdma
