#include "index/hash/hash_index.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/hash/spin_wait.h"

namespace gannet::index {

using hash::KeyHash;

namespace {

// Six slots, 60% full: 7% of the buckets have an overflow bucket, and these hold 2% of the keys.
constexpr double kKeysPerBucket = 3.6;
constexpr uint64_t kMaxInitialBuckets = uint64_t{1} << 31;

}  // namespace

// The state of one key between the steps of FindMany.
struct HashIndex::Probe {
  KeyHash hash;
  Home home;
  uint64_t version;
  uint64_t link;
  const std::byte* second;  // the overflow bucket, if the head had no match and there is one
  const std::byte* record;  // the first candidate
};

StatusOr<std::unique_ptr<HashIndex>> HashIndex::Create(IndexService* service, IndexId id, const HashOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kMaxKeyBytes));
  std::unique_ptr<HashIndex> index(new HashIndex(service, options));
  if (index->initial_ > kMaxInitialBuckets) {
    return absl::InvalidArgumentError(absl::StrCat("expected_keys is ", options.expected_keys, "; a node's part of a ",
                                                   "hash index has room for some ",
                                                   static_cast<uint64_t>(kMaxInitialBuckets * kKeysPerBucket)));
  }
  GANNET_RETURN_IF_ERROR(index->AllocateSegment(0));
  GANNET_RETURN_IF_ERROR(service->Add(id, index.get()));
  return index;
}

HashIndex::HashIndex(IndexService* service, const HashOptions& options)
    : service_(service),
      options_(options),
      memory_(service->node().memory().data()),
      node_id_(service->node().id()),
      initial_(std::max<uint64_t>(1, std::ceil(static_cast<double>(options.expected_keys) / kKeysPerBucket))),
      size_(hash::TableSize(initial_, 0).word()),
      hash_(options.seed.has_value() ? *options.seed : KeyedHash::DrawSeed()) {}

uint64_t HashIndex::SegmentBytes(int segment) const {
  return (segment == 0 ? initial_ : initial_ << (segment - 1)) * kLineBytes;
}

Status HashIndex::AllocateSegment(int segment) {
  auto memory = service_->slab().AllocateExtent(SegmentBytes(segment));
  if (!memory.ok()) return memory.status();
  segments_[segment] = *memory;
  return absl::OkStatus();
}

hash::Geometry HashIndex::geometry() const {
  hash::Geometry geometry{.initial = initial_, .size = size()};
  // The geometry has only the segments that the size covers: the next one may be being allocated.
  const int last =
      geometry.size.count() > initial_ << geometry.size.level() ? geometry.size.level() + 1 : geometry.size.level();
  for (int i = 0; i <= last; ++i) geometry.segments[i] = static_cast<uint64_t>(segments_[i] - memory_);
  return geometry;
}

void HashIndex::CheckKind(const Key& key) const {
  GANNET_CHECK(key.kind() == options_.key_kind, "key %s is not of the index's kind", key.ToString());
}

const std::byte* HashIndex::PickRecord(const std::byte* bucket, uint32_t matches, const Key& key) const {
  for (; matches != 0; matches &= matches - 1) {
    const std::byte* record = RecordIn(bucket, matches);
    if (record != memory_ && HoldsKey(record, key)) return record;
  }
  return nullptr;
}

FindResult HashIndex::Find(const Key& key) {
  CheckKind(key);
  const KeyHash hash = HashOf(key);
  const Home home = GuessHome(hash);
  // The common case: the first slot with the tag holds the key, or no slot of the chain's only bucket has the tag.
  const uint64_t version = LoadWord(home.head);
  const uint64_t link = hash::LoadLink(home.head);
  const uint32_t matches = hash::MatchTag(home.head, hash.tag());
  Charge(Cost::kIndexStep, 2);
  PreemptionPoint();
  if (matches != 0) {
    const std::byte* record = RecordIn(home.head, matches);
    if (record != memory_ && HoldsKey(record, key)) [[likely]]
      return {.record = AddressOf(record), .witness = {}};
  } else if (hash::NextOf(link) == 0 && hash::IsHome(hash, home.name, hash::DepthOf(link)) &&
             (version & rdma::kLockBit) == 0 && LoadWord(home.head) == version) {
    return {.record = {}, .witness = {AddressOf(home.head), version}};
  }
  return FindFrom(hash, key, home);
}

