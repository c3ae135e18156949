// ClientWay: a client's way to leaves (MSST'24, III-B and III-C): by copies of inner nodes, by READs of those that it
// lacks, and by the right links of leaves. What it READs goes into the cache, and where others have left an entry out,
// or a wrong one in, it mends that.
//
// Not thread-safe; coroutines of the channel's worker may use it at once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/dolphin/art.h"
#include "index/dolphin/art_editor.h"
#include "index/dolphin/keys.h"
#include "index/dolphin/leaf_search.h"
#include "index/dolphin/locator.h"
#include "index/dolphin/shared_inner.h"
#include "index/dolphin/ternary_lock.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/change/leaf_channel.h"

namespace gannet::index::dolphin {

template <class Keys>
class ClientWay final : public Locator<Keys>, private ArtWatch {
 public:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;
  using For = typename TernaryLock<Keys>::For;
  using ReversePointers = typename Locator<Keys>::ReversePointers;

  // `cache` and `leaves` must outlive this. `first`: the first leaf, which never dies. `node`, `id`, `timeout`: as
  // those of BorrowedBlocks.
  ClientWay(SharedInner* cache, shared_leaf::LeafChannel* leaves, rdma::Node* node, IndexId id, absl::Duration timeout,
            rdma::GlobalAddress root, rdma::GlobalAddress first, size_t max_key_bytes, IndexRights rights);
  // Before all else. It must outlive this.
  void set_lock(TernaryLock<Keys>* lock) { lock_ = lock; }

  // The leaf to which copies lead.
  rdma::GlobalAddress Expect(const Key& key) override { return ExpectAt(Keys::At(key)); }
  rdma::GlobalAddress ExpectAt(const Point& point);
  // The leaves that follow each other from the one of `point` on, as far as copies lead and they may have keys up to
  // `last` (of a reverse scan: down to it); at most `most`. Returns the share of the first leaf's range that lies
  // before `point`; 0, if that is not known.
  double LeavesFrom(const Point& point, const Key& last, bool reverse, size_t most,
                    std::vector<rdma::GlobalAddress>* leaves);
  coro::Task<Status> Locate(Point point, LeafCopy* leaf) override { return LocateFor(For::kEntry, point, leaf); }
  // The image is as that of TernaryLock::Read for this use.
  coro::Task<Status> LocateFor(For use, Point point, LeafCopy* leaf);
  std::optional<EntryHint> HintOf(const Key& border, rdma::GlobalAddress right) override;
  bool NoteHint(EntryHint* hint) override;
  coro::Task<void> NoteSplit(Key border, rdma::GlobalAddress right) override;
  coro::Task<void> NoteDetour(Key border, rdma::GlobalAddress right, ReversePointers reverse) override;
  coro::Task<void> NoteAbsorbed(Key low, rdma::GlobalAddress leaf) override;

 private:
  // The cache has one part for each kind of keys.
  using Part = std::conditional_t<Keys::kKeysElsewhere, shared_leaf::ByteKeys, shared_leaf::IntegerKeys>;
  using View = SharedInner::View<Part>;
  using Reading = SharedInner::Reading<Part>;
  using Changing = SharedInner::Changing<Part>;

  // The functions of ArtWatch.
  void NoteNode(const NodeImage& node) override { Changing(view_)->Put(node); }
  void NoteDead(rdma::GlobalAddress node) override { Changing(view_)->Drop(node); }
  void NoteEntry(rdma::GlobalAddress node, uint64_t entry) override { Changing(view_)->NoteEntry(node, entry); }
  void NoteNoEntry(rdma::GlobalAddress node, uint64_t entry) override { Changing(view_)->NoteNoEntry(node, entry); }

  // Goes on with a way to its end. `by_copies` false: READs all of it.
  coro::Task<Status> Go(ArtWay* way, bool by_copies);
  // *reverse: the leaf's reverse pointer.
  coro::Task<StatusOr<LeafLook>> Read(For use, LeafCopy* leaf, uint64_t* reverse);
  std::optional<NodeRef> StartFor(const ByteKey& key);

  shared_leaf::LeafChannel* leaves_;
  rdma::GlobalAddress root_;
  rdma::GlobalAddress first_;
  const bool mends_;  // clients may change inner nodes
  const size_t prefix_lines_;
  View view_;
  std::array<std::optional<shared_leaf::BorrowedBlocks>, kNodeTypes> blocks_;
  ArtEditor editor_;
  TernaryLock<Keys>* lock_ = nullptr;
};

}  // namespace gannet::index::dolphin
