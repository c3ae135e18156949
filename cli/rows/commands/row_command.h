// The parts that the commands about rows share: their common options, the texts of their help, and the way from a
// command line to a table.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/rows/row_host.h"
#include "cli/rows/row_scan.h"
#include "cli/rows/row_store.h"
#include "cli/rows/row_text.h"
#include "txn/store/table.h"

namespace gannet::cli {

// The program that gets commands, and where they find their directory.
struct RowApp {
  CLI::App* app;
  std::shared_ptr<RowHost> host;
  int* exit_code;
};

// These add the commands, each defined in the file that has its name (change_table.cc: drop, rename and widen).
void AddTables(const RowApp& to);
void AddCreateTable(const RowApp& to);
void AddDropTable(const RowApp& to);
void AddRenameTable(const RowApp& to);
void AddWidenTable(const RowApp& to);
void AddCreateIndex(const RowApp& to);
void AddGet(const RowApp& to);
void AddPut(const RowApp& to);
void AddDelete(const RowApp& to);
void AddScan(const RowApp& to);
void AddCount(const RowApp& to);
void AddImport(const RowApp& to);

// Options of several commands. A command that has others derives its options from these.
struct RowOptions {
  std::string table;
  std::string key;
  std::string by;  // a secondary index of the table; empty: by the keys of the rows
  RowForms forms;
  RowRange range;
  bool json = false;
};

// Adds a command that runs `run`, which owns the command's options, and ends with its result.
CLI::App* AddRowCommand(const RowApp& to, const char* name, const char* description, const std::string& footer,
                        const std::function<Status(RowHost&)>& run);

CLI::Option* AddTable(CLI::App* command, RowOptions* options);
void AddKey(CLI::App* command, RowOptions* options);
void AddBy(CLI::App* command, RowOptions* options, const char* description);
void AddRange(CLI::App* command, RowOptions* options);
void AddKeyForm(CLI::App* command, RowOptions* options);
void AddForms(CLI::App* command, RowOptions* options);

inline constexpr const char* kForms =
    "Keys: integers are decimal numbers. Bytes are text, in which \\\\, \\n, \\r, \\t and \\xNN stand for one byte; "
    "--keys hex takes\npairs of digits, --keys tuple fields such as (12,\"Main\",2.5), --keys signed numbers that may "
    "be negative. If create-table\nhad --keys, the others need none. Rectangles are (min_x,min_y,max_x,max_y,id). "
    "Payloads: text in the same form, or hex.\nA key or value that begins with - goes behind --.";
inline constexpr const char* kKeysBy =
    "With --by, keys are those of the index: a tuple of its fields or of the first ones, such as (\"Oslo\",7), or the "
    "first\nfield alone, such as Oslo or 7.";
inline constexpr const char* kReads =
    "Recovers the directory into memory and changes nothing. Of a directory that a program has open, the rows are "
    "those of one\nmoment: every commit that was durable when the command began, and each later one whole or not at "
    "all. If "
    "the program\nremoves files meanwhile, the command fails and may be run again; gannet backup makes a copy to read.";
inline constexpr const char* kWrites = "Opens the directory, which no other process may have open.";
inline constexpr const char* kFound = "Exit code: 0 done, 1 failed, 2 wrong command line, 3 there is no such row.";

// A table of the opened directory, with the form of its rows.
struct Opened {
  RowStore* store = nullptr;
  const txn::Table* table = nullptr;
  std::optional<RowText> text;
};

StatusOr<Opened> OpenTable(const RowOptions& options, RowHost& host, RowHost::Access access);
// Opens the table, and reads the key of the command.
StatusOr<txn::KeyCopy> OpenRow(const RowOptions& options, RowHost& host, RowHost::Access access, Opened* opened);
// Changes of tables and indexes are durable by themselves, and cannot be a part of a transaction. `what`: the command.
Status CheckNoTransaction(RowHost& host, const char* what);
// Opens the table for such a change.
StatusOr<Opened> OpenToChange(const RowOptions& options, RowHost& host, const char* what);

// Returns `status`; if it is NotFound, as one for which the command has an exit code of its own.
Status NotThere(const Status& status);
// Visits the rows of the table's range, or of the index's.
Status VisitRows(const RowOptions& options, RowHost& host, const Opened& opened, bool keys_only, RowVisitor visit);

}  // namespace gannet::cli
