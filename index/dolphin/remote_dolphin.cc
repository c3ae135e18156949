#include "index/dolphin/remote_dolphin.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "index/backoff.h"
#include "index/record_header.h"
#include "index/shared_leaf/change/leaf_keys.h"
#include "index/shared_leaf/leaf/schema_wire.h"
#include "rdma/rpc.h"

namespace gannet::index {
namespace dolphin {

using shared_leaf::LeafChannel;

namespace {

constexpr size_t kDescribeBytes = 256;
// Entries of a leaf, before a scan has met one.
constexpr double kExpectedFill = 12;
// Bytes of an inner node that a lookup READs.
constexpr double kNodeEstimate = 256;

}  // namespace

template <class Keys>
RemoteDolphin<Keys>::RemoteDolphin(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                   const DolphinClientOptions& options)
    : channel_(channel),
      owner_(owner),
      id_(id),
      call_timeout_(options.call_timeout),
      max_key_bytes_(options.max_key_bytes),
      rights_(options.rights),
      values_in_entries_(options.values_in_entries && !Keys::kKeysElsewhere),
      shares_cache_(options.shared != nullptr),
      cache_(options.shared != nullptr ? options.shared : MakeDolphinCache(options.cache_bytes)),
      book_(HolderBook::Of(channel->Local(rdma::GlobalAddress(channel->node(), 0)), owner, id)),
      node_(options.node),
      leaves_(channel, options.node, owner, options.patience, /*fence_lines=*/0, nullptr, LeafChannel::As::kClient),
      blocks_(channel, options.node, owner, id, options.call_timeout, &cache_->blocks()),
      calls_(channel, owner, id, options.call_timeout),
      fill_(kExpectedFill) {}

template <class Keys>
coro::Task<StatusOr<typename RemoteDolphin<Keys>::Described>> RemoteDolphin<Keys>::Describe() {
  std::array<std::byte, sizeof(IndexId)> request;
  std::array<std::byte, kDescribeBytes> response;
  rdma::WireWriter writer(request);
  writer.PutU16(id_);
  const StatusOr<size_t> bytes =
      co_await channel_->Call(owner_, kDolphinMethods, writer.written(), response, call_timeout_);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  StatusOr<Schema> schema = shared_leaf::GetSchema<Keys>(reader);
  if (!schema.ok()) co_return schema.status();
  Described described{*schema, {}, {}};
  const size_t lines = reader.GetU8();
  if constexpr (!Keys::kKeysElsewhere) described.schema.key_lines = lines;
  described.root = rdma::GlobalAddress(owner_, reader.GetU64());
  described.first = rdma::GlobalAddress(owner_, reader.GetU64());
  const bool valid =
      reader.Finish().ok() && lines > 0 && lines <= Leaf::kMostShapeLines && lines == described.schema.shape_lines();
  if (!valid) co_return absl::DataLossError(absl::StrCat("node ", owner_, " describes index ", id_, " wrongly"));
  co_return described;
}

template <class Keys>
coro::Task<Status> RemoteDolphin<Keys>::Prepare() {
  if (is_ready()) co_return absl::OkStatus();
  StatusOr<Described> described = co_await Describe();
  if (!described.ok()) co_return described.status();
  GANNET_CO_RETURN_IF_ERROR(shared_leaf::CheckSchema<Keys>(described->schema, max_key_bytes_));
  if (!is_ready()) {
    described_.emplace(*std::move(described));
    way_.emplace(cache_.get(), &leaves_, node_, id_, call_timeout_, described_->root, described_->first,
                 shared_leaf::MaxKeyBytesOf<Keys>(described_->schema), rights_);
    editor_.emplace(&leaves_, &described_->schema, book_.get(), &blocks_, &*way_, rights_);
    way_->set_lock(&editor_->lock());
  }
  co_return absl::OkStatus();
}

template <class Keys>
std::optional<FindResult> RemoteDolphin<Keys>::ResultIn(const LeafCopy& leaf, const Key& key, For use) const {
  std::optional<FindResult> result = shared_leaf::ResultOf<Keys>(described_->schema, leaf, key);
  if (!result.has_value() || use == For::kWitness) return result;
  if (result->record.is_null()) return std::nullopt;
  result->witness = {};
  result->from_cache = Keys::kKeysElsewhere;  // if it is another key's, FindExactly decides
  return result;
}

template <class Keys>
coro::Task<StatusOr<FindResult>> RemoteDolphin<Keys>::FindOne(Key key) {
  if (!is_ready()) {
    const Status ready = co_await Prepare();
    GANNET_CO_RETURN_IF_ERROR(ready);
  }
  ++statistics_.lookups;
  ++statistics_.one_sided;
  if (doubtful_ == key) {
    doubtful_.reset();
    const StatusOr<FindResult> exact = co_await FindExactly(key);
    co_return exact;
  }
  LeafCopy leaf;
  const Status located = co_await way_->LocateFor(For::kEntry, Keys::At(key), &leaf);
  GANNET_CO_RETURN_IF_ERROR(located);
  const std::optional<FindResult> result = ResultIn(leaf, key, For::kEntry);
  if (result.has_value()) co_return *result;
  const StatusOr<FindResult> exact = co_await FindExactly(key);
  co_return exact;
}

template <class Keys>
coro::Task<StatusOr<FindResult>> RemoteDolphin<Keys>::FindExactly(Key key) {
  LeafCopy leaf;
  const Status located = co_await way_->LocateFor(For::kWitness, Keys::At(key), &leaf);
  GANNET_CO_RETURN_IF_ERROR(located);
  const StatusOr<int> slot = co_await shared_leaf::FindKey<Keys>(&leaves_, schema(), key, &leaf);
  if (!slot.ok()) co_return slot.status();
  FindResult result{.record = {}, .witness = leaf.witness()};
  if (*slot >= 0) {
    result.record = Keys::TargetOf(leaf.image.template entry<typename Keys::Entry>(*slot), owner_);
    if (!Keys::kKeysElsewhere) result.witness = {};
  }
  co_return result;
}

template <class Keys>
coro::Task<Status> RemoteDolphin<Keys>::FindExpected(std::span<const index::Key> keys, For use,
                                                     std::span<rdma::GlobalAddress> leaves,
                                                     std::span<FindResult> results, std::span<bool> done) {
  std::array<rdma::GlobalAddress, kMostReads> wanted;
  std::array<uint8_t, kMostKeys> read_of;  // by key; kMostReads: none
  size_t n = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    read_of[i] = kMostReads;
    if (done[i] || leaves[i].is_null() || !leaves_.CheckAddress(leaves[i]).ok()) continue;
    const auto same = std::find(wanted.begin(), wanted.begin() + n, leaves[i]);
    read_of[i] = static_cast<uint8_t>(same - wanted.begin());
    if (read_of[i] == n) wanted[n++] = leaves[i];
  }
  if (n == 0) co_return absl::OkStatus();
  std::array<Leaf, kMostReads> images;
  std::array<LeafLook, kMostReads> looks;
  const Status read = co_await lock()->ReadOnce(std::span(wanted).first(n), use, images, looks);
  if (absl::IsInvalidArgument(read)) co_return absl::OkStatus();  // a copy of a node is wrong; the search finds out
  GANNET_CO_RETURN_IF_ERROR(read);
  statistics_.leaves_read += n;
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t r = read_of[i];
    if (r == kMostReads) continue;
    const Key key = Keys::KeyFrom(keys[i]);
    const LeafCopy leaf{wanted[r], Keys::View(images[r])};
    leaves[i] = {};
    if (looks[r] != LeafLook::kWhole || !Keys::CoversKey(leaf.image, key)) continue;
    const std::optional<FindResult> result = ResultIn(leaf, key, use);
    if (result.has_value()) {
      results[i] = *result;
      done[i] = true;
      ++statistics_.lookups;
      ++statistics_.one_sided;
    } else {
      leaves[i] = wanted[r];  // absent, or with several entries that may be the key's
    }
  }
  co_return absl::OkStatus();
}

