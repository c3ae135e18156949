// ManyReadersLock: a lock for data that threads read all the time and change rarely.
//
//   ManyReadersLock lock;                         // of the data
//   ManyReadersLock::Reader reader(&lock);        // of each user, for as long as it uses the data
//
//   const std::lock_guard reading(reader);        // others read, too; nobody changes anything
//   const std::lock_guard changing(lock);         // nobody else reads or changes anything
//
// Each reader has a mutex of its own, in a cache line of its own, so readers of several threads do not disturb each
// other: what a read costs is a lock that only its own thread takes. A change takes the mutexes of all readers, which
// costs about a cache miss for each. (One word with the number of readers would be written by all of them.)
//
// A Reader is used by one thread at a time. Who holds its lock must not ask for the lock of the data, or of another
// reader of it.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/cache_line.h"
#include "base/thread.h"

namespace gannet {

class ManyReadersLock {
 public:
  class alignas(kLineBytes) Reader {
   public:
    // `lock` must outlive this.
    explicit Reader(ManyReadersLock* lock) : lock_(lock) {
      const std::lock_guard guard(lock_->changes_);
      lock_->readers_.push_back(this);
    }
    ~Reader() {
      const std::lock_guard guard(lock_->changes_);
      std::erase(lock_->readers_, this);
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

   private:
    friend class ManyReadersLock;
    Mutex mutex_;
    ManyReadersLock* const lock_;
  };

  // While `changes_` is held, no reader is added and no other change begins: so all take the readers' mutexes in the
  // same order.
  void lock() {
    changes_.lock();
    for (Reader* const reader : readers_) reader->mutex_.lock();
  }
  void unlock() {
    for (Reader* const reader : readers_) reader->mutex_.unlock();
    changes_.unlock();
  }

 private:
  Mutex changes_;  // guards the next member
  std::vector<Reader*> readers_;
};

}  // namespace gannet
