// WriteSet: the records that a transaction will write, in the order in which it named them. write_buffer.h has the
// operations on them before the commit.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "index/index.h"
#include "index/key.h"
#include "rdma/global_address.h"
#include "txn/store/table.h"

namespace gannet::txn {

// A piece of new payload, in the transaction's arena. A later patch wins. No patch reaches beyond the entry's
// payload_bytes: a new size needs a whole payload, which drops all older patches.
struct Patch {
  uint32_t offset;
  uint32_t size;
  std::byte* data;
  Patch* next;
};

// Number of patches of one record before they become one patch of its whole payload, so that reading a record takes a
// bounded number of steps, however often the transaction has changed it.
inline constexpr uint8_t kMostPatches = 16;

enum class WriteKind : uint8_t {
  kNone,  // read for update, not changed (yet): validated like a read
  kUpdate,
  kInsert,
  kRemove,
};

// One record of the write set.
struct WriteEntry {
  const Table* table = nullptr;
  // Update, remove: the record. Insert: null until the owner made it (then the placeholder's address).
  rdma::GlobalAddress record{};
  // The state word as read, unlocked. Insert: the placeholder's state without lock and owner.
  uint64_t seen = 0;
  // The record in this node's memory, if accesses are direct. A direct insert's new record is filled at once.
  std::byte* direct = nullptr;
  // Remote records: the image as READ (rdma/versioned.h layout), in the arena. Remote insert: the payload, plain.
  std::byte* image = nullptr;
  uint32_t payload_bytes = 0;        // after this transaction's changes
  uint32_t image_payload_bytes = 0;  // as read
  WriteKind kind = WriteKind::kNone;
  uint8_t patch_count = 0;
  bool touched = false;              // its secondary indexes are to be looked at (WriteBuffer::TakeTouched)
  uint32_t redo_bytes = 0;           // largest size in the log
  uint32_t index_redo_bytes = 0;     // of its changes in secondary indexes, while it is touched
  uint64_t connection = 0;           // over which its owner is asked for locks and changes; 0: this node is the owner
  bool removed = false;              // insert: removed again by this transaction (the key's absence is still checked)
  bool locked = false;               // this transaction holds the record's lock
  bool indexed = false;              // insert: the key is in the index
  bool installed = false;            // the decision told its owner to install it
  uint32_t index_note = UINT32_MAX;  // number of the first note about its secondary indexes (EntryKeeper)
  index::Key key{};                  // bytes in the arena
  Patch* patches = nullptr;          // in the order written
  Patch* last_patch = nullptr;
  // A payload whose size needs a block of another class moves to this new record, locked and absent until the commit.
  rdma::GlobalAddress moved_to{};
  uint64_t moved_state = 0;  // of the new record, without lock and owner

  // Chooses the path of the commit protocol: this node's CPU, or verbs and calls.
  bool is_direct() const { return direct != nullptr; }
  // True if this transaction removes the record, or has removed its own insert.
  bool is_removed() const { return kind == WriteKind::kRemove || removed; }
};

// Entries in the order added. Finding one is cheap if (as nearly always) there is none. A few entries are searched one
// by one; from kFew on there are indexes, so that no operation takes longer than the logarithm of their number.
class WriteSet {
 public:
  static constexpr size_t kFew = 64;

  WriteSet();
  ~WriteSet();

  // Adds an entry, to be filled in; valid until the next one is added.
  WriteEntry& Add(rdma::GlobalAddress record) {
    WriteEntry& entry = entries_.emplace_back();
    entry.record = record;
    addresses_.push_back(record.bits());
    Filter(record) |= FilterBit(record);
    if (entries_.size() > kFew) [[unlikely]]
      Grow();
    return entry;
  }

  // Number of the entry of `record`, or -1.
  int FindRecord(rdma::GlobalAddress record) const {
    if ((Filter(record) & FilterBit(record)) == 0) [[likely]]
      return -1;
    return FindFiltered(record.bits());
  }
  // The entry's record has been made, or replaced by another.
  void SetRecord(size_t i, rdma::GlobalAddress record);

  // Entry `i`, whose key is set, inserts or removes it. As long as it does, the next three functions find it. May be
  // called repeatedly.
  void NoteKey(size_t i);
  // Number of the entry that inserts or removes `key` (also an insert that was removed again), or -1.
  int FindKey(const Table& table, const index::Key& key) const;
  // Appends the numbers of the inserts in `range` that were not removed again: all, or at least the first range.limit.
  void InsertsIn(const Table& table, const index::ScanRange& range, std::vector<uint32_t>* numbers) const;
  // Number of entries that remove a record in `range`.
  size_t RemovalsIn(const Table& table, const index::ScanRange& range) const;

  WriteEntry& operator[](size_t i) { return entries_[i]; }
  const WriteEntry& operator[](size_t i) const { return entries_[i]; }
  std::span<WriteEntry> entries() { return entries_; }
  std::span<const WriteEntry> entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

  void Clear();

 private:
  struct Large;

  // Bloom filters with one bit per record, or key, in 256.
  static uint64_t Hash(rdma::GlobalAddress record) { return record.bits() * 0x9e3779b97f4a7c15ull; }
  uint64_t& Filter(rdma::GlobalAddress record) { return filter_[Hash(record) >> 62]; }
  uint64_t Filter(rdma::GlobalAddress record) const { return filter_[Hash(record) >> 62]; }
  static uint64_t FilterBit(rdma::GlobalAddress record) { return uint64_t{1} << (Hash(record) >> 56 & 63); }
  static uint64_t HashOf(const Table& table, const index::Key& key);

  // Called when the set becomes large, with the last entry.
  void Grow();
  int FindFiltered(uint64_t address) const;
  void NoteKeyOfLarge(size_t i);

  std::vector<WriteEntry> entries_;
  std::vector<uint64_t> addresses_;
  std::array<uint64_t, 4> filter_{};
  std::array<uint64_t, 4> key_filter_{};
  std::unique_ptr<Large> large_;  // null: there are few
};

}  // namespace gannet::txn
