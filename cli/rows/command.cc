#include "cli/rows/command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/quantity.h"
#include "cli/common/command.h"
#include "cli/common/data_directory.h"
#include "cli/common/exit_codes.h"
#include "cli/common/flags.h"
#include "cli/common/interrupt.h"
#include "cli/common/machine_memory.h"
#include "cli/common/parse.h"
#include "cli/common/progress.h"
#include "cli/common/salvage_flag.h"
#include "cli/common/table.h"
#include "cli/rows/csv_columns.h"
#include "cli/rows/index_scan.h"
#include "cli/rows/row_file.h"
#include "cli/rows/row_import.h"
#include "cli/rows/row_scan.h"
#include "cli/rows/row_text.h"
#include "index/rectangle.h"
#include "index/registry.h"
#include "log/checkpoint/checkpoint.h"
#include "nlohmann/json.hpp"
#include "txn/durable/catalog.h"
#include "txn/store/key_form.h"
#include "txn/store/secondary_index.h"

namespace gannet::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kDefaultKeyBytes = 64;

struct RowOptions {
  std::string table;
  std::string key;
  std::string value;
  std::string file;
  std::string by;  // a secondary index of the table; empty: by the keys of the rows
  RowForms forms;
  RowRange range;
  bool json = false;
  bool csv = false;
  bool replace = false;
  txn::TableOptions create;
  bool fixed = false;
  std::string new_name;
  CsvColumns columns;  // of import; empty: the file says
};

struct IndexFlags {
  std::string name;
  std::vector<std::string> fields;
  bool unique = false;
};

class DirectoryHost final : public RowHost {
 public:
  void AddFlags(CLI::App& command) override {
    AddPath(command, "DIR", &directory_, "PATH", "The data directory")->required();
    Add(command, "--memory-per-node", &memory_, ParseSize, "SIZE",
        "Most memory for the rows, such as 8G. Default: three quarters of the machine's");
  }
  void AddReadFlags(CLI::App& command) override { AddSalvage(command, &salvage_); }

  StatusOr<std::vector<log::TableDescription>> Tables() override {
    const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(*DiskFiles(), directory_);
    if (!nodes.ok()) return nodes.status();
    StatusOr<txn::Catalog> catalog = txn::CatalogOf(*nodes);
    if (!catalog.ok()) return catalog.status();
    return std::move(catalog->tables);
  }

  StatusOr<RowStore*> Open(Access access) override {
    interrupts_.emplace();
    const RowStoreOptions options{.memory_bytes = memory_ == 0 ? DefaultMemoryPerNode() : memory_,
                                  .threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
                                  .create = access == Access::kCreate,
                                  .salvage = salvage_,
                                  .stop = stop()};
    Progress progress;
    progress.Begin("opening " + directory_);
    const int holder = access == Access::kRead ? HolderOf(directory_).value_or(0) : 0;  // 0: none
    auto store = access == Access::kRead ? RowStore::OpenToRead(directory_, options)
                                         : RowStore::OpenToWrite(directory_, options);
    if (!store.ok()) {
      if (holder == 0 || !absl::IsDataLoss(store.status())) return store.status();
      return absl::DataLossError(absl::StrCat(store.status().message(), "; process ", holder, " has ", directory_,
                                              " open, and may have removed a file meanwhile: run the command again"));
    }
    if (holder != 0) {
      absl::FPrintF(
          stderr,
          "%s is open in process %d; the rows are those of one moment, with every commit that was durable when "
          "this command began\n",
          directory_, holder);
    }
    store_ = *std::move(store);
    left_out_ = TellLeftOut(store_->left_out());
    return store_.get();
  }

  RowRunner runner() override { return store_->runner(); }
  bool in_transaction() const override { return false; }
  const std::atomic<bool>* stop() const override { return &InterruptGuard::requested(); }

  int End(std::string_view command, const Status& status) override {
    Status ended = status;
    if (store_ != nullptr) ended.Update(store_->Close());
    return !ended.ok() ? Fail(command, NameMemoryFlag(ended)) : left_out_ ? kExitFailed : kExitOk;
  }

 private:
  std::string directory_;
  uint64_t memory_ = 0;
  bool salvage_ = false;
  bool left_out_ = false;
  std::optional<InterruptGuard> interrupts_;
  std::unique_ptr<RowStore> store_;
};

// A table of the opened directory, with the form of its rows.
struct Opened {
  RowStore* store = nullptr;
  const txn::Table* table = nullptr;
  std::optional<RowText> text;
};

