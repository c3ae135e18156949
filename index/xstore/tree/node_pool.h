// NodePool: the inner nodes of one tree. A node stays a node as long as the pool exists, so a reader may look into an
// unlinked node, and its version shows that it is unlinked. Thread-safe. Shared by the tree and by nodes that still
// wait for their grace period.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/thread.h"
#include "index/index.h"
#include "index/xstore/tree/inner_node.h"

namespace gannet::index::xstore {

template <int W>
class NodePool : public std::enable_shared_from_this<NodePool<W>> {
 public:
  using Node = InnerNode<W>;

  // An empty node.
  Node* Allocate(int level) {
    Node* node = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (free_.empty()) {
        node = &nodes_.emplace_back();
      } else {
        node = free_.back();
        free_.pop_back();
      }
    }
    node->Reset(level);
    return node;
  }
  // Gives back a node that no reader knows of.
  void Release(Node* node) {
    std::lock_guard lock(mutex_);
    free_.push_back(node);
  }
  // Gives back a node after the grace period.
  void Retire(Context& context, Node* node) {
    context.epoch->RetireWith([pool = this->shared_from_this(), node] { pool->Release(node); });
  }
  uint64_t bytes() const {
    std::lock_guard lock(mutex_);
    return nodes_.size() * sizeof(Node);
  }

 private:
  mutable Mutex mutex_;
  std::deque<Node> nodes_;
  std::vector<Node*> free_;
};

}  // namespace gannet::index::xstore
