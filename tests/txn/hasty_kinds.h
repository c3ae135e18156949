// Kinds of index that clients change, but for one thing: their owners give up soon what stays locked or torn. So tests
// in virtual time need not wait for the patience of ten seconds.
#pragma once

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/blink/blink.h"
#include "index/dex/dex.h"
#include "index/dolphin/dolphin.h"
#include "index/registry.h"
#include "index/rolex/rolex.h"
#include "txn/store/table.h"

namespace gannet::txn {

inline constexpr absl::Duration kHastyPatience = absl::Microseconds(50);

// `kCreate`: of the kind, with its `Options`. The patience is `kTimes` as long.
template <IndexKind kKind, auto kCreate, class Options, int kTimes = 1>
IndexKind RegisterHasty() {
  index::IndexKindEntry entry = index::EntryOf(kKind);
  entry.name = absl::StrCat(kTimes == 1 ? "hasty_" : "less_hasty_", entry.name);
  entry.register_methods = [](index::IndexService*) {};  // those of the kind serve it
  entry.create = [](index::IndexService* service, index::IndexId id, const index::IndexOptions& options) {
    return kCreate(service, id, options.key_kind,
                   Options{.max_key_bytes = options.max_key_bytes, .patience = kTimes * kHastyPatience});
  };
  return index::RegisterIndexKind(entry).value();
}

inline IndexKind HastyBlink() {
  static const IndexKind kind = RegisterHasty<IndexKind::kBlink, index::CreateBlink, index::BlinkOptions>();
  return kind;
}
inline IndexKind HastyRolex() {
  static const IndexKind kind = RegisterHasty<IndexKind::kRolex, index::CreateRolex, index::RolexOptions>();
  return kind;
}
inline IndexKind HastyDex() {
  static const IndexKind kind = RegisterHasty<IndexKind::kDex, index::CreateDex, index::BlinkOptions>();
  return kind;
}
inline IndexKind HastyDolphin() {
  static const IndexKind kind = RegisterHasty<IndexKind::kDolphin, index::CreateDolphin, index::DolphinOptions>();
  return kind;
}
inline IndexKind HastyKind(IndexKind kind) {
  if (kind == IndexKind::kBlink) return HastyBlink();
  if (kind == IndexKind::kRolex) return HastyRolex();
  if (kind == IndexKind::kDex) return HastyDex();
  GANNET_CHECK(kind == IndexKind::kDolphin, "%s has no hasty kind", index::EntryOf(kind).name);
  return HastyDolphin();
}

// Owners of these outlast the millisecond until the simulated fabric knows of a death, where a decided removal from the
// index must wait for the repair: they try it six times (txn/node/index_damage.h). `hasty`: one of those above.
inline IndexKind LessHasty(IndexKind hasty) {
  constexpr int kTimes = 10;
  static const IndexKind blink = RegisterHasty<IndexKind::kBlink, index::CreateBlink, index::BlinkOptions, kTimes>();
  static const IndexKind rolex = RegisterHasty<IndexKind::kRolex, index::CreateRolex, index::RolexOptions, kTimes>();
  static const IndexKind dex = RegisterHasty<IndexKind::kDex, index::CreateDex, index::BlinkOptions, kTimes>();
  static const IndexKind dolphin =
      RegisterHasty<IndexKind::kDolphin, index::CreateDolphin, index::DolphinOptions, kTimes>();
  if (hasty == HastyBlink()) return blink;
  if (hasty == HastyRolex()) return rolex;
  return hasty == HastyDex() ? dex : dolphin;
}

}  // namespace gannet::txn
