// Puts the rows of a file into a table: `gannet import`.
//
// Rows go in by transactions of bounded size, in the order of the file. So an import that was interrupted, or that met
// an error, has left the first rows of the file in the table, all that it reported and possibly more; and it can be
// run again with `replace`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/status.h"
#include "cli/rows/row_file.h"
#include "cli/rows/row_store.h"
#include "txn/store/table.h"

namespace gannet::cli {

struct ImportOptions {
  bool replace = false;  // rows whose keys are there already; else such a row is an error
  const std::atomic<bool>* stop = nullptr;
  std::function<void(uint64_t rows)> progress = {};  // called now and then; may be empty
};

struct ImportResult {
  uint64_t rows = 0;  // in the table, and durable; these are the first ones of the file
  // InvalidArgument or AlreadyExists: says which line is wrong, and what is wrong with it. All rows before it are in
  // the table. Cancelled by *stop. Other errors are those of transactions.
  Status status;
};

ImportResult ImportRows(const RowRunner& run, const txn::Table& table, RowReader* reader, const ImportOptions& options);

}  // namespace gannet::cli
