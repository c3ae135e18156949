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
coro::Task<Status> RemoteRolex<Keys>::Start() {
  if (editor_.has_value()) co_return absl::OkStatus();
  const StatusOr<Schema> schema = co_await cache_.Describe();
  if (!schema.ok()) co_return schema.status();
  GANNET_CO_RETURN_IF_ERROR(shared_leaf::CheckSchema<Keys>(*schema, max_key_bytes_));
  if (!editor_.has_value()) {
    schema_.emplace(*schema);
    editor_.emplace(&leaves_, &*schema_, &blocks_, &cache_);
  }
  co_return absl::OkStatus();
}

template <class Keys>
size_t RemoteRolex<Keys>::Prepare(const Key& key, Probe* probe, std::span<rdma::Operation, kReadsOfProbe> reads) {
  Lead lead;
  if (!cache_.Find(Keys::At(key), &lead)) return 0;
  probe->key = key;
  probe->leaf = lead.leaf;
  probe->line = credit_ >= 0 && single_lines_ && key != forgotten_ ? lead.line : LineHint::kUnknown;
  if (probe->line == LineHint::kUnknown) {
    reads[0] = rdma::Operation::Read(lead.leaf, &probe->image, static_cast<uint32_t>(leaves_.leaf_bytes()));
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

template <class Keys>
bool RemoteRolex<Keys>::Judge(Probe* probe, FindResult* result) {
  ++statistics_.leaves_read;
  if (probe->line == LineHint::kUnknown) {
    Charge(Cost::kRecordLine, leaves_.leaf_bytes() / kLineBytes);
    if (leaves_.Judge(&probe->image) != LeafLook::kWhole || probe->image.level() != 0 ||
        !Keys::CoversKey(probe->image, probe->key)) {
      return false;
    }
    const std::optional<FindResult> found =
        shared_leaf::ResultOf<Keys>(*schema_, {probe->leaf, probe->image}, probe->key);
    if (found.has_value()) *result = *found;
    return found.has_value();
  }
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
      const rdma::GlobalAddress record = TargetOf(probe.image, slot);
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
  *result = {.record = TargetOf(probe.image, slot)};
  // An entry of a single line may be one that was removed, or is not yet inserted. Its record tells (leaf.h).
  result->from_cache = !values_in_entries_;
  return true;
}

template <class Keys>
coro::Task<StatusOr<FindResult>> RemoteRolex<Keys>::FindOne(Key key) {
  if (!editor_.has_value()) {
    const Status ready = co_await Start();
    GANNET_CO_RETURN_IF_ERROR(ready);
  }
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
    if (status.ok() && Judge(&probe, &result)) co_return result;
  }
  Place place;
  const Status located = co_await editor_->Locate(Keys::At(key), &place);
  GANNET_CO_RETURN_IF_ERROR(located);
  if (key == forgotten_) forgotten_.reset();
  const std::optional<FindResult> found = shared_leaf::ResultOf<Keys>(*schema_, place, key);
  if (found.has_value()) co_return *found;
  const StatusOr<int> slot = co_await shared_leaf::FindKey<Keys>(&leaves_, *schema_, key, &place);
  if (!slot.ok()) co_return slot.status();
  co_return FindResult{.record = *slot < 0 ? rdma::GlobalAddress() : TargetOf(place.image, *slot),
                       .witness = place.witness()};
}

template <class Keys>
coro::Task<Status> RemoteRolex<Keys>::FindMany(std::span<const index::Key> keys, std::span<FindResult> results) {
  const Status ready = co_await Start();
  GANNET_CO_RETURN_IF_ERROR(ready);
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
      const size_t more = Prepare(Keys::KeyFrom(keys[first + i]), &probes[probed], next);
      if (more == 0) continue;
      posted += more;
      key_of[probed++] = i;
    }
    if (posted > 0) {
      const Status status = co_await channel_->Post(std::span(reads).first(posted));
      if (!status.ok() && !absl::IsInvalidArgument(status)) co_return status;
      for (size_t r = 0; status.ok() && r < probed; ++r) {
        if (!Judge(&probes[r], &results[first + key_of[r]])) continue;
        done[key_of[r]] = true;
        ++statistics_.lookups;
        ++statistics_.one_sided;
      }
    }
    for (size_t i = 0; i < n; ++i) {
      if (done[i]) continue;
      const StatusOr<FindResult> found = co_await FindOne(Keys::KeyFrom(keys[first + i]));
      if (!found.ok()) co_return found.status();
      results[first + i] = *found;
    }
  }
  co_return absl::OkStatus();
}

