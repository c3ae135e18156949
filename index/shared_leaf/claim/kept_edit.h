// A change of an entry in the copy of a kept leaf (claim.h).
#pragma once

#include <cstdint>
#include <optional>

namespace gannet::index::shared_leaf {

template <class Keys>
struct KeptEdit {
  enum class Kind : uint8_t { kInsert, kRemove, kReplace };

  Kind kind = Kind::kInsert;
  typename Keys::Key key{};
  // The entry to insert; to remove, if the key has it; or to put in the place of another.
  typename Keys::Entry entry{};
  // kReplace replaces this entry only; if it is not set, any entry that the key has.
  std::optional<typename Keys::Entry> from = {};
};

}  // namespace gannet::index::shared_leaf
