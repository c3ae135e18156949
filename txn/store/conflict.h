// The errors that make a transaction run again, each with its cause. Internal to txn/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "index/key.h"
#include "txn/store/statistics.h"
#include "txn/store/table.h"

namespace gannet::txn {

// The status of a transaction that met another one: Session::Run runs it again. Its message is constant: all conflicts
// of a thread that have the same cause share one, so that none allocates memory and threads do not count references in
// one cache line.
[[gnu::cold]] Status Conflict(AbortCause cause);
// The conflict as an owner's answer to a call: it has no message, which the caller would have to copy.
inline Status ConflictAtOwner() {
  return Status(absl::StatusCode::kAborted, "");
}
// The conflict of a transaction that met a record whose state word became, or stayed, `state`.
[[gnu::cold]] Status ConflictAt(uint64_t state);
// `table` is not to be used for now; `what` is done to it: "widened".
Status ConflictWithChangeOf(const Table& table, absl::string_view what);

// The cause of a failure that is Aborted.
[[gnu::cold]] AbortCause CauseOf(const Status& aborted);

}  // namespace gannet::txn
