#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "capi/handles.h"
#include "index/tuple_key.h"
#include "txn/store/key_status.h"
#include "txn/store/secondary_index.h"

using gannet::Status;
using gannet::StatusOr;
using gannet::index::TupleKey;
using gannet::index::TupleReader;
using namespace gannet::capi;  // NOLINT: this folder's own
namespace txn = gannet::txn;

// The encoding of the fields that were added.
struct gannet_tuple {
  std::string bytes;
};

namespace {

template <class Field>
gannet_code Append(gannet_tuple* tuple, const Field& field, const char* function = __builtin_FUNCTION()) {
  GANNET_CAPI_NOT_NULL_OF(function, tuple);
  return Guarded([&] {
    tuple->bytes += TupleKey::Of(field).bytes();
    return gannet_code{GANNET_OK};
  });
}

// Reads the first field of *rest by `read`, and leaves the other ones there.
template <class Read>
gannet_code ReadField(gannet_key* rest, const void* to, Read&& read, const char* function = __builtin_FUNCTION()) {
  GANNET_CAPI_NOT_NULL_OF(function, rest);
  GANNET_CAPI_NOT_NULL_OF(function, to);
  return Guarded([&] {
    if (rest->data == nullptr) {
      return InvalidArgument(absl::StrCat(function, ": the integer ", rest->number, " is no tuple"));
    }
    TupleReader reader({static_cast<const char*>(rest->data), static_cast<size_t>(rest->number)});
    if (const Status got = read(reader); !got.ok()) return CodeOf(got);
    *rest = gannet_key_bytes(reader.rest().data(), reader.rest().size());
    return gannet_code{GANNET_OK};
  });
}

// Adds the field that `make` makes. gannet_create_index refuses numbers that an IndexField does not hold, and types
// that it does not know.
void AddField(gannet_index_options* options, txn::IndexField::Source source, enum gannet_field_type type, size_t offset,
              size_t bytes) {
  static_assert(static_cast<int>(txn::IndexField::Type::kUnsigned) == GANNET_FIELD_UNSIGNED);
  static_assert(static_cast<int>(txn::IndexField::Type::kSigned) == GANNET_FIELD_SIGNED);
  static_assert(static_cast<int>(txn::IndexField::Type::kFloating) == GANNET_FIELD_FLOATING);
  static_assert(static_cast<int>(txn::IndexField::Type::kText) == GANNET_FIELD_TEXT);
  static_assert(static_cast<int>(txn::IndexField::Type::kBytes) == GANNET_FIELD_BYTES);
  if (options == nullptr) return;
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  options->bad_type = options->bad_type || static_cast<unsigned>(type) > GANNET_FIELD_BYTES;
  options->options.fields.push_back({.source = source,
                                     .type = static_cast<txn::IndexField::Type>(type),
                                     .offset = static_cast<uint32_t>(std::min(offset, kMost)),
                                     .bytes = static_cast<uint32_t>(std::min(bytes, kMost))});
}

}  // namespace

