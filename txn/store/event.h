// Telling the program of rare events (DatabaseOptions::on_event).
#pragma once

#include "absl/strings/str_cat.h"
#include "txn/store/options.h"

namespace gannet::txn {

// `parts`: as for absl::StrCat. They are joined only if there is somebody to tell.
template <class... Parts>
void Tell(const DatabaseOptions& options, EventLevel level, const Parts&... parts) {
  if (options.on_event != nullptr) options.on_event(level, absl::StrCat(parts...));
}

}  // namespace gannet::txn