StatusOr<Opened> OpenTable(const RowOptions& options, RowHost& host, RowHost::Access access) {
  Opened opened;
  const StatusOr<RowStore*> store = host.Open(access);
  if (!store.ok()) return store.status();
  opened.store = *store;
  const StatusOr<const txn::Table*> table = opened.store->FindTable(options.table);
  if (!table.ok()) return table.status();
  opened.table = *table;
  const StatusOr<RowText> text = RowText::For(**table, options.forms);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat("--keys ", text.status().message()));
  opened.text = *text;
  return opened;
}

// The same, with the key of the command.
StatusOr<txn::KeyCopy> OpenRow(const RowOptions& options, RowHost& host, RowHost::Access access, Opened* opened) {
  StatusOr<Opened> table = OpenTable(options, host, access);
  if (!table.ok()) return table.status();
  *opened = *std::move(table);
  StatusOr<txn::KeyCopy> key = opened->text->ParseKey(options.key);
  if (!key.ok()) return Named("KEY", options.key, key.status());
  return key;
}

// A missing row has an exit code of its own.
constexpr const char* kNoSuchRow = "there is no such row: ";
Status NotThere(const Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(absl::StrCat(kNoSuchRow, status.message()));
}
bool IsNotThere(const Status& status) {
  return absl::IsNotFound(status) && absl::StartsWith(status.message(), kNoSuchRow);
}

// The row with a key of a unique index.
Status GetBy(const RowOptions& options, RowHost& host) {
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kRead);
  if (!opened.ok()) return opened.status();
  const StatusOr<const txn::SecondaryIndex*> index = FindIndexOf(opened->store->database(), *opened->table, options.by);
  if (!index.ok()) return index.status();
  if (!(*index)->unique()) {
    return absl::InvalidArgumentError(absl::StrCat("--by ", options.by,
                                                   ": the index is not unique, so several rows may have the key; give "
                                                   "scan --by ",
                                                   options.by, " and --from, --to or --prefix"));
  }
  const StatusOr<IndexText> text = IndexText::For(host.runner(), **index);
  if (!text.ok()) return text.status();
  const StatusOr<txn::KeyCopy> key = text->ParseKey(options.key);
  if (!key.ok()) return Named("KEY", options.key, key.status());
  std::optional<txn::KeyCopy> primary;
  std::string payload;
  GANNET_RETURN_IF_ERROR(NotThere(host.runner()([&](txn::BlockingTransaction& t) -> Status {
    const StatusOr<txn::RowBy> row = t.GetBy(**index, key->view());
    if (!row.ok()) return row.status();
    primary = txn::KeyCopy(row->key);
    payload.assign(reinterpret_cast<const char*>(row->payload.data()), row->payload.size());
    return absl::OkStatus();
  })));
  if (options.json) return RowWriter(*opened->text, RowFormat::kJson, stdout).Row(primary->view(), payload);
  absl::PrintF("%s\n", opened->text->PayloadText(payload));
  return absl::OkStatus();
}

Status Get(const RowOptions& options, RowHost& host) {
  if (!options.by.empty()) return GetBy(options, host);
  Opened opened;
  const StatusOr<txn::KeyCopy> key = OpenRow(options, host, RowHost::Access::kRead, &opened);
  if (!key.ok()) return key.status();
  std::string payload;
  GANNET_RETURN_IF_ERROR(NotThere(
      host.runner()([&](txn::BlockingTransaction& t) { return t.Get(*opened.table, key->view(), &payload); })));
  if (options.json) return RowWriter(*opened.text, RowFormat::kJson, stdout).Row(key->view(), payload);
  absl::PrintF("%s\n", opened.text->PayloadText(payload));
  return absl::OkStatus();
}

Status Put(const RowOptions& options, RowHost& host) {
  Opened opened;
  const StatusOr<txn::KeyCopy> key = OpenRow(options, host, RowHost::Access::kWrite, &opened);
  if (!key.ok()) return key.status();
  const StatusOr<std::string> payload = opened.text->ParsePayload(options.value);
  if (!payload.ok()) return Named("VALUE", options.value, payload.status());
  return host.runner()([&](txn::BlockingTransaction& t) {
    return t.Upsert(*opened.table, key->view(), std::as_bytes(std::span(*payload)));
  });
}

Status Delete(const RowOptions& options, RowHost& host) {
  Opened opened;
  const StatusOr<txn::KeyCopy> key = OpenRow(options, host, RowHost::Access::kWrite, &opened);
  if (!key.ok()) return key.status();
  return NotThere(host.runner()([&](txn::BlockingTransaction& t) { return t.Remove(*opened.table, key->view()); }));
}

