// DolphinIndex: the owner's side of an index of Dolphin. It reads leaves by its CPU, and changes them over channels of
// its own, as clients do: on fabrics whose atomics are coherent with the CPU's, by the CPU.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/thread.h"
#include "index/dolphin/dolphin.h"
#include "index/dolphin/editor.h"
#include "index/dolphin/holder_book.h"
#include "index/dolphin/keys.h"
#include "index/dolphin/leaf_repair.h"
#include "index/dolphin/own_art.h"
#include "index/dolphin/own_way.h"
#include "index/shared_leaf/basic_leaf_index.h"
#include "index/shared_leaf/owner/own_editors.h"

namespace gannet::index::dolphin {

template <class Keys>
class DolphinIndex final : public shared_leaf::BasicLeafIndex<Keys> {
 public:
  using Base = shared_leaf::BasicLeafIndex<Keys>;
  using typename Base::Schema;

  static StatusOr<std::unique_ptr<DolphinIndex>> Create(IndexService* service, IndexId id, const Schema& schema,
                                                        const DolphinOptions& options);
  ~DolphinIndex() override;

  rdma::MethodId describe_method() const override { return kDescribe; }
  void Describe(rdma::WireWriter& writer) const override;
  StatusOr<Change> Insert(Context& context, const index::Key& key, rdma::GlobalAddress record,
                          rdma::GlobalAddress* existing) override;
  StatusOr<Change> Remove(Context& context, const index::Key& key, rdma::GlobalAddress record) override;
  Status Replace(const index::Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  Status MakeEditor() override { return typename Editors::Pooled(&editors_, nullptr).status(); }
  void RepairAfter(rdma::NodeId node) override;
  Status CheckStructure() override;
  Statistics statistics() override;
  shared_leaf::LeafBlocks* pool(size_t number) override {
    if (number > kNodeTypes) return nullptr;  // a client may ask for anything
    return number == 0 ? &blocks_ : &art_.pool(static_cast<NodeType>(kSmallestNode + number - 1));
  }

 private:
  class Load;
  using Base::blocks_;
  using Base::first_;
  using Base::leaves_;
  using Base::schema_;
  using Base::service_;
  using typename Base::Entry;
  using typename Base::FirstLeaf;
  using typename Base::Key;
  using typename Base::LeafCopy;
  using typename Base::Point;
  class OwnEditor : private OwnWay<Keys>, public Editor<Keys> {
   public:
    OwnEditor(shared_leaf::OwnChannel* channel, const Schema* schema, HolderBook* book,
              const typename OwnWay<Keys>::Map* map)
        : OwnWay<Keys>(channel, map), Editor<Keys>(&channel->leaves, schema, book, &channel->blocks, this) {}
    using OwnWay<Keys>::set_context;
  };
  using Editors = shared_leaf::OwnEditors<OwnEditor>;

  DolphinIndex(IndexService* service, IndexId id, const Schema& schema, const DolphinOptions& options);

  Status Locate(const Point& point, LeafCopy* leaf) const override { return OwnWay<Keys>::Find(map_, point, leaf); }
  void StoreNode(const shared_leaf::FreeBlock& block, uint8_t level, std::span<const Entry> entries, const Key& low,
                 const std::optional<Key>& next_low, rdma::GlobalAddress right) override;
  std::unique_ptr<typename Base::Load> NewLoad(LoadRuns entries, double fill, size_t most_parts) override;
  Status CheckEmpty() const override;
  std::vector<ArtLeaf> FirstLeaves() const;
  // Makes a change by an editor. If a leaf stays in use, and a repair was not finished, that is done, and the change is
  // tried again.
  template <class MakeChange>
  auto ByEditor(Context* context, const MakeChange& change);
  // Calls `visit` with every leaf that the index reaches, as they are before the repair after the death of `client`.
  Status ForEachLinked(const LeafRepair<Keys>& repair, rdma::NodeId client,
                       const std::function<void(rdma::GlobalAddress)>& visit) const;
  // Repairs what earlier repairs have left. False: something is left.
  bool FinishRepairs(typename Editors::Pooled* editor);

  const std::shared_ptr<HolderBook> book_;
  OwnArt art_;
  typename OwnWay<Keys>::Map map_;
  Editors editors_;
  std::vector<FirstLeaf> firsts_;  // in order
  Mutex repair_mutex_;             // one repair at a time; guards the next
  std::set<rdma::NodeId> to_repair_;
};

}  // namespace gannet::index::dolphin
