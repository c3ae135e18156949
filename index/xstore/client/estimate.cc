// XStore at a client: what lookups and scans would take by READs, as the cache stands now.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/runtime.h"
#include "index/xstore/client/remote_of.h"

namespace gannet::index::xstore {
namespace {

// A leaf that is not known well: half full, as splits leave it.
template <int W>
constexpr double kUsualCount = LeafLayout<W>::kSlots / 2.0;
// Entries of a translation table that is not known.
constexpr double kUsualTable = 64;

double Batches(double n, size_t batch) {
  return std::ceil(n / static_cast<double>(batch));
}

}  // namespace

// Follows Lookup::Start up to the READ of the slots, which the model mostly predicts rightly.
template <int W>
ReadEstimate RemoteOf<W>::EstimateLookup(const Words& key) const {
  using Layout = LeafLayout<W>;
  Charge(Cost::kModelStep);
  ReadEstimate estimate{.postings = 1, .reads = 1, .bytes = Layout::kBytes, .keys = 1};
  const TopModel::Place place = cache_->top().Locate(key);
  SubModel model;
  SubModel::Range range{};
  uint32_t middle = 0;
  auto count = static_cast<uint32_t>(kUsualCount<W>);
  const auto look = [&](const CachedTable& table) {
    model = table.model();
    range = model.Predict(place.x);
    middle = range.first + (range.last - range.first) / 2;
    count = std::min<uint32_t>(table.entry(middle).count, Layout::kSlots);
  };
  uint32_t block = 0;
  const bool line_consistent = channel_->capabilities().line_consistent;
  if (!line_consistent) estimate += {.postings = 1, .reads = 1, .bytes = kWordBytes};
  if (cache_->FindTable(place.sub_model, look)) {
    // The entry is in the cache, too.
  } else if (cache_->FindModel(place.sub_model, &model, &block)) {
    range = model.Predict(place.x);
    middle = range.first + (range.last - range.first) / 2;
    estimate += {.postings = 1, .reads = 1, .bytes = kWordBytes};
  } else {
    const double entries = cache_->keeps_tables() ? kUsualTable : 1;
    estimate += {.postings = 2,
                 .reads = 2,
                 .bytes = kLineBytes + entries * kWordBytes,
                 .lasting_postings = cache_->lasting_postings()};
    return estimate;
  }
  const double leaves = range.last - range.first + 1;
  if (leaves > Lookup<W>::kWindow) {  // it probes the fences of some, then READs those between
    estimate += {.postings = 1, .reads = Lookup<W>::kProbes, .bytes = Lookup<W>::kProbes * Layout::kBytes};
    return estimate;
  }
  double lines = leaves * static_cast<double>(Layout::kLines);
  double reads = leaves;
  if (Leaf<W>::kKeysInRecords) {
    lines = leaves * static_cast<double>(Layout::LinesFor(count));
  } else if (line_consistent && cache_.trusts_slots()) {
    // The predicted slots of the leaf in the middle; they may reach into a neighbour.
    const SubModel::Slots slots = model.PredictSlots(place.x, middle, count);
    reads = std::min(reads, 2.0);
    if (slots.first <= slots.last) {
      const size_t of_slots = Layout::EndLineOf(slots.last) - Layout::FirstLineOf(slots.first);
      lines = std::min(lines, reads * static_cast<double>(of_slots));
    }
  }
  estimate.reads += reads - 1;
  estimate.bytes += lines * kLineBytes - static_cast<double>(Layout::kBytes);
  return estimate;
}

template <int W>
ReadEstimate RemoteOf<W>::Estimate(std::span<const Key> keys) const {
  // If there are more keys, only this many of them are looked up, at equal distances.
  constexpr size_t kMostLookedUp = 4;
  const auto n = static_cast<double>(keys.size());
  FollowCache();
  const double renewals = ShouldRenewModel() ? 1 : 0;
  ReadEstimate sum{.calls = renewals, .keys = n, .lasting_calls = renewals};
  if (keys.empty()) return sum;
  if (by_call_ || cache_.number() == 0) {
    sum.calls += Batches(n, by_call_ ? kMaxKeysPerFind : kGroup);
    return sum;
  }
  const size_t looked_up = std::min(keys.size(), kMostLookedUp);
  ReadEstimate deepest;
  for (size_t i = 0; i < looked_up; ++i) {
    const ReadEstimate one = EstimateLookup(Encode<W>(keys[i * keys.size() / looked_up]));
    const double share = n / static_cast<double>(looked_up);
    sum.reads += one.reads * share;
    sum.bytes += one.bytes * share;
    if (one.postings > deepest.postings) deepest = one;
  }
  const double batches = Batches(n, kGroup);
  sum.postings = deepest.postings * batches;
  sum.lasting_postings = deepest.lasting_postings * batches;
  return sum;
}

// Follows PlanFromTables without a look at each leaf: by the model's line and one leaf's number of keys.
template <int W>
ReadEstimate RemoteOf<W>::Estimate(const ScanRange& range) const {
  constexpr int kSlots = LeafLayout<W>::kSlots;
  const Words from = EncodeFrom<W>(range.from);
  const Words to = EncodeTo<W>(range.to);
  if (range.limit == 0 || to < from) return {};
  const auto limit = static_cast<double>(range.limit);
  FollowCache();
  const double renewals = ShouldRenewModel() ? 1 : 0;
  ReadEstimate estimate{.calls = renewals, .keys = std::min(limit, kUsualCount<W>), .lasting_calls = renewals};
  if (by_call_ || cache_.number() == 0) {
    ++estimate.calls;
    return estimate;
  }
  Charge(Cost::kModelStep, 2);
  const TopModel::Place begin = cache_->top().Locate(range.reverse ? to : from);
  const TopModel::Place end = cache_->top().Locate(range.reverse ? from : to);
  SubModel model;
  SubModel::Range first{};
  double count = kUsualCount<W>;
  const auto look = [&](const CachedTable& table) {
    model = table.model();
    first = model.Predict(begin.x);
    const uint32_t middle = first.first + (first.last - first.first) / 2;
    count = std::clamp<double>(table.entry(middle).count, 1, kSlots);
  };
  uint32_t block = 0;
  const bool has_table = cache_->FindTable(begin.sub_model, look);
  // The keys that leaves leave in the records, of so many leaves in so many batches.
  const auto add_keys = [&](double leaves, double batches) {
    if (!Leaf<W>::kKeysInRecords) return;
    estimate.postings += batches;
    estimate.reads += leaves * count;
    estimate.bytes += leaves * count * static_cast<double>(kKeyReadBytes<W>);
  };
  if (!has_table && !cache_->FindModel(begin.sub_model, &model, &block)) {
    // A lookup of the first leaf, which brings the sub-model, and then the next leaves.
    const ReadEstimate lookup = EstimateLookup(range.reverse ? to : from);
    estimate.postings += lookup.postings + 1;
    estimate.reads += lookup.reads + 1;
    estimate.bytes += lookup.bytes + static_cast<double>(LeafLayout<W>::kBytes);
    estimate.lasting_postings += lookup.lasting_postings;
    add_keys(2, 2);
    return estimate;
  }
  if (!has_table) first = model.Predict(begin.x);
  const double edge = range.reverse ? 0.0 : model.size;
  double lines = std::abs(edge - model.Line(begin.x));  // distance in leaves
  if (begin.sub_model == end.sub_model) {
    lines = std::abs(model.Line(end.x) - model.Line(begin.x));
  } else {
    const double between = std::abs(static_cast<double>(end.sub_model) - static_cast<double>(begin.sub_model)) - 1;
    lines += (between + end.x) * model.size;
  }
  estimate.keys = std::clamp(lines * count, 1.0, std::max(limit, 1.0));
  // A batch has as many leaves as are likely to be enough, and the first may have only smaller keys.
  const double in_range = lines + (first.last - first.first + 1);
  const double leaves = std::max(1.0, std::min(in_range, std::ceil((estimate.keys + kSlots) / count)));
  const double batches = Batches(leaves, kScanBatch);
  const double rounds = has_table ? 1 : 2;  // without the table its entries are READ first
  estimate.postings += batches * rounds;
  estimate.reads += leaves + batches * (rounds - 1);
  estimate.bytes += leaves * static_cast<double>(LeafLayout<W>::kBytes);
  if (!channel_->capabilities().line_consistent) {
    estimate.postings += batches;
    estimate.reads += leaves;
    estimate.bytes += leaves * kWordBytes;
  }
  add_keys(leaves, batches);
  return estimate;
}

#define GANNET_INSTANTIATE(W)                                              \
  template ReadEstimate RemoteOf<W>::EstimateLookup(const Words&) const;   \
  template ReadEstimate RemoteOf<W>::Estimate(std::span<const Key>) const; \
  template ReadEstimate RemoteOf<W>::Estimate(const ScanRange&) const;
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