// The rows of the table's range, or of the index's.
Status VisitRows(const RowOptions& options, RowHost& host, const Opened& opened, bool keys_only, RowVisitor visit) {
  if (options.by.empty()) {
    return ScanRows(*opened.store, host.runner(), host.in_transaction(), *opened.table, *opened.text, options.range,
                    keys_only, host.stop(), visit);
  }
  const StatusOr<const txn::SecondaryIndex*> index = FindIndexOf(opened.store->database(), *opened.table, options.by);
  if (!index.ok()) return index.status();
  return ScanRowsBy(host.runner(), host.in_transaction(), **index, options.range, keys_only, host.stop(), visit);
}

Status Scan(const RowOptions& options, RowHost& host) {
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kRead);
  if (!opened.ok()) return opened.status();
  RowWriter writer(*opened->text, options.json ? RowFormat::kJson : RowFormat::kLines, stdout);
  const Status scanned =
      VisitRows(options, host, *opened, /*keys_only=*/false,
                [&](const index::Key& key, std::string_view payload) { return writer.Row(key, payload); });
  return WithRest(scanned, "the output is not complete");
}

StatusOr<uint64_t> CountOf(const RowOptions& options, RowHost& host, const Opened& opened) {
  uint64_t rows = 0;
  GANNET_RETURN_IF_ERROR(VisitRows(options, host, opened, /*keys_only=*/true, [&](const index::Key&, std::string_view) {
    ++rows;
    return absl::OkStatus();
  }));
  return rows;
}

// Without a table: the rows of each.
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

// The table whose rows a secondary index has.
std::string NameOfIndexed(const std::vector<log::TableDescription>& tables, const log::IndexDescription& index) {
  const auto table = std::ranges::find(tables, index.table, &log::TableDescription::id);
  return table == tables.end() ? absl::StrCat("number ", index.table) : table->name;
}

// What the column `note` says of a table that has the entries of an index.
std::string NoteOfIndex(const std::vector<log::TableDescription>& tables, const log::IndexDescription& index) {
  const StatusOr<std::vector<txn::IndexField>> fields = txn::IndexFieldsOf(index);
  const std::string of = index.by_function ? "a function of a program"
                         : fields.ok()     ? txn::ToText(*fields)
                                           : "of fields that are unknown here";
  return absl::StrCat(index.unique ? "unique " : "", "index of ", NameOfIndexed(tables, index),
                      index.complete ? "" : ", not complete", ": ", of);
}

// The text of the column `keys`.
std::string KeysOf(const log::TableDescription& table) {
  const std::string kind = table.integer_keys ? "integer" : absl::StrCat("up to ", table.max_key_bytes, " bytes");
  return table.key_form.empty() ? kind : absl::StrCat(kind, ", ", table.key_form);
}

Status Tables(const RowOptions& options, RowHost& host) {
  const StatusOr<std::vector<log::TableDescription>> tables = host.Tables();
  if (!tables.ok()) return tables.status();
  Table text({"table", "keys", "index", "payload", "placement", "note"});
  for (const log::TableDescription& table : *tables) {
    if (options.json) {
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
  if (!options.json) absl::PrintF("%s", text.ToString());
  return absl::OkStatus();
}

// These are durable by themselves, and cannot be a part of a transaction.
Status CheckNoTransaction(RowHost& host, const char* what) {
  if (!host.in_transaction()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(what, " is not a part of a transaction; commit first"));
}

Status CreateTable(const RowOptions& options, RowHost& host, bool create) {
  GANNET_RETURN_IF_ERROR(CheckNoTransaction(host, "create-table"));
  txn::TableOptions table = options.create;
  table.name = options.table;
  table.variable_length = !options.fixed;
  if (table.key_kind == index::KeyKind::kNone) {
    const bool bytes = table.key_form == txn::KeyForm::kText || table.key_form == txn::KeyForm::kTuple;
    table.key_kind = bytes ? index::KeyKind::kBytes : index::KeyKind::kInteger;
  }
  // A rectangle has a size of its own.
  if (index::EntryOf(table.index).traits.spatial) {
    table.key_kind = index::KeyKind::kBytes;
    table.max_key_bytes = index::RectangleKey::kBytes;
  } else if (table.key_kind == index::KeyKind::kInteger) {
    if (table.max_key_bytes != 0) {
      return absl::InvalidArgumentError("--max-key-bytes is of byte keys; leave it out, or give --key bytes");
    }
    table.max_key_bytes = index::kIntegerKeyBytes;
  } else if (table.max_key_bytes == 0) {
    table.max_key_bytes = std::min(kDefaultKeyBytes, index::kMaxKeyBytes);
  }
  const StatusOr<RowStore*> store = host.Open(create ? RowHost::Access::kCreate : RowHost::Access::kWrite);
  if (!store.ok()) {
    if (!absl::IsNotFound(store.status())) return store.status();
    return absl::NotFoundError(absl::StrCat(store.status().message(), "; --create makes a new database"));
  }
  if ((*store)->database().FindTable(table.name) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a table '", table.name, "' already (gannet tables shows it)"));
  }
  return (*store)->database().CreateTable(table).status();
}

// A wrong name is a wrong argument, as for the other commands.
Status DropTable(const RowOptions& options, RowHost& host) {
  GANNET_RETURN_IF_ERROR(CheckNoTransaction(host, "drop-table"));
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kWrite);
  if (!opened.ok()) return opened.status();
  return opened->store->database().DropTable(options.table);
}

Status RenameTable(const RowOptions& options, RowHost& host) {
  GANNET_RETURN_IF_ERROR(CheckNoTransaction(host, "rename-table"));
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kWrite);
  if (!opened.ok()) return opened.status();
  return opened->store->database().RenameTable(options.table, options.new_name);
}

