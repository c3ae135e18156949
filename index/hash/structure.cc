// Walks of the whole hash index: statistics and checks.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "index/hash/hash_index.h"
#include "index/hash/spin_wait.h"

namespace gannet::index {

using hash::BucketName;

// A consistent copy of a chain.
struct HashIndex::Snapshot {
  uint64_t version;
  uint64_t head_link;
  absl::InlinedVector<uint64_t, 8 * hash::kSlots> slots;  // of all buckets, including empty ones
  absl::InlinedVector<uint64_t, 8> stamps;                // by bucket

  int length() const { return static_cast<int>(stamps.size()); }
};

// The walker may be outside any epoch, so an overflow bucket may be reused during the walk. The walk follows a bucket's
// link only after the head's version shows that the bucket was still in the chain when the link was loaded.
bool HashIndex::TrySnapshot(const std::byte* head, Snapshot* snapshot) const {
  snapshot->version = LoadWord(head);
  if ((snapshot->version & rdma::kLockBit) != 0) return false;
  snapshot->head_link = hash::LoadLink(head);
  snapshot->slots.clear();
  snapshot->stamps.clear();
  uint64_t link = snapshot->head_link;
  for (const std::byte* bucket = head;;) {
    snapshot->stamps.push_back(LoadWord(bucket));
    for (int i = 0; i < hash::kSlots; ++i) snapshot->slots.push_back(hash::LoadSlot(bucket, i));
    if (LoadWord(head) != snapshot->version) return false;
    if (hash::NextOf(link) == 0) return true;
    bucket = memory_ + hash::NextOf(link);
    link = hash::LoadLink(bucket);
    if (LoadWord(head) != snapshot->version) return false;
  }
}

template <class Visit>
void HashIndex::VisitChains(Visit visit) const {
  auto snapshot = std::make_unique<Snapshot>();
  const uint64_t count = size().count();
  for (uint64_t number = 0; number < count; ++number) {
    const BucketName name{number % initial_, static_cast<uint32_t>(number / initial_)};
    for (hash::SpinWait wait; !TrySnapshot(Head(name), snapshot.get()); wait.Once()) {
    }
    visit(name, *snapshot);
  }
}

// A split moves keys to a bucket with a higher number, which the walk has not visited yet. The new bucket counts in
// size() only after the split, so the walk may end only while no split is in progress.
bool HashIndex::Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) {
  constexpr uint64_t kBucketsPerStep = 64;
  Snapshot snapshot;
  uint64_t& number = position->next[0];
  const uint64_t end = number + kBucketsPerStep;
  for (; number < end; ++number) {
    if (number >= size().count()) {
      std::lock_guard no_split(growth_mutex_);
      if (number >= size().count()) return false;
    }
    const BucketName name{number % initial_, static_cast<uint32_t>(number / initial_)};
    for (hash::SpinWait wait; !TrySnapshot(Head(name), &snapshot); wait.Once()) {
    }
    for (const uint64_t slot : snapshot.slots) {
      if (slot != 0) records->emplace_back(node_id_, hash::RecordOffsetOf(slot));
    }
  }
  return true;
}

void HashIndex::ReleaseMemory() {
  rdma::SlabCache slab(&service_->slab());
  const uint64_t count = size().count();
  for (uint64_t number = 0; number < count; ++number) {
    const std::byte* const head = Head({number % initial_, static_cast<uint32_t>(number / initial_)});
    for (uint64_t next = hash::NextOf(hash::LoadLink(head)); next != 0;) {
      std::byte* const bucket = memory_ + next;
      next = hash::NextOf(hash::LoadLink(bucket));
      slab.Free(bucket, kLineBytes);
    }
  }
  for (size_t i = 0; i < segments_.size(); ++i) {
    std::byte* const segment = std::exchange(segments_[i], nullptr);
    if (segment != nullptr) service_->slab().FreeExtent(segment, SegmentBytes(static_cast<int>(i)));
  }
}

Statistics HashIndex::statistics() {
  Statistics result{.private_bytes = sizeof(*this)};
  VisitChains([&](const BucketName&, const Snapshot& snapshot) {
    result.nodes += snapshot.stamps.size();
    result.height = std::max(result.height, snapshot.length());
    for (const uint64_t slot : snapshot.slots) result.keys += slot != 0;
  });
  // All segments count in full: the heap also holds the part of a segment that has no buckets yet.
  const uint64_t table = std::bit_ceil((size().count() + initial_ - 1) / initial_) * initial_;
  const uint64_t overflow = result.nodes - size().count();
  result.registered_bytes = (table + overflow) * kLineBytes;
  return result;
}

Status HashIndex::CheckStructure() {
  Status status;
  uint64_t overflow = 0;
  VisitChains([&](const BucketName& name, const Snapshot& snapshot) {
    overflow += snapshot.stamps.size() - 1;
    if (status.ok()) status = CheckChain(name, snapshot);
  });
  if (status.ok() && overflow != overflow_buckets_.load()) {
    return absl::InternalError(
        absl::StrCat(overflow, " overflow buckets in chains, ", overflow_buckets_.load(), " counted"));
  }
  return status;
}

Status HashIndex::CheckChain(const BucketName& name, const Snapshot& snapshot) {
  const auto bad = [&](const std::string& what) {
    return absl::InternalError(absl::StrCat("bucket (", name.place, ", ", name.path, "): ", what));
  };
  const int capacity = static_cast<int>(snapshot.slots.size());
  const auto first_empty = std::find(snapshot.slots.begin(), snapshot.slots.end(), 0);
  const int used = static_cast<int>(first_empty - snapshot.slots.begin());
  if (std::any_of(first_empty, snapshot.slots.end(), [](uint64_t slot) { return slot != 0; })) {
    return bad("an empty slot before a used one");
  }
  if (snapshot.length() > 1 && used <= capacity - hash::kSlots) return bad("an empty overflow bucket");
  for (int i = 1; i < snapshot.length(); ++i) {
    if (snapshot.stamps[i] != snapshot.version) return bad(absl::StrCat("overflow bucket ", i, " has another stamp"));
  }
  bool ambiguous = false;
  for (int i = 0; i < used; ++i) {
    const uint64_t slot = snapshot.slots[i];
    const std::byte* record = memory_ + hash::RecordOffsetOf(slot);
    const OwnedKey key = LoadKey(record, options_.key_kind);
    const hash::KeyHash hash = HashOf(key.view());
    if (hash.tag() != hash::TagOf(slot)) return bad(absl::StrCat("slot ", i, " has another tag than its key"));
    if (hash.Reduce(initial_) != name.place || !hash::IsHome(hash, name, hash::DepthOf(snapshot.head_link))) {
      return bad(absl::StrCat("key ", key.view().ToString(), " belongs elsewhere"));
    }
    for (int j = 0; j < i; ++j) {
      if (hash::TagOf(snapshot.slots[j]) != hash::TagOf(slot)) continue;
      ambiguous = true;
      if (HoldsKey(memory_ + hash::RecordOffsetOf(snapshot.slots[j]), key.view())) {
        return bad(absl::StrCat("key ", key.view().ToString(), " twice"));
      }
    }
    if (Find(key.view()).record != AddressOf(record)) {
      return bad(absl::StrCat("key ", key.view().ToString(), " is not found"));
    }
  }
  if (ambiguous != ((snapshot.head_link & hash::kAmbiguous) != 0)) return bad("its ambiguity flag is wrong");
  return absl::OkStatus();
}

}  // namespace gannet::index
