#include "index/blink/remote_blink.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/runtime.h"
#include "index/record_header.h"
#include "index/shared_leaf/leaf/leaf_scan.h"
#include "index/shared_leaf/leaf/schema_wire.h"
#include "rdma/rpc.h"

namespace gannet::index {
namespace blink {

using shared_leaf::LeafLook;

template <class Keys>
coro::Task<Status> RemoteBlink<Keys>::Prepare() {
  if (editor_.has_value()) co_return absl::OkStatus();
  std::array<std::byte, 8> request;
  std::array<std::byte, 64> response;
  rdma::WireWriter writer(request);
  writer.PutU16(id_);
  const StatusOr<size_t> bytes =
      co_await channel_->Call(owner_, kDescribe, writer.written(), response, options_.call_timeout);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  const rdma::GlobalAddress root(owner_, reader.GetU64());
  const StatusOr<Schema> schema = shared_leaf::GetSchema<Keys>(reader);
  GANNET_CO_RETURN_IF_ERROR(reader.Finish());
  if (!schema.ok()) co_return schema.status();
  GANNET_CO_RETURN_IF_ERROR(shared_leaf::CheckSchema<Keys>(*schema, options_.max_key_bytes));
  if (!editor_.has_value()) {
    schema_.emplace(*schema);
    editor_.emplace(&leaves_, &*schema_, root, &blocks_, &nodes_);
  }
  co_return absl::OkStatus();
}

template <class Keys>
coro::Task<StatusOr<FindResult>> RemoteBlink<Keys>::FindOne(Key key) {
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  ++statistics_.lookups;
  Place place;
  const Status located = co_await editor_->Locate(Keys::At(key), 0, Editor<Keys>::Notice::kLeave, &place);
  GANNET_CO_RETURN_IF_ERROR(located);
  ++statistics_.one_sided;
  const std::optional<FindResult> result = shared_leaf::ResultOf<Keys>(*schema_, place, key);
  if (result.has_value()) co_return *result;
  const StatusOr<int> slot = co_await shared_leaf::FindKey<Keys>(&leaves_, *schema_, key, &place);
  if (!slot.ok()) co_return slot.status();
  co_return FindResult{.record = *slot < 0 ? rdma::GlobalAddress() : TargetOf(place.image, *slot),
                       .witness = place.witness()};
}

template <class Keys>
rdma::GlobalAddress RemoteBlink<Keys>::CachedLeaf(const Key& key) const {
  Charge(Cost::kIndexStep, 2);  // a tree of nodes, and the node
  const Reading nodes(nodes_);
  const auto* const node = nodes->Find(1, Keys::At(key));
  if (node == nullptr) return {};
  const int slot = ChildSlot<Keys>(node->image, node->keys, Keys::At(key));
  return slot < 0 ? rdma::GlobalAddress() : TargetOf(node->image, slot);
}

// The leaves that the cache knows take one posting; the rest, and those that have changed, one search each.
template <class Keys>
coro::Task<Status> RemoteBlink<Keys>::FindMany(std::span<const index::Key> keys, std::span<FindResult> results) {
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  std::array<Image, kMostReads> images;
  std::array<rdma::Operation, kMostReads> reads;
  for (size_t first = 0; first < keys.size(); first += kMostReads) {
    const size_t n = std::min(kMostReads, keys.size() - first);
    std::array<size_t, kMostReads> key_of;
    size_t posted = 0;
    for (size_t i = 0; i < n; ++i) {
      const rdma::GlobalAddress leaf = CachedLeaf(Keys::KeyFrom(keys[first + i]));
      if (leaf.is_null() || leaf.node() != owner_) continue;
      reads[posted] = rdma::Operation::Read(leaf, &images[posted], static_cast<uint32_t>(leaves_.leaf_bytes()));
      key_of[posted++] = i;
    }
    std::array<bool, kMostReads> done{};
    if (posted > 0) {
      const Status status = co_await channel_->Post(std::span(reads).first(posted));
      // A cached address can be wrong; then the search finds out.
      if (!status.ok() && !absl::IsInvalidArgument(status)) co_return status;
      for (size_t r = 0; status.ok() && r < posted; ++r) {
        const Key key = Keys::KeyFrom(keys[first + key_of[r]]);
        ++statistics_.leaves_read;
        if (leaves_.Judge(&images[r]) != LeafLook::kWhole || images[r].level() != 0 ||
            !Keys::CoversKey(images[r], key)) {
          continue;
        }
        const std::optional<FindResult> result =
            shared_leaf::ResultOf<Keys>(*schema_, {reads[r].remote, images[r]}, key);
        if (!result.has_value()) continue;
        results[first + key_of[r]] = *result;
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
coro::Task<Status> RemoteBlink<Keys>::Scan(ScanRange range, ScanResult* result) {
  if (range.limit == 0 || range.to < range.from) co_return absl::OkStatus();
  const Key from = Keys::KeyFrom(range.from);
  const Key to = Keys::KeyFrom(range.to);
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  ++statistics_.lookups;
  ++statistics_.one_sided;
  const size_t end = range.limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + range.limit;
  Cut next = Keys::Start(from, to, range.reverse);
  for (;;) {
    const StatusOr<bool> done = co_await ScanCached(from, to, range.reverse, end, result, &next);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
    // Where the cache knows no leaf, or a wrong one. The search brings the inner node above into the cache.
    Place place;
    const Status located =
        co_await editor_->Locate(Keys::PointOf(next, range.reverse), 0, Editor<Keys>::Notice::kLeave, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    const Status read = co_await shared_leaf::ReadAllKeys<Keys>(&leaves_, *schema_, &place);
    GANNET_CO_RETURN_IF_ERROR(read);
    if (shared_leaf::TakeLeaf(place, from, to, range.reverse, end, result, &next) || result->entries.size() >= end) {
      co_return absl::OkStatus();
    }
  }
}

// Sets READs of leaf_bytes(), but not where to, of the leaves that the cached node above them knows from `next` on.
// Returns their number.
template <class Keys>
size_t RemoteBlink<Keys>::LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                                     std::span<rdma::Operation, kMostReads> reads) const {
  const Reading nodes(nodes_);
  const auto* const node = nodes->Find(1, Keys::PointOf(next, reverse));
  if (node == nullptr) return 0;
  const int first = ChildSlot<Keys>(node->image, node->keys, Keys::PointOf(next, reverse));
  if (first < 0) return 0;
  const auto separator = [node](int slot) -> decltype(auto) { return Keys::KeyAt(node->image, node->keys, slot); };
  std::array<int, Keys::kSlots> children;
  size_t n = 0;
  for (uint64_t used = node->image.template used<Entry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    if (!Keys::Knows(node->keys, slot)) continue;
    if (reverse ? separator(slot) <= separator(first) : separator(slot) >= separator(first) && separator(slot) <= to) {
      children[n++] = slot;
    }
  }
  std::sort(children.begin(), children.begin() + static_cast<ptrdiff_t>(n),
            [&](int a, int b) { return reverse ? separator(b) < separator(a) : separator(a) < separator(b); });
  n = std::min(n, fill_.LeavesFor(entries, kMostReads));
  for (size_t i = 0; i < n; ++i) {
    reads[i] =
        rdma::Operation::Read(TargetOf(node->image, children[i]), nullptr, static_cast<uint32_t>(leaves_.leaf_bytes()));
    if (reads[i].remote.node() != owner_) return 0;
  }
  return n;
}

// True: the scan is at its end.
template <class Keys>
coro::Task<StatusOr<bool>> RemoteBlink<Keys>::ScanCached(Key from, Key to, bool reverse, size_t end, ScanResult* result,
                                                         Cut* next) {
  std::array<Image, kMostReads> images;
  std::array<rdma::Operation, kMostReads> reads;
  for (;;) {
    const size_t n = LeavesFrom(*next, to, reverse, end - result->entries.size(), reads);
    if (n == 0) co_return false;
    for (size_t i = 0; i < n; ++i) reads[i].local = &images[i];
    const Status status = co_await channel_->Post(std::span(reads).first(n));
    if (absl::IsInvalidArgument(status)) co_return false;
    if (!status.ok()) co_return status;
    for (size_t i = 0; i < n; ++i) {
      ++statistics_.leaves_read;
      if (leaves_.Judge(&images[i]) != LeafLook::kWhole || images[i].level() != 0 ||
          !Keys::Covers(images[i], Keys::PointOf(*next, reverse))) {
        co_return false;
      }
      fill_.Note(images[i].template count<Entry>());
      Place place{reads[i].remote, images[i]};
      const Status read = co_await shared_leaf::ReadAllKeys<Keys>(&leaves_, *schema_, &place);
      GANNET_CO_RETURN_IF_ERROR(read);
      if (shared_leaf::TakeLeaf(place, from, to, reverse, end, result, next) || result->entries.size() >= end) {
        co_return true;
      }
    }
  }
}

template <class Keys>
coro::Task<StatusOr<Change>> RemoteBlink<Keys>::Insert(index::Key key, rdma::GlobalAddress record) {
  if (!changes_leaves()) {
    StatusOr<Change> called = co_await calls_.Insert(key, record);
    co_return std::move(called);
  }
  const Status ready = co_await Prepare();
  if (!ready.ok()) co_return ready;
  const Status fits = Keys::CheckLength(*schema_, key);
  if (!fits.ok()) co_return fits;
  StatusOr<Change> change = co_await editor_->Insert(Keys::KeyFrom(key), record, nullptr);
  co_return std::move(change);
}

template <class Keys>
coro::Task<Status> RemoteBlink<Keys>::LocateLeaf(Key key, Place* place) {
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  const Status located = co_await editor_->Locate(Keys::At(key), 0, Editor<Keys>::Notice::kLeave, place);
  co_return located;
}

template <class Keys>
coro::Task<StatusOr<Change>> RemoteBlink<Keys>::Remove(index::Key key, rdma::GlobalAddress record) {
  if (!changes_leaves()) {
    StatusOr<Change> called = co_await calls_.Remove(key, record);
    co_return std::move(called);
  }
  const Status ready = co_await Prepare();
  if (!ready.ok()) co_return ready;
  StatusOr<Change> change = co_await editor_->Remove(Keys::KeyFrom(key), record);
  co_return std::move(change);
}

template <class Keys>
coro::Task<Status> RemoteBlink<Keys>::Replace(index::Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  if (!changes_leaves()) {
    Status called = co_await calls_.Replace(key, from, to);
    co_return called;
  }
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  const Key of = Keys::KeyFrom(key);
  Status replaced;
  if (from.is_null()) {
    replaced = co_await editor_->ReplaceAny(of, to);
  } else {
    replaced = co_await editor_->Replace(of, from, to);
  }
  co_return replaced;
}

template <class Keys>
ReadEstimate RemoteBlink<Keys>::Estimate(std::span<const index::Key> keys) const {
  constexpr size_t kLooks = 8;
  size_t known = 0;
  const size_t looks = std::min(kLooks, keys.size());
  for (size_t i = 0; i < looks; ++i) {
    const Key key = Keys::KeyFrom(keys[i * keys.size() / looks]);
    known += CachedLeaf(key).is_null() ? 0 : 1;
  }
  const auto n = static_cast<double>(keys.size());
  const auto leaf_bytes = static_cast<double>(leaves_.leaf_bytes());
  const double unknown = looks == 0 ? 0 : n * static_cast<double>(looks - known) / static_cast<double>(looks);
  ReadEstimate estimate{.reads = n + unknown, .bytes = (n + unknown) * leaf_bytes, .keys = n};
  // An inner node of byte keys is READ with the low fences of its children, in another posting.
  const double of_unknown = Keys::kKeysElsewhere ? 3 : 2;
  estimate.postings = static_cast<double>((keys.size() + kMostReads - 1) / kMostReads) + of_unknown * unknown;
  estimate.lasting_postings = (of_unknown - 1) * unknown;
  if (!editor_.has_value()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template <class Keys>
ReadEstimate RemoteBlink<Keys>::Estimate(const ScanRange& range) const {
  const auto keys = static_cast<double>(std::min<size_t>(range.limit, 1000));
  const double leaves = 1 + keys / (Keys::kSlots / 2.0);
  ReadEstimate estimate{.reads = leaves, .bytes = leaves * static_cast<double>(leaves_.leaf_bytes()), .keys = keys};
  estimate.postings = 1 + leaves / kMostReads;
  if constexpr (Keys::kKeysElsewhere) {
    // The keys of each leaf, from its records.
    const double records = leaves * Keys::kSlots * 0.7;
    estimate.postings += leaves;
    estimate.reads += records;
    estimate.bytes += records * static_cast<double>(HeaderReadBytes(options_.max_key_bytes));
  }
  const Key first = Keys::KeyFrom(range.reverse ? range.to : range.from);
  if (Reading(nodes_)->Find(1, Keys::At(first)) == nullptr) {
    ++estimate.postings;
    ++estimate.lasting_postings;
  }
  if (!editor_.has_value()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

template <class Keys>
ClientStatistics RemoteBlink<Keys>::statistics() const {
  ClientStatistics statistics = statistics_;
  statistics.cache_bytes = shares_cache_ ? 0 : cache_->bytes();
  statistics.leaves_read += leaves_.leaves_read();
  return statistics;
}

template class RemoteBlink<IntegerKeys>;
template class RemoteBlink<ByteKeys>;

}  // namespace blink

std::shared_ptr<blink::SharedNodes> MakeBlinkCache(size_t max_bytes) {
  return std::make_shared<blink::SharedNodes>(max_bytes);
}

StatusOr<std::unique_ptr<RemoteIndex>> ConnectBlink(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                    const BlinkClientOptions& options) {
  if (options.key_kind == KeyKind::kInteger) {
    return std::make_unique<blink::RemoteBlink<blink::IntegerKeys>>(channel, owner, id, options);
  }
  GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kShortKeyBytes));
  return std::make_unique<blink::RemoteBlink<blink::ByteKeys>>(channel, owner, id, options);
}

}  // namespace gannet::index
