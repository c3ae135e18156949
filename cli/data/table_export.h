// The rows of one table of a data directory, as text: `gannet export`.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/data/recover.h"
#include "cli/rows/row_file.h"
#include "cli/rows/row_text.h"
#include "log/file/file_system.h"

namespace gannet::cli {

struct ExportOptions {
  std::string table;
  RowFormat format = RowFormat::kCsv;
  RowForms forms;
  RecoverOptions recover;
};

// *left_out: what salvage left out. Recovers the directory into memory (changing nothing) and writes every row: node
// after node; in key order if the table's index keeps one, else in any order. Writes a replicated table once. *rows:
// their number. InvalidArgument if there is no such table, or its keys cannot have this form; Unavailable if `to`
// cannot be written.
Status ExportTable(log::FileSystem& files, const std::string& directory, const ExportOptions& options, std::FILE* to,
                   uint64_t* rows, std::vector<std::string>* left_out);

}  // namespace gannet::cli
