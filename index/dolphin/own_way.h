// OwnWay: the way to leaves for an editor of the owner. It searches by the CPU, and changes inner nodes over the
// editor's channel.
#pragma once

#include <array>
#include <optional>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/dolphin/art_editor.h"
#include "index/dolphin/keys.h"
#include "index/dolphin/leaf_search.h"
#include "index/dolphin/locator.h"
#include "index/dolphin/own_art.h"
#include "index/shared_leaf/owner/own_editors.h"
#include "index/shared_leaf/owner/own_leaves.h"

namespace gannet::index::dolphin {

template <class Keys>
class OwnWay : public Locator<Keys> {
 public:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;
  using Leaves = shared_leaf::OwnLeaves<Keys>;

  // What leads to leaves. The pointers must outlive the index's use.
  struct Map {
    const Leaves* leaves;
    OwnArt* art;
    rdma::GlobalAddress first;  // leaf
    size_t max_key_bytes;
  };

  // All must outlive this.
  OwnWay(shared_leaf::OwnChannel* channel, const Map* map);
  void set_context(Context* context);

  rdma::GlobalAddress Expect(const Key& key) override;
  coro::Task<Status> Locate(Point point, LeafCopy* leaf) override;
  coro::Task<void> NoteSplit(Key border, rdma::GlobalAddress right) override;
  coro::Task<void> NoteAbsorbed(Key low, rdma::GlobalAddress leaf) override;

  // Finds the leaf that covers the point. *was_detour (null: nobody asks): entries are missing. DataLoss: there is no
  // way to it.
  static Status Find(const Map& map, const Point& point, LeafCopy* leaf, bool* was_detour = nullptr);

 private:
  const Map* map_;
  std::array<std::optional<shared_leaf::OwnBlocks>, kNodeTypes> blocks_;
  ArtEditor editor_;
};

}  // namespace gannet::index::dolphin
