// Lookup: the search for one key's leaf by READs, as a state machine that asks for operations and looks at what they
// brought. Many of them share a doorbell: remote_find.cc runs them in rounds.
//
//   kLine --> kTable --> kSlots --> kFound
//   READ the     its     the lines that the model predicts for the key, of one leaf or two
//   sub-model   table      |
//                          | not there: absent, or newer than the model
//                          v
//                        kLeaves --> kFound
//                        the leaves     |  range too wide, or torn: READ on where the fences point
//                        predicted      |
//                                       +--> kSibling --> kRefill --> kFound
//                                       |    the leaf has split since: READ its right sibling, at most twice, and with
//                                       it |    the sub-model; if that was retrained, its table, too
//                                       +--> kFallback: by RPC
//
// What the cache has is not READ: a lookup begins with kSlots, kTable or kLine. kTable READs the whole table if the
// cache keeps tables, else the few entries that are wanted. kSlots is left out where it does not pay or the fabric may
// tear lines. Of a leaf, kLeaves READs as many lines as its keys took in training, and all if it has got more. If the
// predicted range has more leaves than one round READs, it READs some at equal distances, and their fences narrow the
// range. Where the fabric may tear lines, kConfirm READs the leaf's state word once more (fabric.h).
//
// kFound means: the key's record, from lines that were consistent as of their READ; or there is none, and then there is
// an image of the leaf that covers the key.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "index/xstore/client/cached_model.h"
#include "index/xstore/leaf.h"
#include "index/xstore/model/sub_model_line.h"
#include "index/xstore/model/translation_table.h"
#include "rdma/fabric.h"

namespace gannet::index::xstore {

template <int W>
class Lookup {
 public:
  using Words = KeyWords<W>;
  // A range of so many leaves is READ at once; of a wider one, the fences of so many.
  static constexpr uint32_t kWindow = W == 1 ? 16 : 4;
  static constexpr uint32_t kProbes = W == 1 ? 16 : 8;
  static constexpr size_t kMaxOperations = kProbes + 1;

  Lookup(rdma::Channel* channel, rdma::NodeId owner, CachedModel* cache)
      : channel_(channel), owner_(owner), cache_(cache) {}

  // `whole`: the leaf is wanted, not only the record: leaf() is complete then.
  void Start(const Words& key, bool whole = false);

  // Appends this round's operations to *operations (room is enough) and returns how many; none once it is over.
  size_t Ask(rdma::Operation* operations);
  // After they were done.
  void Look();

  bool over() const { return stage_ == Stage::kFound || stage_ == Stage::kFallback; }
  bool found() const { return stage_ == Stage::kFound; }
  // If found. Null: the key is absent, and leaf() covers it.
  rdma::GlobalAddress record() const { return rdma::GlobalAddress::FromBits(record_); }
  // If found: the lines of it that were READ, for an absent key from the first on.
  Leaf<W> leaf() const { return Leaf<W>(ImageAt(found_)); }
  rdma::GlobalAddress address() const { return AddressOf(entries_[found_].leaf); }
  // The owner has a newer generation of the model.
  bool outdated() const { return outdated_; }
  uint32_t leaves_read() const { return leaves_read_; }

 private:
  enum class Stage { kLine, kTable, kSlots, kLeaves, kSibling, kConfirm, kRefill, kFound, kFallback };
  static constexpr int kMaxRounds = 12;
  static constexpr int kMaxSiblings = 2;
  static constexpr uint32_t kMostSlotReads = 2;

  // Lines of a leaf: [first, end).
  struct Lines {
    size_t first;
    size_t end;
    size_t size() const { return end - first; }
  };

  std::byte* ImageAt(uint32_t i) const { return const_cast<std::byte*>(images_.data()) + i * LeafLayout<W>::kBytes; }
  rdma::GlobalAddress AddressOf(uint32_t block_number) const {
    return rdma::GlobalAddress(owner_, uint64_t{block_number} * kLineBytes);
  }
  // The cache has another generation of the model than at the start: places in it mean nothing any more.
  bool stranded() const { return cache_->generation() != generation_; }
  void ReadRange();
  bool probing() const { return range_.last - range_.first >= kWindow; }
  void EnterLeaves();
  Lines SlotLines(uint32_t i) const;
  uint32_t LeafLines(uint32_t i) const;
  size_t AskForSlots(rdma::Operation* operations);
  int CountedSlots(uint32_t i) const;
  size_t AskForTable(rdma::Operation* operations);
  bool ReadLine(SubModelLine* line);
  void LookAtLine();
  void LookAtTable();
  void LookAtSlots();
  void LookAtLeaves();
  bool HasAll(uint32_t i) const;
  void LookBeside();
  void LookAtSibling();
  void LookAtConfirmation();
  void NoteNewerLine();
  void Found(uint32_t i);
  void NoteSlots(uint32_t i, int slot);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  CachedModel* cache_;

  Words key_;
  Stage stage_ = Stage::kFallback;
  int rounds_ = 0;
  int siblings_ = 0;
  uint32_t leaves_read_ = 0;
  bool outdated_ = false;
  bool whole_ = false;
  bool judged_ = false;      // whether the key is where the model predicts is known
  bool refill_ = false;      // the table is to be READ again, for the cache
  uint64_t generation_ = 0;  // of the model at the start
  TopModel::Place place_{};
  SubModelLine line_;  // what is known of it
  // Logical leaves that may be the one, of all that the model predicted; the round READs leaf_[0, count_) of them.
  SubModel::Range range_{};
  uint32_t count_ = 0;
  std::array<uint32_t, kProbes> leaf_;
  std::array<TableEntry, kProbes> entries_;
  std::array<uint32_t, kProbes> lines_;  // READ of each leaf, from the first on
  uint32_t right_of_left_ = 0;           // right link of the nearest leaf seen that ends below the key
  bool widened_ = false;                 // to the left, by one
  uint32_t found_ = 0;
  uint64_t record_ = 0;
  uint64_t confirmation_ = 0;
  alignas(kLineBytes) std::array<std::byte, kLineBytes> line_image_;
  std::vector<uint64_t> table_;
  alignas(kLineBytes) std::array<std::byte, kProbes * LeafLayout<W>::kBytes> images_;
};

}  // namespace gannet::index::xstore
