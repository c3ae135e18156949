#include "index/blink/remote_blink.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "index/remote/leaf_insert.h"
#include "index/remote/leaf_scan.h"
#include "rdma/rpc.h"

namespace gannet::index {
namespace blink {

using remote::LeafLook;

coro::Task<Status> RemoteBlink::Prepare() {
  if (editor_.has_value()) co_return absl::OkStatus();
  std::array<std::byte, 8> request;
  std::array<std::byte, 8> response;
  rdma::WireWriter writer(request);
  writer.PutU16(id_);
  const StatusOr<size_t> bytes =
      co_await channel_->Call(owner_, kDescribe, writer.written(), response, options_.call_timeout);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  const rdma::GlobalAddress root(owner_, reader.GetU64());
  GANNET_CO_RETURN_IF_ERROR(reader.Finish());
  if (!editor_.has_value()) editor_.emplace(&leaves_, root, &blocks_, &cache_);
  co_return absl::OkStatus();
}

FindResult RemoteBlink::ResultOf(const Place& place, uint64_t key) {
  const int slot = FindSlot(place.image, key);
  if (slot < 0) return {.record = {}, .witness = place.witness()};
  return {.record = rdma::GlobalAddress::FromBits(place.image.entry<IntegerEntry>(slot).target)};
}

coro::Task<StatusOr<FindResult>> RemoteBlink::FindOne(uint64_t key) {
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  ++statistics_.lookups;
  Place place;
  const Status located = co_await editor_->Locate(key, 0, Editor::Notice::kLeave, &place);
  GANNET_CO_RETURN_IF_ERROR(located);
  ++statistics_.one_sided;
  co_return ResultOf(place, key);
}

rdma::GlobalAddress RemoteBlink::CachedLeaf(uint64_t key) const {
  const InnerCache::Node* const node = cache_.Find(1, key);
  if (node == nullptr) return {};
  const int slot = ChildSlot(node->image, key);
  return slot < 0 ? rdma::GlobalAddress() : rdma::GlobalAddress::FromBits(node->image.entry<IntegerEntry>(slot).target);
}

// The leaves that the cache knows take one posting; the rest, and those that have changed, one search each.
coro::Task<Status> RemoteBlink::FindMany(std::span<const Key> keys, std::span<FindResult> results) {
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  std::array<LeafImage, kMostReads> images;
  std::array<rdma::Operation, kMostReads> reads;
  for (size_t first = 0; first < keys.size(); first += kMostReads) {
    const size_t n = std::min(kMostReads, keys.size() - first);
    std::array<size_t, kMostReads> key_of;
    size_t posted = 0;
    for (size_t i = 0; i < n; ++i) {
      const rdma::GlobalAddress leaf = CachedLeaf(keys[first + i].integer());
      if (leaf.is_null() || leaf.node() != owner_) continue;
      reads[posted] = rdma::Operation::Read(leaf, &images[posted], remote::kLeafBytes);
      key_of[posted++] = i;
    }
    std::array<bool, kMostReads> done{};
    if (posted > 0) {
      const Status status = co_await channel_->Post(std::span(reads).first(posted));
      // A cached address can be wrong; then the search finds out.
      if (!status.ok() && !absl::IsInvalidArgument(status)) co_return status;
      for (size_t r = 0; status.ok() && r < posted; ++r) {
        const uint64_t key = keys[first + key_of[r]].integer();
        ++statistics_.leaves_read;
        if (remote::LookAtLeaf(images[r]) != LeafLook::kWhole || images[r].level() != 0 || !images[r].Covers(key)) {
          continue;
        }
        results[first + key_of[r]] = ResultOf({reads[r].remote, images[r]}, key);
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

coro::Task<Status> RemoteBlink::Scan(ScanRange range, ScanResult* result) {
  const uint64_t from = range.from.integer();
  const uint64_t to = range.to.integer();
  if (range.limit == 0 || to < from) co_return absl::OkStatus();
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  ++statistics_.lookups;
  ++statistics_.one_sided;
  const size_t end = range.limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + range.limit;
  uint64_t next = range.reverse ? to : from;
  for (;;) {
    const StatusOr<bool> done = co_await ScanCached(range, end, result, &next);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
    // Where the cache knows no leaf, or a wrong one. The search brings the inner node above into the cache.
    Place place;
    const Status located = co_await editor_->Locate(next, 0, Editor::Notice::kLeave, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    if (remote::TakeLeaf(place, from, to, range.reverse, end, result, &next) || result->entries.size() >= end) {
      co_return absl::OkStatus();
    }
  }
}

// True: the scan is at its end.
coro::Task<StatusOr<bool>> RemoteBlink::ScanCached(const ScanRange& range, size_t end, ScanResult* result,
                                                   uint64_t* next) {
  std::array<LeafImage, kMostReads> images;
  std::array<rdma::Operation, kMostReads> reads;
  for (;;) {
    const InnerCache::Node* const node = cache_.Find(1, *next);
    if (node == nullptr) co_return false;
    std::array<IntegerEntry, kSlots> children;
    size_t n = 0;
    const int first = ChildSlot(node->image, *next);
    if (first < 0) co_return false;
    const uint64_t bound = node->image.entry<IntegerEntry>(first).key;
    for (uint64_t used = node->image.used<IntegerEntry>(); used != 0; used &= used - 1) {
      const auto child = node->image.entry<IntegerEntry>(std::countr_zero(used));
      if (range.reverse ? child.key <= bound : child.key >= bound && child.key <= range.to.integer()) {
        children[n++] = child;
      }
    }
    std::sort(children.begin(), children.begin() + static_cast<ptrdiff_t>(n),
              [&range](const IntegerEntry& a, const IntegerEntry& b) {
                return range.reverse ? b.key < a.key : a.key < b.key;
              });
    // Leaves are half full at least, unless keys were removed.
    const size_t wanted = (end - result->entries.size()) / (kSlots / 2);
    n = std::min({n, kMostReads, std::max<size_t>(wanted, 1) + (wanted < kMostReads ? 1 : 0)});
    for (size_t i = 0; i < n; ++i) {
      reads[i] =
          rdma::Operation::Read(rdma::GlobalAddress::FromBits(children[i].target), &images[i], remote::kLeafBytes);
      if (reads[i].remote.node() != owner_) co_return false;
    }
    const Status status = co_await channel_->Post(std::span(reads).first(n));
    if (absl::IsInvalidArgument(status)) co_return false;
    if (!status.ok()) co_return status;
    for (size_t i = 0; i < n; ++i) {
      ++statistics_.leaves_read;
      if (remote::LookAtLeaf(images[i]) != LeafLook::kWhole || images[i].level() != 0 || !images[i].Covers(*next)) {
        co_return false;
      }
      if (remote::TakeLeaf({reads[i].remote, images[i]}, range.from.integer(), range.to.integer(), range.reverse, end,
                           result, next) ||
          result->entries.size() >= end) {
        co_return true;
      }
    }
  }
}

coro::Task<StatusOr<Change>> RemoteBlink::Insert(Key key, rdma::GlobalAddress record) {
  const Status ready = co_await Prepare();
  if (!ready.ok()) co_return ready;
  StatusOr<Change> change = co_await editor_->Insert(key.integer(), record, nullptr);
  co_return std::move(change);
}

coro::Task<Status> RemoteBlink::InsertMany(std::span<Insertion> insertions, uint64_t connection) {
  const Status ready = co_await Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  const auto locate = [this](uint64_t key, Place* place) {
    return editor_->Locate(key, 0, Editor::Notice::kLeave, place);
  };
  const auto room = [this](const Place& place) { return static_cast<size_t>(editor_->RoomIn(place)); };
  Status status = co_await remote::InsertIntoLeaves(&leaves_, locate, room, insertions, connection);
  co_return status;
}

coro::Task<StatusOr<Change>> RemoteBlink::Remove(Key key, rdma::GlobalAddress record) {
  const Status ready = co_await Prepare();
  if (!ready.ok()) co_return ready;
  StatusOr<Change> change = co_await editor_->Remove(key.integer(), record);
  co_return std::move(change);
}

ReadEstimate RemoteBlink::Estimate(std::span<const Key> keys) const {
  constexpr size_t kLooks = 8;
  size_t known = 0;
  const size_t looks = std::min(kLooks, keys.size());
  for (size_t i = 0; i < looks; ++i) {
    known += cache_.Find(1, keys[i * keys.size() / looks].integer()) != nullptr ? 1 : 0;
  }
  const auto n = static_cast<double>(keys.size());
  const double unknown = looks == 0 ? 0 : n * static_cast<double>(looks - known) / static_cast<double>(looks);
  ReadEstimate estimate{.reads = n + unknown, .bytes = (n + unknown) * remote::kLeafBytes, .keys = n};
  estimate.postings = static_cast<double>((keys.size() + kMostReads - 1) / kMostReads) + 2 * unknown;
  estimate.lasting_postings = unknown;
  if (!editor_.has_value()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

ReadEstimate RemoteBlink::Estimate(const ScanRange& range) const {
  const auto keys = static_cast<double>(std::min<size_t>(range.limit, 1000));
  const double leaves = 1 + keys / (kSlots / 2.0);
  ReadEstimate estimate{.reads = leaves, .bytes = leaves * remote::kLeafBytes, .keys = keys};
  estimate.postings = 1 + leaves / kMostReads;
  if (cache_.Find(1, (range.reverse ? range.to : range.from).integer()) == nullptr) {
    ++estimate.postings;
    ++estimate.lasting_postings;
  }
  if (!editor_.has_value()) estimate.calls = estimate.lasting_calls = 1;
  return estimate;
}

ClientStatistics RemoteBlink::statistics() const {
  ClientStatistics statistics = statistics_;
  statistics.cache_bytes = cache_.bytes();
  statistics.leaves_read += leaves_.leaves_read();
  return statistics;
}

}  // namespace blink

StatusOr<std::unique_ptr<RemoteIndex>> ConnectBlink(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                    const BlinkClientOptions& options) {
  return std::make_unique<blink::RemoteBlink>(channel, owner, id, options);
}

}  // namespace gannet::index