Status WidenTable(const RowOptions& options, RowHost& host) {
  GANNET_RETURN_IF_ERROR(CheckNoTransaction(host, "widen-table"));
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kWrite);
  if (!opened.ok()) return opened.status();
  return opened->store->database().WidenTable(options.table, options.create.payload_bytes);
}

// A field of a secondary index: "TYPE:OFFSET:BYTES" of the payload, or "key".
StatusOr<txn::IndexField> ParseIndexField(const std::string& text, const txn::Table& table) {
  const bool integer_keys = table.options().key_kind == index::KeyKind::kInteger;
  if (text == "key") return integer_keys ? txn::IndexField::KeyNumber() : txn::IndexField::KeyBytes();
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  const auto wrong = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("--field ", text,
                     ": must be TYPE:OFFSET:BYTES, such as text:0:16, or key; the types are "
                     "unsigned, signed, floating, text and bytes"));
  };
  if (parts.size() != 3) return wrong();
  const StatusOr<int64_t> offset = ParseInteger(parts[1], 0, txn::kMaxPayloadBytes);
  const StatusOr<int64_t> bytes = ParseInteger(parts[2], 0, txn::kMaxPayloadBytes);
  if (!offset.ok() || !bytes.ok()) return wrong();
  const log::IndexDescription one{.fields = {{.source = "payload",
                                              .type = parts[0],
                                              .offset = static_cast<uint32_t>(*offset),
                                              .bytes = static_cast<uint32_t>(*bytes)}}};
  const StatusOr<std::vector<txn::IndexField>> fields = txn::IndexFieldsOf(one);
  if (!fields.ok()) return wrong();
  return fields->front();
}

Status CreateIndex(const RowOptions& options, RowHost& host, const IndexFlags& flags) {
  GANNET_RETURN_IF_ERROR(CheckNoTransaction(host, "create-index"));
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kWrite);
  if (!opened.ok()) return opened.status();
  txn::SecondaryIndexOptions index{.name = flags.name, .table = options.table, .unique = flags.unique};
  for (const std::string& field : flags.fields) {
    const StatusOr<txn::IndexField> parsed = ParseIndexField(field, *opened->table);
    if (!parsed.ok()) return parsed.status();
    index.fields.push_back(*parsed);
  }
  return opened->store->database().CreateIndex(index).status();
}

