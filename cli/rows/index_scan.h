// Reads the rows of a table by one of its secondary indexes (txn/store/secondary_index.h), also by one whose keys are
// made by a function of the program that made it.
//
// Keys of an index are text, and its fields say how it is read. A tuple in parentheses, such as ("Oslo",7), has the
// fields or the first ones, and stands for all keys that begin so. Anything else is the first field alone: a decimal
// number, or text with the escapes of row_text.h. The key that a function made is a tuple, text, or a decimal number if
// the index has numbers.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/rows/row_scan.h"
#include "cli/rows/row_store.h"
#include "txn/store/key_range.h"
#include "txn/store/secondary_index.h"

namespace gannet::cli {

// InvalidArgument: the table has no index of this name; says which was probably meant, or which there are.
StatusOr<const txn::SecondaryIndex*> FindIndexOf(txn::Database& database, const txn::Table& table,
                                                 const std::string& name);

class IndexText {
 public:
  // Looks at an entry if only that says what keys are. FailedPrecondition: the index is not complete.
  static StatusOr<IndexText> For(const RowRunner& run, const txn::SecondaryIndex& index);

  // InvalidArgument, one clause, says what the text must be.
  StatusOr<txn::KeyCopy> ParseKey(std::string_view text) const;
  // A tuple: the keys with these first fields. Text: those whose first field begins so.
  StatusOr<txn::KeyRange> ParsePrefix(std::string_view text) const;

 private:
  explicit IndexText(const txn::SecondaryIndex* index) : index_(index) {}
  bool has_numbers() const;

  const txn::SecondaryIndex* index_;
  bool function_gives_numbers_ = false;
};

// Rows come in the order of the index. `range` is of its keys. Otherwise as ScanRows, but rows with equal keys are read
// by one transaction.
Status ScanRowsBy(const RowRunner& run, bool in_transaction, const txn::SecondaryIndex& index, const RowRange& range,
                  bool keys_only, const std::atomic<bool>* stop, RowVisitor visit);

}  // namespace gannet::cli
