// KeyRange: the keys of a table between two ends. Each end is included, excluded, or open.
//
//   KeyRange::All()                        every key
//   KeyRange::HalfOpen("a", "b")           "a" <= key < "b"
//   KeyRange::Closed(1, 10)                1 <= key <= 10
//   KeyRange::From(7), KeyRange::Below(7)  7 <= key, and key < 7
//   KeyRange::Prefix("warehouse 12/")      byte keys that begin so
//
// It owns copies of its keys. The keys must be of the table's kind; the call that the range is passed to says if not.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "index/key.h"

namespace gannet::txn {

// A copy of any key, also of one that is too long for every table: the call that it is passed to says so.
class KeyCopy {
 public:
  explicit KeyCopy(const index::Key& key)
      : key_(key), bytes_(key.kind() == index::KeyKind::kBytes ? key.bytes() : std::string_view()) {}
  // Valid as long as this object.
  index::Key view() const { return key_.kind() == index::KeyKind::kBytes ? index::Key(bytes_) : key_; }
  std::string_view bytes() const { return bytes_; }

 private:
  index::Key key_;     // of byte keys only the kind
  std::string bytes_;  // of byte keys
};

struct KeyRange {
  struct End {
    KeyCopy key;
    bool included = true;
  };
  std::optional<End> from;
  std::optional<End> to;

  static KeyRange All() { return {}; }
  static KeyRange Closed(const index::Key& from, const index::Key& to) {
    return {.from = Included(from), .to = Included(to)};
  }
  static KeyRange HalfOpen(const index::Key& from, const index::Key& to) {
    return {.from = Included(from), .to = Excluded(to)};
  }
  static KeyRange From(const index::Key& from) { return {.from = Included(from), .to = {}}; }
  static KeyRange Above(const index::Key& from) { return {.from = Excluded(from), .to = {}}; }
  static KeyRange UpTo(const index::Key& to) { return {.from = {}, .to = Included(to)}; }
  static KeyRange Below(const index::Key& to) { return {.from = {}, .to = Excluded(to)}; }
  // An empty prefix: every key.
  static KeyRange Prefix(std::string_view prefix) {
    if (prefix.empty()) return All();
    // The least key that is greater than all with the prefix: the last byte that can grow grows by one, and the bytes
    // behind it are dropped. If no byte can grow, there is no such key.
    std::string behind(prefix);
    while (!behind.empty() && behind.back() == '\xff') behind.pop_back();
    if (behind.empty()) return From(index::Key(prefix));
    ++behind.back();
    return HalfOpen(index::Key(prefix), index::Key(std::string_view(behind)));
  }

 private:
  static End Included(const index::Key& key) { return {KeyCopy(key), true}; }
  static End Excluded(const index::Key& key) { return {KeyCopy(key), false}; }
};

}  // namespace gannet::txn
