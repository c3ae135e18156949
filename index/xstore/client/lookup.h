// Lookup: the search for one key's leaf by READs, as a state machine that asks for operations and looks at their
// results. Many lookups share a doorbell: remote_find.cc runs them in rounds.
//
//   kLine --> kTable --> kSlots --> kFound
//   READ the     its     the lines that the model predicts for the key, of one leaf or two
//   sub-model   table      |
//                          | not there: absent, or newer than the model
//                          v
//                        kLeaves --> kFound
//                        the predicted  |  range too wide, or torn: READs more, as the fences indicate
//                        leaves         |
//                                       +--> kSibling --> kRefill --> kFound
//                                       |    the leaf has split since: READs its right sibling, at most twice, and the
//                                       |    sub-model; if that was retrained, its table, too
//                                       +--> kFallback: by RPC
//
// Cached data is not READ: a lookup begins with kSlots, kTable or kLine. kTable READs the whole table if the cache
// keeps tables, otherwise the few entries needed. kSlots is skipped where it does not pay or the fabric may tear lines.
// kLeaves READs as many lines of a leaf as its keys took at training, and all of them if the leaf has more keys now. If
// the predicted range has more leaves than one round READs, it READs some of them at equal distances, and their fences
// narrow the range. Where the fabric may tear lines, kConfirm READs the leaf's state word once more (fabric.h).
//
// kFound means that the lines were consistent at their READ, and either contain the key's record, or contain no record
// and come with an image of the leaf that covers the key.
//
// A leaf with keys in the records (tagged_leaf.h) is READ with all slots that it counts, never by single slots: if one
// entry has the key's tag, its record is the result, which the caller has yet to verify; if none has, the key is
// absent. If several have it, a call to the owner decides: that is one lookup in about 1,500.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "index/xstore/client/cached_model.h"
#include "index/xstore/model/sub_model_line.h"
#include "index/xstore/model/translation_table.h"
#include "index/xstore/tree/leaf.h"
#include "rdma/fabric.h"

namespace gannet::index::xstore {

template <int W>
class Lookup {
 public:
  using Words = KeyWords<W>;
  // A range of up to kWindow leaves is READ at once; of a wider one, the fences of kProbes leaves.
  static constexpr uint32_t kWindow = W == 1 ? 16 : 4;
  static constexpr uint32_t kProbes = W == 1 ? 16 : 8;
  static constexpr size_t kMaxOperations = kProbes + 1;

  Lookup(rdma::Channel* channel, rdma::NodeId owner, CacheView* cache)
      : channel_(channel), owner_(owner), cache_(cache) {}

  // The caller has let the view follow its cache. `whole`: the caller needs the whole leaf, not only the record; leaf()
  // is then complete.
  void Start(const Words& key, bool whole = false);

  // Appends this round's operations to *operations (which must have room for kMaxOperations) and returns their number;
  // 0 when the lookup is over.
  size_t Ask(rdma::Operation* operations);
  // Called when these operations are done.
  void Look();

  bool over() const { return stage_ == Stage::kFound || stage_ == Stage::kFallback; }
  bool found() const { return stage_ == Stage::kFound; }
  // The record, if found. Null: the key is absent, and leaf() covers it. If the leaf keeps the keys in the records
  // (tagged_leaf.h), the record may be of another key, and then the key is absent.
  rdma::GlobalAddress record() const { return rdma::GlobalAddress::FromBits(record_); }
  // The lines of the leaf that were READ, if found; for an absent key from the first line on.
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
  CachedGeneration& cached() const { return **cache_; }
  // True if the client has changed to another generation of the model since the start: indexes into it are void.
  bool stranded() const { return cache_->number() != generation_; }
  void ReadRange();
  void ChooseLeaves();
  bool TakeEntries(const CachedTable& table);
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
  CacheView* cache_;

  Words key_;
  Stage stage_ = Stage::kFallback;
  int rounds_ = 0;
  int siblings_ = 0;
  uint32_t leaves_read_ = 0;
  bool outdated_ = false;
  bool whole_ = false;
  bool for_leaf_ = false;    // the caller needs the leaf, not the record
  bool judged_ = false;      // it is known whether the key is where the model predicts it
  bool refill_ = false;      // the table must be READ again for the cache
  uint64_t generation_ = 0;  // of the model at the start
  TopModel::Place place_{};
  SubModelLine line_;  // the known part of the sub-model's line
  // Logical leaves that may cover the key, out of the predicted ones. The round READs leaf_[0, count_) of them.
  SubModel::Range range_{};
  uint32_t count_ = 0;
  std::array<uint32_t, kProbes> leaf_;
  std::array<TableEntry, kProbes> entries_;
  std::array<uint32_t, kProbes> lines_;  // number of lines READ of each leaf, from the first on
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
