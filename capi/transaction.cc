#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "capi/handles.h"
#include "txn/store/key_status.h"

using gannet::Status;
using gannet::StatusOr;
using namespace gannet::capi;  // NOLINT: this folder's own
namespace txn = gannet::txn;

namespace gannet::capi {

Status CheckPayload(const txn::Table& table, const void* data, size_t size) {
  if (data == nullptr && size != 0) {
    return absl::InvalidArgumentError(absl::StrCat("table '", table.name(), "': the payload is NULL"));
  }
  if (!table.options().variable_length && size != table.payload_bytes()) return txn::PayloadDoesNotFit(table, size);
  return absl::OkStatus();
}

}  // namespace gannet::capi

namespace {

// Marks a Status that stands for a number that a body returned, which absl::StatusCode does not have. The payload is
// the number.
constexpr const char* kBodysCode = "gannet.capi/code of the body";

Status StatusOfBody(gannet_code code) {
  if (code == GANNET_OK) return absl::OkStatus();
  if (code > GANNET_OK && code <= GANNET_DATA_LOSS && code != GANNET_UNKNOWN) {
    return {static_cast<absl::StatusCode>(code),
            code == LastCode() ? std::string(gannet_message())
                               : absl::StrCat("the body of gannet_run returned ", gannet_code_name(code))};
  }
  Status own = absl::CancelledError(absl::StrCat("the body of gannet_run returned ", code));
  own.SetPayload(kBodysCode, absl::Cord(absl::StrCat(code)));
  return own;
}

gannet_code CodeOfRun(const Status& status, gannet_code last_of_body) {
  if (status.ok() || !status.GetPayload(kBodysCode).has_value()) return CodeOf(status);
  CodeOf(status);  // its message
  if (last_of_body >= GANNET_FIRST_OWN_CODE) return last_of_body;
  return InvalidArgument(absl::StrCat("the body of gannet_run returned ", last_of_body,
                                      ", which it must not by itself: own codes begin with ", GANNET_FIRST_OWN_CODE));
}

// Every operation: checks the handles, calls, and makes a code of the status. `function`: the caller.
template <class Operation>
gannet_code Operate(gannet_transaction* transaction, const gannet_table* table, Operation&& operation,
                    const char* function = __builtin_FUNCTION()) {
  GANNET_CAPI_NOT_NULL_OF(function, transaction);
  GANNET_CAPI_NOT_NULL_OF(function, table);
  return Guarded([&] { return CodeOf(operation(transaction->operations(), TableOf(table))); });
}

// Does what Operate does, for operations that write a whole payload.
template <class Operation>
gannet_code Write(gannet_transaction* transaction, const gannet_table* table, const void* payload, size_t size,
                  Operation&& operation, const char* function = __builtin_FUNCTION()) {
  const auto write = [&](txn::BlockingTransaction& t, const txn::Table& rows) {
    GANNET_RETURN_IF_ERROR(CheckPayload(rows, payload, size));
    return operation(t, rows, BytesOf(payload, size));
  };
  return Operate(transaction, table, write, function);
}

Status Null(const char* function, const char* argument) {
  return absl::InvalidArgumentError(absl::StrCat(function, ": ", argument, " is NULL"));
}

}  // namespace

extern "C" {

gannet_code gannet_run(gannet_database* database, gannet_body body, void* context) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(body);
  return Guarded([&] {
    gannet_code last = GANNET_OK;
    const Status status = database->database->Run([&](txn::BlockingTransaction& t) {
      gannet_transaction transaction(&t);
      ForgetLastCode();  // a code that the body returns may have a message from its own calls only
      last = body(&transaction, context);
      return StatusOfBody(last);
    });
    return CodeOfRun(status, last);
  });
}

gannet_code gannet_begin(gannet_database* database, gannet_transaction** transaction) {
  GANNET_CAPI_NOT_NULL(database);
  GANNET_CAPI_NOT_NULL(transaction);
  return Guarded([&] {
    StatusOr<txn::ManualTransaction> begun = database->database->Begin();
    if (begun.ok()) *transaction = new gannet_transaction(*std::move(begun));
    return CodeOf(begun.status());
  });
}

gannet_code gannet_commit(gannet_transaction* transaction) {
  GANNET_CAPI_NOT_NULL(transaction);
  return Guarded([&] {
    // In a body of Run, Commit fails the transaction, and returns the error that says so.
    if (transaction->run != nullptr) return CodeOf(transaction->run->transaction().Commit().value());
    return CodeOf(transaction->manual->Commit());
  });
}

gannet_code gannet_validate(gannet_transaction* transaction) {
  GANNET_CAPI_NOT_NULL(transaction);
  return Guarded([&] { return CodeOf(transaction->operations().Validate()); });
}