// The first slot of the head with the key's tag. Overflow buckets are left to the Find that follows.
rdma::GlobalAddress HashIndex::GuessRecord(const Key& key) {
  CheckKind(key);
  const KeyHash hash = HashOf(key);
  const std::byte* head = GuessHome(hash).head;
  const uint32_t matches = hash::MatchTag(head, hash.tag());
  if (matches == 0) [[unlikely]] {
    if (const uint64_t next = hash::NextOf(hash::LoadLink(head))) Prefetch(memory_ + next);
    return {};
  }
  const std::byte* record = RecordIn(head, matches);
  if (record == memory_) [[unlikely]]
    return {};
  Prefetch(record);
  return AddressOf(record);
}

FindResult HashIndex::FindFrom(KeyHash hash, const Key& key, Home home) const {
  for (hash::SpinWait wait;; wait.Once()) {
    const uint64_t version = LoadWord(home.head);
    uint64_t link = hash::LoadLink(home.head);
    if (!hash::IsHome(hash, home.name, hash::DepthOf(link))) [[unlikely]] {
      home.name = hash::Descend(hash, home.name);
      home.head = Head(home.name);
      continue;
    }
    for (const std::byte* bucket = home.head;;) {
      const uint32_t matches = hash::MatchTag(bucket, hash.tag());
      if (matches != 0) {
        // A slot that names the key's record was valid at the moment it was loaded, even if the chain changes.
        if (const std::byte* record = PickRecord(bucket, matches, key))
          return {.record = AddressOf(record), .witness = {}};
      }
      if (hash::NextOf(link) == 0) break;
      bucket = memory_ + hash::NextOf(link);
      link = hash::LoadLink(bucket);
    }
    // The key is known to be absent only if the chain did not change.
    if ((version & rdma::kLockBit) == 0 && LoadWord(home.head) == version) [[likely]] {
      return {.record = {}, .witness = {AddressOf(home.head), version}};
    }
  }
}

void HashIndex::FindMany(std::span<const Key> keys, std::span<FindResult> results) {
  constexpr size_t kGroup = 32;  // measured: 16 gives 40 ns per key of a million, 32 gives 27, on a Zen 5
  std::array<Probe, kGroup> probes;
  for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
    const size_t n = std::min(kGroup, keys.size() - begin);
    for (size_t i = 0; i < n; ++i) Begin(&probes[i], keys[begin + i]);
    for (size_t i = 0; i < n; ++i) ScanHead(&probes[i]);
    for (size_t i = 0; i < n; ++i) ScanSecond(&probes[i]);
    for (size_t i = 0; i < n; ++i) Finish(probes[i], keys[begin + i], &results[begin + i]);
  }
}

void HashIndex::Begin(Probe* probe, const Key& key) const {
  CheckKind(key);
  probe->hash = HashOf(key);
  probe->home = GuessHome(probe->hash);
  Prefetch(probe->home.head);
}

void HashIndex::ScanHead(Probe* probe) const {
  const std::byte* head = probe->home.head;
  probe->version = LoadWord(head);
  probe->link = hash::LoadLink(head);
  probe->second = nullptr;
  probe->record = nullptr;
  if (const uint32_t matches = hash::MatchTag(head, probe->hash.tag())) {
    probe->record = RecordIn(head, matches);
    Prefetch(probe->record);
  } else if (const uint64_t next = hash::NextOf(probe->link)) {
    probe->second = memory_ + next;
    Prefetch(probe->second);
  }
}

void HashIndex::ScanSecond(Probe* probe) const {
  if (probe->second == nullptr) return;
  if (const uint32_t matches = hash::MatchTag(probe->second, probe->hash.tag())) {
    probe->record = RecordIn(probe->second, matches);
    Prefetch(probe->record);
  }
}

void HashIndex::Finish(const Probe& probe, const Key& key, FindResult* result) const {
  if (probe.record != nullptr && probe.record != memory_ && HoldsKey(probe.record, key)) [[likely]] {
    *result = {.record = AddressOf(probe.record), .witness = {}};
    return;
  }
  const bool looked_at_all = probe.record == nullptr && probe.second == nullptr &&
                             hash::IsHome(probe.hash, probe.home.name, hash::DepthOf(probe.link));
  if (looked_at_all && (probe.version & rdma::kLockBit) == 0 && LoadWord(probe.home.head) == probe.version) {
    *result = {.record = {}, .witness = {AddressOf(probe.home.head), probe.version}};
    return;
  }
  *result = FindFrom(probe.hash, key, probe.home);
}

Status HashIndex::Scan(const ScanRange&, ScanResult*) {
  return absl::UnimplementedError("a hash index keeps no order; scans need a table with an ordered index");
}

Status HashIndex::ScanStep(const ScanRange& range, size_t, std::optional<ScanPosition>*, ScanResult* result) {
  return Scan(range, result);
}

}  // namespace gannet::index