struct Closer {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

StatusOr<RowFormat> FormatOf(const RowOptions& options) {
  if (options.csv) return RowFormat::kCsv;
  if (options.json) return RowFormat::kJson;
  if (const std::optional<RowFormat> format = FormatOfName(options.file); format.has_value()) return *format;
  return absl::InvalidArgumentError(
      absl::StrCat("FILE ", options.file, ": its name does not say the format; give --csv or --json"));
}

Status Import(const RowOptions& options, RowHost& host) {
  GANNET_RETURN_IF_ERROR(CheckNoTransaction(host, "import, which makes transactions of its own,"));
  const StatusOr<RowFormat> format = FormatOf(options);
  if (!format.ok()) return format.status();
  const std::unique_ptr<std::FILE, Closer> file(options.file == "-" ? stdin : std::fopen(options.file.c_str(), "re"));
  if (file == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("FILE ", options.file, ": cannot be read: ", std::strerror(errno)));
  }
  const StatusOr<Opened> opened = OpenTable(options, host, RowHost::Access::kWrite);
  if (!opened.ok()) return opened.status();
  Progress progress;
  if (!options.columns.empty() && *format != RowFormat::kCsv) {
    return absl::InvalidArgumentError("--key and --payload name columns of CSV; the file is JSON");
  }
  RowReader reader(*opened->text, *format, file.get(), options.columns);
  const ImportResult result =
      ImportRows(host.runner(), *opened->table, &reader,
                 {.replace = options.replace, .stop = host.stop(), .progress = [&](uint64_t rows) {
                    progress.Count(absl::StrFormat("importing into %s: %s", options.table, Count(rows, "row")));
                  }});
  progress.EndCount();
  if (result.status.ok()) {
    absl::FPrintF(stderr, "%s: %s imported into table %s\n", options.file, Count(result.rows, "row"), options.table);
    return absl::OkStatus();
  }
  std::string rest = absl::StrCat("; imported: ",
                                  result.rows == 0 ? "nothing" : absl::StrCat("the first ", Count(result.rows, "row")));
  if (absl::IsAlreadyExists(result.status)) {
    absl::StrAppend(&rest, "; with --replace such rows are replaced");
  } else if (result.rows > 0) {
    absl::StrAppend(&rest, "; to run it again, give --replace");
  }
  const bool names_line = absl::StartsWith(result.status.message(), "line ");
  return Status(absl::IsInvalidArgument(result.status) ? absl::StatusCode::kFailedPrecondition : result.status.code(),
                absl::StrCat(names_line ? absl::StrCat(options.file, " ") : "",
                             absl::IsAlreadyExists(result.status) ? "has a row that is there already, " : "",
                             result.status.message(), rest));
}

// Adds a command that runs `run` and ends with its result.
CLI::App* AddRowCommand(CLI::App& app, const char* name, const char* description, const std::string& footer,
                        const std::shared_ptr<RowHost>& host, const std::shared_ptr<RowOptions>& options,
                        const std::function<Status(const RowOptions&, RowHost&)>& run, int* exit_code) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer(footer);
  host->AddFlags(*command);
  command->callback([=, name = std::string(name)] {
    const Status status = run(*options, *host);
    *exit_code = host->End(name, status);
    if (*exit_code == kExitFailed && IsNotThere(status)) *exit_code = kExitNoRow;
  });
  return command;
}

CLI::Option* AddTable(CLI::App& command, RowOptions* options) {
  return AddPath(command, "TABLE", &options->table, "NAME", "Name of the table");
}

void AddKeyForm(CLI::App& command, RowOptions* options) {
  Add(command, "--keys", &options->forms.keys, ParseKeyForm, "FORM", kKeyFormHelp);
}

void AddForms(CLI::App& command, RowOptions* options) {
  AddKeyForm(command, options);
  Add(command, "--payloads", &options->forms.payloads, ParsePayloadForm, "FORM",
      "How payloads are written: text or hex. Default: text");
}

void AddKey(CLI::App& command, RowOptions* options) {
  command.add_option("KEY", options->key, "The key")->required();
}

void AddJson(CLI::App& command, RowOptions* options, const char* description) {
  command.add_flag("--json", options->json, description);
}

void AddBy(CLI::App& command, RowOptions* options, const char* description) {
  AddPath(command, "--by", &options->by, "INDEX", description);
}

void AddRange(CLI::App& command, RowRange* range) {
  const auto set = [&command](const char* flag, std::optional<std::string>* target, const char* description) {
    return command
        .add_option_function<std::string>(
            flag, [target](const std::string& text) { *target = text; }, description)
        ->type_name("KEY");
  };
  CLI::Option* from = set("--from", &range->from, "Only this key and greater ones");
  CLI::Option* to = set("--to", &range->to, "Only keys that are smaller than this one");
  set("--prefix", &range->prefix, "Only byte keys that begin so, or tuples with these first fields")
      ->excludes(from)
      ->excludes(to);
}

