// TreeClient: what clients of a B-link tree have in common, whatever they cache of it. Keys: IntegerKeys or ByteKeys.
#pragma once

#include <memory>
#include <optional>

#include "index/blink/editor.h"
#include "index/blink/path_cache.h"
#include "index/shared_leaf/leaf_client.h"

namespace gannet::index::blink {

template <class Keys>
class TreeClient : public shared_leaf::LeafClient<Keys> {
 public:
  using Base = shared_leaf::LeafClient<Keys>;
  using typename Base::Schema;

 protected:
  using Base::Base;

  // BlinkOptions::describe_method of this client's kind.
  virtual rdma::MethodId describe_method() const = 0;
  // What this client has cached. Called when the root is known.
  virtual PathCache<Keys>* paths() = 0;

  coro::Task<StatusOr<Schema>> Describe() final;
  shared_leaf::LeafEditor<Keys>* MakeEditor() final {
    return &editor_.emplace(&this->leaves_, &this->schema(), root_, &this->blocks(), paths());
  }

  rdma::GlobalAddress root_;
  std::optional<Editor<Keys>> editor_;
};

}  // namespace gannet::index::blink
