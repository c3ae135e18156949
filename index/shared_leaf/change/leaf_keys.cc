#include "index/shared_leaf/change/leaf_keys.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "base/cache_line.h"
#include "index/record_header.h"

namespace gannet::index::shared_leaf {
namespace {

constexpr size_t kSlots = TaggedEntry::kSlots;
// A READ takes as many lines as the longest key needs, of a record or of a child.
constexpr size_t kMostRecordLines = HeaderReadBytes(kShortKeyBytes) / kLineBytes;
constexpr size_t kMostChildLines = LinesToLowFence(kMostFenceLines);
constexpr size_t kMostLines = std::max(kMostRecordLines, kMostChildLines);

// The key of a record, whose first lines `record` has. False: there is no such key.
bool KeyOfRecord(const std::byte* record, size_t lines, size_t max_key_bytes, ByteKey* key) {
  const RecordMeta meta = LoadMeta(record);
  if (meta.key_bytes > max_key_bytes || HeaderReadBytes(meta.key_bytes) > lines * kLineBytes) return false;
  std::array<std::byte, kShortKeyBytes> bytes;
  rdma::CopyOut(record, kKeyDataOffset, std::span(bytes).first(meta.key_bytes));
  *key = ByteKey(std::string_view(reinterpret_cast<const char*>(bytes.data()), meta.key_bytes));
  return true;
}

enum class Child : uint8_t { kKnown, kNone, kUnclear };

// The low fence of a child of level `level`, whose first lines `child` has. A line may be newer than line 0 says, if
// the image was taken during a change; its low fence is the same, unless the child died and became another one.
Child LookAtChild(const std::byte* child, size_t fence_lines, uint8_t level, bool sure, ByteKey* low) {
  TaggedHead head;
  head.state = LoadWord(child);
  head.slots = LoadWord(child + offsetof(TaggedHead, slots));
  // The versions of the fences' lines.
  for (size_t i = 0; i < kMostFenceLines; i += 2) {
    const uint64_t two = LoadWord(child + offsetof(TaggedHead, versions) + i * sizeof(uint32_t));
    head.versions[i] = static_cast<uint32_t>(two);
    head.versions[i + 1] = static_cast<uint32_t>(two >> 32);
  }
  if (rdma::IsLineBusy(head.state)) return Child::kUnclear;
  if (IsAbsent(head.state)) return IsLocked(head.state) ? Child::kUnclear : Child::kNone;
  bool same = true;
  for (size_t i = 0; i + 1 < LinesToLowFence(fence_lines); ++i) {
    const uint64_t word = LoadWord(child + (1 + i) * kLineBytes);
    const auto newer = static_cast<int32_t>(static_cast<uint32_t>(word) - head.versions[i]);
    if ((word & ~uint64_t{kVersionMask}) != kAbsentBit || newer < 0) return Child::kUnclear;
    same &= newer == 0;
  }
  if (sure && !same) return Child::kUnclear;
  if (LeafSlots::Unpack(head.slots).level != level) return same ? Child::kNone : Child::kUnclear;
  std::array<std::byte, 1 + kShortKeyBytes> fence;
  const size_t stride = FenceStride(fence_lines);
  rdma::CopyOut(child + kLineBytes, 0, std::span(fence).first(1));
  const size_t size = std::min(static_cast<size_t>(fence[0]), stride - 1);
  rdma::CopyOut(child + kLineBytes, 0, std::span(fence).first(1 + size));
  *low = DecodeFence(std::span(fence).first(1 + size));
  return Child::kKnown;
}

// Notes what was found in the slots of a place.
class Notes {
 public:
  explicit Notes(TaggedCopy* place)
      : keys_(&place->keys), low_(place->image, Fence::kLow), high_(place->image, Fence::kHigh) {}

  // `known`: the key is stored in the place.
  void Record(int slot, bool known) {
    if (known && Covers(slot)) keys_->known |= Bit(slot);
  }
  // What is only probably right is not called stale.
  void ChildAt(int slot, Child child, bool sure) {
    if (child == Child::kKnown && Covers(slot)) {
      keys_->known |= Bit(slot);
    } else if (child == Child::kNone || (child == Child::kKnown && sure)) {
      keys_->stale |= Bit(slot);
    }
  }

 private:
  static uint64_t Bit(int slot) { return uint64_t{1} << slot; }
  bool Covers(int slot) const {
    const std::string_view key = keys_->of[static_cast<size_t>(slot)].view();
    return low_.key() <= key && (high_.is_none() || key < high_.key());
  }

