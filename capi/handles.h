// What the opaque handles of gannet.h are, and how results become codes. For the sources of this folder only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "capi/gannet.h"
#include "index/key.h"
#include "txn/database.h"
#include "txn/run/blocking.h"
#include "txn/run/manual_transaction.h"
#include "txn/store/secondary_index.h"
#include "txn/store/table.h"

struct gannet_options {
  gannet::txn::DatabaseOptions options;
};

struct gannet_table_options {
  gannet::txn::TableOptions options;
  std::string index = "xstore";
};

struct gannet_index_options {
  gannet::txn::SecondaryIndexOptions options;
  bool bad_type = false;  // a field's type is none
};

struct gannet_database {
  std::unique_ptr<gannet::txn::Database> database;
};

// A transaction of gannet_run, which owns it, or one of gannet_begin.
struct gannet_transaction {
  explicit gannet_transaction(gannet::txn::BlockingTransaction* of_run) : run(of_run) {}
  explicit gannet_transaction(gannet::txn::ManualTransaction of_begin) : manual(std::move(of_begin)) {}

  gannet::txn::BlockingTransaction& operations() { return run != nullptr ? *run : **manual; }

  gannet::txn::BlockingTransaction* run = nullptr;
  std::optional<gannet::txn::ManualTransaction> manual;
};

namespace gannet::capi {

// Keeps the message of `status` for gannet_message, and returns its code.
gannet_code CodeOf(const Status& status);
gannet_code InvalidArgument(const std::string& message);
// The code that the calling thread got last, other than GANNET_OK; gannet_message is about it.
gannet_code LastCode();
// It becomes GANNET_OK; gannet_message stays.
void ForgetLastCode();

// A gannet_table is the C++ table itself: neither needs memory of its own.
inline gannet_table* HandleOf(const txn::Table* table) {
  return reinterpret_cast<gannet_table*>(const_cast<txn::Table*>(table));
}
inline const txn::Table& TableOf(const gannet_table* table) {
  return *reinterpret_cast<const txn::Table*>(table);
}

// The same is true of a gannet_index.
inline gannet_index* HandleOf(const txn::SecondaryIndex* index) {
  return reinterpret_cast<gannet_index*>(const_cast<txn::SecondaryIndex*>(index));
}
inline const txn::SecondaryIndex& IndexOf(const gannet_index* index) {
  return *reinterpret_cast<const txn::SecondaryIndex*>(index);
}

inline index::Key KeyOf(gannet_key key) {
  if (key.data == nullptr) return index::Key(key.number);
  // A Key keeps its size in 32 bits. No table takes so many bytes, and the call that gets the key says so.
  const size_t size = std::min<uint64_t>(key.number, UINT32_MAX);
  return index::Key(std::string_view(static_cast<const char*>(key.data), size));
}
inline gannet_key HandleOf(const index::Key& key) {
  if (key.kind() == index::KeyKind::kBytes) return gannet_key_bytes(key.bytes().data(), key.size());
  return gannet_key_integer(key.integer());
}
inline std::span<const std::byte> BytesOf(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}
inline gannet_bytes HandleOf(std::span<const std::byte> bytes) {
  return {bytes.data(), bytes.size()};
}

// Ok if the bytes are a whole payload of the table. (A row of fixed length could also be replaced in part; the C
// interface has no use for that.)
Status CheckPayload(const txn::Table& table, const void* data, size_t size);

// Runs `function`, which returns a gannet_code. No exception crosses the C interface: one can only come from a lack of
// memory, or from the standard library.
template <class Function>
gannet_code Guarded(Function&& function) noexcept {
  try {
    return std::forward<Function>(function)();
  } catch (const std::bad_alloc&) {
    return CodeOf(absl::ResourceExhaustedError("the process has no memory left"));
  } catch (const std::exception& thrown) {
    return CodeOf(absl::InternalError(absl::StrCat("an exception: ", thrown.what())));
  } catch (...) {
    return CodeOf(absl::InternalError("an exception of unknown type"));
  }
}

// A handle of options or a tuple. Null: the process has no memory left.
template <class Handle>
Handle* New() {
  try {
    return new Handle;
  } catch (...) {
    CodeOf(absl::ResourceExhaustedError("the process has no memory left"));
    return nullptr;
  }
}

// Times that a user gives may be larger than absl's.
inline absl::Duration Milliseconds(uint64_t milliseconds) {
  return absl::Milliseconds(static_cast<int64_t>(std::min<uint64_t>(milliseconds, INT64_MAX)));
}

}  // namespace gannet::capi

// Stands at the beginning of a function: every named argument must not be null. `function` is the one of gannet.h.
#define GANNET_CAPI_NOT_NULL_OF(function, argument) \
  if ((argument) == nullptr) return ::gannet::capi::InvalidArgument(std::string(function) + ": " #argument " is NULL")
#define GANNET_CAPI_NOT_NULL(argument) GANNET_CAPI_NOT_NULL_OF(__func__, argument)
