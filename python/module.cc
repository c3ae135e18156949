// gannet._gannet: what the Python package (python/gannet/__init__.py) is made on. It has few comforts and no defaults;
// the package has both.
//
// Every call that may wait gives up the interpreter's lock, so other Python threads run meanwhile. A transaction that
// two threads use at the same time is refused by an error, as it has no lock of its own.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "index/rectangle.h"
#include "index/registry.h"
#include "index/tuple_key.h"
#include "txn/access/key_status.h"
#include "txn/blocking.h"
#include "txn/database.h"
#include "txn/manual_transaction.h"
#include "txn/message_terms.h"
#include "txn/secondary_index.h"

namespace gannet::python {
namespace {

namespace py = pybind11;

// Throws the exception of the package for this status: gannet.NotFound, and so on. The caller holds the interpreter's
// lock.
void ThrowIfError(const Status& status) {
  if (status.ok()) return;
  const py::object type = py::module_::import("gannet._errors").attr("error_of_code")(static_cast<int>(status.code()));
  const absl::string_view message = status.message();
  PyErr_SetObject(type.ptr(), py::str(txn::InLanguage({message.data(), message.size()}, txn::Language::kPython)).ptr());
  throw py::error_already_set();
}

template <class T>
T ValueOrThrow(StatusOr<T> result) {
  ThrowIfError(result.status());
  return *std::move(result);
}

// Calls without the interpreter's lock.
template <class Function>
auto Unlocked(Function&& function) {
  const py::gil_scoped_release release;
  return std::forward<Function>(function)();
}

// The bytes of an object with the buffer protocol: bytes, bytearray, a memoryview, a numpy array or scalar.
class Bytes {
 public:
  explicit Bytes(py::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { PyBuffer_Release(&buffer_); }
  std::span<const std::byte> span() const {
    return {static_cast<const std::byte*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
  }

 private:
  Py_buffer buffer_;
};

// OverflowError if the number needs more than 64 bits.
uint64_t LargeNumber(py::handle number) {
  const uint64_t value = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  return value;
}

// A view of the str's own memory. UnicodeEncodeError: it has surrogates, which UTF-8 has not.
std::string_view Utf8Of(py::handle text) {
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw py::error_already_set();
  return {data, static_cast<size_t>(size)};
}

index::TupleKey TupleOf(const py::tuple& fields) {
  index::TupleKey key;
  for (const py::handle field : fields) {
    if (PyBool_Check(field.ptr())) {
      key.Append(field.cast<bool>());
    } else if (PyLong_Check(field.ptr())) {
      int overflow = 0;
      const int64_t number = PyLong_AsLongLongAndOverflow(field.ptr(), &overflow);
      if (overflow == 0) {
        key.Append(number);
      } else {
        key.Append(LargeNumber(field));
      }
    } else if (PyFloat_Check(field.ptr())) {
      key.Append(field.cast<double>());
    } else if (PyUnicode_Check(field.ptr())) {
      key.Append(Utf8Of(field));
    } else {
      const Bytes bytes(field);
      key.Append(std::string_view(reinterpret_cast<const char*>(bytes.span().data()), bytes.span().size()));
    }
  }
  return key;
}

// The key of an int, str, tuple, or an object with bytes. Owns its bytes.
class OwnedKey {
 public:
  explicit OwnedKey(py::handle object) {
    if (PyBool_Check(object.ptr())) throw py::type_error("a bool is no key");
    if (PyLong_Check(object.ptr())) {
      int overflow = 0;
      const int64_t number = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
      if (overflow < 0 || (overflow == 0 && number < 0)) {
        throw py::value_error("a negative number is no key: gannet.signed(number) makes one of it");
      }
      key_ = index::Key(overflow == 0 ? static_cast<uint64_t>(number) : LargeNumber(object));
    } else if (PyUnicode_Check(object.ptr())) {
      Hold(std::string(Utf8Of(object)));
    } else if (PyTuple_Check(object.ptr())) {
      Hold(std::string(TupleOf(py::reinterpret_borrow<py::tuple>(object)).bytes()));
    } else {
      const Bytes bytes(object);
      Hold(std::string(reinterpret_cast<const char*>(bytes.span().data()), bytes.span().size()));
    }
  }
  OwnedKey(const OwnedKey&) = delete;
  OwnedKey& operator=(const OwnedKey&) = delete;
  const index::Key& view() const { return key_; }

 private:
  void Hold(std::string bytes) {
    bytes_ = std::move(bytes);
    key_ = index::Key(std::string_view(bytes_));
  }
  std::string bytes_;
  index::Key key_;
};

py::object ObjectOf(const index::Key& key) {
  if (key.kind() == index::KeyKind::kInteger) return py::int_(key.integer());
  return py::bytes(key.bytes().data(), key.size());
}

py::bytes ObjectOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Table {
  std::shared_ptr<txn::Database> database;
  const txn::Table* table;
};

// A transaction, and whether a thread is in one of its calls.
class Transaction {
 public:
  Transaction(std::shared_ptr<txn::Database> database, txn::ManualTransaction transaction)
      : database_(std::move(database)), transaction_(std::move(transaction)) {}

  // Calls function(ManualTransaction&) without the interpreter's lock.
  template <class Function>
  auto Use(Function&& function) {
    const Turn turn(this);
    return Unlocked([&] { return function(*transaction_); });
  }
  template <class Function>
  auto UseTable(const Table& table, Function&& function) {
    if (table.database != database_) throw py::value_error("the table is of another database");
    return Use([&](txn::ManualTransaction& t) { return function(*t, *table.table); });
  }

  // Ends it. Does nothing the second time.
  void Close() {
    if (!transaction_.has_value()) return;
    const Turn turn(this);
    Unlocked([&] { transaction_.reset(); });
  }
  void Restarted() { ++generation_; }
  bool is_open() const { return transaction_.has_value(); }
  uint64_t generation() const { return generation_; }

 private:
  // One thread's call.
  class Turn {
   public:
    explicit Turn(Transaction* transaction) : transaction_(transaction) {
      if (!transaction->transaction_.has_value()) throw py::value_error("the transaction is closed");
      if (transaction->in_use_.exchange(true)) {
        throw std::runtime_error("two threads use one transaction at the same time");
      }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { transaction_->in_use_.store(false); }

   private:
    Transaction* transaction_;
  };

  // In this order: the transaction ends before its database may.
  std::shared_ptr<txn::Database> database_;
  std::optional<txn::ManualTransaction> transaction_;
  std::atomic<bool> in_use_ = false;
  uint64_t generation_ = 0;  // cursors of an earlier one are over
};

// The rows of a range, or those that a search found.
class Cursor {
 public:
  enum class Move : uint8_t { kFirst, kLast, kNext, kPrevious, kSeekForward, kSeekBackward };

  Cursor(std::shared_ptr<Transaction> transaction, Table table, txn::CursorOptions options)
      : transaction_(std::move(transaction)),
        table_(std::move(table)),
        keys_only_(options.keys_only),
        generation_(transaction_->generation()) {
    transaction_->UseTable(table_, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      cursor_.reset(new txn::BlockingCursor(t.OpenCursor(rows, std::move(options))));
    });
  }

  // True if the cursor is at a row then.
  bool MoveTo(Move move, const index::Key& key) {
    CheckCurrent();
    const Status status = transaction_->Use([&](txn::ManualTransaction&) {
      switch (move) {
        case Move::kFirst:
          return cursor_->First();
        case Move::kLast:
          return cursor_->Last();
        case Move::kNext:
          return cursor_->Next();
        case Move::kPrevious:
          return cursor_->Previous();
        case Move::kSeekForward:
          return cursor_->SeekForward(key);
        case Move::kSeekBackward:
          return cursor_->SeekBackward(key);
      }
      return Status();
    });
    ThrowIfError(status);
    return cursor_->valid();
  }

  py::object key() const { return valid() ? ObjectOf(cursor_->key()) : py::none(); }
  py::object payload() const { return valid() && !keys_only_ ? py::object(ObjectOf(cursor_->payload())) : py::none(); }

  // All rows from `first` on, in the direction of `next`: the keys, and the payloads one after the other.
  py::tuple Gather(Move first, Move next) {
    CheckCurrent();
    std::vector<index::OwnedKey> keys;
    std::string payloads;
    std::vector<uint64_t> ends;
    const Status status = transaction_->Use([&](txn::ManualTransaction&) {
      Status moved = first == Move::kFirst ? cursor_->First() : cursor_->Last();
      while (moved.ok() && cursor_->valid()) {
        keys.emplace_back(cursor_->key());
        if (!keys_only_) {
          payloads.append(reinterpret_cast<const char*>(cursor_->payload().data()), cursor_->payload().size());
        }
        ends.push_back(payloads.size());
        moved = next == Move::kNext ? cursor_->Next() : cursor_->Previous();
      }
      return moved;
    });
    ThrowIfError(status);
    py::list list(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) list[i] = ObjectOf(keys[i].view());
    return py::make_tuple(list, py::bytes(payloads), ends);
  }

 private:
  bool valid() const {
    return transaction_->is_open() && generation_ == transaction_->generation() && cursor_->valid();
  }
  void CheckCurrent() const {
    if (!transaction_->is_open() || generation_ != transaction_->generation()) {
      throw py::value_error("the cursor's transaction has ended, or began again");
    }
  }

  std::shared_ptr<Transaction> transaction_;
  Table table_;
  bool keys_only_;
  uint64_t generation_;
  std::unique_ptr<txn::BlockingCursor> cursor_;
};

txn::KeyRange RangeOf(const py::object& start, bool start_included, const py::object& stop, bool stop_included,
                      const py::object& prefix) {
  if (!prefix.is_none()) {
    const OwnedKey key(prefix);
    if (key.view().kind() != index::KeyKind::kBytes) throw py::type_error("a prefix is bytes, a str or a tuple");
    return txn::KeyRange::Prefix(key.view().bytes());
  }
  txn::KeyRange range;
  if (!start.is_none()) range.from = {txn::KeyCopy(OwnedKey(start).view()), start_included};
  if (!stop.is_none()) range.to = {txn::KeyCopy(OwnedKey(stop).view()), stop_included};
  return range;
}

// The rows of a search, as a list of (key, payload).
py::list ListOf(const txn::ScanRows& rows) {
  py::list list(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) list[i] = py::make_tuple(ObjectOf(rows.key(i)), ObjectOf(rows.payload(i)));
  return list;
}

// The way of the engine's threads into the interpreter, for functions of the program (on_event). A thread that waits
// for the interpreter's lock while the interpreter ends is ended there, in the middle of C++ code. So an exit function
// of Python closes the gate before that.
class Gate {
 public:
  static Gate& Only() {
    static Gate* const gate = new Gate;  // never destroyed: threads may come until the process has ended
    return *gate;
  }
  // Calls function() with the interpreter's lock; does nothing if the gate is closed.
  template <class Function>
  void Pass(Function&& function) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      ++inside_;
    }
    {
      const py::gil_scoped_acquire acquire;
      function();
    }
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) left_.notify_all();
  }
  // Returns when no thread is inside. The caller holds the interpreter's lock.
  void Close() {
    const py::gil_scoped_release release;
    std::unique_lock lock(mutex_);
    closed_ = true;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  bool closed_ = false;
  int inside_ = 0;
};

// The function of the engine that calls a function of the program. It may be destroyed by any thread, too.
std::function<void(txn::EventLevel, const std::string&)> EventFunctionOf(const py::object& function) {
  if (function.is_none()) return nullptr;
  if (PyCallable_Check(function.ptr()) == 0) throw py::type_error("on_event is no function");
  const std::shared_ptr<PyObject> held(function.inc_ref().ptr(),
                                       [](PyObject* object) { Gate::Only().Pass([object] { Py_DECREF(object); }); });
  return [held](txn::EventLevel level, const std::string& text) {
    Gate::Only().Pass([&] {
      try {
        const char* const name = level == txn::EventLevel::kInfo      ? "info"
                                 : level == txn::EventLevel::kWarning ? "warning"
                                                                      : "error";
        // Names of directories need not be UTF-8.
        const auto decoded = py::reinterpret_steal<py::object>(
            PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
        if (!decoded) throw py::error_already_set();
        py::handle(held.get())(name, decoded);
      } catch (py::error_already_set& error) {
        error.discard_as_unraisable("on_event of a gannet.Database");
      }
    });
  };
}

// Closing a database, also by its destructor, waits for threads that may want the interpreter's lock.
void DestroyUnlocked(txn::Database* database) {
  const py::gil_scoped_release release;
  delete database;
}

std::shared_ptr<txn::Database> Open(const std::optional<std::string>& directory, const py::dict& options) {
  txn::DatabaseOptions given;
  const auto duration = [](py::handle seconds) { return absl::Seconds(seconds.cast<double>()); };
  for (const auto& [name, value] : options) {
    const auto option = name.cast<std::string>();
    if (option == "create") {
      given.create_if_missing = value.cast<bool>();
    } else if (option == "durability") {
      const auto text = value.cast<std::string>();
      if (text != "none" && text != "async" && text != "sync") {
        throw py::value_error("durability is '" + text + "': none, async or sync");
      }
      given.durability = text == "none"    ? txn::DurabilityMode::kNone
                         : text == "async" ? txn::DurabilityMode::kAsync
                                           : txn::DurabilityMode::kSync;
    } else if (option == "memory_bytes") {
      given.memory_bytes = value.cast<uint64_t>();
    } else if (option == "group_commit") {
      given.group_commit = duration(value);
    } else if (option == "durable_within") {
      given.durable_within = duration(value);
    } else if (option == "checkpoint_every") {
      given.checkpoint_every = duration(value);
    } else if (option == "largest_transaction_bytes") {
      given.log_large_buffer_bytes = value.cast<size_t>();
    } else if (option == "recovery_threads") {
      given.recovery_threads = value.cast<int>();
    } else if (option == "open_transactions") {
      given.run_sessions = value.cast<int>();
    } else if (option == "application") {
      given.application = value.cast<std::string>();
    } else if (option == "on_event") {
      given.on_event = EventFunctionOf(py::reinterpret_borrow<py::object>(value));
    } else {
      throw py::type_error("open() has no option '" + option + "'");
    }
  }
  StatusOr<std::unique_ptr<txn::Database>> database = Unlocked([&]() -> StatusOr<std::unique_ptr<txn::Database>> {
    auto opened = directory.has_value() ? txn::Database::Open(*directory, given) : txn::Database::OpenInMemory(given);
    if (opened.ok()) GANNET_RETURN_IF_ERROR((*opened)->Start());
    return opened;
  });
  return {ValueOrThrow(std::move(database)).release(), &DestroyUnlocked};
}

Table CreateTable(const std::shared_ptr<txn::Database>& database, const std::string& name, bool integer_keys,
                  size_t max_key_bytes, const std::string& index, size_t payload_bytes, bool variable_length,
                  uint64_t expected_rows, const std::string& application) {
  const index::IndexKind kind = ValueOrThrow(index::IndexKindOf(index));
  const txn::TableOptions options{.name = name,
                                  .key_kind = integer_keys ? index::KeyKind::kInteger : index::KeyKind::kBytes,
                                  .max_key_bytes = integer_keys ? index::kIntegerKeyBytes : max_key_bytes,
                                  .index = kind,
                                  .payload_bytes = payload_bytes,
                                  .variable_length = variable_length,
                                  .expected_rows = expected_rows,
                                  .application = application};
  return {database, ValueOrThrow(Unlocked([&] { return database->CreateTable(options); }))};
}

py::object FieldOf(index::TupleReader* reader) {
  int64_t number = 0;
  uint64_t large = 0;
  double real = 0;
  bool yes = false;
  std::string bytes;
  if (reader->Read(&number).ok()) return py::int_(number);
  if (reader->Read(&large).ok()) return py::int_(large);
  if (reader->Read(&bytes).ok()) return py::bytes(bytes);
  if (reader->Read(&real).ok()) return py::float_(real);
  ThrowIfError(reader->Read(&yes));
  return py::bool_(yes);
}

py::tuple UnpackTuple(const py::object& key) {
  const Bytes bytes(key);
  index::TupleReader reader({reinterpret_cast<const char*>(bytes.span().data()), bytes.span().size()});
  py::list fields;
  while (!reader.done()) fields.append(FieldOf(&reader));
  return py::tuple(fields);
}

using Box = std::tuple<double, double, double, double>;

index::Rectangle RectangleOf(const Box& box) {
  return {std::get<0>(box), std::get<1>(box), std::get<2>(box), std::get<3>(box)};
}

void DefineTransaction(py::module_& module) {
  py::class_<Transaction, std::shared_ptr<Transaction>> type(module, "Transaction");
  type.def("commit",
           [](Transaction& self) { ThrowIfError(self.Use([](txn::ManualTransaction& t) { return t.Commit(); })); });
  type.def("rollback", [](Transaction& self) {
    self.Restarted();
    self.Use([](txn::ManualTransaction& t) { t.Rollback(); });
  });
  type.def("validate",
           [](Transaction& self) { ThrowIfError(self.Use([](txn::ManualTransaction& t) { return t->Validate(); })); });
  type.def("try_again", [](Transaction& self) {
    self.Restarted();
    self.Use([](txn::ManualTransaction& t) { return t.TryAgain(absl::AbortedError("")); });
  });
  type.def("close", &Transaction::Close);
  type.def("is_open", &Transaction::is_open);
  // None if there is no such row.
  type.def("get", [](Transaction& self, const Table& table, const py::object& key) -> py::object {
    const OwnedKey owned(key);
    const auto view = self.UseTable(
        table, [&](txn::BlockingTransaction& t, const txn::Table& rows) { return t.GetView(rows, owned.view()); });
    if (absl::IsNotFound(view.status())) return py::none();
    return ObjectOf(ValueOrThrow(view));
  });
  type.def("exists", [](Transaction& self, const Table& table, const py::object& key) {
    const OwnedKey owned(key);
    return ValueOrThrow(self.UseTable(
        table, [&](txn::BlockingTransaction& t, const txn::Table& rows) { return t.Exists(rows, owned.view()); }));
  });
  type.def("insert", [](Transaction& self, const Table& table, const py::object& key, const py::object& row) {
    const OwnedKey owned(key);
    const Bytes bytes(row);
    ThrowIfError(self.UseTable(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.Insert(rows, owned.view(), bytes.span());
    }));
  });
  type.def("update", [](Transaction& self, const Table& table, const py::object& key, const py::object& row) {
    const OwnedKey owned(key);
    const Bytes bytes(row);
    if (!table.table->options().variable_length && bytes.span().size() != table.table->payload_bytes()) {
      ThrowIfError(txn::PayloadDoesNotFit(*table.table, bytes.span().size()));
    }
    ThrowIfError(self.UseTable(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.Update(rows, owned.view(), bytes.span());
    }));
  });
  type.def("upsert", [](Transaction& self, const Table& table, const py::object& key, const py::object& row) {
    const OwnedKey owned(key);
    const Bytes bytes(row);
    ThrowIfError(self.UseTable(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.Upsert(rows, owned.view(), bytes.span());
    }));
  });
  type.def("update_if", [](Transaction& self, const Table& table, const py::object& key, const py::object& expected,
                           const py::object& row) {
    const OwnedKey owned(key);
    const Bytes old(expected);
    const Bytes bytes(row);
    return ValueOrThrow(self.UseTable(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.UpdateIf(rows, owned.view(), old.span(), bytes.span());
    }));
  });
  type.def("remove", [](Transaction& self, const Table& table, const py::object& key) {
    const OwnedKey owned(key);
    ThrowIfError(self.UseTable(
        table, [&](txn::BlockingTransaction& t, const txn::Table& rows) { return t.Remove(rows, owned.view()); }));
  });
  const auto add = [](Transaction& self, const Table& table, const py::object& key, auto delta, uint32_t offset) {
    const OwnedKey owned(key);
    decltype(delta) sum = 0;
    ThrowIfError(self.UseTable(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.AddAt<decltype(delta)>(rows, owned.view(), offset, delta, &sum);
    }));
    return sum;
  };
  type.def("add_integer", [add](Transaction& self, const Table& table, const py::object& key, int64_t delta,
                                uint32_t offset) { return add(self, table, key, delta, offset); });
  type.def("add_double", [add](Transaction& self, const Table& table, const py::object& key, double delta,
                               uint32_t offset) { return add(self, table, key, delta, offset); });
  type.def("search", [](Transaction& self, const Table& table, const Box& box) {
    txn::ScanRows found;
    ThrowIfError(self.UseTable(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.Search(rows, RectangleOf(box), &found);
    }));
    return ListOf(found);
  });
  type.def("nearest", [](Transaction& self, const Table& table, double x, double y, size_t count) {
    txn::ScanRows found;
    ThrowIfError(self.UseTable(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.Nearest(rows, {.x = x, .y = y, .count = count}, &found);
    }));
    return ListOf(found);
  });
  type.def("cursor", [](const std::shared_ptr<Transaction>& self, const Table& table, const py::object& start,
                        bool start_included, const py::object& stop, bool stop_included, const py::object& prefix,
                        bool keys_only) {
    return std::make_unique<Cursor>(
        self, table,
        txn::CursorOptions{.range = RangeOf(start, start_included, stop, stop_included, prefix),
                           .keys_only = keys_only});
  });
}

