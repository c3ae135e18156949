// Insert, Remove, Replace and BulkLoad of the hash index.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/sometimes.h"
#include "index/hash/hash_index.h"

namespace gannet::index {

using hash::KeyHash;
using hash::LockedChain;

void HashIndex::LockHome(KeyHash hash, std::optional<LockedChain>* chain) const {
  Home home = GuessHome(hash);
  for (;;) {
    chain->emplace(memory_, home.head);
    if (hash::IsHome(hash, home.name, (*chain)->depth())) return;
    Sometimes<"hash: a change is led on from a bucket that has split">();
    chain->reset();
    home.name = hash::Descend(hash, home.name);
    home.head = Head(home.name);
  }
}

int HashIndex::SlotOfKey(const LockedChain& chain, KeyHash hash, const Key& key) const {
  for (int i = 0; i < chain.count(); ++i) {
    const uint64_t slot = chain.slot(i);
    if (hash::TagOf(slot) == hash.tag() && HoldsKey(memory_ + hash::RecordOffsetOf(slot), key)) return i;
  }
  return -1;
}

int HashIndex::SlotOfRecord(const LockedChain& chain, KeyHash hash, const Key& key, rdma::GlobalAddress record) const {
  const int i = record.node() == node_id_ ? chain.FindSlot(hash::MakeSlot(hash, record.offset())) : -1;
  // Another key may have the same tag.
  return i >= 0 && HoldsKey(memory_ + record.offset(), key) ? i : -1;
}

Change HashIndex::ChangeOf(const LockedChain& chain) const {
  return {AddressOf(chain.head()), chain.before(), chain.after()};
}

StatusOr<Change> HashIndex::Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                                   rdma::GlobalAddress* existing) {
  CheckKind(key);
  if (key.size() > options_.max_key_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a key of ", key.size(), " bytes; this index takes up to ", options_.max_key_bytes));
  }
  GANNET_CHECK(record.node() == node_id_ && record.offset() % kLineBytes == 0 && !record.is_null(),
               "record %s for an index of node %d", record.ToString(), node_id_);
  const KeyHash hash = HashOf(key);
  std::optional<LockedChain> chain;
  LockHome(hash, &chain);
  if (const int i = SlotOfKey(*chain, hash, key); i >= 0) {
    if (existing != nullptr) *existing = {node_id_, hash::RecordOffsetOf(chain->slot(i))};
    return absl::AlreadyExistsError("the key is there already");
  }
  const bool overflows = !chain->HasRoom();
  if (overflows) {
    Sometimes<"hash: a bucket overflows">();
    GANNET_RETURN_IF_ERROR(AddOverflow(context, &*chain));
  }
  chain->Append(hash::MakeSlot(hash, record.offset()));
  chain->Publish();
  Change change = ChangeOf(*chain);
  if (overflows) GrowIfCrowded(context, &change);
  return change;
}

Status HashIndex::AddOverflow(Context& context, LockedChain* chain) {
  auto bucket = context.slab->AllocateReadOnly(kLineBytes);
  if (!bucket.ok()) return bucket.status();
  chain->AddBucket(*bucket);
  overflow_buckets_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

StatusOr<Change> HashIndex::Remove(Context& context, const Key& key, rdma::GlobalAddress record) {
  CheckKind(key);
  const KeyHash hash = HashOf(key);
  std::optional<LockedChain> chain;
  LockHome(hash, &chain);
  const int i = SlotOfRecord(*chain, hash, key, record);
  if (i < 0) return absl::NotFoundError("the key is not mapped to this record");
  chain->Erase(i);
  std::byte* const empty = chain->TakeEmptyBucket();
  chain->Publish();
  if (empty != nullptr) {
    Sometimes<"hash: an overflow bucket is given back">();
    RetireOverflow(context, empty);
  }
  return ChangeOf(*chain);
}

void HashIndex::RetireOverflow(Context& context, std::byte* bucket) {
  overflow_buckets_.fetch_sub(1, std::memory_order_relaxed);
  context.epoch->Retire(bucket, kLineBytes, context.slab);
}

Status HashIndex::Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  CheckKind(key);
  GANNET_CHECK(to.node() == node_id_ && to.offset() % kLineBytes == 0 && !to.is_null(),
               "record %s for an index of node %d", to.ToString(), node_id_);
  const KeyHash hash = HashOf(key);
  std::optional<LockedChain> chain;
  LockHome(hash, &chain);
  const int i = SlotOfRecord(*chain, hash, key, from);
  if (i < 0) return absl::NotFoundError("the key is not mapped to this record");
  chain->Replace(i, hash::MakeSlot(hash, to.offset()));
  return absl::OkStatus();
}

Status HashIndex::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  if (!(fill > 0 && fill <= 1)) return absl::InvalidArgumentError(absl::StrCat("fill is ", fill, ", not in (0, 1]"));
  if (statistics().keys != 0) return absl::FailedPreconditionError("a bulk load needs an empty index");
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i + kAhead < entries.size()) Prefetch(GuessHome(HashOf(entries[i + kAhead].key)).head);
    const Key key = entries[i].key;
    if (i > 0 && !(entries[i - 1].key < key)) {
      return absl::InvalidArgumentError(absl::StrCat("bulk load: key ", i, " is not greater than the one before"));
    }
    const auto change = Insert(context, key, entries[i].record, nullptr);
    if (!change.ok()) return change.status();
  }
  return absl::OkStatus();
}

}  // namespace gannet::index