constexpr const char* kForms =
    "Keys: integers are decimal numbers. Bytes are text, in which \\\\, \\n, \\r, \\t and \\xNN stand for one byte; "
    "--keys hex takes\npairs of digits, --keys tuple fields such as (12,\"Main\",2.5), --keys signed numbers that may "
    "be negative. If create-table\nhad --keys, the others need none. Rectangles are (min_x,min_y,max_x,max_y,id). "
    "Payloads: text in the same form, or hex.\nA key or value that begins with - goes behind --.";
constexpr const char* kKeysBy =
    "With --by, keys are those of the index: a tuple of its fields or of the first ones, such as (\"Oslo\",7), or the "
    "first\nfield alone, such as Oslo or 7.";
constexpr const char* kReads =
    "Recovers the directory into memory and changes nothing. Of a directory that a program has open, the rows are "
    "those "
    "of one\nmoment: every commit that was durable when the command began, and each later one whole or not at all. If "
    "the program\nremoves files meanwhile, the command fails and may be run again; gannet backup makes a copy to read.";
constexpr const char* kWrites = "Opens the directory, which no other process may have open.";
constexpr const char* kFound = "Exit code: 0 done, 1 failed, 2 wrong command line, 3 there is no such row.";

void AddPointCommands(CLI::App& app, const std::shared_ptr<RowHost>& host, int* exit_code) {
  const auto get = std::make_shared<RowOptions>();
  CLI::App* command = AddRowCommand(
      app, "get", "Print the payload of one row.",
      absl::StrFormat("%s %s\n%s %s\n\nExample: gannet get data cities Oslo", kReads, kFound, kForms, kKeysBy), host,
      get, Get, exit_code);
  AddTable(*command, get.get())->required();
  AddKey(*command, get.get());
  host->AddReadFlags(*command);
  AddBy(*command, get.get(), "KEY is one of this index of the table, which is unique");
  AddForms(*command, get.get());
  AddJson(*command, get.get(), "A JSON object with the key, too");

  const auto put = std::make_shared<RowOptions>();
  command = AddRowCommand(app, "put", "Insert a row, or replace its payload.",
                          absl::StrFormat("%s The row is durable when the command ends.\n%s\n\nExample: gannet put "
                                          "data cities Oslo 'Norway, 709000'",
                                          kWrites, kForms),
                          host, put, Put, exit_code);
  AddTable(*command, put.get())->required();
  AddKey(*command, put.get());
  command->add_option("VALUE", put->value, "The payload")->required();
  AddForms(*command, put.get());

  const auto remove = std::make_shared<RowOptions>();
  command =
      AddRowCommand(app, "delete", "Remove one row.",
                    absl::StrFormat("%s %s\n%s\n\nExample: gannet delete data cities Oslo", kWrites, kFound, kForms),
                    host, remove, Delete, exit_code);
  AddTable(*command, remove.get())->required();
  AddKey(*command, remove.get());
  AddKeyForm(*command, remove.get());
}

void AddScans(CLI::App& app, const std::shared_ptr<RowHost>& host, int* exit_code) {
  const auto scan = std::make_shared<RowOptions>();
  CLI::App* command =
      AddRowCommand(app, "scan", "Print the rows of a range: key, tab, payload.",
                    absl::StrFormat("%s\nRows come in the order of their keys; of a table whose index is not ordered, "
                                    "in any order, and without a range.\n%s\n%s\n\nExamples: gannet scan data cities "
                                    "--prefix S --limit 10\n          gannet scan data cities --by by_country "
                                    "--prefix Nor",
                                    kReads, kForms, kKeysBy),
                    host, scan, Scan, exit_code);
  AddTable(*command, scan.get())->required();
  AddBy(*command, scan.get(), "In the order of this index of the table, of whose keys the range is");
  AddRange(*command, &scan->range);
  Add(
      *command, "--limit", &scan->range.limit, [](const std::string& text) { return ParseCount(text, 0, INT64_MAX); },
      "N", "At most so many rows, such as 100 or 10K. Default: all");
  command->add_flag("--reverse", scan->range.reverse, "From the greatest key to the smallest");
  AddForms(*command, scan.get());
  AddJson(*command, scan.get(), "One JSON object per line and row");
  host->AddReadFlags(*command);

  const auto count = std::make_shared<RowOptions>();
  command = AddRowCommand(app, "count", "Count the rows of a table, of a range of it, or of all tables.",
                          absl::StrFormat("%s\n%s", kReads, kKeysBy), host, count, CountRows, exit_code);
  AddTable(*command, count.get())->description("Name of the table. Default: all tables");
  AddBy(*command, count.get(), "The rows that this index of the table has; the range is of its keys");
  AddRange(*command, &count->range);
  AddKeyForm(*command, count.get());
  host->AddReadFlags(*command);
  AddJson(*command, count.get(), "One JSON object per line and table");
}

