#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/common/table.h"
#include "cli/rows/commands/row_command.h"
#include "nlohmann/json.hpp"
#include "txn/database.h"

namespace gannet::cli {
namespace {

using Json = nlohmann::ordered_json;

StatusOr<uint64_t> CountOf(const RowOptions& options, RowHost& host, const Opened& opened) {
  uint64_t rows = 0;
  GANNET_RETURN_IF_ERROR(VisitRows(options, host, opened, /*keys_only=*/true, [&](const index::Key&, std::string_view) {
    ++rows;
    return absl::OkStatus();
  }));
  return rows;
}

// Counts the rows of each table.
Status CountAll(const RowOptions& options, RowHost& host) {
  if (!options.range.whole()) {
    return absl::InvalidArgumentError("--from, --to and --prefix are of one table's keys; name the table");
  }
  if (!options.by.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--by ", options.by, ": is an index of one table; name the table"));
  }
  const StatusOr<RowStore*> store = host.Open(RowHost::Access::kRead);
  if (!store.ok()) return store.status();
  Table text({"table", "rows"});
  for (const txn::Table* table : (*store)->database().tables()) {
    const StatusOr<RowText> form = RowText::For(*table, {});
    if (!form.ok()) return form.status();
    const StatusOr<uint64_t> rows = CountOf(options, host, {.store = *store, .table = table, .text = *form});
    if (!rows.ok()) return rows.status();
    text.Add({table->name(), WithCommas(*rows)});
    if (options.json) absl::PrintF("%s\n", Json{{"table", table->name()}, {"rows", *rows}}.dump());
  }
  if (!options.json) absl::PrintF("%s", text.ToString());
  return absl::OkStatus();
}

Status CountRows(const RowOptions& options, RowHost& host) {
  if (options.table.empty()) return CountAll(options, host);
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kRead);
  if (!opened.ok()) return opened.status();
  const StatusOr<uint64_t> rows = CountOf(options, host, *opened);
  if (!rows.ok()) return rows.status();
  if (options.json) {
    absl::PrintF("%s\n", Json{{"table", options.table}, {"rows", *rows}}.dump());
  } else {
    absl::PrintF("%d\n", *rows);
  }
  return absl::OkStatus();
}

}  // namespace

void AddCount(const RowApp& to) {
  const auto options = std::make_shared<RowOptions>();
  CLI::App* command = AddRowCommand(to, "count", "Count the rows of a table, of a range of it, or of all tables.",
                                    absl::StrFormat("%s\n%s", kReads, kKeysBy),
                                    [options](RowHost& host) { return CountRows(*options, host); });
  AddTable(command, options.get())->description("Name of the table. Default: all tables");
  AddBy(command, options.get(), "The rows that this index of the table has; the range is of its keys");
  AddRange(command, options.get());
  AddKeyForm(command, options.get());
  to.host->AddReadFlags(*command);
  command->add_flag("--json", options->json, "One JSON object per line and table");
}

}  // namespace gannet::cli
