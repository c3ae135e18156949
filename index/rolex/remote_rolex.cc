#include "index/rolex/remote_rolex.h"

#include <algorithm>
#include <array>

#include "base/runtime.h"
#include "index/remote/leaf_scan.h"

namespace gannet::index {
namespace rolex {

using remote::LeafLook;

namespace {

constexpr int kMostCredit = 256;
// A slot line up to this one comes with line 0, and what lies between them, by one READ: that costs a NIC less than two
// READs of a line.
constexpr size_t kLastNearLine = 2;
constexpr int kMissCost = 15;  // a miss costs a round trip; a hit saves six lines

}  // namespace

FindResult RemoteRolex::ResultOf(const LeafPlace& place, uint64_t key) {
  const int slot = FindSlot(place.image, key);
  if (slot < 0) return {.record = {}, .witness = place.witness()};
  return {.record = rdma::GlobalAddress::FromBits(place.image.entry<IntegerEntry>(slot).target)};
}

size_t RemoteRolex::Prepare(uint64_t key, Probe* probe, std::span<rdma::Operation, kReadsOfProbe> reads) {
  ModelCache::Lead lead;
  if (!cache_.Find(key, &lead)) return 0;
  probe->key = key;
  probe->leaf = lead.leaf;
  probe->line = credit_ >= 0 && single_lines_ && key != forgotten_ ? lead.line : LineHint::kUnknown;
  if (probe->line == LineHint::kUnknown) {
    reads[0] = rdma::Operation::Read(lead.leaf, &probe->image, remote::kLeafBytes);
    return 1;
  }
  const auto line = static_cast<size_t>(probe->line);
  if (values_in_entries_ && line <= kLastNearLine) {
    reads[0] = rdma::Operation::Read(lead.leaf, &probe->image, static_cast<uint32_t>((2 + line) * kLineBytes));
    return 1;
  }
  reads[0] = rdma::Operation::Read(lead.leaf + (1 + line) * kLineBytes, &probe->image.lines[line], kLineBytes);
  if (!values_in_entries_) return 1;
  reads[1] = rdma::Operation::Read(lead.leaf, &probe->image.head, kLineBytes);
  return 2;
}

bool RemoteRolex::Judge(const Probe& probe, FindResult* result) {
  ++statistics_.leaves_read;
  if (probe.line == LineHint::kUnknown) {
    Charge(Cost::kRecordLine, remote::kLeafLines);
    if (remote::LookAtLeaf(probe.image) != LeafLook::kWhole || probe.image.level() != 0 ||
        !probe.image.Covers(probe.key)) {
      return false;
    }
    *result = ResultOf({probe.leaf, probe.image}, probe.key);
    return true;
  }
  if (JudgeLine(probe, result)) {
    credit_ = std::min(credit_ + 1, kMostCredit);
    return true;
  }
  credit_ = std::max(credit_ - kMissCost, -kMostCredit);
  return false;
}

int RemoteRolex::SlotIn(const Probe& probe) const {
  uint64_t counted = UINT64_MAX;
  Charge(Cost::kRecordLine, values_in_entries_ ? 2 : 1);
  if (values_in_entries_) {
    if (!remote::ProvesLine(probe.image, static_cast<size_t>(probe.line)) || probe.image.level() != 0) return -1;
    counted = probe.image.used<IntegerEntry>();
  }
  for (int i = 0; i < IntegerEntry::kPerLine; ++i) {
    const int slot = probe.line * IntegerEntry::kPerLine + i;
    const auto entry = probe.image.entry<IntegerEntry>(slot);
    const auto record = rdma::GlobalAddress::FromBits(entry.target);
    if (entry.key != probe.key || record.is_null() || (counted >> slot & 1) == 0) continue;
    if (values_in_entries_ || record.node() == owner_) return slot;
  }
  return -1;
}

bool RemoteRolex::JudgeLine(const Probe& probe, FindResult* result) const {
  const int slot = SlotIn(probe);
  if (slot < 0) return false;
  *result = {.record = rdma::GlobalAddress::FromBits(probe.image.entry<IntegerEntry>(slot).target)};
  // An entry of a single line may be one that was removed, or is not yet inserted. Its record tells (leaf.h).
  result->from_cache = !values_in_entries_;
  return true;
}

coro::Task<StatusOr<FindResult>> RemoteRolex::FindOne(uint64_t key) {
  ++statistics_.lookups;
  ++statistics_.one_sided;
  Probe probe;
  std::array<rdma::Operation, kReadsOfProbe> reads;
  if (credit_ < 0) ++credit_;
  if (const size_t posted = Prepare(key, &probe, reads); posted > 0) {
    const Status status = co_await channel_->Post(std::span(reads).first(posted));
    // A cached address can be wrong; then the search finds out.
    if (!status.ok() && !absl::IsInvalidArgument(status)) co_return status;
    FindResult result;
    if (status.ok() && Judge(probe, &result)) co_return result;
  }
  LeafPlace place;
  const Status located = co_await editor_.Locate(key, &place);
  GANNET_CO_RETURN_IF_ERROR(located);
  if (key == forgotten_) forgotten_ = UINT64_MAX;
  co_return ResultOf(place, key);
}

coro::Task<Status> RemoteRolex::FindMany(std::span<const Key> keys, std::span<FindResult> results) {
  std::array<Probe, kMostReads> probes;
  std::array<rdma::Operation, kMostReads * kReadsOfProbe> reads;
  for (size_t first = 0; first < keys.size(); first += kMostReads) {
    const size_t n = std::min(kMostReads, keys.size() - first);
    std::array<size_t, kMostReads> key_of;
    std::array<bool, kMostReads> done{};
    size_t probed = 0;
    size_t posted = 0;
    for (size_t i = 0; i < n; ++i) {
      const std::span<rdma::Operation, kReadsOfProbe> next(reads.data() + posted, kReadsOfProbe);
      if (credit_ < 0) ++credit_;
      const size_t more = Prepare(keys[first + i].integer(), &probes[probed], next);
      if (more == 0) continue;
      posted += more;
      key_of[probed++] = i;
    }
    if (posted > 0) {
      const Status status = co_await channel_->Post(std::span(reads).first(posted));
      if (!status.ok() && !absl::IsInvalidArgument(status)) co_return status;
      for (size_t r = 0; status.ok() && r < probed; ++r) {
        if (!Judge(probes[r], &results[first + key_of[r]])) continue;
        done[key_of[r]] = true;
        ++statistics_.lookups;
        ++statistics_.one_sided;
      }
    }
    for (size_t i = 0; i < n; ++i) {
      if (done[i]) continue;
      const StatusOr<FindResult> found = co_await FindOne(keys[first + i].integer());
      if (!found.ok()) co_return found.status();
      results[first + i] = *found;
    }
  }
  co_return absl::OkStatus();
}

coro::Task<Status> RemoteRolex::Scan(ScanRange range, ScanResult* result) {
  const uint64_t from = range.from.integer();
  const uint64_t to = range.to.integer();
  if (range.limit == 0 || to < from) co_return absl::OkStatus();
  ++statistics_.lookups;
  ++statistics_.one_sided;
  const size_t end = range.limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + range.limit;
  uint64_t next = range.reverse ? to : from;
  for (;;) {
    const StatusOr<bool> done = co_await ScanCached(range, end, result, &next);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
    // Where the cache knows no leaf, or a wrong one.
    LeafPlace place;
    const Status located = co_await editor_.Locate(next, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    if (remote::TakeLeaf(place, from, to, range.reverse, end, result, &next) || result->entries.size() >= end) {
      co_return absl::OkStatus();
    }
  }
}

// The leaves that the models know to follow each other take one posting. True: the scan is at its end.
coro::Task<StatusOr<bool>> RemoteRolex::ScanCached(const ScanRange& range, size_t end, ScanResult* result,
                                                   uint64_t* next) {
  std::array<LeafImage, kMostReads> images;
  std::array<rdma::Operation, kMostReads> reads;
  std::vector<rdma::GlobalAddress> leaves;
  for (;;) {
    leaves.clear();
    const uint64_t from = range.from.integer();
    const uint64_t to = range.to.integer();
    cache_.FindRun(*next, range.reverse, fill_.LeavesFor(end - result->entries.size(), kMostReads), &leaves);
    if (leaves.empty()) co_return false;
    for (size_t i = 0; i < leaves.size(); ++i) {
      reads[i] = rdma::Operation::Read(leaves[i], &images[i], remote::kLeafBytes);
    }
    const Status status = co_await channel_->Post(std::span(reads).first(leaves.size()));
    if (absl::IsInvalidArgument(status)) co_return false;
    if (!status.ok()) co_return status;
    for (size_t i = 0; i < leaves.size(); ++i) {
      ++statistics_.leaves_read;
      if (remote::LookAtLeaf(images[i]) != LeafLook::kWhole || images[i].level() != 0 || !images[i].Covers(*next)) {
        co_return false;
      }
      fill_.Note(images[i].count<IntegerEntry>());
      if (remote::TakeLeaf({leaves[i], images[i]}, from, to, range.reverse, end, result, next) ||
          result->entries.size() >= end) {
        co_return true;
      }
    }
  }
}

coro::Task<StatusOr<Change>> RemoteRolex::Insert(Key key, rdma::GlobalAddress record) {
  StatusOr<Change> change = co_await editor_.Insert(key.integer(), record, nullptr);
  co_return std::move(change);
}

coro::Task<StatusOr<Change>> RemoteRolex::Remove(Key key, rdma::GlobalAddress record) {
  StatusOr<Change> change = co_await editor_.Remove(key.integer(), record);
  co_return std::move(change);
}

coro::Task<StatusOr<bool>> RemoteRolex::ReplaceByLine(uint64_t key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  Probe probe;
  std::array<rdma::Operation, kReadsOfProbe> reads;
  const size_t posted = Prepare(key, &probe, reads);
  if (posted == 0 || probe.line == LineHint::kUnknown) co_return false;
  const Status status = co_await channel_->Post(std::span(reads).first(posted));
  if (absl::IsInvalidArgument(status)) co_return false;
  if (!status.ok()) co_return status;
  ++statistics_.leaves_read;
  const int slot = SlotIn(probe);
  if (slot < 0 || (!from.is_null() && probe.image.entry<IntegerEntry>(slot).target != from.bits())) {
    co_return false;
  }
  LeafPlace place{probe.leaf, probe.image};
  remote::CompleteForLine(&place.image, static_cast<size_t>(probe.line));
  const IntegerEntry entry{key, to.bits()};
  StatusOr<bool> done = co_await editor_.TryReplace(place, slot, entry);
  co_return done;
}

coro::Task<Status> RemoteRolex::Replace(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  if (values_in_entries_) {
    const StatusOr<bool> done = co_await ReplaceByLine(key.integer(), from, to);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
  }
  Status replaced = co_await editor_.Replace(key.integer(), from, to);
  co_return replaced;
}

// The next lookup of the key reads its whole leaf.
void RemoteRolex::Forget(const Key& key) {
  forgotten_ = key.integer();
}

ReadEstimate RemoteRolex::Estimate(std::span<const Key> keys) const {
  constexpr size_t kLooks = 8;
  size_t known = 0;
  size_t lines = 0;
  const size_t looks = std::min(kLooks, keys.size());
  for (size_t i = 0; i < looks; ++i) {
    ModelCache::Lead lead;
    if (!cache_.Find(keys[i * keys.size() / looks].integer(), &lead)) continue;
    ++known;
    lines += credit_ >= 0 && single_lines_ && lead.line != LineHint::kUnknown ? 1 : 0;
  }
  const auto n = static_cast<double>(keys.size());
  const double scale = looks == 0 ? 0 : n / static_cast<double>(looks);
  const double unknown = scale * static_cast<double>(looks - known);
  const double by_line = scale * static_cast<double>(lines);
  const double lines_each = values_in_entries_ ? 3 : 1;  // about, in one or two READs
  ReadEstimate estimate{.reads = n + (values_in_entries_ ? by_line / 2 : 0) + 2 * unknown,
                        .bytes = by_line * lines_each * kLineBytes + (n - by_line) * remote::kLeafBytes,
                        .keys = n};
  const size_t batches = (keys.size() + kMostReads - 1) / kMostReads;
  estimate.postings = static_cast<double>(batches) + 2 * unknown;
  estimate.lasting_postings = 2 * unknown;
  if (!cache_.knows_directory()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

ReadEstimate RemoteRolex::Estimate(const ScanRange& range) const {
  const auto keys = static_cast<double>(std::min<size_t>(range.limit, 1000));
  const double leaves = 1 + keys / (kPositions * 0.75);
  ReadEstimate estimate{.reads = leaves, .bytes = leaves * remote::kLeafBytes, .keys = keys};
  estimate.postings = 1 + leaves / kMostReads;
  ModelCache::Lead lead;
  if (!cache_.Find((range.reverse ? range.to : range.from).integer(), &lead)) {
    estimate.postings += 2;
    estimate.lasting_postings += 2;
  }
  if (!cache_.knows_directory()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

ClientStatistics RemoteRolex::statistics() const {
  ClientStatistics statistics = statistics_;
  statistics.cache_bytes = shares_cache_ ? 0 : cache_.bytes();
  statistics.leaves_read += leaves_.leaves_read();
  return statistics;
}

}  // namespace rolex

std::shared_ptr<rolex::SharedModels> MakeRolexCache(size_t max_bytes) {
  return std::make_shared<rolex::SharedModels>(max_bytes);
}

StatusOr<std::unique_ptr<RemoteIndex>> ConnectRolex(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                    const RolexClientOptions& options) {
  return std::make_unique<rolex::RemoteRolex>(channel, owner, id, options);
}

}  // namespace gannet::index
