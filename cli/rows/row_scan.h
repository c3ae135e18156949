// Reads the rows of a range, or of a whole table, in constant memory.
//
// A transaction remembers 16 bytes for each row that it has read, so a scan is made of one transaction for every few
// thousand rows. Commands have the directory for themselves: nobody writes between two of these, and all together see
// one state. In an open transaction of the shell they are all parts of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "cli/rows/row_store.h"
#include "cli/rows/row_text.h"
#include "txn/store/key_range.h"
#include "txn/store/table.h"

namespace gannet::cli {

// The rows that a command asks for. Keys are text (row_text.h).
struct RowRange {
  std::optional<std::string> from;    // this key and greater ones
  std::optional<std::string> to;      // smaller keys only
  std::optional<std::string> prefix;  // byte keys that begin so; tuples, with these first fields
  uint64_t limit = UINT64_MAX;
  bool reverse = false;

  bool whole() const { return !from.has_value() && !to.has_value() && !prefix.has_value(); }
};

// The error of a key, with the flag and the value that it was read from.
Status Named(const char* flag, const std::string& value, const Status& wrong);
// The range of --from and --to, whose keys `parse` reads.
StatusOr<txn::KeyRange> RangeBetween(const RowRange& asked,
                                     absl::FunctionRef<StatusOr<txn::KeyCopy>(std::string_view)> parse);

inline constexpr size_t kRowsAtOnce = 4096;                    // by one transaction
inline constexpr const char* kReadingRows = "rows were read";  // for CheckStop

// Called for each row; the views are valid during the call. An error ends the scan.
using RowVisitor = absl::FunctionRef<Status(const index::Key& key, std::string_view payload)>;

// Rows come in the order of their keys if the table's index is ordered. If it is not, only the whole table can be read,
// in any order: InvalidArgument names the flag (--from, ...) that needs an order. `in_transaction`: `run` belongs to an
// open transaction; tables that are not ordered are refused then, because a walk does not see its writes.
Status ScanRows(RowStore& store, const RowRunner& run, bool in_transaction, const txn::Table& table,
                const RowText& text, const RowRange& range, bool keys_only, const std::atomic<bool>* stop,
                RowVisitor visit);

}  // namespace gannet::cli
