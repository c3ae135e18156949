#include "txn/path/offload_chooser.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/check.h"

namespace gannet::txn {
namespace {

// DEX's constants; its section 6.1 calls them stable, and its published code has these values.
constexpr double kLocalNanos = 40;    // l_s
constexpr double kCacheFactor = 1.2;  // c
// A further READ of a posting: the CPU's share of posting it and of its completion (rdma/sim/costs.cc), an estimate.
constexpr double kReadNanos = 60;
// An atomic takes the NIC a read and a write of the word over PCIe: an estimate.
constexpr double kAtomicNanos = 350;
// l_o before anything was measured: a READ of a small object on a rack (DEX, section 2.1: about 2 us).
constexpr double kUsualPostingNanos = 2'000;
constexpr double kUsualCallNanos = 5'000;
// A call takes its owner's thread away from the calls of others, who wait the longer the busier the threads are. If
// each client took calls until they are no cheaper than READs, nobody would gain anything from them, and their queue
// would be as long as it can be. So a call must be cheaper than READs by a share that grows as the threads get busier:
// by up to 10%, and where queues become long by up to 15% more.
constexpr double kQueuePrice = 0.1;
constexpr double kLongQueues = 0.8;
constexpr double kLongQueuePrice = 0.15;
// A formula that is wrong by more than this has met an outlier.
constexpr double kLeastCorrection = 0.25;
constexpr double kMostCorrection = 16;
// More of a link or an engine is never taken for busy: the price of a byte or a verb stays finite.
constexpr double kMostShare = 0.98;
// A busy owner is not relieved by READs that cost more than this multiple of the call. All sessions back off from it
// together, so with a larger multiple its threads were idle for some of the time, and busy again after it.
constexpr double kMostForRelief = 1.25;

// Accesses that share what one of them leaves in the client's cache: a guess. If there are fewer, the line of what they
// took rises, because it is over the whole formula.
constexpr double kSharers = 8;

double NanosPerByte(const rdma::NodeLoad& load) {
  return load.link_megabytes_per_second == 0 ? 0 : 1000.0 / load.link_megabytes_per_second;
}
double LinkShare(const rdma::NodeLoad& load) {
  return std::min(load.link_share(), kMostShare);
}

// What `verbs` at the owner's NIC delay others.
double EnginePrice(double verbs, const rdma::NodeLoad& load) {
  const double share = std::min(load.engine_share(), kMostShare);
  return verbs * load.verb_picos / 1000 * share / (1 - share);
}

double QueuePrice(double busy) {
  return kQueuePrice * busy + kLongQueuePrice * std::max(busy - kLongQueues, 0.0) / (1 - kLongQueues);
}

// A measurement counts as at most this multiple of what the ones before it predict. Without a core for each thread the
// operating system takes the CPU away in the middle of some accesses, for thousands of times their length, and one of
// those would decide for long. What has really become dearer shows after some measurements nevertheless, because the
// prediction grows with each.
constexpr double kMostOverPrediction = 8;
constexpr uint32_t kTrusted = 3;
double Clipped(double value, double predicted) {
  return predicted > 0 ? std::min(value, kMostOverPrediction * predicted) : value;
}

// `nanos` without the part of it that was estimated. The estimate may be too large; something remains in any case.
double Without(double nanos, double part) {
  return std::max(nanos - part, nanos / 4);
}

// The owner's thread is the only writer, so no atomic addition is needed.
template <class T>
void Add(std::atomic<T>& counter, T amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace

void RecentAverage::Add(double value) {
  if (size_ >= kTrusted) value = Clipped(value, average());
  if (size_ == kMost) {
    sum_ -= static_cast<double>(values_[next_]);
  } else {
    ++size_;
  }
  values_[next_] = static_cast<float>(value);
  sum_ += static_cast<double>(values_[next_]);
  next_ = (next_ + 1) % kMost;
}

// Sums from the start each time, so that no rounding errors add up.
void RecentPairs::Add(double x, double y, uint64_t now) {
  if (size_ >= kTrusted) y = Clipped(y, Predict(x));
  pairs_[next_] = {static_cast<float>(x), static_cast<float>(y), now};
  next_ = (next_ + 1) % kMost;
  const uint32_t most = std::min<uint32_t>(size_ + 1, kMost);
  size_ = 0;
  sum_x_ = sum_y_ = sum_xx_ = sum_xy_ = 0;
  for (uint32_t at = next_; size_ < most; ++size_) {
    at = at == 0 ? kMost - 1 : at - 1;
    if (size_ >= kLeast && now - pairs_[at].at > kOldNanos) break;
    const auto each_x = static_cast<double>(pairs_[at].x);
    const auto each_y = static_cast<double>(pairs_[at].y);
    sum_x_ += each_x;
    sum_y_ += each_y;
    sum_xx_ += each_x * each_x;
    sum_xy_ += each_x * each_y;
  }
}

double RecentPairs::SpreadOfX() const {
  return std::max(sum_xx_ - sum_x_ * sum_x_ / size_, 0.0);
}

double RecentPairs::OnLine(double slope, double x) const {
  return (sum_y_ + std::clamp(slope, 0.0, ratio()) * (x * size_ - sum_x_)) / size_;
}

double RecentPairs::Predict(double x) const {
  return PredictWith(0, 0.003, x);
}

double RecentPairs::PredictProportional(double x) const {
  return PredictWith(ratio(), 0.1, x);
}

double RecentPairs::PredictWith(double assumed_slope, double spread, double x) const {
  if (size_ == 0) return 0;
  if (sum_x_ <= 0) return sum_y_ / size_;
  const double assumed = spread * spread * sum_x_ * sum_x_ / size_;
  const double slope = (sum_xy_ - sum_x_ * sum_y_ / size_ + assumed * assumed_slope) / (SpreadOfX() + assumed);
  return OnLine(slope, x);
}

bool Backoff::Next(const rdma::NodeLoad& load, uint32_t random) {
  if (load.number != seen_) {
    seen_ = load.number;
    const uint32_t accesses = std::exchange(accesses_, 0);
    if (load.servers > kBusy && left_ <= busy_ * kStep) {
      busy_ = std::min(busy_, accesses / kStep) + 1;
      left_ = random % kStep + (busy_ - 1) * kStep;
    } else {
      busy_ = 0;
    }
  }
  ++accesses_;
  if (left_ == 0) return false;
  --left_;
  return true;
}

void OffloadChooser::Resize(size_t tables, size_t nodes, ReadPathPolicy policy) {
  policy_ = policy;
  owners_ = std::vector<PerOwner>(adaptive() ? nodes : 0);
  counters_ = std::vector<Counters>(tables * kAccessKinds);
}

OffloadChooser::Counters::Counters(const Counters& from)
    : one_sided(from.one_sided.load(std::memory_order_relaxed)),
      calls(from.calls.load(std::memory_order_relaxed)),
      backed_off(from.backed_off.load(std::memory_order_relaxed)),
      estimated(from.estimated.load(std::memory_order_relaxed)),
      contrary(from.contrary.load(std::memory_order_relaxed)),
      one_sided_nanos(from.one_sided_nanos.load(std::memory_order_relaxed)),
      call_nanos(from.call_nanos.load(std::memory_order_relaxed)),
      contrary_nanos(from.contrary_nanos.load(std::memory_order_relaxed)) {}

void OffloadChooser::GrowFor(TableId table) {
  constexpr size_t kStep = 64;
  const std::lock_guard lock(grow_mutex_);
  counters_.resize((table / kStep + 1) * kStep * kAccessKinds);
}

size_t OffloadChooser::tables() const {
  const std::lock_guard lock(grow_mutex_);
  return counters_.size() / kAccessKinds;
}

PathChoice OffloadChooser::Fixed(AccessKind kind, TableId table, rdma::NodeId owner, AccessPath path) {
  Count(kind, table, path);
  return {.path = path, .kind = kind, .table = table, .owner = owner};
}

void OffloadChooser::Count(AccessKind kind, TableId table, AccessPath path) {
  Counters& counters = CountersOf(table, kind);
  Add<uint64_t>(path == AccessPath::kCall ? counters.calls : counters.one_sided, 1);
}

double OffloadChooser::Formula(const PerOwner& owner, const index::ReadEstimate& reads) const {
  const double posting = owner.posting.empty() ? kUsualPostingNanos : owner.posting.average();
  const double more = std::max(reads.reads - reads.postings, 0.0);
  double nanos =
      reads.postings * (posting + kLocalNanos) * kCacheFactor + more * kReadNanos + reads.atomics * kAtomicNanos;
  if (reads.calls > 0) {
    const PerKind& gets = Of(owner, AccessKind::kGet);
    nanos += reads.calls * (gets.calls.empty() ? kUsualCallNanos : gets.calls.Predict(1));
  }
  return nanos;
}

index::ReadEstimate OffloadChooser::ShareOf(const index::ReadEstimate& reads) {
  constexpr double kOfOthers = 1 - 1 / kSharers;
  index::ReadEstimate share = reads;
  share.postings -= reads.lasting_postings * kOfOthers;
  share.calls -= reads.lasting_calls * kOfOthers;
  return share;
}

double OffloadChooser::OneSidedCost(const AskedAccess& asked, const rdma::NodeLoad& load) const {
  const PerOwner& owner = owners_[asked.owner];
  const RecentPairs& taken = Of(owner, asked.kind).one_sided;
  const double formula = Formula(owner, ShareOf(asked.reads));
  const double nanos = taken.empty() ? formula
                                     : std::clamp(taken.PredictProportional(formula), formula * kLeastCorrection,
                                                  formula * kMostCorrection);
  return nanos + asked.reads.bytes * NanosPerByte(load) / (1 - LinkShare(load)) + EnginePrice(asked.reads.reads, load);
}

double OffloadChooser::CallCost(const AskedAccess& asked, const rdma::NodeLoad& load) const {
  const RecentPairs& taken = Of(owners_[asked.owner], asked.kind).calls;
  const double share = LinkShare(load);
  const double nanos = taken.empty() ? kUsualCallNanos : taken.Predict(asked.answer_bytes);
  return nanos * (1 + QueuePrice(load.server_share())) + asked.answer_bytes * NanosPerByte(load) * share / (1 - share) +
         EnginePrice(1, load);
}

// True if this access takes the dearer path. `drawn`: 32 random bits.
bool OffloadChooser::GoesContrary(double cheaper, double dearer, uint32_t drawn) {
  const double most = kMostSpentOnContrary * cheaper;
  const double probability = kContrary * (dearer - cheaper) <= most ? kContrary : most / (dearer - cheaper);
  return drawn < probability * 0x1p32;
}

PathChoice OffloadChooser::Choose(const AskedAccess& asked, const rdma::NodeLoad& load, Random& random) {
  PerOwner& owner = owners_[asked.owner];
  PerKind& kind = Of(owner, asked.kind);
  Counters& counters = CountersOf(asked.table, asked.kind);
  const uint64_t drawn = random();
  const bool back_off = owner.backoff.Next(load, static_cast<uint32_t>(drawn >> 32));

  PathChoice choice{.kind = asked.kind, .table = asked.table, .owner = asked.owner};
  std::array<uint32_t, 2>& tried = kind.tried;
  const auto index_of = [](AccessPath path) { return static_cast<size_t>(path); };
  if (std::min(tried[0], tried[1]) < kProbes) [[unlikely]] {
    choice.path = tried[0] <= tried[1] ? AccessPath::kOneSided : AccessPath::kCall;
    choice.measured = true;
    choice.warms_up = tried[index_of(choice.path)]++ == 0;
  } else {
    const double one_sided = OneSidedCost(asked, load);
    const double call = CallCost(asked, load);
    Add<uint64_t>(counters.estimated, 1);
    Add(counters.one_sided_nanos, one_sided);
    Add(counters.call_nanos, call);
    choice.path = call < one_sided ? AccessPath::kCall : AccessPath::kOneSided;
    // Catfish loses to calls where the link is the bottleneck, because it knows only the CPU (section 5.3.3).
    const bool relieves = load.link <= Backoff::kBusy && one_sided <= kMostForRelief * call;
    if (back_off && relieves && choice.path == AccessPath::kCall) {
      choice.path = AccessPath::kOneSided;
      Add<uint64_t>(counters.backed_off, 1);
    } else if (GoesContrary(std::min(one_sided, call), std::max(one_sided, call), static_cast<uint32_t>(drawn))) {
      choice.contrary = true;
      choice.path = choice.path == AccessPath::kCall ? AccessPath::kOneSided : AccessPath::kCall;
      Add<uint64_t>(counters.contrary, 1);
    }
    choice.measured = choice.contrary || (drawn >> 62) % kMeasureOneIn == 0;
    choice.other_nanos = static_cast<float>(choice.path == AccessPath::kCall ? one_sided : call);
  }
  Count(asked.kind, asked.table, choice.path);
  if (!choice.measured) return choice;
  const index::ReadEstimate& reads = asked.reads;
  choice.bytes_nanos = static_cast<float>(reads.bytes * NanosPerByte(load));
  choice.reads_nanos = static_cast<float>(std::max(reads.reads - reads.postings, 0.0) * kReadNanos);
  choice.formula = static_cast<float>(Formula(owner, reads));
  choice.answer = static_cast<float>(asked.answer_bytes);
  return choice;
}

void OffloadChooser::Record(const PathChoice& choice, double nanos, const rdma::Activity& activity, uint64_t now) {
  if (choice.contrary && choice.other_nanos > 0) {
    Add(CountersOf(choice.table, choice.kind).contrary_nanos, nanos - static_cast<double>(choice.other_nanos));
  }
  if (choice.warms_up) return;
  PerOwner& owner = owners_[choice.owner];
  PerKind& kind = Of(owner, choice.kind);
  if (choice.path == AccessPath::kCall) return kind.calls.Add(static_cast<double>(choice.answer), nanos, now);
  if (activity.postings > 0) {
    const auto whole = static_cast<double>(activity.posting_nanos);
    const double latency = Without(whole, static_cast<double>(choice.bytes_nanos + choice.reads_nanos));
    owner.posting.Add(latency / static_cast<double>(activity.postings));
  }
  if (choice.formula <= 0) return;
  kind.one_sided.Add(static_cast<double>(choice.formula), Without(nanos, static_cast<double>(choice.bytes_nanos)), now);
}

PathStatistics OffloadChooser::statistics(TableId table, AccessKind kind) const {
  const std::lock_guard lock(grow_mutex_);
  const size_t place = table * kAccessKinds + static_cast<size_t>(kind);
  if (place >= counters_.size()) return {};
  const Counters& from = counters_[place];
  PathStatistics statistics;
  statistics.one_sided = from.one_sided.load(std::memory_order_relaxed);
  statistics.calls = from.calls.load(std::memory_order_relaxed);
  statistics.backed_off = from.backed_off.load(std::memory_order_relaxed);
  statistics.estimated = from.estimated.load(std::memory_order_relaxed);
  statistics.one_sided_nanos = from.one_sided_nanos.load(std::memory_order_relaxed);
  statistics.call_nanos = from.call_nanos.load(std::memory_order_relaxed);
  statistics.contrary = from.contrary.load(std::memory_order_relaxed);
  statistics.contrary_nanos = from.contrary_nanos.load(std::memory_order_relaxed);
  return statistics;
}

}  // namespace gannet::txn