gannet_code gannet_rollback(gannet_transaction* transaction) {
  GANNET_CAPI_NOT_NULL(transaction);
  return Guarded([&] {
    if (transaction->run != nullptr) {
      transaction->run->transaction().Rollback();  // fails it
      return CodeOf(transaction->run->Validate());
    }
    transaction->manual->Rollback();
    return gannet_code{GANNET_OK};
  });
}

int gannet_try_again(gannet_transaction* transaction, gannet_code code) {
  if (transaction == nullptr || code != GANNET_ABORTED || !transaction->manual.has_value()) return 0;
  bool again = false;
  Guarded([&] {
    again = transaction->manual->TryAgain(absl::AbortedError(""));
    return gannet_code{GANNET_OK};
  });
  return again ? 1 : 0;
}

void gannet_transaction_free(gannet_transaction* transaction) {
  // That of gannet_run ends with its body.
  if (transaction != nullptr && transaction->manual.has_value()) delete transaction;
}

gannet_code gannet_get(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                       gannet_bytes* payload) {
  return Operate(transaction, table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
    if (payload == nullptr) return Null("gannet_get", "payload");
    const StatusOr<std::span<const std::byte>> view = t.GetView(rows, KeyOf(key));
    if (view.ok()) *payload = HandleOf(*view);
    return view.status();
  });
}

gannet_code gannet_get_copy(gannet_transaction* transaction, const gannet_table* table, gannet_key key, void* buffer,
                            size_t capacity, size_t* size) {
  return Operate(transaction, table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
    if (size == nullptr) return Null("gannet_get_copy", "size");
    if (buffer == nullptr && capacity > 0) return Null("gannet_get_copy", "buffer");
    const StatusOr<std::span<const std::byte>> view = t.GetView(rows, KeyOf(key));
    if (!view.ok()) return view.status();
    *size = view->size();
    if (view->size() > capacity) {
      return absl::OutOfRangeError(
          absl::StrCat("table '", rows.name(), "': the payload has ", view->size(), " bytes, the buffer ", capacity));
    }
    if (!view->empty()) std::memcpy(buffer, view->data(), view->size());
    return absl::OkStatus();
  });
}

gannet_code gannet_exists(gannet_transaction* transaction, const gannet_table* table, gannet_key key, int* exists) {
  return Operate(transaction, table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
    if (exists == nullptr) return Null("gannet_exists", "exists");
    const StatusOr<bool> found = t.Exists(rows, KeyOf(key));
    if (found.ok()) *exists = *found ? 1 : 0;
    return found.status();
  });
}

gannet_code gannet_insert(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                          const void* payload, size_t size) {
  return Write(transaction, table, payload, size,
               [&](txn::BlockingTransaction& t, const txn::Table& rows, std::span<const std::byte> row) {
                 return t.Insert(rows, KeyOf(key), row);
               });
}

gannet_code gannet_update(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                          const void* payload, size_t size) {
  return Write(transaction, table, payload, size,
               [&](txn::BlockingTransaction& t, const txn::Table& rows, std::span<const std::byte> row) {
                 return t.Update(rows, KeyOf(key), row);
               });
}

gannet_code gannet_upsert(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                          const void* payload, size_t size) {
  return Write(transaction, table, payload, size,
               [&](txn::BlockingTransaction& t, const txn::Table& rows, std::span<const std::byte> row) {
                 return t.Upsert(rows, KeyOf(key), row);
               });
}

gannet_code gannet_update_if(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                             gannet_bytes expected, gannet_bytes payload, int* updated) {
  return Operate(transaction, table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
    if (updated == nullptr) return Null("gannet_update_if", "updated");
    if (expected.data == nullptr && expected.size != 0) return Null("gannet_update_if", "expected.data");
    GANNET_RETURN_IF_ERROR(CheckPayload(rows, payload.data, payload.size));
    const StatusOr<bool> replaced =
        t.UpdateIf(rows, KeyOf(key), BytesOf(expected.data, expected.size), BytesOf(payload.data, payload.size));
    if (replaced.ok()) *updated = *replaced ? 1 : 0;
    return replaced.status();
  });
}

gannet_code gannet_remove(gannet_transaction* transaction, const gannet_table* table, gannet_key key) {
  return Operate(transaction, table,
                 [&](txn::BlockingTransaction& t, const txn::Table& rows) { return t.Remove(rows, KeyOf(key)); });
}

gannet_code gannet_add(gannet_transaction* transaction, const gannet_table* table, gannet_key key, size_t offset,
                       int64_t delta, int64_t* sum) {
  return Operate(transaction, table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
    if (offset > txn::kMaxPayloadBytes) {
      return Status(
          absl::OutOfRangeError(absl::StrCat("table '", rows.name(), "': no payload has an offset ", offset)));
    }
    return t.AddAt<int64_t>(rows, KeyOf(key), static_cast<uint32_t>(offset), delta, sum);
  });
}

}  // extern "C"