// The leaves to which copies lead take one posting, and those that lack their keys another; the rest, and what has
// changed, one search each. Keys of one leaf share a READ.
template <class Keys>
coro::Task<Status> RemoteDolphin<Keys>::FindMany(std::span<const index::Key> keys, std::span<FindResult> results) {
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  for (size_t first = 0, n = 0; first < keys.size(); first += n) {
    std::array<rdma::GlobalAddress, kMostKeys> leaves;
    std::array<bool, kMostKeys> done{};
    size_t different = 0;
    for (n = 0; n < std::min(kMostKeys, keys.size() - first); ++n) {
      const Key key = Keys::KeyFrom(keys[first + n]);
      leaves[n] = doubtful_ == key ? rdma::GlobalAddress() : way_->Expect(key);
      if (leaves[n].is_null() || std::find(leaves.begin(), leaves.begin() + n, leaves[n]) != leaves.begin() + n)
        continue;
      if (different == kMostReads) break;
      ++different;
    }
    const std::span<const index::Key> some = keys.subspan(first, n);
    const std::span<FindResult> found = results.subspan(first, n);
    for (const For use : {For::kEntry, For::kWitness}) {
      const Status read = co_await FindExpected(some, use, leaves, found, done);
      GANNET_CO_RETURN_IF_ERROR(read);
    }
    for (size_t i = 0; i < n; ++i) {
      if (done[i]) continue;
      const StatusOr<FindResult> one = co_await FindOne(Keys::KeyFrom(some[i]));
      if (!one.ok()) co_return one.status();
      found[i] = *one;
    }
  }
  co_return absl::OkStatus();
}

