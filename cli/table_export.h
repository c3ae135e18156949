// The rows of one table of a data directory, as text: `gannet export`.
#pragma once

#include <cstdio>
#include <string>

#include "base/status.h"
#include "cli/data_recover.h"
#include "log/file/file_system.h"

namespace gannet::cli {

// How bytes (byte keys, payloads) are written.
enum class ByteText {
  kHex,
  kText,  // UTF-8 characters as they are, if all bytes are UTF-8; everything else escaped as in C ("\x00")
};

struct ExportOptions {
  std::string table;
  bool json = false;  // one object per line and row; else CSV (RFC 4180) with a header
  ByteText keys = ByteText::kText;
  ByteText payloads = ByteText::kHex;
  RecoverOptions recover;
};

// Recovers the directory into memory (changing nothing) and writes every row: node after node; in key order if the
// table's index is ordered, else in any order. Writes a replicated table once. Integer keys are numbers. *rows: their
// number. InvalidArgument if there is no such table; Unavailable if `to` cannot be written.
Status ExportTable(log::FileSystem& files, const std::string& directory, const ExportOptions& options, std::FILE* to,
                   uint64_t* rows);

}  // namespace gannet::cli
