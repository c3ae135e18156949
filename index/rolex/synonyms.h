// The synonym table of a model (FAST'23, 3.4): the leaves that splits have made since the model was trained. Clients
// write it. In the writable part of the owner's heap; or, if only the owner changes the index, in the other one:
//
//   line 0     | version | used | dead | 0 ... |
//   line i     | version | low, leaf | low, leaf | low, leaf | 0 |      low: the number of the leaf's low fence
//
//   used       | retired 1 | number of slots that were given out |. A client that splits a leaf takes the next slot by
//              an FAA, which goes out with the split. Then it writes the new leaf's low fence and offset into the slot.
//              The table is a ring of kSynonyms slots: if splits outrun the training that is due, the newest leaves
//              take the slots of the oldest, which are found by right links.
//   dead       number of leaves that were absorbed since the training, which count towards the next one
//   retired    a newer model has replaced this one
//
// A number is what the model makes of a key (BasicModel::NumberOf): an integer key itself. Byte keys with one number
// are told apart by the low fences in the leaves. The owner reads these where it has to choose. A client needs all of
// them, to keep what it knows in the order of keys: it READs those of the leaves that are new to it, by one posting.
//
// A slot may be empty, or have its old content, for a moment; or until the ring comes round, if its client died between
// the split and the synonym. Its content is a hint, like all of a model (model.h). The first word of each line is that
// of a versioned object, and is never written: the memory will have other uses.
//
// The queues of models to be trained (3.5), one block per index:
//
//   line 0     | version | tail | urgent tail | 0 ... |
//   line i     | version | offsets of synonym tables ... 7 |
//
// Who takes slot kTrainAt of a synonym table, or kUrgentAt, takes the next place of a queue by FAA and writes the
// table's offset there. So does who counts the dead leaf number kFewDead, or twice, four times, ... as many: the owner
// knows how many leaves the model had. The owner trains those of the urgent queue first. If a place was overwritten, or
// its writer died, the owner finds the table when it looks at all of them (RolexIndex::RepairAfter).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "index/index.h"
#include "index/types.h"

namespace gannet::index::rolex {

struct Synonym {
  uint64_t low = 0;   // number of its low fence
  uint64_t leaf = 0;  // offset in the owner's memory; 0: none
};

inline constexpr uint64_t kSynonyms = 255;
inline constexpr uint64_t kTrainAt = 128;
inline constexpr uint64_t kUrgentAt = 224;
inline constexpr uint64_t kFewDead = 8;
inline constexpr uint64_t kRetiredBit = uint64_t{1} << 63;

inline constexpr size_t kSynonymsPerLine = 3;
inline constexpr size_t kSynonymTableBytes = (1 + kSynonyms / kSynonymsPerLine) * kLineBytes;
inline constexpr size_t kUsedOffset = 8;
inline constexpr size_t kDeadOffset = 16;

// `slot`: any that was given out.
constexpr size_t SynonymOffset(uint64_t slot) {
  slot %= kSynonyms;
  return (1 + slot / kSynonymsPerLine) * kLineBytes + kWordBytes + slot % kSynonymsPerLine * sizeof(Synonym);
}
// The slots that were given out, up to this one.
constexpr uint64_t UsedSlots(uint64_t used) {
  return used & ~kRetiredBit;
}
// The first of them whose place has not been given to another one.
constexpr uint64_t OldestSlot(uint64_t used) {
  return UsedSlots(used) < kSynonyms ? 0 : UsedSlots(used) - kSynonyms;
}

// Called by the owner.
inline Synonym LoadSynonym(const std::byte* table, uint64_t slot) {
  const std::byte* const at = table + SynonymOffset(slot);
  return {.low = LoadWord(at), .leaf = LoadWord(at + kWordBytes)};
}

// Clears a new table, or new queues, of `bytes` bytes. In the part that clients may only READ, blocks are not versioned
// objects: there the first words of lines are cleared, too.
inline void ClearWords(std::byte* block, size_t bytes, IndexRights rights) {
  for (size_t at = 0; at < bytes; at += kWordBytes) {
    if (at % kLineBytes != 0 || rights == IndexRights::kOwnerOnly) StoreWord(block + at, 0);
  }
}

inline constexpr uint64_t kQueuePlaces = 119;  // of each queue: 17 lines
inline constexpr size_t kQueueBytes = (1 + 2 * kQueuePlaces / 7) * kLineBytes;
inline constexpr size_t kTailOffset = 8;
inline constexpr size_t kUrgentTailOffset = 16;

constexpr size_t QueueOffset(bool urgent, uint64_t place) {
  const uint64_t at = place % kQueuePlaces + (urgent ? kQueuePlaces : 0);
  return (1 + at / 7) * kLineBytes + kWordBytes + at % 7 * kWordBytes;
}

}  // namespace gannet::index::rolex
