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

std::function<void()> after_next_insert;  // set before the threads that insert are told to

// The order of a key: words that compare like the keys, first word first. The last one is never 0, so no key has the
// default position.
using Order = std::array<uint64_t, kFewPositionWords>;

ScanPosition PositionAt(const Order& order) {
  return {PositionWords(order.begin(), order.end())};
}
Order OrderAt(const PositionWords& words) {
  Order order{};
  std::copy_n(words.begin(), order.size(), order.begin());
  return order;
}

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

Order NextOf(Order order) {
  for (auto word = order.rbegin(); word != order.rend() && ++*word == 0;) ++word;
  return order;
}
Order PreviousOf(Order order) {
  for (auto word = order.rbegin(); word != order.rend() && (*word)-- == 0;) ++word;
  return order;
}

// The block, in memory that clients may READ: version words, then the records' addresses in the order of their keys.
// The keys are in the records.
//
// The order of keys is cut into regions, and each has a version word, which covers the keys of the region. A region
// that is full shares its keys with its right neighbour, so that some come to be covered by the neighbour's word. If
// both are full, a third region is made between them, as in a B*-tree. So a change lists up to three words. Regions are
// never removed.
//
// One mutex guards everything; a transaction that validates a witness reads the version word without the mutex.
class SortedArray final : public LocalIndex {
 public:
  static StatusOr<std::unique_ptr<LocalIndex>> Create(IndexService* service, IndexId id, const IndexOptions& options) {
    auto block = service->slab().AllocateExtent((kMaxRegions + kCapacity) * kWordBytes);
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
    StatusOr<Change> change = InsertLocked(key, record, existing);
    if (change.ok()) {
      if (const auto act = std::exchange(after_next_insert, nullptr)) act();
    }
    return change;
  }

  StatusOr<Change> Remove(Context&, const Key& key, rdma::GlobalAddress record) override {
    const std::lock_guard lock(mutex_);
    const size_t at = PlaceOf(OrderOf(key));
    if (!IsAt(at, key) || RecordAt(at) != record) return NotMapped(key);
    const size_t region = RegionOf(OrderOf(key));
    return ChangeRegions(region, region + 1, [&](Change*) {
      for (size_t i = at + 1; i < size_; ++i) StoreAt(i - 1, RecordAt(i));
      --size_;
    });
  }

  Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override {
    const std::lock_guard lock(mutex_);
    const size_t at = PlaceOf(OrderOf(key));
    if (!IsAt(at, key) || RecordAt(at) != from) return NotMapped(key);
    StoreAt(at, to);
    return absl::OkStatus();
  }

  Status Scan(const ScanRange& range, ScanResult* result) override {
    std::optional<ScanPosition> position;
    return ScanStep(range, SIZE_MAX, &position, result);
  }

