#include "txn/store/conflict.h"

#include <array>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "index/lock_word.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

// The messages by AbortCause. CauseOf finds a cause by its message.
constexpr std::array<absl::string_view, kAbortCauses> kMessages = {
    "conflict with another transaction, which has locked a record; run it again",
    "conflict with another transaction, which has changed a row that this one had read; run it again",
    "conflict with another transaction: an index has changed where this one had read; run it again",
    "conflict: an index of the table is being made; run it again",
    "the log of another node has no room; run the transaction again",
    "the memory is full, and that of removed rows is not free yet; run the transaction again",
    "the body asked for another attempt",
};
constexpr absl::string_view kChangeOf = " is being ";

}  // namespace

Status Conflict(AbortCause cause) {
  static thread_local std::array<Status, kAbortCauses> conflicts;
  Status& conflict = conflicts[static_cast<size_t>(cause)];
  if (conflict.ok()) conflict = absl::AbortedError(kMessages[static_cast<size_t>(cause)]);
  return conflict;
}

Status ConflictAt(uint64_t state) {
  return Conflict(index::IsLocked(state) ? AbortCause::kLock : AbortCause::kRow);
}

Status ConflictWithChangeOf(const Table& table, absl::string_view what) {
  return absl::AbortedError(absl::StrCat(NameOf(table), kChangeOf, what));
}

AbortCause CauseOf(const Status& aborted) {
  for (size_t cause = 0; cause < kMessages.size(); ++cause) {
    if (aborted.message() == kMessages[cause]) return static_cast<AbortCause>(cause);
  }
  if (aborted.message().empty()) return AbortCause::kLock;  // ConflictAtOwner
  // The other messages are those of indexes that change faster than a client can read them.
  return absl::StrContains(aborted.message(), kChangeOf) ? AbortCause::kTable : AbortCause::kIndex;
}

}  // namespace gannet::txn