extern "C" {

gannet_tuple* gannet_tuple_new(void) {
  return New<gannet_tuple>();
}
void gannet_tuple_free(gannet_tuple* tuple) {
  delete tuple;
}
void gannet_tuple_clear(gannet_tuple* tuple) {
  if (tuple != nullptr) tuple->bytes.clear();
}
gannet_code gannet_tuple_add_signed(gannet_tuple* tuple, int64_t number) {
  return Append(tuple, number);
}
gannet_code gannet_tuple_add_unsigned(gannet_tuple* tuple, uint64_t number) {
  return Append(tuple, number);
}
gannet_code gannet_tuple_add_double(gannet_tuple* tuple, double number) {
  return Append(tuple, number);
}
gannet_code gannet_tuple_add_bool(gannet_tuple* tuple, int value) {
  return Append(tuple, value != 0);
}
gannet_code gannet_tuple_add_bytes(gannet_tuple* tuple, const void* data, size_t size) {
  if (size > 0) GANNET_CAPI_NOT_NULL(data);
  return Append(tuple, std::string_view(static_cast<const char*>(data), size));
}
gannet_key gannet_tuple_key(const gannet_tuple* tuple) {
  if (tuple == nullptr) return gannet_key_bytes(nullptr, 0);
  return gannet_key_bytes(tuple->bytes.data(), tuple->bytes.size());
}

gannet_code gannet_tuple_read_signed(gannet_key* rest, int64_t* number) {
  return ReadField(rest, number, [number](TupleReader& reader) { return reader.Read(number); });
}
gannet_code gannet_tuple_read_unsigned(gannet_key* rest, uint64_t* number) {
  return ReadField(rest, number, [number](TupleReader& reader) { return reader.Read(number); });
}
gannet_code gannet_tuple_read_double(gannet_key* rest, double* number) {
  return ReadField(rest, number, [number](TupleReader& reader) { return reader.Read(number); });
}
gannet_code gannet_tuple_read_bool(gannet_key* rest, int* value) {
  return ReadField(rest, value, [value](TupleReader& reader) {
    bool yes = false;
    GANNET_RETURN_IF_ERROR(reader.Read(&yes));
    *value = yes ? 1 : 0;
    return absl::OkStatus();
  });
}
gannet_code gannet_tuple_read_bytes(gannet_key* rest, void* buffer, size_t capacity, size_t* size) {
  if (capacity > 0) GANNET_CAPI_NOT_NULL(buffer);
  return ReadField(rest, size, [&](TupleReader& reader) {
    std::string bytes;
    GANNET_RETURN_IF_ERROR(reader.Read(&bytes));
    *size = bytes.size();
    if (bytes.size() > capacity) {
      return Status(absl::OutOfRangeError(
          absl::StrCat("the field has ", bytes.size(), " bytes, the buffer of gannet_tuple_read_bytes ", capacity)));
    }
    if (!bytes.empty()) std::memcpy(buffer, bytes.data(), bytes.size());
    return absl::OkStatus();
  });
}

gannet_index_options* gannet_index_options_new(void) {
  return New<gannet_index_options>();
}
void gannet_index_options_free(gannet_index_options* options) {
  delete options;
}
void gannet_index_options_set_unique(gannet_index_options* options, int unique) {
  if (options == nullptr) return;
  options->options.unique = unique != 0;
}
void gannet_index_options_add_field(gannet_index_options* options, enum gannet_field_type type, size_t offset,
                                    size_t bytes) {
  AddField(options, txn::IndexField::Source::kPayload, type, offset, bytes);
}
void gannet_index_options_add_key_field(gannet_index_options* options, enum gannet_field_type type, size_t offset,
                                        size_t bytes) {
  AddField(options, txn::IndexField::Source::kKey, type, offset, bytes);
}
void gannet_index_options_set_wait_milliseconds(gannet_index_options* options, uint64_t milliseconds) {
  if (options == nullptr) return;
  options->options.wait_for_transactions = Milliseconds(milliseconds);
}

gannet_code gannet_create_index(gannet_database* database, const char* name, const gannet_table* table,
                                const gannet_index_options* options, gannet_index** index) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(name);
  GANNET_CAPI_NOT_NULL(table);
  GANNET_CAPI_NOT_NULL(options);
  GANNET_CAPI_NOT_NULL(index);
  return Guarded([&] {
    if (options->bad_type) return InvalidArgument("gannet_index_options_add_field: no value of gannet_field_type");
    // Another table may have the name of one that was dropped.
    if (const Status state = txn::CheckState(TableOf(table)); !state.ok()) return CodeOf(state);
    txn::SecondaryIndexOptions complete = options->options;
    complete.name = name;
    complete.table = TableOf(table).name();
    const StatusOr<const txn::SecondaryIndex*> created = database->database->CreateIndex(complete);
    if (created.ok()) *index = HandleOf(*created);
    return CodeOf(created.status());
  });
}

gannet_code gannet_find_index(gannet_database* database, const char* name, gannet_index** index) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(name);
  GANNET_CAPI_NOT_NULL(index);
  return Guarded([&] {
    const txn::SecondaryIndex* const found = database->database->FindIndex(name);
    if (found == nullptr) return CodeOf(absl::NotFoundError(absl::StrCat("there is no index '", name, "'")));
    *index = HandleOf(found);
    return gannet_code{GANNET_OK};
  });
}

const char* gannet_index_name(const gannet_index* index) {
  if (index == nullptr) return "";
  return IndexOf(index).name().c_str();
}
const gannet_table* gannet_index_table(const gannet_index* index) {
  if (index == nullptr) return nullptr;
  return HandleOf(&IndexOf(index).table());
}
int gannet_index_is_unique(const gannet_index* index) {
  if (index == nullptr) return 0;
  return IndexOf(index).unique() ? 1 : 0;
}

gannet_code gannet_get_by(gannet_transaction* transaction, const gannet_index* index, gannet_key key, gannet_key* row,
                          gannet_bytes* payload) {
  GANNET_CAPI_NOT_NULL(transaction);
  GANNET_CAPI_NOT_NULL(index);
  return Guarded([&] {
    const StatusOr<txn::RowBy> found = transaction->operations().GetBy(IndexOf(index), KeyOf(key));
    if (!found.ok()) return CodeOf(found.status());
    if (row != nullptr) *row = HandleOf(found->key);
    if (payload != nullptr) *payload = HandleOf(found->payload);
    return gannet_code{GANNET_OK};
  });
}

}  // extern "C"