  // A position is the order at which the scan continues, itself included.
  Status ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                  ScanResult* result) override {
    const std::lock_guard lock(mutex_);
    Order from = OrderOf(range.from);
    Order to = OrderOf(range.to);
    if (position->has_value() && range.reverse) to = std::min(to, OrderAt((*position)->words));
    if (position->has_value() && !range.reverse) from = std::max(from, OrderAt((*position)->words));
    position->reset();
    size_t left = range.limit;
    while (left > 0 && from <= to) {
      const size_t region = RegionOf(range.reverse ? to : from);
      if (most_witnesses-- == 0) {
        *position = PositionAt(range.reverse ? to : from);
        break;
      }
      result->witnesses.push_back(WitnessOf(region));
      // This region's part of the range.
      const bool is_last = region + 1 == regions_.size();
      const Order low = std::max(from, regions_[region].low);
      const Order high = is_last ? to : std::min(to, PreviousOf(regions_[region + 1].low));
      size_t first = PlaceOf(low);
      size_t end = PlaceOf(NextOf(high));
      for (; first < end && left > 0; --left) {
        const size_t at = range.reverse ? --end : first++;
        result->entries.push_back({KeyAt(at), RecordAt(at)});
      }
      if (left == 0) {
        const Order last = OrderOf(result->entries.back().key.view());
        if (range.reverse ? from < last : last < to)
          *position = PositionAt(range.reverse ? PreviousOf(last) : NextOf(last));
      } else if (range.reverse ? low == from : high == to) {
        break;
      } else {
        (range.reverse ? to : from) = range.reverse ? PreviousOf(low) : NextOf(high);
      }
    }
    return absl::OkStatus();
  }
  ScanPosition PositionBehind(const Key& key, bool reverse) const override {
    return PositionAt(reverse ? PreviousOf(OrderOf(key)) : NextOf(OrderOf(key)));
  }

  bool Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) override {
    const std::lock_guard lock(mutex_);
    constexpr size_t kStep = 64;
    const size_t first = PlaceOf(NextOf(OrderAt(position->next)));
    const size_t end = std::min(size_, first + kStep);
    for (size_t at = first; at < end; ++at) records->push_back(RecordAt(at));
    if (first < end) position->next = PositionAt(OrderOf(KeyAt(end - 1).view())).words;
    return end < size_;
  }

  Status BulkLoad(Context&, std::span<const LoadEntry> entries, double fill) override {
    const std::lock_guard lock(mutex_);
    if (entries.size() > kCapacity) return absl::ResourceExhaustedError(absl::StrCat("an array of ", kCapacity));
    if (entries.empty()) return absl::OkStatus();
    ChangeRegions(0, regions_.size(), [&](Change* change) {
      for (const LoadEntry& entry : entries) StoreAt(size_++, entry.record);
      const auto wanted = static_cast<size_t>(static_cast<double>(size_) / (kRegionKeys * fill)) + 1;
      while (regions_.size() < std::min(wanted, kMaxRegions)) AddRegion(regions_.size(), change);
      Spread(0, regions_.size(), 0, size_);
    });
    return absl::OkStatus();
  }

  Statistics statistics() override {
    const std::lock_guard lock(mutex_);
    return {.keys = size_,
            .registered_bytes = (kMaxRegions + kCapacity) * kWordBytes,
            .nodes = regions_.size(),
            .height = 1};
  }

  Status CheckStructure() override {
    const std::lock_guard lock(mutex_);
    for (size_t at = 1; at < size_; ++at) {
      if (KeyAt(at - 1).view() < KeyAt(at).view()) continue;
      return absl::DataLossError(absl::StrCat("key ", KeyAt(at).view().ToString(), " is out of order"));
    }
    for (size_t region = 1; region < regions_.size(); ++region) {
      if (regions_[region].low < regions_[region - 1].low) return absl::DataLossError("a region is out of order");
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kCapacity = 1 << 15;
  static constexpr size_t kMaxRegions = 1 << 12;
  static constexpr size_t kRegionKeys = 8;  // a region has more when no more regions can be made

  struct Region {
    Order low;        // the region has the keys from here to the next region's
    std::byte* word;  // in the block
  };

  SortedArray(IndexService* service, std::byte* block, KeyKind key_kind)
      : memory_(service->node().memory().data()),
        block_(block),
        block_address_(service->node().AddressOf(block)),
        key_kind_(key_kind),
        regions_({{Order{}, block}}) {}

  static Status NotMapped(const Key& key) {
    return absl::NotFoundError(absl::StrCat("key ", key.ToString(), " is not mapped to this record"));
  }

  rdma::GlobalAddress RecordAt(size_t at) const {
    return rdma::GlobalAddress::FromBits(LoadWord(block_ + (kMaxRegions + at) * kWordBytes));
  }
  void StoreAt(size_t at, rdma::GlobalAddress record) {
    StoreWord(block_ + (kMaxRegions + at) * kWordBytes, record.bits());
  }
  OwnedKey KeyAt(size_t at) const { return LoadKey(memory_ + RecordAt(at).offset(), key_kind_); }

  Witness WitnessOf(size_t region) const {
    const std::byte* const word = regions_[region].word;
    return {rdma::GlobalAddress(block_address_.node(), block_address_.offset() + (word - block_)), LoadWord(word)};
  }
  size_t RegionOf(const Order& order) const {
    const auto behind = std::ranges::upper_bound(regions_, order, {}, &Region::low);
    return static_cast<size_t>(behind - regions_.begin()) - 1;
  }
  // Place of the first key that does not lie before the region.
  size_t FirstOf(size_t region) const { return region < regions_.size() ? PlaceOf(regions_[region].low) : size_; }

  // The first place whose key does not lie before `order`.
  size_t PlaceOf(const Order& order) const {
    size_t low = 0;
    for (size_t high = size_; low < high;) {
      const size_t middle = (low + high) / 2;
      if (OrderOf(KeyAt(middle).view()) < order) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  bool IsAt(size_t at, const Key& key) const { return at < size_ && KeyAt(at).view() == key; }

  FindResult FindLocked(const Key& key) const {
    const size_t at = PlaceOf(OrderOf(key));
    if (IsAt(at, key)) return {.record = RecordAt(at)};
    return {.record = {}, .witness = WitnessOf(RegionOf(OrderOf(key)))};
  }

  StatusOr<Change> InsertLocked(const Key& key, rdma::GlobalAddress record, rdma::GlobalAddress* existing) {
    const std::lock_guard lock(mutex_);
    const size_t at = PlaceOf(OrderOf(key));
    if (IsAt(at, key)) {
      if (existing != nullptr) *existing = RecordAt(at);
      return absl::AlreadyExistsError(absl::StrCat("key ", key.ToString(), " is in the array"));
    }
    if (size_ == kCapacity) return absl::ResourceExhaustedError(absl::StrCat("an array of ", kCapacity, " keys"));
    const size_t region = RegionOf(OrderOf(key));
    const bool is_full = FirstOf(region + 1) - FirstOf(region) >= kRegionKeys;
    const size_t end = region + (is_full && region + 1 < regions_.size() ? 2 : 1);
    return ChangeRegions(region, end, [&](Change* change) {
      for (size_t i = size_++; i > at; --i) StoreAt(i, RecordAt(i - 1));
      StoreAt(at, record);
      if (is_full) Share(region, end, change);
    });
  }

  // Runs `body`, which changes the sets of keys of the regions [first, end), with their words locked, and gives the
  // words their next values. The body adds the words that it creates.
  template <class Body>
  Change ChangeRegions(size_t first, size_t end, Body body) {
    Change change;
    std::vector<Witness> before;
    std::vector<std::byte*> words;
    for (size_t region = first; region < end; ++region) {
      before.push_back(WitnessOf(region));
      words.push_back(regions_[region].word);
      StoreWord(words.back(), before.back().seen | rdma::kLockBit);
    }
    body(&change);
    for (size_t i = 0; i < words.size(); ++i) {
      StoreWord(words[i], before[i].seen + 1);
      change.AddChanged(before[i].word, before[i].seen, before[i].seen + 1);
    }
    return change;
  }

  // Shares the keys of the regions [first, end) evenly among them, and one more if they are too many for these.
  void Share(size_t first, size_t end, Change* change) {
    const size_t begin = FirstOf(first);
    const size_t behind = FirstOf(end);
    if (behind - begin > kRegionKeys * (end - first) && regions_.size() < kMaxRegions) AddRegion(end++, change);
    Spread(first, end, begin, behind);
  }
  // Spread sets its low end.
  void AddRegion(size_t number, Change* change) {
    const Region region{{}, block_ + regions_.size() * kWordBytes};
    regions_.insert(regions_.begin() + static_cast<ptrdiff_t>(number), region);
    change->AddCreated(WitnessOf(number));
  }
  // Divides the keys of the places [begin, behind) evenly among the regions [first, end). The first keeps its low end.
  void Spread(size_t first, size_t end, size_t begin, size_t behind) {
    for (size_t region = first + 1; region < end; ++region) {
      const size_t at = begin + (behind - begin) * (region - first) / (end - first);
      regions_[region].low = OrderOf(KeyAt(at).view());
    }
  }

  const std::byte* const memory_;
  std::byte* const block_;
  const rdma::GlobalAddress block_address_;
  const KeyKind key_kind_;
  Mutex mutex_;
  size_t size_ = 0;              // guarded by mutex_
  std::vector<Region> regions_;  // guarded by mutex_, in the order of their keys
};

// It has no client of its own: transactions of other nodes reach it by calls (ReadPathPolicy::kCall).
class NoClient final : public RemoteIndex {
 public:
  coro::Async<StatusOr<FindResult>> Find(const Key&) override { return StatusOr<FindResult>(Refused()); }
  coro::Task<Status> FindMany(std::span<const Key>, std::span<FindResult>) override { co_return Refused(); }
  coro::Task<Status> Scan(ScanRange, ScanResult*) override { co_return Refused(); }
  coro::Task<StatusOr<Change>> Insert(Key, rdma::GlobalAddress) override { co_return Refused(); }
  coro::Task<StatusOr<Change>> Remove(Key, rdma::GlobalAddress) override { co_return Refused(); }
  void Forget(const Key&) override {}
  ClientStatistics statistics() const override { return {}; }

 private:
  static Status Refused() { return absl::UnimplementedError("a sorted array has no clients"); }
};

StatusOr<std::unique_ptr<RemoteIndex>> ConnectNoClient(rdma::Channel*, rdma::NodeId, IndexId,
                                                       const IndexClientOptions&) {
  return std::make_unique<NoClient>();
}

}  // namespace

void ActAfterNextInsert(std::function<void()> act) {
  after_next_insert = std::move(act);
}

IndexKind SortedArrayKind() {
  static const StatusOr<IndexKind> kind = RegisterIndexKind({.name = "sorted_array",
                                                             .traits = {.ordered = true, .keeps_order = true},
                                                             .create = SortedArray::Create,
                                                             .connect = ConnectNoClient,
                                                             .register_methods = [](IndexService*) {},
                                                             .bytes_per_key = [](double) { return 8.0; }});
  GANNET_CHECK(kind.ok(), "%s", kind.status().ToString());
  return *kind;
}

}  // namespace gannet::index
