// Locator: the way to leaves of Dolphin, for the code that changes them: at the owner by its CPU, at a client by its
// cache and READs. Keys: as in keys.h.
#pragma once

#include "base/coro/task.h"
#include "base/status.h"
#include "index/shared_leaf/leaf/integer_keys.h"
#include "rdma/global_address.h"

namespace gannet::index::dolphin {

template <class Keys>
class Locator {
 public:
  virtual ~Locator() = default;

  // The leaf that probably covers the key, as far as that is known without a verb; null: it is not.
  virtual rdma::GlobalAddress Expect(const typename Keys::Key& key) = 0;
  // The leaf that covers the point, as it was at one moment of this call. DataLoss: there is no way to it.
  virtual coro::Task<Status> Locate(typename Keys::Point point, shared_leaf::LeafCopyOf<Keys>* leaf) = 0;
  // A split has made the leaf `right`, which begins at `border`. Without this, the right link of its left sibling leads
  // there.
  virtual coro::Task<void> NoteSplit(typename Keys::Key border, rdma::GlobalAddress right) = 0;
  // The leaf that began at `low` was absorbed.
  virtual coro::Task<void> NoteAbsorbed(typename Keys::Key low, rdma::GlobalAddress leaf) = 0;
};

}  // namespace gannet::index::dolphin
