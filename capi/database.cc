#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "capi/handles.h"
#include "index/rectangle.h"
#include "index/registry.h"

using gannet::Status;
using gannet::StatusOr;
using namespace gannet::capi;  // NOLINT: this folder's own
namespace txn = gannet::txn;

extern "C" {

gannet_options* gannet_options_new(void) {
  return New<gannet_options>();
}
void gannet_options_free(gannet_options* options) {
  delete options;
}
void gannet_options_set_create_if_missing(gannet_options* options, int create) {
  if (options == nullptr) return;
  options->options.create_if_missing = create != 0;
}
void gannet_options_set_durability(gannet_options* options, enum gannet_durability durability) {
  if (options == nullptr) return;
  // gannet_open refuses any other number, also one that a byte does not hold.
  options->options.durability = static_cast<txn::DurabilityMode>(std::min<unsigned>(durability, UINT8_MAX));
}
void gannet_options_set_memory_bytes(gannet_options* options, uint64_t bytes) {
  if (options == nullptr) return;
  options->options.memory_bytes = bytes;
}
void gannet_options_set_group_commit_microseconds(gannet_options* options, uint64_t microseconds) {
  if (options == nullptr) return;
  options->options.group_commit = absl::Microseconds(static_cast<int64_t>(std::min<uint64_t>(microseconds, INT64_MAX)));
}
void gannet_options_set_durable_within_milliseconds(gannet_options* options, uint64_t milliseconds) {
  if (options == nullptr) return;
  options->options.durable_within = Milliseconds(milliseconds);
}
void gannet_options_set_checkpoint_every_milliseconds(gannet_options* options, uint64_t milliseconds) {
  if (options == nullptr) return;
  options->options.checkpoint_every = Milliseconds(milliseconds);
}
void gannet_options_set_largest_transaction_bytes(gannet_options* options, uint64_t bytes) {
  if (options == nullptr) return;
  options->options.log_large_buffer_bytes = bytes;
}
void gannet_options_set_recovery_threads(gannet_options* options, int threads) {
  if (options == nullptr) return;
  options->options.recovery_threads = threads;
}
void gannet_options_set_salvage(gannet_options* options, int salvage) {
  if (options == nullptr) return;
  options->options.salvage = salvage != 0;
}
void gannet_options_set_open_transactions(gannet_options* options, int count) {
  if (options == nullptr) return;
  options->options.run_sessions = count;
}
void gannet_options_set_application(gannet_options* options, const char* text) {
  if (options == nullptr) return;
  options->options.application = text != nullptr ? text : "";
}
void gannet_options_set_on_event(gannet_options* options, gannet_event_function function, void* context) {
  if (options == nullptr) return;
  if (function == nullptr) {
    options->options.on_event = nullptr;
    return;
  }
  options->options.on_event = [function, context](txn::EventLevel level, const std::string& text) {
    static_assert(static_cast<int>(txn::EventLevel::kInfo) == GANNET_EVENT_INFO);
    static_assert(static_cast<int>(txn::EventLevel::kWarning) == GANNET_EVENT_WARNING);
    static_assert(static_cast<int>(txn::EventLevel::kError) == GANNET_EVENT_ERROR);
    function(context, static_cast<enum gannet_event_level>(level), text.c_str());
  };
}

gannet_code gannet_open(const char* directory, const gannet_options* options, gannet_database** database) {
  GANNET_CAPI_NOT_NULL(database);
  return Guarded([&] {
    const txn::DatabaseOptions given = options != nullptr ? options->options : txn::DatabaseOptions{};
    auto handle = std::make_unique<gannet_database>();
    auto opened = directory != nullptr ? txn::Database::Open(directory, given) : txn::Database::OpenInMemory(given);
    if (!opened.ok()) return CodeOf(opened.status());
    handle->database = *std::move(opened);
    if (const Status started = handle->database->Start(); !started.ok()) return CodeOf(started);
    *database = handle.release();
    return gannet_code{GANNET_OK};
  });
}

gannet_code gannet_close(gannet_database* database) {
  if (database == nullptr) return GANNET_OK;
  return Guarded([&] {
    const Status closed = database->database->Close();
    if (!absl::IsFailedPrecondition(closed)) delete database;
    return CodeOf(closed);
  });
}

gannet_code gannet_checkpoint(gannet_database* database) {
  GANNET_CAPI_NOT_NULL(database);
  return Guarded([&] { return CodeOf(database->database->Checkpoint()); });
}

gannet_code gannet_backup(gannet_database* database, const char* directory) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(directory);
  return Guarded([&] { return CodeOf(database->database->Backup(directory)); });
}

