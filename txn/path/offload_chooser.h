// OffloadChooser: chooses the path of each access to another node's records: one-sided (READs of the index and of the
// records), or a call to the owner, which does both.
//
//   const PathChoice choice = chooser.Choose(asked, epochs.LoadOf(owner), random);
//   ... the access, by choice.path; if choice.measured, with its time and its Activity (rdma/fabric.h) ...
//   chooser.Record(choice, nanos, activity);
//
// Costs are estimated in nanoseconds and compared, as in DEX (VLDB'24, section 6.1):
//
//   one-sided   taken(postings * (l_o + l_s) * c + more READs * l_v) + bytes * link / (1 - u) + READs * engine
//   call        l_p * (1 + price) + bytes * link * u / (1 - u) + engine
//
//   postings    from index::ReadEstimate, with the READ of the records: what the client's caches lack takes more. Later
//               accesses use what this one leaves in the caches, so only a share of that counts. Otherwise accesses
//               would be calls because the caches are empty, and the caches would stay empty because all are calls.
//   l_o         average time of one posting to the owner, over the last 50 measured accesses, without its bytes
//   l_s, c      local work of one step, and what it costs to keep the caches: 40 ns and 1.2, the constants of DEX's
//               published code (include/cache/latency_collector.h)
//   l_v         a further READ of a posting
//   taken       what the last 50 one-sided accesses of this kind really took, as a line over the formula. READs are
//               repeated when a record was locked or had changed, or a cache was stale: this appears here. (With a
//               ratio in place of the line, short accesses that wait for locks made long ones look dear.)
//   l_p         what the last 50 calls of this kind took, as a line over the size of the answer
//   price       a call makes other calls wait for the owner's threads. Its price is a share of l_p: 0.1 times the share
//               of time that the threads are busy. From 0.8 on it rises faster, by up to 0.15 more.
//   link        time of a byte on the owner's link, and u, the link's announced share (rdma/statistics.h). A byte of an
//               own answer takes longer the less of the link is left; both paths delay others by what they take. So
//               where links are full the path with fewer bytes wins. Not known on most fabrics: then there is no such
//               term.
//   engine      what a verb delays others at the engine of the owner's NIC that serves them: its time * e / (1 - e),
//               where e is the announced share of the time in which the engine is busy. So where it is full the path
//               with fewer verbs wins. Not known on most fabrics, like the link.
//
// All of this is kept per owner and kind of access. Time in which the worker ran other coroutines does not count:
// Activity::late_nanos. Accesses that end with a conflict count like others.
//
// With a probability of 1% the dearer path is taken, so that a change is noticed (DEX); less often if it is so much
// dearer that this would cost more than 2% of the time. The decision uses the session's random numbers: sessions do not
// explore together. The first accesses take both paths in turn; the very first of each, which opens connections and
// caches, is not measured. After that one in four of the others is measured: looks at the clock would cost more than
// they tell. Of the 50 measurements those older than 10 ms are dropped, down to 16: the dearer path is measured
// rarely, and 50 old measurements would hide for long that it became cheap.
//
// Last, an owner that announces that its threads are busy is left alone for a while: Backoff.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/thread.h"
#include "index/index.h"
#include "index/registry.h"
#include "rdma/fabric.h"
#include "rdma/statistics.h"
#include "txn/store/options.h"
#include "txn/store/statistics.h"
#include "txn/store/table.h"

namespace gannet::txn {

// The last 50 values, and their average. The default is DEX's number of samples.
class RecentAverage {
 public:
  static constexpr size_t kMost = 50;

  void Add(double value);
  bool empty() const { return size_ == 0; }
  double average() const { return size_ == 0 ? 0 : sum_ / static_cast<double>(size_); }

 private:
  std::array<float, kMost> values_{};
  uint32_t size_ = 0;
  uint32_t next_ = 0;
  double sum_ = 0;
};

// Pairs (x, y): predicts y of an x by their ratio, or by the line through them. Of the last 50 pairs it keeps those
// that are younger than 10 ms, and at least 16. (With eight, long searches that differ much were estimated too badly.)
class RecentPairs {
 public:
  static constexpr size_t kMost = RecentAverage::kMost;
  static constexpr uint32_t kLeast = 16;
  static constexpr uint64_t kOldNanos = 10'000'000;