void DefineCursor(py::module_& module) {
  using Move = Cursor::Move;
  py::class_<Cursor> type(module, "Cursor");
  type.def("first", [](Cursor& self) { return self.MoveTo(Move::kFirst, {}); });
  type.def("last", [](Cursor& self) { return self.MoveTo(Move::kLast, {}); });
  type.def("next", [](Cursor& self) { return self.MoveTo(Move::kNext, {}); });
  type.def("previous", [](Cursor& self) { return self.MoveTo(Move::kPrevious, {}); });
  type.def("seek_forward", [](Cursor& self, const py::object& key) {
    const OwnedKey owned(key);
    return self.MoveTo(Move::kSeekForward, owned.view());
  });
  type.def("seek_backward", [](Cursor& self, const py::object& key) {
    const OwnedKey owned(key);
    return self.MoveTo(Move::kSeekBackward, owned.view());
  });
  type.def("key", &Cursor::key);
  type.def("payload", &Cursor::payload);
  type.def("gather", [](Cursor& self, bool reverse) {
    return reverse ? self.Gather(Move::kLast, Move::kPrevious) : self.Gather(Move::kFirst, Move::kNext);
  });
}

void DefineTable(py::module_& module) {
  py::class_<Table> type(module, "Table");
  type.def_property_readonly("name", [](const Table& self) { return self.table->name(); });
  type.def_property_readonly(
      "integer_keys", [](const Table& self) { return self.table->options().key_kind == index::KeyKind::kInteger; });
  type.def_property_readonly("max_key_bytes", [](const Table& self) { return self.table->options().max_key_bytes; });
  type.def_property_readonly("index",
                             [](const Table& self) { return index::EntryOf(self.table->options().index).name; });
  type.def_property_readonly("ordered", [](const Table& self) { return self.table->index_traits().ordered; });
  type.def_property_readonly("payload_bytes", [](const Table& self) { return self.table->payload_bytes(); });
  type.def_property_readonly("variable_length",
                             [](const Table& self) { return self.table->options().variable_length; });
  type.def_property_readonly("application", [](const Table& self) { return self.table->options().application; });
}

