// Kinds of index that are blink and rolex but for one thing: their owners give up soon what stays locked or torn. So
// tests in virtual time need not wait for the patience of ten seconds.
#pragma once

#include "index/blink/blink.h"
#include "index/registry.h"
#include "index/rolex/rolex.h"
#include "txn/store/table.h"

namespace gannet::txn {

inline constexpr absl::Duration kHastyPatience = absl::Microseconds(50);

inline IndexKind HastyBlink() {
  static const IndexKind kind = [] {
    index::IndexKindEntry entry = index::EntryOf(IndexKind::kBlink);
    entry.name = "hasty_blink";
    entry.register_methods = [](index::IndexService*) {};  // those of blink serve it
    entry.create = [](index::IndexService* service, index::IndexId id, const index::IndexOptions& options) {
      return index::CreateBlink(service, id, options.key_kind,
                                {.max_key_bytes = options.max_key_bytes, .patience = kHastyPatience});
    };
    return index::RegisterIndexKind(entry).value();
  }();
  return kind;
}

inline IndexKind HastyRolex() {
  static const IndexKind kind = [] {
    index::IndexKindEntry entry = index::EntryOf(IndexKind::kRolex);
    entry.name = "hasty_rolex";
    entry.register_methods = [](index::IndexService*) {};  // those of rolex serve it
    entry.create = [](index::IndexService* service, index::IndexId id, const index::IndexOptions& options) {
      return index::CreateRolex(service, id, options.key_kind,
                                {.max_key_bytes = options.max_key_bytes, .patience = kHastyPatience});
    };
    return index::RegisterIndexKind(entry).value();
  }();
  return kind;
}

}  // namespace gannet::txn
