#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/common/table.h"
#include "cli/rows/commands/row_command.h"
#include "log/manifest/manifest.h"
#include "nlohmann/json.hpp"
#include "txn/store/placement.h"
#include "txn/store/secondary_index.h"

namespace gannet::cli {
namespace {

using Json = nlohmann::ordered_json;

// Returns the name of the table whose rows a secondary index has.
std::string NameOfIndexed(const std::vector<log::TableDescription>& tables, const log::IndexDescription& index) {
  const auto table = std::ranges::find(tables, index.table, &log::TableDescription::id);
  return table == tables.end() ? absl::StrCat("number ", index.table) : table->name;
}

// Returns what the column `note` says of a table that has the entries of an index.
std::string NoteOfIndex(const std::vector<log::TableDescription>& tables, const log::IndexDescription& index) {
  const StatusOr<std::vector<txn::IndexField>> fields = txn::IndexFieldsOf(index);
  const std::string of = index.by_function ? "a function of a program"
                         : fields.ok()     ? txn::ToText(*fields)
                                           : "of fields that are unknown here";
  return absl::StrCat(index.unique ? "unique " : "", "index of ", NameOfIndexed(tables, index),
                      index.complete ? "" : ", not complete", ": ", of);
}

// Returns the text of the column `keys`.
std::string KeysOf(const log::TableDescription& table) {
  const std::string kind = table.integer_keys ? "integer" : absl::StrCat("up to ", table.max_key_bytes, " bytes");
  return table.key_form.empty() ? kind : absl::StrCat(kind, ", ", table.key_form);
}

Status Tables(bool as_json, RowHost& host) {
  const StatusOr<std::vector<log::TableDescription>> tables = host.Tables();
  if (!tables.ok()) return tables.status();
  Table text({"table", "keys", "index", "payload", "placement", "note"});
  for (const log::TableDescription& table : *tables) {
    if (as_json) {
      Json json{{"table", table.name},
                {"keys", table.integer_keys ? "integer" : "bytes"},
                {"max_key_bytes", table.max_key_bytes},
                {"key_form", table.key_form},
                {"index", table.index},
                {"index_options", table.index_options},
                {"payload_bytes", table.payload_bytes},
                {"variable_length", table.variable_length},
                {"placement", table.replicated ? std::string(txn::kReplicated) : table.placement},
                {"application", table.application}};
      if (table.secondary.has_value()) {
        json["index_of"] = NameOfIndexed(*tables, *table.secondary);
        json["fields"] = Json::array();  // none: a function of a program says the keys
        for (const log::IndexFieldDescription& field : table.secondary->fields) {
          json["fields"].push_back(
              {{"source", field.source}, {"type", field.type}, {"offset", field.offset}, {"bytes", field.bytes}});
        }
        json["unique"] = table.secondary->unique;
        json["complete"] = table.secondary->complete;
      }
      absl::PrintF("%s\n", json.dump());
      continue;
    }
    text.Add({table.name, KeysOf(table), table.index,
              absl::StrCat(table.variable_length ? "up to " : "", table.payload_bytes, " bytes"),
              table.replicated ? std::string(txn::kReplicated) : table.placement,
              table.secondary.has_value() ? NoteOfIndex(*tables, *table.secondary) : table.application});
  }
  if (!as_json) absl::PrintF("%s", text.ToString());
  return absl::OkStatus();
}

}  // namespace

void AddTables(const RowApp& to) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = AddRowCommand(to, "tables", "Show the tables of a data directory.",
                                    "Reads the catalog only, and changes nothing. gannet count counts their rows.",
                                    [json](RowHost& host) { return Tables(*json, host); });
  command->add_flag("--json", *json, "One JSON object per line and table");
}

}  // namespace gannet::cli