gannet_code gannet_log_health(gannet_database* database) {
  GANNET_CAPI_NOT_NULL(database);
  return Guarded([&] { return CodeOf(database->database->log_health()); });
}

uint64_t gannet_logged_epoch(gannet_database* database) {
  return database != nullptr ? database->database->logged_epoch() : 0;
}

uint64_t gannet_durable_epoch(gannet_database* database) {
  return database != nullptr ? database->database->durable_epoch() : 0;
}

gannet_code gannet_metrics(gannet_database* database, const char** text) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(text);
  return Guarded([&] {
    thread_local std::string last;
    last = database->database->MetricsText();
    *text = last.c_str();
    return gannet_code{GANNET_OK};
  });
}

gannet_table_options* gannet_table_options_new(void) {
  auto* const options = New<gannet_table_options>();
  if (options == nullptr) return nullptr;
  options->options.payload_bytes = 4096;
  options->options.variable_length = true;
  return options;
}
void gannet_table_options_free(gannet_table_options* options) {
  delete options;
}
void gannet_table_options_set_key(gannet_table_options* options, enum gannet_key_kind kind, size_t max_bytes) {
  if (options == nullptr) return;
  // gannet_create_table refuses any other number.
  options->options.key_kind = kind == GANNET_KEY_INTEGER ? gannet::index::KeyKind::kInteger
                              : kind == GANNET_KEY_BYTES ? gannet::index::KeyKind::kBytes
                                                         : gannet::index::KeyKind::kNone;
  options->options.max_key_bytes = kind == GANNET_KEY_BYTES ? max_bytes : gannet::index::kIntegerKeyBytes;
}
void gannet_table_options_set_key_form(gannet_table_options* options, enum gannet_key_form form) {
  static_assert(static_cast<int>(txn::KeyForm::kPlain) == GANNET_KEYS_PLAIN &&
                static_cast<int>(txn::KeyForm::kText) == GANNET_KEYS_TEXT &&
                static_cast<int>(txn::KeyForm::kTuple) == GANNET_KEYS_TUPLE &&
                static_cast<int>(txn::KeyForm::kSigned) == GANNET_KEYS_SIGNED);
  if (options == nullptr) return;
  options->options.key_form = static_cast<txn::KeyForm>(std::min<unsigned>(form, UINT8_MAX));
}
void gannet_table_options_set_index(gannet_table_options* options, const char* kind) {
  if (options == nullptr) return;
  options->index = kind != nullptr ? kind : "";
}
void gannet_table_options_set_payload(gannet_table_options* options, size_t bytes, int variable) {
  if (options == nullptr) return;
  options->options.payload_bytes = bytes;
  options->options.variable_length = variable != 0;
}
void gannet_table_options_set_expected_rows(gannet_table_options* options, uint64_t rows) {
  if (options == nullptr) return;
  options->options.expected_rows = rows;
}
void gannet_table_options_set_application(gannet_table_options* options, const char* text) {
  if (options == nullptr) return;
  options->options.application = text != nullptr ? text : "";
}

gannet_code gannet_create_table(gannet_database* database, const char* name, const gannet_table_options* options,
                                gannet_table** table) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(name);
  GANNET_CAPI_NOT_NULL(table);
  return Guarded([&] {
    std::unique_ptr<gannet_table_options> defaults;
    if (options == nullptr) options = (defaults.reset(gannet_table_options_new()), defaults.get());
    if (options == nullptr) return gannet_code{GANNET_RESOURCE_EXHAUSTED};
    txn::TableOptions complete = options->options;
    if (complete.key_kind == gannet::index::KeyKind::kNone) {
      return InvalidArgument("gannet_table_options_set_key: no value of gannet_key_kind");
    }
    const StatusOr<gannet::index::IndexKind> kind = gannet::index::IndexKindOf(options->index);
    if (!kind.ok()) return CodeOf(kind.status());
    complete.name = name;
    complete.index = *kind;
    const StatusOr<const txn::Table*> created = database->database->CreateTable(complete);
    if (created.ok()) *table = HandleOf(*created);
    return CodeOf(created.status());
  });
}