void AddImport(CLI::App& app, const std::shared_ptr<RowHost>& host, int* exit_code) {
  const auto options = std::make_shared<RowOptions>();
  CLI::App* command = AddRowCommand(
      app, "import", "Put the rows of a CSV or JSON file into a table.",
      absl::StrFormat(
          "%s Reads what gannet export writes: CSV (RFC 4180) whose first line names the columns, key and payload (or "
          "key_hex,\nkey_tuple, key_signed, payload_hex), or one JSON object per line. Rows go in by transactions of "
          "at most 1000, in the\norder of the file. After an error, or Ctrl-C, the first rows of the file are in the "
          "table, and the message says how\nmany; run it again with --replace.\n--key and --payload take the columns "
          "of "
          "any other CSV, as they are. Several columns make a tuple: NAME:TYPE says what a field\nis (text, integer, "
          "double or bool; text if nothing does). A payload of several columns is a line of CSV.\n\nExamples: gannet "
          "import data cities cities.csv\n          gannet import data cities world.csv --key country,year:integer "
          "--payload population",
          kWrites),
      host, options, Import, exit_code);
  AddTable(*command, options.get())->required();
  AddPath(*command, "FILE", &options->file, "PATH", "The file; - is standard input")->required();
  CLI::Option* csv = command->add_flag("--csv", options->csv, "The file is CSV. Default: what its name says");
  command->add_flag("--json", options->json, "The file is JSON, one object per line")->excludes(csv);
  CLI::Option* key = Add(*command, "--key", &options->columns.key, ParseColumns, "COLUMNS",
                         "CSV: the columns that make the key, such as name,country. Default: what the first line says");
  CLI::Option* payload = Add(*command, "--payload", &options->columns.payload, ParseColumns, "COLUMNS",
                             "CSV: the columns that make the payload");
  key->needs(payload);
  payload->needs(key);
  command->add_flag("--replace", options->replace,
                    "Replace rows whose keys are there already. Otherwise such a row is an error");
}

StatusOr<index::KeyKind> ParseKeyKind(const std::string& text) {
  static constexpr std::array<std::string_view, 2> kNames = {"integer", "bytes"};
  const StatusOr<size_t> choice = ParseChoice(text, kNames);
  if (!choice.ok()) return choice.status();
  return *choice == 0 ? index::KeyKind::kInteger : index::KeyKind::kBytes;
}

// A form that a table keeps.
StatusOr<txn::KeyForm> ParseKeptKeyForm(const std::string& text) {
  static constexpr std::array kKept = {txn::KeyForm::kText, txn::KeyForm::kTuple, txn::KeyForm::kSigned};
  std::array<std::string_view, kKept.size()> names;
  std::ranges::transform(kKept, names.begin(), [](txn::KeyForm form) { return NameOf(form); });
  const StatusOr<size_t> choice = ParseChoice(text, names);
  if (!choice.ok()) return choice.status();
  return kKept[*choice];
}

StatusOr<index::IndexKind> ParseIndexKind(const std::string& text) {
  const StatusOr<size_t> at = ParseChoice(text, index::IndexKindNames());
  if (!at.ok()) return at.status();
  return static_cast<index::IndexKind>(*at);
}

