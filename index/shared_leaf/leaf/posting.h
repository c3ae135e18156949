// Posting: verbs that are posted together, and the data of its WRITEs. Reused; it keeps its memory. Not thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/arena.h"
#include "rdma/fabric.h"

namespace gannet::index::shared_leaf {

class Posting {
 public:
  void Clear() {
    operations_.clear();
    arena_.Reset();
  }
  bool empty() const { return operations_.empty(); }
  size_t size() const { return operations_.size(); }
  // Valid until the next Add, Write or Clear. WRITEs of one leaf must stay in this order.
  std::span<rdma::Operation> operations() { return operations_; }

  void Add(const rdma::Operation& operation) { operations_.push_back(operation); }
  // `data` is copied.
  void Write(rdma::GlobalAddress to, std::span<const std::byte> data) {
    Add(rdma::Operation::Write(arena_.Copy(data).data(), to, static_cast<uint32_t>(data.size())));
  }

 private:
  std::vector<rdma::Operation> operations_;
  Arena arena_;
};

}  // namespace gannet::index::shared_leaf
