// Lookup: the search for one key's leaf by READs, as a state machine that asks for operations and looks at what they
// brought. Many of them share a doorbell: remote_find.cc runs them in rounds.
//
//   kLine --> kTable --> kLeaves --> kFound
//   READ the     its     the leaves     |  torn: READ again; range too wide, or the key beside it: READ on
//   sub-model   table    predicted      |
//                                       +--> kSibling --> kRefill --> kFound
//                                       |    the leaf has split since: READ its right sibling, at most twice, and with
//                                       it |    the sub-model; if that was retrained, its table, too
//                                       +--> kFallback: by RPC
//
// What the cache has is not READ: a lookup begins with kLeaves, kTable or kLine. kTable READs the whole table if the
// cache keeps tables, else the few entries of the predicted range. Where the fabric may tear lines, kConfirm READs the
// leaf's state word once more (fabric.h).
//
// kFound means: an image of the leaf that covers the key, consistent as of its READ.
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
  static constexpr uint32_t kWindow = 8;  // leaves of one round
  static constexpr size_t kMaxOperations = kWindow + 1;

  Lookup(rdma::Channel* channel, rdma::NodeId owner, CachedModel* cache)
      : channel_(channel), owner_(owner), cache_(cache) {}

  void Start(const Words& key);

  // Appends this round's operations to *operations (room is enough) and returns how many; none once it is over.
  size_t Ask(rdma::Operation* operations);
  // After they were done.
  void Look();

  bool over() const { return stage_ == Stage::kFound || stage_ == Stage::kFallback; }
  bool found() const { return stage_ == Stage::kFound; }
  // If found.
  Leaf<W> leaf() const { return Leaf<W>(ImageAt(found_)); }
  rdma::GlobalAddress address() const { return AddressOf(entries_[found_].leaf); }
  // The owner has a newer generation of the model.
  bool outdated() const { return outdated_; }
  uint32_t leaves_read() const { return leaves_read_; }

 private:
  enum class Stage { kLine, kTable, kLeaves, kSibling, kConfirm, kRefill, kFound, kFallback };
  static constexpr int kMaxRounds = 12;
  static constexpr int kMaxSiblings = 2;

  std::byte* ImageAt(uint32_t i) const { return const_cast<std::byte*>(images_.data()) + i * LeafLayout<W>::kBytes; }
  rdma::GlobalAddress AddressOf(uint32_t block_number) const {
    return rdma::GlobalAddress(owner_, uint64_t{block_number} * kLineBytes);
  }
  void Predict();
  void OpenWindow(uint32_t first, uint32_t last);
  void TakeEntries(std::span<const uint64_t> from);
  bool ReadLine(SubModelLine* line);
  void LookAtLine();
  void LookAtTable();
  void LookAtLeaves();
  void LookAtSibling();
  void LookBeside(int left);
  void LookAtConfirmation();
  void NoteNewerLine();
  void Found(uint32_t i);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  CachedModel* cache_;

  Words key_;
  Stage stage_ = Stage::kFallback;
  int rounds_ = 0;
  int siblings_ = 0;
  uint32_t leaves_read_ = 0;
  bool outdated_ = false;
  bool refill_ = false;  // the table is to be READ again, for the cache
  TopModel::Place place_{};
  SubModelLine line_;  // what is known of it
  SubModel::Range range_{};
  uint32_t first_ = 0;  // logical leaf of entries_[0]
  uint32_t count_ = 0;  // leaves of this round
  std::array<TableEntry, kWindow> entries_;
  uint32_t found_ = 0;
  uint64_t confirmation_ = 0;
  alignas(kLineBytes) std::array<std::byte, kLineBytes> line_image_;
  std::vector<uint64_t> table_;
  std::array<std::byte, kWindow * LeafLayout<W>::kBytes> images_ alignas(kLineBytes);
};

}  // namespace gannet::index::xstore
