#include "tests/index/sorted_array.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "base/thread.h"
#include "index/record_header.h"

namespace gannet::index {
namespace {

// The order of a key: words that compare like the keys, first word first. The last one is never 0, so no key has the
// default position.
using Order = std::array<uint64_t, 9>;

Order OrderOf(const Key& key) {
  Order order{};
  if (key.kind() == KeyKind::kInteger) {
    order.front() = key.integer();
    order.back() = 1;
    return order;
  }
  for (size_t i = 0; i < key.size(); ++i) {
    order[i / kWordBytes] |= uint64_t{static_cast<uint8_t>(key.bytes()[i])} << (56 - 8 * (i % kWordBytes));
  }
  order.back() = 1 + key.size();
  return order;
}

// The block, in memory that clients may READ: the version word, which covers all keys, then the records' addresses in
// key order. The keys are in the records. One mutex guards the block; only a transaction that validates a witness reads
// the version word without the mutex.
class SortedArray final : public LocalIndex {
 public:
  static StatusOr<std::unique_ptr<LocalIndex>> Create(IndexService* service, IndexId id, const IndexOptions& options) {
    auto block = service->slab().AllocatePermanent((1 + kCapacity) * kWordBytes);
    if (!block.ok()) return block.status();
    std::unique_ptr<SortedArray> index(new SortedArray(service, *block, options.key_kind));
    GANNET_RETURN_IF_ERROR(service->Add(id, index.get()));
    return index;
  }

  FindResult Find(const Key& key) override {
    const std::lock_guard lock(mutex_);
    return FindLocked(key);
  }
  void FindMany(std::span<const Key> keys, std::span<FindResult> results) override {
    for (size_t i = 0; i < keys.size(); ++i) results[i] = Find(keys[i]);
  }

  StatusOr<Change> Insert(Context&, const Key& key, rdma::GlobalAddress record,
                          rdma::GlobalAddress* existing) override {
    const std::lock_guard lock(mutex_);
    const size_t at = PlaceOf(key);
    if (IsAt(at, key)) {
      if (existing != nullptr) *existing = RecordAt(at);
      return absl::AlreadyExistsError(absl::StrCat("key ", key.ToString(), " is in the array"));
    }
    if (size_ == kCapacity) return absl::ResourceExhaustedError(absl::StrCat("an array of ", kCapacity, " keys"));
    return ChangeSet([&] {
      for (size_t i = size_++; i > at; --i) StoreAt(i, RecordAt(i - 1));
      StoreAt(at, record);
    });
  }

  StatusOr<Change> Remove(Context&, const Key& key, rdma::GlobalAddress record) override {
    const std::lock_guard lock(mutex_);
    const size_t at = PlaceOf(key);
    if (!IsAt(at, key) || RecordAt(at) != record) return NotMapped(key);
    return ChangeSet([&] {
      for (size_t i = at + 1; i < size_; ++i) StoreAt(i - 1, RecordAt(i));
      --size_;
    });
  }

  Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override {
    const std::lock_guard lock(mutex_);
    const size_t at = PlaceOf(key);
    if (!IsAt(at, key) || RecordAt(at) != from) return NotMapped(key);
    StoreAt(at, to);
    return absl::OkStatus();
  }

  Status Scan(const ScanRange& range, ScanResult* result) override {
    std::optional<ScanPosition> position;
    return ScanStep(range, 1, &position, result);
  }

  // One witness covers everything, so a step ends only at the end of the range or at the limit, and leaves no position.
  Status ScanStep(const ScanRange& range, size_t, std::optional<ScanPosition>* position, ScanResult* result) override {
    const std::lock_guard lock(mutex_);
    result->witnesses.push_back(WitnessNow());
    size_t first = PlaceOf(range.from);
    size_t end = PlaceOf(range.to) + (IsAt(PlaceOf(range.to), range.to) ? 1 : 0);
    // A position is the last key already visited.
    if (position->has_value()) {
      const size_t passed = PlaceBehind((*position)->words);
      if (range.reverse) {
        const bool is_there = passed > 0 && OrderOf(KeyAt(passed - 1).view()) == (*position)->words;
        end = std::min(end, passed - (is_there ? 1 : 0));
      } else {
        first = std::max(first, passed);
      }
    }
    position->reset();
    for (size_t appended = 0; first < end && appended < range.limit; ++appended) {
      const size_t at = range.reverse ? --end : first++;
      result->entries.push_back({KeyAt(at), RecordAt(at)});
    }
    return absl::OkStatus();
  }
  ScanPosition PositionBehind(const Key& key, bool) const override { return {OrderOf(key)}; }