  // `now`: of NowNanos, never less than in the call before.
  void Add(double x, double y, uint64_t now);
  bool empty() const { return size_ == 0; }
  // Sum of y over sum of x.
  double ratio() const { return sum_x_ > 0 ? sum_y_ / sum_x_ : 0; }
  // The line of least squares. It neither falls, nor begins below 0 at x = 0. Where the xs hardly differ, and so say
  // little about a slope, it is level.
  double Predict(double x) const;
  // Does what Predict does, for a y that is about proportional to x: where the xs hardly differ, the line is that of
  // the ratio.
  double PredictProportional(double x) const;

 private:
  // The line of least squares of the pairs, and of as many others that lie on a line with `assumed_slope`; the xs of
  // these differ from the mean by `spread` times the mean.
  double PredictWith(double assumed_slope, double spread, double x) const;
  // The sum of squares of the differences of x from their mean.
  double SpreadOfX() const;
  // The value at x of the line through the means; `slope` is kept between level and the ratio.
  double OnLine(double slope, double x) const;

  struct Pair {
    float x;
    float y;
    uint64_t at;
  };
  std::array<Pair, kMost> pairs_{};
  uint32_t size_ = 0;
  uint32_t next_ = 0;
  double sum_x_ = 0, sum_y_ = 0, sum_xx_ = 0, sum_xy_ = 0;
};

// Algorithm 1 of Catfish (TSAS'22, section 4.1) for one owner: while the owner announces that its threads are busier
// than 95%, accesses are taken off it for a random number of times that grows, 0..7, then 8..15, and so on.
//
// Two differences. The paper's pseudocode also resets its counter at each request that finds no new heartbeat, so that
// the number could grow only if a request came once per heartbeat; here it counts announcements, as its text says. And
// there it has no upper bound: here a back-off is at most about as long as the accesses between two announcements, the
// second of which can extend it. So an owner that becomes idle is not avoided for long.
class Backoff {
 public:
  static constexpr uint32_t kBusy = 950;  // T, in thousandths
  static constexpr uint32_t kStep = 8;    // N

  // Called once for each access to the owner, with its newest announcement and a random number. True: this access
  // should not burden the owner.
  bool Next(const rdma::NodeLoad& load, uint32_t random);

  uint32_t busy_rounds() const { return busy_; }
  uint32_t left() const { return left_; }

 private:
  uint32_t seen_ = 0;      // number of the last announcement
  uint32_t accesses_ = 0;  // since then
  uint32_t busy_ = 0;      // r_busy: announcements in a row
  uint32_t left_ = 0;      // r_off
};

// What is to be done, all at one owner.
struct AskedAccess {
  AccessKind kind = AccessKind::kGet;
  TableId table = 0;  // for the statistics; of several tables: the first
  rdma::NodeId owner = 0;
  index::ReadEstimate reads{};  // one-sided; with the READs of the records
  double answer_bytes = 0;      // of the call
};

struct PathChoice {
  AccessPath path = AccessPath::kOneSided;
  bool measured = false;  // call Record when the access has ended
  bool contrary = false;
  bool warms_up = false;  // its time says nothing about later ones
  AccessKind kind = AccessKind::kGet;
  TableId table = 0;
  rdma::NodeId owner = 0;
  float bytes_nanos = 0;  // of the time in postings: bytes on the link, and the further READs
  float reads_nanos = 0;
  float formula = 0;      // estimated by DEX's formula, without what was taken and without the link's price
  float answer = 0;       // size of the call's answer
  float other_nanos = 0;  // estimate of the path that was not taken; 0: not compared
};

// Not thread-safe, except statistics(): one per session.
class OffloadChooser {
 public:
  static constexpr double kContrary = 0.01;
  static constexpr double kMostSpentOnContrary = 0.02;
  static constexpr uint32_t kMeasureOneIn = 4;
  // First accesses of each owner and kind that take each path.
  static constexpr uint32_t kProbes = 4;

  void Resize(size_t tables, size_t nodes, ReadPathPolicy policy);
  ReadPathPolicy policy() const { return policy_; }
  bool adaptive() const { return policy_ == ReadPathPolicy::kAdaptive; }