void DefineDatabase(py::module_& module) {
  using Handle = std::shared_ptr<txn::Database>;
  py::class_<txn::Database, Handle> type(module, "Database");
  type.def("close", [](txn::Database& self) { ThrowIfError(Unlocked([&] { return self.Close(); })); });
  type.def("backup", [](txn::Database& self, const std::string& directory) {
    ThrowIfError(Unlocked([&] { return self.Backup(directory); }));
  });
  type.def("checkpoint", [](txn::Database& self) { ThrowIfError(Unlocked([&] { return self.Checkpoint(); })); });
  type.def("log_health", [](txn::Database& self) { ThrowIfError(Unlocked([&] { return self.log_health(); })); });
  type.def("metrics", [](txn::Database& self) { return Unlocked([&] { return self.MetricsText(); }); });
  type.def("logged_epoch", &txn::Database::logged_epoch);
  type.def("durable_epoch", &txn::Database::durable_epoch);
  type.def("create_table", &CreateTable);
  type.def("find_table", [](const Handle& self, const std::string& name) -> std::optional<Table> {
    const txn::Table* const found = self->FindTable(name);
    if (found == nullptr) return std::nullopt;
    return Table{self, found};
  });
  type.def("tables", [](const Handle& self) {
    std::vector<Table> tables;
    for (const txn::Table* table : self->tables()) tables.push_back({self, table});
    return tables;
  });
  type.def("rename_table", [](txn::Database& self, const std::string& from, const std::string& to) {
    ThrowIfError(Unlocked([&] { return self.RenameTable(from, to); }));
  });
  type.def("drop_table", [](txn::Database& self, const std::string& name) {
    ThrowIfError(Unlocked([&] { return self.DropTable(name); }));
  });
  type.def("widen_table", [](txn::Database& self, const std::string& name, size_t payload_bytes) {
    ThrowIfError(Unlocked([&] { return self.WidenTable(name, payload_bytes); }));
  });
  type.def("arrange_table", [](txn::Database& self, const std::string& name) {
    ThrowIfError(Unlocked([&] { return self.ArrangeTable(name); }));
  });
  type.def("begin", [](const Handle& self) {
    return std::make_shared<Transaction>(self, ValueOrThrow(Unlocked([&] { return self->Begin(); })));
  });
}

}  // namespace

PYBIND11_MODULE(_gannet, module) {
  DefineDatabase(module);
  DefineTable(module);
  DefineTransaction(module);
  DefineCursor(module);
  module.def("open", &Open);
  py::module_::import("atexit").attr("register")(py::cpp_function([] { Gate::Only().Close(); }));
  module.def("pack", [](const py::tuple& fields) {
    const index::TupleKey key = TupleOf(fields);
    return py::bytes(key.bytes().data(), key.bytes().size());
  });
  module.def("unpack", &UnpackTuple);
  module.def("pack_rectangle", [](const Box& box, uint64_t id) {
    return ObjectOf(ValueOrThrow(index::EncodeRectangleKey(RectangleOf(box), id)).view());
  });
  module.def("unpack_rectangle", [](const py::object& key) {
    const OwnedKey owned(key);
    const index::RectangleKey decoded = ValueOrThrow(index::DecodeRectangleKey(owned.view()));
    return py::make_tuple(Box{decoded.box.min_x, decoded.box.min_y, decoded.box.max_x, decoded.box.max_y}, decoded.id);
  });
  module.attr("version") = GANNET_VERSION;
}

}  // namespace gannet::python
