// BlinkIndex: the owner's side of a B-link tree.
#pragma once

#include <memory>
#include <optional>

#include "index/blink/blink.h"
#include "index/blink/descent.h"
#include "index/blink/editor.h"
#include "index/blink/separator_table.h"
#include "index/shared_leaf/leaf_index.h"

namespace gannet::index::blink {

// index (2) -> offset of the root (8), schema of the keys (schema_wire.h). Of another kind with such a tree: its own
// number.
inline constexpr rdma::MethodId kDescribe = kBlinkMethods;

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class BasicBlinkIndex final : public shared_leaf::LeafIndex<Keys>, private CurrentNodes<Keys> {
 public:
  using Base = shared_leaf::LeafIndex<Keys>;
  using typename Base::Schema;

  static StatusOr<std::unique_ptr<BasicBlinkIndex>> Create(IndexService* service, const Schema& schema,
                                                           const BlinkOptions& options);

  rdma::MethodId describe_method() const override { return describe_method_; }
  void Describe(rdma::WireWriter& writer) const override;
  Statistics statistics() override;
  Status CheckStructure() override;
  rdma::GlobalAddress root() const { return first_; }

 private:
  class Load;
  using Base::blocks_;
  using Base::first_;
  using Base::leaves_;
  using Base::schema_;
  using typename Base::Entry;
  using typename Base::Image;
  using typename Base::IndexEntry;
  using typename Base::Key;
  using typename Base::LeafCopy;
  using typename Base::Point;
  using typename Base::Visit;

  BasicBlinkIndex(IndexService* service, const Schema& schema, const BlinkOptions& options)
      : Base(service, schema, options.rights, options.patience, "B-link tree"),
        describe_method_(options.describe_method),
        separators_(Keys::kKeysElsewhere ? std::make_unique<SeparatorTable>() : nullptr) {}

  // The node of `level` that covers the point. DataLoss: there is no way to it.
  Status LocateAt(uint8_t level, const Point& point, LeafCopy* place) const;
  Status Locate(const Point& point, LeafCopy* leaf) const override { return LocateAt(0, point, leaf); }
  // Finds the node as LocateAt does, by what needs no copies of the nodes above it: these where they are, or
  // separators_, which lead to leaves only. False: that leads to no node that covers the point.
  bool LocateByHints(uint8_t level, const Point& point, LeafCopy* node) const;
  // A node that is kept, or to which a separator is missing or stale, is to be READ: that also mends separators.
  bool FindCurrent(const Point& point, uint8_t level, LeafCopy* node) override {
    return LocateByHints(level, point, node) && !IsLocked(node->image.head.state);
  }
  // Visits the nodes from the top down and from left to right.
  Status ForEachNode(const Visit& visit) const override;
  std::unique_ptr<shared_leaf::LeafEditor<Keys>> NewEditor(shared_leaf::OwnChannel* channel) override {
    return std::make_unique<Editor<Keys>>(&channel->leaves, &schema_, first_, &channel->blocks,
                                          static_cast<CurrentNodes<Keys>*>(this));
  }
  std::unique_ptr<typename Base::Load> NewLoad(LoadRuns entries, double fill, size_t most_parts) override;

  const rdma::MethodId describe_method_;
  // Null for integer keys: their inner nodes hold the separators.
  std::unique_ptr<SeparatorTable> separators_;
};

using BlinkIndex = BasicBlinkIndex<IntegerKeys>;

}  // namespace gannet::index::blink
