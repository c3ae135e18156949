// FreshSeparators: SeparatorNotices for clients whose copies of inner nodes have no state word (cache/inner_copy.h).
// The inner node above a leaf that is to be split is READ: together with the leaf, unless the cache says that this has
// room, and otherwise by a round trip of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <optional>
#include <vector>

#include "index/blink/separator_notices.h"
#include "index/dex/paths.h"

namespace gannet::index::dex {

template <class Keys>
class FreshSeparators final : public blink::SeparatorNotices<Keys> {
 public:
  using Base = blink::SeparatorNotices<Keys>;
  using typename Base::IndexEntry;
  using typename Base::Key;

  // All must outlive this. The editor is there once a leaf is added.
  FreshSeparators(shared_leaf::LeafChannel* leaves, const std::optional<blink::Editor<Keys>>* editor,
                  Paths<Keys>* paths)
      : Base(leaves, editor, nullptr), paths_(*paths) {}

  void Begin(uint64_t connection) override {
    Base::Begin(connection);
    read_.clear();
  }
  void AppendReads(rdma::GlobalAddress leaf, const Key& key, size_t added,
                   std::vector<rdma::Operation>* reads) override {
    if constexpr (!Keys::kKeysElsewhere) {
      typename Keys::Image image;
      shared_leaf::Grant grant;
      const bool has_room = paths_.LoadLeaf(leaf, &image, &grant) &&
                            static_cast<size_t>(image.template count<typename Keys::Entry>()) + added <= Keys::kSlots;
      if (has_room) return;
      const rdma::GlobalAddress node = paths_.NodeAt(Keys::At(key), 1);
      if (node.is_null() || std::ranges::find(read_, node, &LeafCopy::address) != read_.end()) return;
      read_.emplace_back().address = node;
      reads->push_back(rdma::Operation::Read(node, &read_.back().image, static_cast<uint32_t>(leaves_->leaf_bytes())));
    }
  }
  coro::Task<void> Prepare(Key low) override {
    if constexpr (!Keys::kKeysElsewhere) {
      if (NodeAbove(low) != nullptr) co_return;
      for (LeafCopy& node : read_) {
        if (IsAbove(leaves_->Judge(&node.image), node, low)) {
          nodes_.emplace_back().place = node;
          co_return;
        }
      }
      LeafCopy node;
      node.address = paths_.NodeAt(Keys::At(low), 1);
      if (node.address.is_null()) co_return;
      const StatusOr<shared_leaf::LeafLook> look = co_await leaves_->Glance(node.address, &node.image);
      if (look.ok() && IsAbove(*look, node, low)) nodes_.emplace_back().place = node;
    }
  }

 private:
  using Base::leaves_;
  using Base::nodes_;
  using typename Base::LeafCopy;
  using typename Base::Node;

  static bool IsAbove(shared_leaf::LeafLook look, const LeafCopy& node, const Key& low) {
    return look == shared_leaf::LeafLook::kWhole && node.image.level() == 1 && Keys::CoversKey(node.image, low);
  }
  Node* NodeAbove(const Key& low) override {
    const auto known =
        std::ranges::find_if(nodes_, [&low](const Node& node) { return Keys::CoversKey(node.place.image, low); });
    return known == nodes_.end() ? nullptr : &*known;
  }
  void Drop(const Key& low) override { paths_.Drop(Keys::At(low), 1); }
  void Keep(const LeafCopy& node) override { paths_.Keep(node); }

  Paths<Keys>& paths_;
  std::list<LeafCopy> read_;  // together with leaves; their places stay
};

}  // namespace gannet::index::dex