  ByteKeys::EntryKeys* keys_;
  FenceView low_;
  FenceView high_;
};

bool IsRecordAt(const LeafBlocks& blocks, uint64_t offset, size_t lines) {
  return blocks.IsWritable(offset, lines * kLineBytes);
}

}  // namespace

void LoadOwnKeys(const LeafBlocks& blocks, const ByteKeys::Schema& schema, TaggedCopy* place, uint64_t slots,
                 bool sure) {
  place->keys.known &= ~slots;
  place->keys.stale &= ~slots;
  const uint8_t level = place->image.level();
  for (uint64_t left = slots; left != 0; left &= left - 1) {
    const uint64_t offset = place->image.entry<TaggedEntry>(std::countr_zero(left)).offset();
    const bool may_be_there =
        level == 0 ? IsRecordAt(blocks, offset, 2) : blocks.MayHave(rdma::GlobalAddress(place->address.node(), offset));
    if (!may_be_there) continue;
    Prefetch(blocks.Memory(offset));
    if (level > 0) Prefetch(blocks.Memory(offset) + kLineBytes);
  }
  Notes notes(place);
  for (; slots != 0; slots &= slots - 1) {
    const int slot = std::countr_zero(slots);
    ByteKey* const key = &place->keys.of[static_cast<size_t>(slot)];
    const uint64_t offset = place->image.entry<TaggedEntry>(slot).offset();
    if (level == 0) {
      size_t lines = 1;
      if (!IsRecordAt(blocks, offset, lines)) continue;
      const std::byte* const record = blocks.Memory(offset);
      const size_t needed = HeaderReadBytes(LoadMeta(record).key_bytes) / kLineBytes;
      if (needed > 1 && IsRecordAt(blocks, offset, needed)) lines = needed;
      notes.Record(slot, KeyOfRecord(record, lines, schema.max_key_bytes, key));
      continue;
    }
    if (!blocks.MayHave(rdma::GlobalAddress(place->address.node(), offset))) {
      notes.ChildAt(slot, Child::kNone, true);
      continue;
    }
    const std::byte* const child = blocks.Memory(offset);
    for (int tries = 0; tries < 100; ++tries) {
      const uint64_t state = LoadWord(child);
      const Child look = LookAtChild(child, schema.fence_lines(), static_cast<uint8_t>(level - 1), sure, key);
      // Line 0 did not change while the child was read (as in ReadOwnLeaf), so the block has no other leaf now.
      if (look == Child::kUnclear || LoadWord(child) != state) {
        CpuRelax();
        continue;
      }
      notes.ChildAt(slot, look, /*sure=*/true);
      break;
    }
  }
}

bool OwnRecordHolds(const LeafBlocks& blocks, uint64_t offset, const ByteKey& key) {
  return IsRecordAt(blocks, offset, HeaderReadBytes(key.size()) / kLineBytes) &&
         RecordHoldsKey(blocks.Memory(offset), index::Key(key.view()));
}

coro::Task<Status> ReadKeys(LeafChannel* leaves, const ByteKeys::Schema& schema, TaggedCopy* place, uint64_t slots,
                            bool sure) {
  if (leaves->own_blocks() != nullptr) {
    LoadOwnKeys(*leaves->own_blocks(), schema, place, slots, sure);
    co_return absl::OkStatus();
  }
  place->keys.known &= ~slots;
  place->keys.stale &= ~slots;
  const uint8_t level = place->image.level();
  const size_t lines =
      level == 0 ? HeaderReadBytes(schema.max_key_bytes) / kLineBytes : LinesToLowFence(schema.fence_lines());
  std::array<std::array<uint64_t, kMostLines * kLineBytes / kWordBytes>, kSlots> images;
  std::array<rdma::Operation, kSlots> reads;
  std::array<int, kSlots> slot_of;
  size_t n = 0;
  for (; slots != 0; slots &= slots - 1) {
    const int slot = std::countr_zero(slots);
    const uint64_t offset = place->image.entry<TaggedEntry>(slot).offset();
    // No READ: not an address of a record or a leaf.
    if (offset % kLineBytes != 0) continue;
    reads[n] =
        rdma::Operation::Read({leaves->owner(), offset}, images[n].data(), static_cast<uint32_t>(lines * kLineBytes));
    slot_of[n++] = slot;
  }
  if (n == 0) co_return absl::OkStatus();
  std::array<size_t, kSlots> got;
  got.fill(lines);
  Status status = co_await leaves->channel()->Post(std::span(reads).first(n));
  if (absl::IsInvalidArgument(status)) {
    // One of them is outside of the owner's memory: a record of one line at its end, or what a client made up.
    for (size_t i = 0; i < n; ++i) {
      for (got[i] = lines; got[i] > 0; got[i] = got[i] > 1 && level == 0 ? 1 : 0) {
        status = co_await leaves->channel()->Read(reads[i].remote, images[i].data(),
                                                  static_cast<uint32_t>(got[i] * kLineBytes));
        if (!absl::IsInvalidArgument(status)) break;
      }
      if (!status.ok() && got[i] > 0) co_return status;
    }
  } else if (!status.ok()) {
    co_return status;
  }
  Notes notes(place);
  for (size_t i = 0; i < n; ++i) {
    const int slot = slot_of[i];
    if (got[i] == 0) {
      if (level > 0) notes.ChildAt(slot, Child::kNone, true);
      continue;
    }
    const auto* const image = reinterpret_cast<const std::byte*>(images[i].data());
    ByteKey* const key = &place->keys.of[static_cast<size_t>(slot)];
    if (level == 0) {
      notes.Record(slot, KeyOfRecord(image, got[i], schema.max_key_bytes, key));
    } else {
      notes.ChildAt(slot, LookAtChild(image, schema.fence_lines(), static_cast<uint8_t>(level - 1), sure, key), sure);
    }
  }
  co_return absl::OkStatus();
}

}  // namespace gannet::index::shared_leaf
