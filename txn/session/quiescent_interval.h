// QuiescentInterval: a time in which no session of a node changed a record. A transaction that reads many records and
// writes nothing need not look at each of them a second time, when it commits, if no record was changed meanwhile.
//
// Each session has two counters: how often it has begun to change records, and how often it has ended. Only the session
// writes them. A transaction that has read many records, or is about to, looks at the counters of all sessions. If none
// of them is in the middle of a change, this may be the beginning of a quiescent interval. At the commit it looks at
// them again: if no session has begun since, what was read after the beginning is still so, and only the records that
// it read before are validated one by one. If not, all of them are.
//
// Why it holds. Let T find ended == begun = n of a session S, and begun == n again at its commit.
//  - What S changed in its first n commits was done when T looked first, and T's later reads see it: S stores `ended`
//    after the last change, with release, and T loads it with acquire. T reads `ended` before `begun`, so S was in no
//    change when T read `begun`.
//  - Nothing that T read is of a later commit of S. S stores `begun` before it locks a record, and stores to the state
//    words of records with release. T loads these with acquire, and `begun` after them. So with the new word of a
//    record, T would have seen the new `begun`.
// Then all that T read after its first look is what the records held at that look, and T comes before the commits that
// it has not seen.
//
// It is about the records of a node that is alone, which only the CPU of the node changes. Records are also changed
// where no transaction reads the table: bulk loads, WidenTable, ArrangeTable, DropTable and recovery do not count.
// Indexes are no part of it: witnesses are validated as always.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "base/check.h"

namespace gannet::txn {

// How often one session has begun and ended to change records. Only the thread of the session writes it.
struct alignas(kLineBytes) ChangeCounter {
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> ended{0};
};

// The counters of all sessions of a node. Thread-safe.
class ChangeCounters {
 public:
  static constexpr size_t kMostSessions = 128;  // that are open at a time

  // The counter of an open session. Numbers are used again after a session was closed.
  ChangeCounter* Of(size_t number) {
    GANNET_CHECK(number < kMostSessions, "a session has the number %zu", number);
    size_t used = used_.load(std::memory_order_relaxed);
    while (used <= number && !used_.compare_exchange_weak(used, number + 1, std::memory_order_release)) {
    }
    return &counters_[number];
  }

  // The most sessions that have been open at a time.
  size_t sessions() const { return used_.load(std::memory_order_relaxed); }
  // Number of changes that all sessions have begun.
  uint64_t Begun() const {
    uint64_t begun = 0;
    const size_t used = used_.load(std::memory_order_acquire);
    for (size_t i = 0; i < used; ++i) {
      begun += counters_[i].begun.load(std::memory_order_acquire);
    }
    return begun;
  }
  // Counts as Begun does. Returns false if one of them is in progress; *begun means nothing then.
  bool BegunAndEnded(uint64_t* begun) const {
    *begun = 0;
    const size_t used = used_.load(std::memory_order_acquire);
    for (size_t i = 0; i < used; ++i) {
      const uint64_t ended = counters_[i].ended.load(std::memory_order_acquire);
      const uint64_t begun_here = counters_[i].begun.load(std::memory_order_acquire);
      if (ended != begun_here) return false;
      *begun += begun_here;
    }
    return true;
  }

 private:
  std::array<ChangeCounter, kMostSessions> counters_;
  std::atomic<size_t> used_{0};
};

// While it lives, its session may change records. Null: nobody counts that.
class ChangingRecords {
 public:
  explicit ChangingRecords(ChangeCounter* counter) : counter_(counter) {
    if (counter_ == nullptr) return;
    // This store comes before the changes, whose stores to state words are releases.
    counter_->begun.store(counter_->begun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  ~ChangingRecords() {
    if (counter_ == nullptr) return;
    counter_->ended.store(counter_->ended.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  ChangingRecords(const ChangingRecords&) = delete;
  ChangingRecords& operator=(const ChangingRecords&) = delete;

 private:
  ChangeCounter* const counter_;
};

// What one transaction knows of a quiescent interval.
class QuiescentInterval {
 public:
  // Counters of sessions are looked at twice, and those of sessions that write are in other caches. So a transaction
  // that reads fewer records, or less than kRecordsForSession for each session, validates them in less time.
  static constexpr size_t kLeastRecords = 48;
  static constexpr size_t kRecordsForSession = 16;
  // After a quiescent interval that ended too early, so many transactions with fewer records than kManyRecords do not
  // look for one.
  static constexpr size_t kManyRecords = 256;
  static constexpr int kPause = 16;

  // The transaction has read `records` records, and will read `more`, if it is known: else 0. `counters`: null if
  // nobody counts changes.
  void Look(const ChangeCounters* counters, size_t records, size_t more) {
    if (records + more >= kLeastRecords && looks_ < kMostLooks && counters != nullptr) [[unlikely]]
      LookNow(*counters, records, more);
  }
  // The transaction has read all that it reads, `records` records, and writes nothing. The number of those, from the
  // first on, that have to be validated.
  size_t RecordsInDoubt(const ChangeCounters* counters, size_t records) {
    if (!begun_known_) return records;
    if (counters->Begun() == begun_) return std::min(read_before_, records);
    pause_ = kPause;
    return records;
  }
  void Clear() {
    looks_ = 0;
    begun_known_ = false;
  }

 private:
  static constexpr int kMostLooks = 4;

  void LookNow(const ChangeCounters& counters, size_t records, size_t more) {
    const size_t all = records + more;
    if (all < kRecordsForSession * counters.sessions()) return;
    ++looks_;
    if (all < kManyRecords && pause_ > 0) {
      --pause_;
      looks_ = kMostLooks;
      return;
    }
    if (!counters.BegunAndEnded(&begun_)) return;
    begun_known_ = true;
    read_before_ = records;
    looks_ = kMostLooks;
  }

  int looks_ = 0;
  bool begun_known_ = false;
  int pause_ = 0;           // transactions that do not look for a quiescent interval
  uint64_t begun_ = 0;      // ChangeCounters::Begun() when the quiescent interval began
  size_t read_before_ = 0;  // number of records that were read before that
};

}  // namespace gannet::txn