template <class Keys>
coro::Task<Status> RemoteDolphin<Keys>::FindIn(rdma::GlobalAddress leaf, std::span<const index::Key> keys,
                                               std::span<FindResult> results) {
  Leaf image;
  LeafLook look = LeafLook::kDead;
  const Status read =
      co_await lock()->ReadOnce(std::span(&leaf, 1), For::kEntry, std::span(&image, 1), std::span(&look, 1));
  // A wrong address is what a stale or hostile copy of a node may have.
  if (!read.ok() && !absl::IsInvalidArgument(read)) co_return read;
  ++statistics_.leaves_read;
  const bool is_whole = read.ok() && look == LeafLook::kWhole;
  const LeafCopy copy{leaf, Keys::View(image)};
  for (size_t i = 0; i < keys.size(); ++i) {
    const Key key = Keys::KeyFrom(keys[i]);
    const std::optional<FindResult> result =
        is_whole && Keys::CoversKey(copy.image, key) ? ResultIn(copy, key, For::kEntry) : std::nullopt;
    if (!result.has_value()) {
      const StatusOr<FindResult> one = co_await FindOne(key);
      if (!one.ok()) co_return one.status();
      results[i] = *one;
      continue;
    }
    results[i] = *result;
    ++statistics_.lookups;
    ++statistics_.one_sided;
  }
  co_return absl::OkStatus();
}

template <class Keys>
coro::Task<StatusOr<bool>> RemoteDolphin<Keys>::Take(LeafCopy* leaf, Key from, Key to, bool reverse, size_t end,
                                                     ScanResult* result, typename Keys::Cut* next) {
  const Status read = co_await shared_leaf::ReadAllKeys<Keys>(&leaves_, schema(), leaf);
  if (!read.ok()) co_return read;
  fill_.Note(leaf->image.template count<Entry>());
  co_return shared_leaf::TakeLeaf<Keys>(*leaf, from, to, reverse, end, result, next) || result->entries.size() >= end;
}

template <class Keys>
coro::Task<StatusOr<bool>> RemoteDolphin<Keys>::ScanExpected(Key from, Key to, bool reverse, size_t end,
                                                             ScanResult* result, typename Keys::Cut* next) {
  std::array<Leaf, kMostReads> images;
  std::array<LeafLook, kMostReads> looks;
  std::array<rdma::GlobalAddress, kMostReads> leaves;
  for (;;) {
    const size_t wanted = end - result->entries.size();
    const size_t most = fill_.LeavesFor(wanted, kMostReads);
    const double skipped =
        way_->LeavesFrom(Keys::PointOf(*next, reverse), reverse ? from : to, reverse, most, &expected_);
    if (!reverse) expected_.resize(std::min(expected_.size(), fill_.LeavesBehind(skipped, wanted, kMostReads)));
    const size_t n = expected_.size();
    if (n == 0 ||
        !std::ranges::all_of(expected_, [&](rdma::GlobalAddress at) { return leaves_.CheckAddress(at).ok(); })) {
      co_return false;
    }
    std::ranges::copy(expected_, leaves.begin());
    const Status read = co_await lock()->ReadOnce(std::span(leaves).first(n), For::kWitness, images, looks);
    if (absl::IsInvalidArgument(read)) co_return false;
    if (!read.ok()) co_return read;
    statistics_.leaves_read += n;
    for (size_t i = 0; i < n; ++i) {
      LeafCopy leaf{leaves[i], Keys::View(images[i])};
      if (looks[i] != LeafLook::kWhole || !Keys::Covers(leaf.image, Keys::PointOf(*next, reverse))) co_return false;
      const StatusOr<bool> done = co_await Take(&leaf, from, to, reverse, end, result, next);
      if (!done.ok() || *done) co_return done;
    }
  }
}

template <class Keys>
coro::Task<Status> RemoteDolphin<Keys>::Scan(ScanRange range, ScanResult* result) {
  if (range.limit == 0 || range.to < range.from) co_return absl::OkStatus();
  const Key from = Keys::KeyFrom(range.from);
  const Key to = Keys::KeyFrom(range.to);
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  ++statistics_.lookups;
  ++statistics_.one_sided;
  const size_t end = range.limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + range.limit;
  typename Keys::Cut next = Keys::Start(from, to, range.reverse);
  for (;;) {
    StatusOr<bool> done = co_await ScanExpected(from, to, range.reverse, end, result, &next);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
    // Copies lead to no leaf, or to a wrong one, at `next`. The search brings what they lack.
    LeafCopy leaf;
    const Status located = co_await way_->LocateFor(For::kWitness, Keys::PointOf(next, range.reverse), &leaf);
    GANNET_CO_RETURN_IF_ERROR(located);
    ++statistics_.leaves_read;
    done = co_await Take(&leaf, from, to, range.reverse, end, result, &next);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
  }
}