template <class Keys>
coro::Task<Status> RemoteRolex<Keys>::Scan(ScanRange range, ScanResult* result) {
  if (range.limit == 0 || range.to < range.from) co_return absl::OkStatus();
  const Key from = Keys::KeyFrom(range.from);
  const Key to = Keys::KeyFrom(range.to);
  const Status ready = co_await Start();
  GANNET_CO_RETURN_IF_ERROR(ready);
  ++statistics_.lookups;
  ++statistics_.one_sided;
  const size_t end = range.limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + range.limit;
  Cut next = Keys::Start(from, to, range.reverse);
  for (;;) {
    const StatusOr<bool> done = co_await ScanCached(from, to, range.reverse, end, result, &next);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
    // Where the cache knows no leaf, or a wrong one.
    Place place;
    const Status located = co_await editor_->Locate(Keys::PointOf(next, range.reverse), &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    const Status read = co_await shared_leaf::ReadAllKeys<Keys>(&leaves_, *schema_, &place);
    GANNET_CO_RETURN_IF_ERROR(read);
    if (shared_leaf::TakeLeaf(place, from, to, range.reverse, end, result, &next) || result->entries.size() >= end) {
      co_return absl::OkStatus();
    }
  }
}

// The leaves that the models know to follow each other take one posting. True: the scan is at its end.
template <class Keys>
coro::Task<StatusOr<bool>> RemoteRolex<Keys>::ScanCached(Key from, Key to, bool reverse, size_t end, ScanResult* result,
                                                         Cut* next) {
  std::array<Image, kMostReads> images;
  std::array<rdma::Operation, kMostReads> reads;
  std::vector<rdma::GlobalAddress> leaves;
  for (;;) {
    leaves.clear();
    const size_t wanted = end - result->entries.size();
    const double skipped =
        cache_.FindRun(Keys::PointOf(*next, reverse), reverse, fill_.LeavesFor(wanted, kMostReads), &leaves);
    if (leaves.empty()) co_return false;
    leaves.resize(std::min(leaves.size(), fill_.LeavesBehind(skipped, wanted, kMostReads)));
    // Integer keys: the last line may come later, where line 0 alone can prove it.
    [[maybe_unused]] size_t lines = shared_leaf::kSlotLines;
    if constexpr (!Keys::kKeysElsewhere) {
      if (channel_->capabilities().line_consistent) lines = tails_.lines();
    }
    const auto bytes = static_cast<uint32_t>(leaves_.leaf_bytes() - (shared_leaf::kSlotLines - lines) * kLineBytes);
    for (size_t i = 0; i < leaves.size(); ++i) {
      reads[i] = rdma::Operation::Read(leaves[i], &images[i], bytes);
    }
    const Status status = co_await channel_->Post(std::span(reads).first(leaves.size()));
    if (absl::IsInvalidArgument(status)) co_return false;
    if (!status.ok()) co_return status;
    if constexpr (!Keys::kKeysElsewhere) {
      size_t tails = 0;
      for (size_t i = 0; i < leaves.size(); ++i) {
        if (!tails_.Needs(lines, &images[i])) continue;
        reads[tails++] =
            rdma::Operation::Read(leaves[i] + (1 + lines) * kLineBytes, &images[i].lines[lines], kLineBytes);
      }
      if (tails > 0) {
        const Status rest = co_await channel_->Post(std::span(reads).first(tails));
        if (!rest.ok()) co_return rest;
      }
    }
    for (size_t i = 0; i < leaves.size(); ++i) {
      ++statistics_.leaves_read;
      if (leaves_.Judge(&images[i]) != LeafLook::kWhole || images[i].level() != 0 ||
          !Keys::Covers(images[i], Keys::PointOf(*next, reverse))) {
        co_return false;
      }
      fill_.Note(images[i].template count<Entry>());
      Place place{leaves[i], images[i]};
      const Status read = co_await shared_leaf::ReadAllKeys<Keys>(&leaves_, *schema_, &place);
      GANNET_CO_RETURN_IF_ERROR(read);
      if (shared_leaf::TakeLeaf(place, from, to, reverse, end, result, next) || result->entries.size() >= end) {
        co_return true;
      }
    }
  }
}

template <class Keys>
coro::Task<void> RemoteRolex<Keys>::PublishSplits(std::vector<Keyed> rights, shared_leaf::SplitHint hint) {
  co_await editor_->AddSynonyms(rights, hint);
}

template <class Keys>
coro::Task<Status> RemoteRolex<Keys>::LocateLeaf(Key key, Place* place) {
  const Status ready = co_await Start();
  GANNET_CO_RETURN_IF_ERROR(ready);
  const Status located = co_await editor_->Locate(Keys::At(key), place);
  co_return located;
}

template <class Keys>
coro::Task<StatusOr<Change>> RemoteRolex<Keys>::Insert(index::Key key, rdma::GlobalAddress record) {
  if (!changes_leaves_) {
    StatusOr<Change> called = co_await calls_.Insert(key, record);
    co_return std::move(called);
  }
  const Status ready = co_await Start();
  if (!ready.ok()) co_return ready;
  const Status fits = Keys::CheckLength(*schema_, key);
  if (!fits.ok()) co_return fits;
  StatusOr<Change> change = co_await editor_->Insert(Keys::KeyFrom(key), record, nullptr);
  co_return std::move(change);
}

template <class Keys>
coro::Task<StatusOr<Change>> RemoteRolex<Keys>::Remove(index::Key key, rdma::GlobalAddress record) {
  if (!changes_leaves_) {
    StatusOr<Change> called = co_await calls_.Remove(key, record);
    co_return std::move(called);
  }
  const Status ready = co_await Start();
  if (!ready.ok()) co_return ready;
  StatusOr<Change> change = co_await editor_->Remove(Keys::KeyFrom(key), record);
  co_return std::move(change);
}

template <class Keys>
coro::Task<StatusOr<bool>> RemoteRolex<Keys>::ReplaceByLine(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  Probe probe;
  std::array<rdma::Operation, kReadsOfProbe> reads;
  const size_t posted = Prepare(key, &probe, reads);
  if (posted == 0 || probe.line == LineHint::kUnknown) co_return false;
  const Status status = co_await channel_->Post(std::span(reads).first(posted));
  if (absl::IsInvalidArgument(status)) co_return false;
  if (!status.ok()) co_return status;
  ++statistics_.leaves_read;
  const int slot = SlotIn(probe);
  if (slot < 0 || (!from.is_null() && TargetOf(probe.image, slot) != from)) co_return false;
  Place place{probe.leaf, probe.image};
  shared_leaf::CompleteForLine(&place.image, static_cast<size_t>(probe.line));
  const Entry entry = Keys::EntryOf(Keys::RecordEntry(*schema_, key, to));
  StatusOr<bool> done = co_await editor_->TryReplace(place, slot, entry);
  co_return done;
}

template <class Keys>
coro::Task<Status> RemoteRolex<Keys>::Replace(index::Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  if (!changes_leaves_) {
    Status called = co_await calls_.Replace(key, from, to);
    co_return called;
  }
  const Status ready = co_await Start();
  GANNET_CO_RETURN_IF_ERROR(ready);
  const Key of = Keys::KeyFrom(key);
  if (values_in_entries_) {
    const StatusOr<bool> done = co_await ReplaceByLine(of, from, to);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
  }
  Status replaced = co_await editor_->Replace(of, from, to);
  co_return replaced;
}

// The next lookup of the key reads its whole leaf.
template <class Keys>
void RemoteRolex<Keys>::Forget(const index::Key& key) {
  forgotten_ = Keys::KeyFrom(key);
}

template <class Keys>
ReadEstimate RemoteRolex<Keys>::Estimate(std::span<const index::Key> keys) const {
  constexpr size_t kLooks = 8;
  size_t known = 0;
  size_t lines = 0;
  const size_t looks = std::min(kLooks, keys.size());
  for (size_t i = 0; i < looks; ++i) {
    Lead lead;
    if (!cache_.Find(Keys::At(Keys::KeyFrom(keys[i * keys.size() / looks])), &lead)) continue;
    ++known;
    lines += credit_ >= 0 && single_lines_ && lead.line != LineHint::kUnknown ? 1 : 0;
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
  const auto keys = static_cast<double>(std::min<size_t>(range.limit, 1000));
  const double leaves = 1 + keys / (kLoadedEntries<Keys> * 0.75);
  ReadEstimate estimate{.reads = leaves, .bytes = leaves * static_cast<double>(leaves_.leaf_bytes()), .keys = keys};
  estimate.postings = 1 + leaves / kMostReads;
  if constexpr (Keys::kKeysElsewhere) {
    // The keys of each leaf, from its records.
    const double records = leaves * kLoadedEntries<Keys> * 0.75;
    estimate.postings += leaves;
    estimate.reads += records;
    estimate.bytes += records * static_cast<double>(HeaderReadBytes(max_key_bytes_));
  }
  Lead lead;
  if (!cache_.Find(Keys::At(Keys::KeyFrom(range.reverse ? range.to : range.from)), &lead)) {
    estimate.postings += 2;
    estimate.lasting_postings += 2;
  }
  if (!cache_.knows_directory()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template <class Keys>
ClientStatistics RemoteRolex<Keys>::statistics() const {
  ClientStatistics statistics = statistics_;
  statistics.cache_bytes = shares_cache_ ? 0 : cache_.bytes();
  statistics.leaves_read += leaves_.leaves_read();
  return statistics;
}

template class RemoteRolex<IntegerKeys>;
template class RemoteRolex<ByteKeys>;

}  // namespace rolex

std::shared_ptr<rolex::SharedModels> MakeRolexCache(size_t max_bytes) {
  return std::make_shared<rolex::SharedModels>(max_bytes);
}

StatusOr<std::unique_ptr<RemoteIndex>> ConnectRolex(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                    const RolexClientOptions& options) {
  if (options.key_kind == KeyKind::kInteger) {
    return std::make_unique<rolex::RemoteRolex<rolex::IntegerKeys>>(channel, owner, id, options);
  }
  GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kShortKeyBytes));
  return std::make_unique<rolex::RemoteRolex<rolex::ByteKeys>>(channel, owner, id, options);
}

}  // namespace gannet::index