gannet_code gannet_find_table(gannet_database* database, const char* name, gannet_table** table) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(name);
  GANNET_CAPI_NOT_NULL(table);
  return Guarded([&] {
    const txn::Table* const found = database->database->FindTable(name);
    if (found == nullptr) return CodeOf(absl::NotFoundError(absl::StrCat("there is no table '", name, "'")));
    *table = HandleOf(found);
    return gannet_code{GANNET_OK};
  });
}

gannet_code gannet_rename_table(gannet_database* database, const char* from, const char* to) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(from);
  GANNET_CAPI_NOT_NULL(to);
  return Guarded([&] { return CodeOf(database->database->RenameTable(from, to)); });
}

gannet_code gannet_drop_table(gannet_database* database, const char* name) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(name);
  return Guarded([&] { return CodeOf(database->database->DropTable(name)); });
}

gannet_code gannet_widen_table(gannet_database* database, const char* name, size_t payload_bytes) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(name);
  return Guarded([&] { return CodeOf(database->database->WidenTable(name, payload_bytes)); });
}

gannet_code gannet_arrange_table(gannet_database* database, const char* name) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(name);
  return Guarded([&] { return CodeOf(database->database->ArrangeTable(name)); });
}

size_t gannet_table_count(gannet_database* database) {
  return database != nullptr ? database->database->tables().size() : 0;
}

gannet_table* gannet_table_at(gannet_database* database, size_t i) {
  if (database == nullptr) return nullptr;
  const std::vector<const txn::Table*> tables = database->database->tables();
  return i < tables.size() ? HandleOf(tables[i]) : nullptr;
}

const char* gannet_table_name(const gannet_table* table) {
  if (table == nullptr) return "";
  return TableOf(table).name().c_str();
}
enum gannet_key_kind gannet_table_key_kind(const gannet_table* table) {
  if (table == nullptr) return GANNET_KEY_INTEGER;
  return static_cast<enum gannet_key_kind>(TableOf(table).options().key_kind);
}
size_t gannet_table_max_key_bytes(const gannet_table* table) {
  if (table == nullptr) return 0;
  return TableOf(table).options().max_key_bytes;
}
enum gannet_key_form gannet_table_key_form(const gannet_table* table) {
  if (table == nullptr) return GANNET_KEYS_PLAIN;
  return static_cast<enum gannet_key_form>(TableOf(table).key_form());
}
const char* gannet_table_index(const gannet_table* table) {
  if (table == nullptr) return "";
  return gannet::index::EntryOf(TableOf(table).options().index).name.data();
}
int gannet_table_is_ordered(const gannet_table* table) {
  if (table == nullptr) return 0;
  return TableOf(table).index_traits().ordered ? 1 : 0;
}
size_t gannet_table_payload_bytes(const gannet_table* table) {
  if (table == nullptr) return 0;
  return TableOf(table).payload_bytes();
}
int gannet_table_has_variable_payloads(const gannet_table* table) {
  if (table == nullptr) return 0;
  return TableOf(table).options().variable_length ? 1 : 0;
}
const char* gannet_table_application(const gannet_table* table) {
  if (table == nullptr) return "";
  return TableOf(table).options().application.c_str();
}

gannet_code gannet_encode_rectangle(const gannet_rectangle* rectangle, uint64_t id, void* bytes) {
  GANNET_CAPI_NOT_NULL(rectangle);
  GANNET_CAPI_NOT_NULL(bytes);
  return Guarded([&] {
    static_assert(gannet::index::RectangleKey::kBytes == GANNET_RECTANGLE_KEY_BYTES);
    const auto key =
        gannet::index::EncodeRectangleKey({rectangle->min_x, rectangle->min_y, rectangle->max_x, rectangle->max_y}, id);
    if (key.ok()) std::memcpy(bytes, key->view().bytes().data(), GANNET_RECTANGLE_KEY_BYTES);
    return CodeOf(key.status());
  });
}

gannet_code gannet_decode_rectangle(gannet_key key, gannet_rectangle* rectangle, uint64_t* id) {
  GANNET_CAPI_NOT_NULL(rectangle);
  GANNET_CAPI_NOT_NULL(id);
  return Guarded([&] {
    const StatusOr<gannet::index::RectangleKey> decoded = gannet::index::DecodeRectangleKey(KeyOf(key));
    if (!decoded.ok()) return CodeOf(decoded.status());
    *rectangle = {decoded->box.min_x, decoded->box.min_y, decoded->box.max_x, decoded->box.max_y};
    *id = decoded->id;
    return gannet_code{GANNET_OK};
  });
}

}  // extern "C"
