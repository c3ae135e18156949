#include "index/shared_leaf/leaf_client.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/sometimes.h"
#include "index/record_header.h"
#include "index/shared_leaf/change/leaf_keys.h"
#include "index/shared_leaf/leaf/schema_wire.h"

namespace gannet::index::shared_leaf {

template <class Keys>
coro::Task<Status> LeafClient<Keys>::Prepare() {
  if (is_ready()) co_return absl::OkStatus();
  const StatusOr<Schema> schema = co_await Describe();
  if (!schema.ok()) co_return schema.status();
  GANNET_CO_RETURN_IF_ERROR(CheckSchema<Keys>(*schema, max_key_bytes_));
  if (!is_ready()) {
    schema_.emplace(*schema);
    editor_ = MakeEditor();
  }
  co_return absl::OkStatus();
}

template <class Keys>
size_t LeafClient<Keys>::SetProbe(const Key& key, Probe* probe, std::span<rdma::Operation, kReadsOfProbe> reads) {
  probe->key = key;
  probe->line = kWholeLeaf;
  probe->found.reset();
  probe->copy = {};
  // If the copy is not good, the record shows whether it is right.
  const auto decides = [&](const std::optional<FindResult>& found) {
    const bool is_good = probe->copy.is_good;
    if (!found.has_value() || !(is_good || (!found->record.is_null() && !values_in_entries_))) return false;
    probe->found = found;
    probe->found->from_cache = !is_good;
    return true;
  };
  bool has_copy = caches_leaves_;
  if constexpr (!Keys::kKeysElsewhere) {
    const std::optional<FindResult> found = has_copy ? FindInCopy(key, &probe->copy) : std::nullopt;
    if (decides(found) || probe->copy.is_busy) return 0;
    has_copy = found.has_value();
  }
  if (LeafCopy leaf; has_copy && FindCopy(key, &leaf, &probe->copy)) {
    const std::optional<FindResult> found = ResultOf<Keys>(*schema_, leaf, key);
    if (decides(found)) return 0;
    if (found.has_value()) {
      probe->leaf = leaf.address;
      probe->line = kStateOnly;
      probe->image = leaf.image;
      reads[0] = ReadStateOf(leaf.address, probe->copy, &probe->state, &probe->posted_nanos);
      return 1;
    }
  }
  probe->leaf = this->ExpectLeaf(key);
  if (probe->leaf.is_null() || probe->leaf.node() != owner_) return 0;
  reads[0] = ReadOf(probe->leaf, &probe->image);
  return 1;
}

template <class Keys>
rdma::Operation LeafClient<Keys>::ReadStateOf(rdma::GlobalAddress leaf, const CopyState& copy, uint64_t* state,
                                              uint64_t* posted_nanos) {
  rdma::Operation read = rdma::Operation::Read(leaf, state, kWordBytes);
  read.connection = copy.connection;
  *posted_nanos = copy.connection == 0 ? 0 : NowNanos();
  return read;
}

template <class Keys>
bool LeafClient<Keys>::IsCurrent(rdma::GlobalAddress leaf, const Image& image, const CopyState& copy, uint64_t state,
                                 uint64_t posted_nanos) {
  if (state == (copy.word != 0 ? copy.word : image.head.state)) {
    NoteCurrent({leaf, image}, copy, posted_nanos);
    return true;
  }
  Sometimes<"leaf: a cached leaf is behind">();
  ForgetLeaf(leaf);
  return false;
}

template <class Keys>
bool LeafClient<Keys>::Judge(Probe* probe, FindResult* result) {
  if (probe->line == kStateOnly) {
    if (!IsCurrent(probe->leaf, probe->image, probe->copy, probe->state, probe->posted_nanos)) return false;
  } else {
    ++statistics_.leaves_read;
    if (leaves_.Judge(&probe->image) != LeafLook::kWhole || probe->image.level() != 0 ||
        !Keys::CoversKey(probe->image, probe->key)) {
      return false;
    }
    if (caches_leaves_) KeepLeaf({probe->leaf, probe->image});
  }
  const std::optional<FindResult> found = ResultOf<Keys>(*schema_, {probe->leaf, probe->image}, probe->key);
  if (found.has_value()) *result = *found;
  return found.has_value();
}

template <class Keys>
coro::Task<void> LeafClient<Keys>::KeepOrClaim(LeafCopy* leaf) {
  KeepLeaf(*leaf);
  if (!has_claims_to_make()) co_return;
  std::vector<WordChange> made;
  co_await MakeClaims(&made);
  TakeClaims(made, leaf->address, &leaf->image.head.state);
}

template <class Keys>
coro::Task<bool> LeafClient<Keys>::IsToBeginAgain(Status status, Patience* patience) {
  if (!keeps_leaves()) co_return false;
  if (has_claims_to_make()) {
    std::vector<WordChange> made;
    co_await MakeClaims(&made);
  }
  co_return IsLeafKept(status) && patience->Pause();
}

template <class Keys>
coro::Task<bool> LeafClient<Keys>::FindKept(typename Keys::Point point, LeafCopy* place) {
  CopyState copy;
  if (!CopyOf(place->address, &place->image, &copy) || !Keys::Covers(place->image, point)) co_return false;
  if (copy.is_good) co_return true;
  uint64_t state = 0;
  uint64_t posted_nanos = 0;
  rdma::Operation read[] = {ReadStateOf(place->address, copy, &state, &posted_nanos)};
  const Status posted = co_await channel_->Post(read);
  co_return posted.ok() && IsCurrent(place->address, place->image, copy, state, posted_nanos);
}

template <class Keys>
coro::Task<StatusOr<FindResult>> LeafClient<Keys>::FindOne(Key key) {
  if (!is_ready()) {
    const Status ready = co_await Prepare();
    GANNET_CO_RETURN_IF_ERROR(ready);
  }
  ++statistics_.lookups;
  ++statistics_.one_sided;
  Patience patience(leaves_.patience_nanos());
  int busy = 0;
  for (;;) {
    if (probes_first_ || caches_leaves_) {
      Probe probe;
      std::array<rdma::Operation, kReadsOfProbe> reads;
      const size_t posted = SetProbe(key, &probe, reads);
      if (probe.found.has_value()) co_return *probe.found;
      // The latch may be that of a coroutine of this thread, which goes on when this one waits for a verb.
      if (probe.copy.is_busy && ++busy % kBusyLooks != 0 && patience.Pause()) continue;
      if (posted > 0) {
        const Status status = co_await channel_->Post(std::span(reads).first(posted));
        // A cached address can be wrong; then the search finds out.
        if (!status.ok() && !absl::IsInvalidArgument(status)) co_return status;
        FindResult result;
        const bool is_found = status.ok() && Judge(&probe, &result);
        if (has_claims_to_make()) {
          std::vector<WordChange> made;
          co_await MakeClaims(&made);
          TakeClaims(made, result.witness.word, &result.witness.seen);
        }
        if (is_found) co_return result;
      }
    }
    LeafCopy place;
    const Status located = co_await editor_->Locate(Keys::At(key), &place);
    if (!located.ok()) {
      const bool again = co_await IsToBeginAgain(located, &patience);
      if (!again) co_return located;
      const bool is_kept = co_await FindKept(Keys::At(key), &place);
      if (!is_kept) continue;
    } else {
      NoteSearch(key);
      if (caches_leaves_) co_await KeepOrClaim(&place);
    }
    const std::optional<FindResult> found = ResultOf<Keys>(*schema_, place, key);
    if (found.has_value()) co_return *found;
    const StatusOr<int> slot = co_await FindKey<Keys>(&leaves_, *schema_, key, &place);
    if (!slot.ok()) co_return slot.status();
    co_return FindResult{.record = *slot < 0 ? rdma::GlobalAddress() : TargetOf(place.image, *slot),
                         .witness = place.witness()};
  }
}

// The leaves that the cache knows take one posting; the rest, and those that have changed, one search each.
template <class Keys>
coro::Task<Status> LeafClient<Keys>::FindMany(std::span<const index::Key> keys, std::span<FindResult> results) {
  const Status ready = co_await Prepare();
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
      const size_t more = SetProbe(Keys::KeyFrom(keys[first + i]), &probes[probed], next);
      if (probes[probed].found.has_value()) {
        results[first + i] = *probes[probed].found;
        done[i] = true;
        ++statistics_.lookups;
        ++statistics_.one_sided;
      }
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
      if (has_claims_to_make()) {
        std::vector<WordChange> made;
        co_await MakeClaims(&made);
        for (FindResult& result : results.subspan(first, n)) {
          TakeClaims(made, result.witness.word, &result.witness.seen);
        }
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
coro::Task<Status> LeafClient<Keys>::Scan(ScanRange range, ScanResult* result) {
  if (range.limit == 0 || range.to < range.from) co_return absl::OkStatus();
  const Key from = Keys::KeyFrom(range.from);
  const Key to = Keys::KeyFrom(range.to);
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  ++statistics_.lookups;
  ++statistics_.one_sided;
  const size_t end = range.limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + range.limit;
  Cut next = Keys::Start(from, to, range.reverse);
  Patience patience(leaves_.patience_nanos());
  for (;;) {
    const StatusOr<bool> done = co_await ScanCached(from, to, range.reverse, end, result, &next);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
    // The cache knows no leaf, or a wrong one, at `next`. The search may bring what it lacks.
    LeafCopy place;
    const auto point = Keys::PointOf(next, range.reverse);
    const Status located = co_await editor_->Locate(point, &place);
    if (!located.ok()) {
      const bool again = co_await IsToBeginAgain(located, &patience);
      if (!again) co_return located;
      const bool is_kept = co_await FindKept(point, &place);
      if (!is_kept) continue;
    } else if (caches_leaves_) {
      co_await KeepOrClaim(&place);
    }
    const Status read = co_await ReadAllKeys<Keys>(&leaves_, *schema_, &place);
    GANNET_CO_RETURN_IF_ERROR(read);
    if (TakeLeaf<Keys>(place, from, to, range.reverse, end, result, &next) || result->entries.size() >= end) {
      co_return absl::OkStatus();
    }
  }
}

template <class Keys>
coro::Task<Status> LeafClient<Keys>::ReadLeaves(std::span<const rdma::GlobalAddress> leaves,
                                                std::span<Image, kMostReads> images) {
  std::array<rdma::Operation, kMostReads> reads;
  size_t posted = 0;
  const size_t lines = trims_scans_ ? tails_.lines() : kSlotLines;
  uint32_t whole = 0;  // the leaves that are READ, bits
  std::array<CopyCheck, kMostReads> checks;
  size_t checked = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (CopyState copy; caches_leaves_ && CopyOf(leaves[i], &images[i], &copy)) {
      if (copy.is_good) continue;
      CopyCheck& check = checks[checked++] = {.at = i, .copy = copy};
      reads[posted++] = ReadStateOf(leaves[i], copy, &check.state, &check.posted_nanos);
      continue;
    }
    whole |= 1u << i;
    reads[posted] = ReadOf(leaves[i], &images[i]);
    reads[posted++].size -= static_cast<uint32_t>((kSlotLines - lines) * kLineBytes);
  }
  if (posted > 0) {
    const Status status = co_await channel_->Post(std::span(reads).first(posted));
    if (!status.ok()) co_return status;
  }
  for (const CopyCheck& check : std::span(checks).first(checked)) {
    Image& image = images[check.at];
    if (!IsCurrent(leaves[check.at], image, check.copy, check.state, check.posted_nanos)) image.head.state = kAbsentBit;
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    if ((whole >> i & 1) == 0) continue;
    ++statistics_.leaves_read;
    if (caches_leaves_ && leaves_.Judge(&images[i]) == LeafLook::kWhole && images[i].level() == 0) {
      KeepLeaf({leaves[i], images[i]});
    }
  }
  if (has_claims_to_make()) {
    std::vector<WordChange> made;
    co_await MakeClaims(&made);
    for (size_t i = 0; i < leaves.size(); ++i) TakeClaims(made, leaves[i], &images[i].head.state);
  }
  if constexpr (!Keys::kKeysElsewhere) {
    size_t tails = 0;
    for (size_t i = 0; trims_scans_ && i < leaves.size(); ++i) {
      if (!tails_.Needs(lines, &images[i])) continue;
      reads[tails++] = rdma::Operation::Read(leaves[i] + (1 + lines) * kLineBytes, &images[i].lines[lines], kLineBytes);
    }
    if (tails > 0) {
      const Status rest = co_await channel_->Post(std::span(reads).first(tails));
      if (!rest.ok()) co_return rest;
    }
  }
  co_return absl::OkStatus();
}

template <class Keys>
coro::Task<StatusOr<bool>> LeafClient<Keys>::ScanCached(Key from, Key to, bool reverse, size_t end, ScanResult* result,
                                                        Cut* next) {
  std::array<Image, kMostReads> images;
  std::array<rdma::GlobalAddress, kMostReads> leaves;
  for (;;) {
    const size_t n = LeavesFrom(*next, to, reverse, end - result->entries.size(), leaves);
    if (n == 0) co_return false;
    const Status status = co_await ReadLeaves(std::span(leaves).first(n), images);
    if (absl::IsInvalidArgument(status)) co_return false;
    if (!status.ok()) co_return status;
    for (size_t i = 0; i < n; ++i) {
      if (leaves_.Judge(&images[i]) != LeafLook::kWhole || images[i].level() != 0 ||
          !Keys::Covers(images[i], Keys::PointOf(*next, reverse))) {
        co_return false;
      }
      fill_.Note(images[i].template count<Entry>());
      LeafCopy place{leaves[i], images[i]};
      const Status read = co_await ReadAllKeys<Keys>(&leaves_, *schema_, &place);
      GANNET_CO_RETURN_IF_ERROR(read);
      if (TakeLeaf<Keys>(place, from, to, reverse, end, result, next) || result->entries.size() >= end) co_return true;
    }
  }
}

template <class Keys>
coro::Task<Status> LeafClient<Keys>::LocateLeaf(Key key, LeafCopy* place) {
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  const Status located = co_await editor_->Locate(Keys::At(key), place);
  if (caches_leaves_ && located.ok()) co_await KeepOrClaim(place);
  co_return located;
}

template <class Keys>
coro::Task<StatusOr<LeafLook>> LeafClient<Keys>::ReadExpected(Key /*key*/, rdma::GlobalAddress leaf, bool /*is_first*/,
                                                              Image* image) {
  StatusOr<LeafLook> look = co_await leaves_.Read(leaf, image);
  co_return look;
}

// A copy is changed by ChangeKept. If that has READ the leaf and it is not kept, the editor finds it as it was READ.
template <class Keys>
coro::Task<StatusOr<Change>> LeafClient<Keys>::Make(EditKind kind, Key key, rdma::GlobalAddress record,
                                                    rdma::GlobalAddress to) {
  const Status ready = co_await Prepare();
  if (!ready.ok()) co_return ready;
  Patience patience(leaves_.patience_nanos());
  for (;;) {
    if (keeps_leaves()) {
      KeptEdit<Keys> edit{.kind = kind, .key = key, .entry = EntryOf(key, kind == EditKind::kReplace ? to : record)};
      if (kind == EditKind::kReplace && !record.is_null()) edit.from = EntryOf(key, record);
      const StatusOr<bool> kept = co_await ChangeKept(edit);
      if (!kept.ok()) co_return kept.status();
      if (*kept) co_return Change();
    }
    StatusOr<Change> change = Change();
    if (kind == EditKind::kInsert) {
      change = co_await editor_->Insert(key, record, nullptr);
    } else if (kind == EditKind::kRemove) {
      change = co_await editor_->Remove(key, record);
    } else {
      const Status replaced = co_await editor_->Replace(key, record, to);
      if (!replaced.ok()) change = replaced;
    }
    const bool again = co_await IsToBeginAgain(change.status(), &patience);
    if (!again) co_return std::move(change);
  }
}

// The owner makes the changes that a client may not make: all of them, or those of leaves that another node has
// claimed.
template <class Keys>
coro::Task<StatusOr<Change>> LeafClient<Keys>::Insert(index::Key key, rdma::GlobalAddress record) {
  if (changes_leaves()) {
    const Status ready = co_await Prepare();
    if (!ready.ok()) co_return ready;
    const Status fits = Keys::CheckLength(*schema_, key);
    if (!fits.ok()) co_return fits;
    StatusOr<Change> change = co_await Make(EditKind::kInsert, Keys::KeyFrom(key), record, {});
    if (!IsClaimedElsewhere(change.status())) co_return std::move(change);
  }
  StatusOr<Change> called = co_await calls_.Insert(key, record);
  if (caches_leaves_) this->Forget(key);
  co_return std::move(called);
}

template <class Keys>
coro::Task<StatusOr<Change>> LeafClient<Keys>::Remove(index::Key key, rdma::GlobalAddress record) {
  if (changes_leaves()) {
    StatusOr<Change> change = co_await Make(EditKind::kRemove, Keys::KeyFrom(key), record, {});
    if (!IsClaimedElsewhere(change.status())) co_return std::move(change);
  }
  StatusOr<Change> called = co_await calls_.Remove(key, record);
  if (caches_leaves_) this->Forget(key);
  co_return std::move(called);
}

template <class Keys>
coro::Task<Status> LeafClient<Keys>::Replace(index::Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  if (changes_leaves()) {
    const StatusOr<Change> replaced = co_await Make(EditKind::kReplace, Keys::KeyFrom(key), from, to);
    if (!IsClaimedElsewhere(replaced.status())) co_return replaced.status();
  }
  Status called = co_await calls_.Replace(key, from, to);
  if (caches_leaves_) this->Forget(key);
  co_return called;
}

template <class Keys>
std::unique_ptr<InsertBatch> LeafClient<Keys>::NewInsertBatch() {
  if (!changes_leaves()) return nullptr;
  return std::make_unique<LeafInserts<Keys>>(&leaves_, &blocks_, this, NewSplitNotices());
}

template <class Keys>
ReadEstimate LeafClient<Keys>::EstimateScan(const ScanRange& range, double entries, double keys_per_leaf) const {
  const auto keys = static_cast<double>(std::min<size_t>(range.limit, 1000));
  const double leaves = 1 + keys / entries;
  ReadEstimate estimate{.reads = leaves, .bytes = leaves * static_cast<double>(leaves_.leaf_bytes()), .keys = keys};
  estimate.postings = 1 + leaves / kMostReads;
  if constexpr (Keys::kKeysElsewhere) {
    // The keys of each leaf, from its records.
    const double records = leaves * keys_per_leaf;
    estimate.postings += leaves;
    estimate.reads += records;
    estimate.bytes += records * static_cast<double>(HeaderReadBytes(max_key_bytes_));
  }
  return estimate;
}

template <class Keys>
ClientStatistics LeafClient<Keys>::statistics() const {
  ClientStatistics statistics = statistics_;
  statistics.cache_bytes = shares_cache_ ? 0 : cache_->bytes();
  statistics.leaves_read += leaves_.leaves_read();
  return statistics;
}

template class LeafClient<IntegerKeys>;
template class LeafClient<ByteKeys>;

}  // namespace gannet::index::shared_leaf