void AddTables(CLI::App& app, const std::shared_ptr<RowHost>& host, int* exit_code) {
  const auto tables = std::make_shared<RowOptions>();
  CLI::App* command = AddRowCommand(app, "tables", "Show the tables of a data directory.",
                                    "Reads the catalog only, and changes nothing. gannet count counts their rows.",
                                    host, tables, Tables, exit_code);
  AddJson(*command, tables.get(), "One JSON object per line and table");

  const auto options = std::make_shared<RowOptions>();
  options->create.key_kind = index::KeyKind::kNone;  // not said
  options->create.index = index::IndexKind::kXStore;
  options->create.max_key_bytes = 0;
  const auto create = std::make_shared<bool>(false);
  command = AddRowCommand(
      app, "create-table", "Make a new table.",
      absl::StrFormat("%s\n\nExample: gannet create-table data cities --key bytes --payload 1000 --create", kWrites),
      host, options, [create](const RowOptions& asked, RowHost& at) { return CreateTable(asked, at, *create); },
      exit_code);
  AddTable(*command, options.get())->required();
  Add(*command, "--key", &options->create.key_kind, ParseKeyKind, "KIND",
      "What keys are: integer or bytes. Default: integer, or bytes with --keys text or tuple");
  Add(*command, "--keys", &options->create.key_form, ParseKeptKeyForm, "FORM",
      "What keys mean, which the catalog keeps: text, tuple, or signed for integers. Other commands then need no "
      "--keys");
  AddInteger(*command, "--max-key-bytes", &options->create.max_key_bytes, 1, static_cast<int64_t>(index::kMaxKeyBytes),
             absl::StrFormat("Longest byte key. Default: %d", std::min(kDefaultKeyBytes, index::kMaxKeyBytes)));
  Add(*command, "--index", &options->create.index, ParseIndexKind, "KIND",
      "hash (not ordered), xstore, blink or rolex (ordered), or catfish (rectangles). Default: xstore");
  AddInteger(*command, "--payload", &options->create.payload_bytes, 0, txn::kMaxPayloadBytes,
             "Largest payload in bytes")
      ->required();
  command->add_flag("--fixed", options->fixed, "All payloads have exactly this size");
  AddInteger(*command, "--expected-rows", &options->create.expected_rows, 1, INT64_MAX,
             "Sizes a hash index, which grows only a little. Default: 1024");
  AddPath(*command, "--note", &options->create.application, "TEXT", "A note that the catalog keeps with the table");
  command->add_flag("--create", *create, "Create the database if the directory holds none");

  const auto dropped = std::make_shared<RowOptions>();
  command =
      AddRowCommand(app, "drop-table", "Remove a table and all its rows, for good.",
                    absl::StrFormat("%s Nothing asks again: gannet export keeps a copy of the rows, gannet backup "
                                    "one of\nthe directory.\n\nExample: gannet drop-table data cities",
                                    kWrites),
                    host, dropped, DropTable, exit_code);
  AddTable(*command, dropped.get())->required();

  const auto renamed = std::make_shared<RowOptions>();
  command = AddRowCommand(app, "rename-table", "Give a table, or a secondary index, another name.",
                          absl::StrFormat("%s\n\nExample: gannet rename-table data cities towns", kWrites), host,
                          renamed, RenameTable, exit_code);
  AddTable(*command, renamed.get())->required();
  AddPath(*command, "NEW_NAME", &renamed->new_name, "NAME", "Its new name")->required();

  const auto widened = std::make_shared<RowOptions>();
  command = AddRowCommand(app, "widen-table", "Make the payloads of a table larger.",
                          absl::StrFormat("%s Payloads of a fixed size get zeros at their end.\n\nExample: gannet "
                                          "widen-table data cities --payload 2000",
                                          kWrites),
                          host, widened, WidenTable, exit_code);
  AddTable(*command, widened.get())->required();
  AddInteger(*command, "--payload", &widened->create.payload_bytes, 0, txn::kMaxPayloadBytes,
             "Largest payload in bytes; at least the present one")
      ->required();

  const auto indexed = std::make_shared<RowOptions>();
  const auto flags = std::make_shared<IndexFlags>();
  command = AddRowCommand(
      app, "create-index", "Make a secondary index of a table.",
      absl::StrFormat("Programs and commands that change rows keep it. %s\n\nExample: gannet create-index data people "
                      "by_city --field text:0:16 --field unsigned:16:4",
                      kWrites),
      host, indexed, [flags](const RowOptions& asked, RowHost& at) { return CreateIndex(asked, at, *flags); },
      exit_code);
  AddTable(*command, indexed.get())->required();
  AddPath(*command, "NAME", &flags->name, "TEXT", "Name of the index; tables and indexes have different ones")
      ->required();
  command
      ->add_option(
          "--field", flags->fields,
          "A field of its keys, first one first: TYPE:OFFSET:BYTES of the payload, with the type unsigned, "
          "signed, floating (little-endian), text (up to a zero byte) or bytes; 0 bytes: up to the end; or key")
      ->required()
      ->type_name("FIELD");
  command->add_flag("--unique", flags->unique, "No two rows may have one key");
}

}  // namespace

void AddRowCommands(CLI::App& app, const std::shared_ptr<RowHost>& host, int* exit_code) {
  AddTables(app, host, exit_code);
  AddPointCommands(app, host, exit_code);
  AddScans(app, host, exit_code);
  AddImport(app, host, exit_code);
}

void AddRowCommands(CLI::App& app, int* exit_code) {
  AddRowCommands(app, std::make_shared<DirectoryHost>(), exit_code);
}

}  // namespace gannet::cli
