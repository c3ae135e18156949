#include "index/rolex/remote_rolex.h"

#include <algorithm>
#include <array>

#include "base/runtime.h"
#include "index/record_header.h"
#include "index/shared_leaf/change/leaf_keys.h"
#include "index/shared_leaf/leaf/leaf_scan.h"
#include "index/shared_leaf/leaf/schema_wire.h"

namespace gannet::index {
namespace rolex {

using shared_leaf::LeafLook;

namespace {

constexpr int kMostCredit = 256;
// A slot line up to this one comes with line 0, and what lies between them, by one READ: that costs a NIC less than two
// READs of a line.
constexpr size_t kLastNearLine = 2;
constexpr int kMissCost = 15;  // a miss costs a round trip; a hit saves six lines

}  // namespace

template <class Keys>
size_t RemoteRolex<Keys>::ProbeLine(const Key& key, Probe* probe, std::span<rdma::Operation, kReadsOfProbe> reads) {
  Prediction prediction;
  if (!cache_.Find(Keys::At(key), &prediction)) return 0;
  probe->key = key;
  probe->leaf = prediction.leaf;
  probe->line = credit_ >= 0 && single_lines_ && key != forgotten_ ? prediction.line : LineHint::kUnknown;
  if (probe->line == LineHint::kUnknown) {
    reads[0] = this->ReadOf(prediction.leaf, &probe->image);
    return 1;
  }
  const auto line = static_cast<size_t>(probe->line);
  if (values_in_entries_ && line <= kLastNearLine) {
    reads[0] = rdma::Operation::Read(prediction.leaf, &probe->image, static_cast<uint32_t>((2 + line) * kLineBytes));
    return 1;
  }
  reads[0] = rdma::Operation::Read(prediction.leaf + (1 + line) * kLineBytes, &probe->image.lines[line], kLineBytes);
  if (!values_in_entries_) return 1;
  reads[1] = rdma::Operation::Read(prediction.leaf, &probe->image.head, kLineBytes);
  return 2;
}

template <class Keys>
bool RemoteRolex<Keys>::Judge(Probe* probe, FindResult* result) {
  if (probe->line == LineHint::kUnknown) {
    Charge(Cost::kRecordLine, leaves_.leaf_bytes() / kLineBytes);
    return Base::Judge(probe, result);
  }
  ++statistics_.leaves_read;
  if (JudgeLine(*probe, result)) {
    credit_ = std::min(credit_ + 1, kMostCredit);
    return true;
  }
  credit_ = std::max(credit_ - kMissCost, -kMostCredit);
  return false;
}

template <class Keys>
int RemoteRolex<Keys>::SlotIn(const Probe& probe) const {
  if constexpr (!Keys::kKeysElsewhere) {
    uint64_t counted = UINT64_MAX;
    Charge(Cost::kRecordLine, values_in_entries_ ? 2 : 1);
    if (values_in_entries_) {
      if (!shared_leaf::ProvesLine(probe.image, static_cast<size_t>(probe.line)) || probe.image.level() != 0) return -1;
      counted = probe.image.template used<Entry>();
    }
    for (int i = 0; i < Entry::kPerLine; ++i) {
      const int slot = probe.line * Entry::kPerLine + i;
      const rdma::GlobalAddress record = this->TargetOf(probe.image, slot);
      if (probe.image.template entry<Entry>(slot).key != probe.key || record.is_null() || (counted >> slot & 1) == 0) {
        continue;
      }
      if (values_in_entries_ || record.node() == owner_) return slot;
    }
  }
  return -1;
}

template <class Keys>
bool RemoteRolex<Keys>::JudgeLine(const Probe& probe, FindResult* result) const {
  const int slot = SlotIn(probe);
  if (slot < 0) return false;
  *result = {.record = this->TargetOf(probe.image, slot)};
  // An entry of a single line may be one that was removed, or is not yet inserted. Its record tells (leaf.h).
  result->from_cache = !values_in_entries_;
  return true;
}

template <class Keys>
size_t RemoteRolex<Keys>::LeavesFrom(const Cut& next, const Key& /*to*/, bool reverse, size_t entries,
                                     std::span<rdma::GlobalAddress, kMostReads> leaves) {
  run_.clear();
  const double skipped =
      cache_.FindRun(Keys::PointOf(next, reverse), reverse, fill_.LeavesFor(entries, kMostReads), &run_);
  const size_t n = run_.empty() ? 0 : std::min(run_.size(), fill_.LeavesBehind(skipped, entries, kMostReads));
  std::copy_n(run_.begin(), n, leaves.begin());
  return n;
}

template <class Keys>
coro::Task<StatusOr<bool>> RemoteRolex<Keys>::ReplaceByLine(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  Probe probe;
  std::array<rdma::Operation, kReadsOfProbe> reads;
  const size_t posted = ProbeLine(key, &probe, reads);
  if (posted == 0 || probe.line == LineHint::kUnknown) co_return false;
  const Status status = co_await channel_->Post(std::span(reads).first(posted));
  if (absl::IsInvalidArgument(status)) co_return false;
  if (!status.ok()) co_return status;
  ++statistics_.leaves_read;
  const int slot = SlotIn(probe);
  if (slot < 0 || (!from.is_null() && this->TargetOf(probe.image, slot) != from)) co_return false;
  LeafCopy place{probe.leaf, probe.image};
  shared_leaf::CompleteForLine(&place.image, static_cast<size_t>(probe.line));
  const Entry entry = Keys::EntryOf(Keys::RecordEntry(this->schema(), key, to));
  StatusOr<bool> done = co_await editor_->TryReplace(place, slot, entry);
  co_return done;
}

template <class Keys>
coro::Task<Status> RemoteRolex<Keys>::Replace(index::Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  if (values_in_entries_ && this->changes_leaves()) {
    const Status ready = co_await this->Prepare();
    GANNET_CO_RETURN_IF_ERROR(ready);
    const StatusOr<bool> done = co_await ReplaceByLine(Keys::KeyFrom(key), from, to);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
  }
  Status replaced = co_await Base::Replace(key, from, to);
  co_return replaced;
}

template <class Keys>
ReadEstimate RemoteRolex<Keys>::Estimate(std::span<const index::Key> keys) const {
  constexpr size_t kLooks = 8;
  size_t known = 0;
  size_t lines = 0;
  const size_t looks = std::min(kLooks, keys.size());
  for (size_t i = 0; i < looks; ++i) {
    Prediction prediction;
    if (!cache_.Find(Keys::At(Keys::KeyFrom(keys[i * keys.size() / looks])), &prediction)) continue;
    ++known;
    lines += credit_ >= 0 && single_lines_ && prediction.line != LineHint::kUnknown ? 1 : 0;
  }
  const auto n = static_cast<double>(keys.size());
  const double scale = looks == 0 ? 0 : n / static_cast<double>(looks);
  const double unknown = scale * static_cast<double>(looks - known);
  const double by_line = scale * static_cast<double>(lines);
  const double lines_each = values_in_entries_ ? 3 : 1;  // about, in one or two READs
  const auto leaf_bytes = static_cast<double>(leaves_.leaf_bytes());
  ReadEstimate estimate{.reads = n + (values_in_entries_ ? by_line / 2 : 0) + 2 * unknown,
                        .bytes = by_line * lines_each * kLineBytes + (n - by_line) * leaf_bytes,
                        .keys = n};
  const size_t batches = (keys.size() + kMostReads - 1) / kMostReads;
  estimate.postings = static_cast<double>(batches) + 2 * unknown;
  estimate.lasting_postings = 2 * unknown;
  if (!cache_.knows_directory()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template <class Keys>
ReadEstimate RemoteRolex<Keys>::Estimate(const ScanRange& range) const {
  constexpr double kAverage = kLoadedEntries<Keys> * 0.75;
  ReadEstimate estimate = this->EstimateScan(range, kAverage, kAverage);
  Prediction prediction;
  if (!cache_.Find(Keys::At(Keys::KeyFrom(range.reverse ? range.to : range.from)), &prediction)) {
    estimate.postings += 2;
    estimate.lasting_postings += 2;
  }
  if (!cache_.knows_directory()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template class RemoteRolex<IntegerKeys>;
template class RemoteRolex<ByteKeys>;

}  // namespace rolex

std::shared_ptr<rolex::SharedModels> MakeRolexCache(size_t max_bytes) {
  return std::make_shared<rolex::SharedModels>(max_bytes == 0 ? SIZE_MAX : max_bytes);
}

StatusOr<std::unique_ptr<RemoteIndex>> ConnectRolex(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                    const RolexClientOptions& options) {
  return shared_leaf::Connect<rolex::RemoteRolex>(channel, owner, id, options);
}

}  // namespace gannet::index