  bool Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) override {
    const std::lock_guard lock(mutex_);
    constexpr size_t kStep = 64;
    const size_t first = PlaceBehind(position->next);
    const size_t end = std::min(size_, first + kStep);
    for (size_t at = first; at < end; ++at) records->push_back(RecordAt(at));
    if (first < end) position->next = OrderOf(KeyAt(end - 1).view());
    return end < size_;
  }

  Status BulkLoad(Context&, std::span<const LoadEntry> entries, double) override {
    const std::lock_guard lock(mutex_);
    if (entries.size() > kCapacity) return absl::ResourceExhaustedError(absl::StrCat("an array of ", kCapacity));
    ChangeSet([&] {
      for (const LoadEntry& entry : entries) StoreAt(size_++, entry.record);
    });
    return absl::OkStatus();
  }

  Statistics statistics() override {
    const std::lock_guard lock(mutex_);
    return {.keys = size_, .registered_bytes = (1 + kCapacity) * kWordBytes, .nodes = 1, .height = 1};
  }

  Status CheckStructure() override {
    const std::lock_guard lock(mutex_);
    for (size_t at = 1; at < size_; ++at) {
      if (KeyAt(at - 1).view() < KeyAt(at).view()) continue;
      return absl::DataLossError(absl::StrCat("key ", KeyAt(at).view().ToString(), " is out of order"));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kCapacity = 1 << 15;

  SortedArray(IndexService* service, std::byte* block, KeyKind key_kind)
      : memory_(service->node().memory().data()),
        block_(block),
        version_address_(service->node().AddressOf(block)),
        key_kind_(key_kind) {}

  static Status NotMapped(const Key& key) {
    return absl::NotFoundError(absl::StrCat("key ", key.ToString(), " is not mapped to this record"));
  }

  rdma::GlobalAddress RecordAt(size_t at) const {
    return rdma::GlobalAddress::FromBits(LoadWord(block_ + (1 + at) * kWordBytes));
  }
  void StoreAt(size_t at, rdma::GlobalAddress record) { StoreWord(block_ + (1 + at) * kWordBytes, record.bits()); }
  OwnedKey KeyAt(size_t at) const { return LoadKey(memory_ + RecordAt(at).offset(), key_kind_); }
  Witness WitnessNow() const { return {version_address_, LoadWord(block_)}; }

  // Index of the first key that is not less than `key`.
  size_t PlaceOf(const Key& key) const {
    return PlaceWhere([&](const Key& here) { return here < key; });
  }
  // Index of the first key after `order`.
  size_t PlaceBehind(const Order& order) const {
    return PlaceWhere([&](const Key& here) { return OrderOf(here) <= order; });
  }
  template <class Before>
  size_t PlaceWhere(Before before) const {
    size_t low = 0;
    for (size_t high = size_; low < high;) {
      const size_t middle = (low + high) / 2;
      if (before(KeyAt(middle).view())) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  bool IsAt(size_t at, const Key& key) const { return at < size_ && KeyAt(at).view() == key; }

  FindResult FindLocked(const Key& key) const {
    const size_t at = PlaceOf(key);
    if (IsAt(at, key)) return {.record = RecordAt(at)};
    return {.record = {}, .witness = WitnessNow()};
  }

  // Runs `change`, which changes the set of keys, with the version word locked, and then increments the version.
  template <class Body>
  Change ChangeSet(Body change) {
    const uint64_t before = LoadWord(block_);
    StoreWord(block_, before | rdma::kLockBit);
    change();
    StoreWord(block_, before + 1);
    return {.before = {version_address_, before}, .after = before + 1, .split_to = {}};
  }

  const std::byte* const memory_;
  std::byte* const block_;
  const rdma::GlobalAddress version_address_;
  const KeyKind key_kind_;
  Mutex mutex_;
  size_t size_ = 0;  // guarded by mutex_
};

StatusOr<std::unique_ptr<RemoteIndex>> NoClients(rdma::Channel*, rdma::NodeId, IndexId, const IndexClientOptions&) {
  return absl::UnimplementedError("a sorted array has no clients");
}

}  // namespace

IndexKind SortedArrayKind() {
  static const StatusOr<IndexKind> kind = RegisterIndexKind({.name = "sorted_array",
                                                             .traits = {.ordered = true},
                                                             .create = SortedArray::Create,
                                                             .connect = NoClients,
                                                             .register_methods = [](IndexService*) {},
                                                             .bytes_per_key = [](double) { return 8.0; }});
  GANNET_CHECK(kind.ok(), "%s", kind.status().ToString());
  return *kind;
}

}  // namespace gannet::index