  // The path of a fixed policy for tables with these traits.
  AccessPath FixedPath(const index::IndexTraits& traits) const {
    const bool by_call =
        policy_ == ReadPathPolicy::kCall || (policy_ == ReadPathPolicy::kOrderedByCall && traits.ordered);
    return by_call ? AccessPath::kCall : AccessPath::kOneSided;
  }
  // A choice that is not the chooser's. It is counted, and not measured.
  PathChoice Fixed(AccessKind kind, TableId table, rdma::NodeId owner, AccessPath path);
  // The adaptive choice. `load`: what the owner announced last.
  PathChoice Choose(const AskedAccess& asked, const rdma::NodeLoad& load, Random& random);
  // The access has ended, with or without success; not for an owner that could not be reached. `nanos`: how long it
  // took, without the time of others. `now`: of NowNanos.
  void Record(const PathChoice& choice, double nanos, const rdma::Activity& activity, uint64_t now);

  // The path of an insert into a table with these traits, at an owner that announced `load` last, if both are possible.
  // Adaptive: with verbs the thread does nothing else for two round trips. So a call, if the owner's threads have time.
  // (Removals are always calls; with a log they must be: durable/removal_versions.h.)
  AccessPath PathOfInsert(const index::IndexTraits& traits, const rdma::NodeLoad& load) const {
    if (!traits.client_writes) return AccessPath::kCall;
    if (!adaptive()) return FixedPath(traits);
    return load.known() && load.servers >= kBusyForInserts ? AccessPath::kOneSided : AccessPath::kCall;
  }
  static constexpr uint32_t kBusyForInserts = 500;  // thousandths
  // Counts an access whose path was not chosen for itself: an insert or a removal, or a further table of a GetMany.
  void Count(AccessKind kind, TableId table, AccessPath path);

  // Estimates in nanoseconds, as Choose compares them; for tests and reports.
  double OneSidedCost(const AskedAccess& asked, const rdma::NodeLoad& load) const;
  double CallCost(const AskedAccess& asked, const rdma::NodeLoad& load) const;

  // The number of tables that have counters: as many as Resize said, or more if the session has used tables that were
  // created later. Any thread.
  size_t tables() const;
  // Any thread may call this.
  PathStatistics statistics(TableId table, AccessKind kind) const;

 private:
  // What is known about accesses of one kind to one owner.
  struct PerKind {
    std::array<uint32_t, 2> tried{};  // by AccessPath, up to kProbes
    RecentPairs one_sided;            // (formula, taken)
    RecentPairs calls;                // (size of the answer, taken)
  };
  struct PerOwner {
    RecentAverage posting;  // l_o
    Backoff backoff;
    // The kinds before kInsert: those for which there is a choice.
    std::array<PerKind, static_cast<size_t>(AccessKind::kInsert)> kinds;
  };
  // Written by the session's thread only.
  struct Counters {
    std::atomic<uint64_t> one_sided{0}, calls{0}, backed_off{0}, estimated{0}, contrary{0};
    std::atomic<double> one_sided_nanos{0}, call_nanos{0}, contrary_nanos{0};

    Counters() = default;
    Counters(const Counters& from);  // when the vector grows
    Counters& operator=(const Counters&) = delete;
  };

  static PerKind& Of(PerOwner& owner, AccessKind kind) { return owner.kinds[static_cast<size_t>(kind)]; }
  static const PerKind& Of(const PerOwner& owner, AccessKind kind) { return owner.kinds[static_cast<size_t>(kind)]; }
  Counters& CountersOf(TableId table, AccessKind kind) {
    const size_t place = table * kAccessKinds + static_cast<size_t>(kind);
    if (place >= counters_.size()) [[unlikely]]
      GrowFor(table);
    return counters_[place];
  }
  [[gnu::cold]] void GrowFor(TableId table);
  double Formula(const PerOwner& owner, const index::ReadEstimate& reads) const;
  // `reads` with only this access's share of what it leaves in the client's cache.
  static index::ReadEstimate ShareOf(const index::ReadEstimate& reads);
  static bool GoesContrary(double cheaper, double dearer, uint32_t drawn);

  ReadPathPolicy policy_ = ReadPathPolicy::kAdaptive;
  std::vector<PerOwner> owners_;
  std::vector<Counters> counters_;  // by table and kind
  // Held while counters_ grows, and by other threads that read it. The session's thread, which alone changes it, needs
  // it for nothing else.
  mutable Mutex grow_mutex_;
};

}  // namespace gannet::txn
