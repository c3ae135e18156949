// Locator: the way to leaves of Dolphin, for the code that changes them: at the owner by its CPU, at a client by its
// cache and READs. Keys: as in keys.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/dolphin/art_editor.h"
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
  // Does what NoteSplit does, for a client that came to the leaf from its left sibling. `reverse`: the reverse pointers
  // of both leaves, or 0.
  using ReversePointers = std::array<uint64_t, 2>;
  virtual coro::Task<void> NoteDetour(typename Keys::Key border, rdma::GlobalAddress right, ReversePointers reverse) {
    static_cast<void>(reverse);
    return NoteSplit(border, right);
  }
  // How the posting that makes a new leaf makes it known; nullopt: only NoteSplit can. After the posting NoteHint says
  // whether NoteSplit is needed.
  virtual std::optional<EntryHint> HintOf(const typename Keys::Key& border, rdma::GlobalAddress right) {
    static_cast<void>(border);
    static_cast<void>(right);
    return std::nullopt;
  }
  virtual bool NoteHint(EntryHint* hint) {
    static_cast<void>(hint);
    return false;
  }
  // The leaf that began at `low` was absorbed.
  virtual coro::Task<void> NoteAbsorbed(typename Keys::Key low, rdma::GlobalAddress leaf) = 0;
};

}  // namespace gannet::index::dolphin