template <class Keys>
coro::Task<StatusOr<Change>> RemoteDolphin<Keys>::Insert(index::Key key, rdma::GlobalAddress record) {
  if (!changes_leaves()) co_return co_await calls_.Insert(key, record);
  const Status ready = co_await Prepare();
  if (!ready.ok()) co_return ready;
  const Status fits = Keys::CheckLength(described_->schema, key);
  if (!fits.ok()) co_return fits;
  StatusOr<Change> change = co_await editor_->Insert(Keys::KeyFrom(key), record, nullptr);
  co_return std::move(change);
}

template <class Keys>
coro::Task<StatusOr<Change>> RemoteDolphin<Keys>::Remove(index::Key key, rdma::GlobalAddress record) {
  if (!changes_leaves()) co_return co_await calls_.Remove(key, record);
  const Status ready = co_await Prepare();
  if (!ready.ok()) co_return ready;
  StatusOr<Change> change = co_await editor_->Remove(Keys::KeyFrom(key), record);
  co_return std::move(change);
}

template <class Keys>
coro::Task<Status> RemoteDolphin<Keys>::Replace(index::Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  if (!changes_leaves()) co_return co_await calls_.Replace(key, from, to);
  const Status ready = co_await Prepare();
  if (!ready.ok()) co_return ready;
  const Status replaced = co_await editor_->Replace(Keys::KeyFrom(key), from, to);
  co_return replaced;
}

template <class Keys>
std::unique_ptr<InsertBatch> RemoteDolphin<Keys>::NewInsertBatch() {
  if (!changes_leaves()) return nullptr;
  return std::unique_ptr<InsertBatch>(new LeafInserts<Keys>(this));
}

template <class Keys>
double RemoteDolphin<Keys>::leaf_bytes() const {
  return static_cast<double>(is_ready() ? schema().leaf_bytes() : LeafBytes(kDefaultKeyLines));
}

template <class Keys>
ReadEstimate RemoteDolphin<Keys>::Estimate(std::span<const index::Key> keys) const {
  constexpr size_t kLooks = 8;
  const auto n = static_cast<double>(keys.size());
  const size_t looks = std::min(kLooks, keys.size());
  size_t known = 0;
  for (size_t i = 0; is_ready() && i < looks; ++i) {
    known += way_->Expect(Keys::KeyFrom(keys[i * keys.size() / looks])).is_null() ? 0 : 1;
  }
  const double unknown = looks == 0 ? 0 : n * static_cast<double>(looks - known) / static_cast<double>(looks);
  ReadEstimate estimate{.reads = n + unknown, .bytes = n * leaf_bytes() + unknown * kNodeEstimate, .keys = n};
  estimate.postings = static_cast<double>((keys.size() + kMostReads - 1) / kMostReads) + 2 * unknown;
  estimate.lasting_postings = unknown;
  if (!is_ready()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template <class Keys>
ReadEstimate RemoteDolphin<Keys>::Estimate(const ScanRange& range) const {
  const auto keys = static_cast<double>(std::min<size_t>(range.limit, 1000));
  const double leaves = 1 + keys / kExpectedFill;
  ReadEstimate estimate{.reads = leaves, .atomics = leaves, .bytes = leaves * leaf_bytes(), .keys = keys};
  estimate.postings = 1 + leaves / kMostReads;
  if constexpr (Keys::kKeysElsewhere) {
    // The keys of each leaf, from its records.
    const double records = leaves * Keys::kSlots * 0.7;
    estimate.postings += leaves;
    estimate.reads += records;
    estimate.bytes += records * static_cast<double>(HeaderReadBytes(max_key_bytes_));
  }
  const Key first = Keys::KeyFrom(range.reverse ? range.to : range.from);
  if (!is_ready() || way_->Expect(first).is_null()) {
    ++estimate.postings;
    ++estimate.lasting_postings;
  }
  if (!is_ready()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template <class Keys>
ClientStatistics RemoteDolphin<Keys>::statistics() const {
  ClientStatistics statistics = statistics_;
  statistics.cache_bytes = shares_cache_ ? 0 : cache_->bytes();
  return statistics;
}

template class RemoteDolphin<IntegerKeys>;
template class RemoteDolphin<ByteKeys>;

}  // namespace dolphin

std::shared_ptr<dolphin::SharedInner> MakeDolphinCache(size_t max_bytes) {
  return std::make_shared<dolphin::SharedInner>(max_bytes == 0 ? size_t{64} << 20 : max_bytes);
}

}  // namespace gannet::index
