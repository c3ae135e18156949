#include "txn/node/row_checks.h"

#include "absl/strings/str_cat.h"

namespace gannet::txn {

Status NotOwnTable(const Table& table) {
  GANNET_RETURN_IF_ERROR(CheckState(table));
  return absl::InvalidArgumentError(absl::StrCat(NameOf(table),
                                                 " is none of this transaction's database: use the one "
                                                 "that FindTable of this database returns"));
}

Status CheckUnusualRow(const LocalNode& local, const Table& table, const index::Key& key) {
  GANNET_RETURN_IF_ERROR(CheckOwnTable(local, table));
  return CheckKey(table, key);
}

}  // namespace gannet::txn
