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
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/home_process.h"
#include "index/rectangle.h"
#include "index/registry.h"
#include "index/tuple_key.h"
#include "txn/database.h"
#include "txn/message_terms.h"
#include "txn/run/blocking.h"
#include "txn/run/manual_transaction.h"
#include "txn/store/key_status.h"
#include "txn/store/secondary_index.h"

namespace gannet::python {
namespace {

namespace py = pybind11;

// A text for people, as a str: names of files in it need not be UTF-8.
py::object ReadableText(std::string_view text) {
  PyObject* const decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(decoded);
}

// Throws the exception of the package for this status: gannet.NotFound, and so on. The caller holds the interpreter's
// lock.
void ThrowIfError(const Status& status) {
  if (status.ok()) return;
  const py::object type = py::module_::import("gannet._errors").attr("error_of_code")(static_cast<int>(status.code()));
  const absl::string_view message = status.message();
  const std::string text = txn::InLanguage({message.data(), message.size()}, txn::Language::kPython);
  PyErr_SetObject(type.ptr(), ReadableText(text).ptr());
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

// "key is 1.5": the beginning of a TypeError about an argument.
std::string Is(const char* argument, py::handle object) {
  return absl::StrCat(argument, " is ", py::repr(object).cast<std::string>());
}

// The bytes of an object with the buffer protocol: bytes, bytearray, a memoryview, a numpy array or scalar.
class Bytes {
 public:
  // TypeError: it has none; `argument` is that, and `wanted` what it may be.
  explicit Bytes(py::handle object, const char* argument = "row",
                 const char* wanted = "bytes, or an object with the buffer protocol") {
    if (PyObject_CheckBuffer(object.ptr()) == 0) throw py::type_error(absl::StrCat(Is(argument, object), ": ", wanted));
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

// A number that has bytes, too, such as a scalar of numpy, as int or float. Any other object: itself.
py::object PlainNumber(py::handle object) {
  PyObject* const given = object.ptr();
  PyObject* plain = nullptr;
  const bool is_scalar = PyObject_CheckBuffer(given) != 0 && PySequence_Check(given) == 0;
  if (is_scalar && PyIndex_Check(given) != 0) {
    plain = PyNumber_Index(given);
  } else if (is_scalar && PyNumber_Check(given) != 0) {
    plain = PyNumber_Float(given);
  } else {
    return py::reinterpret_borrow<py::object>(object);
  }
  if (plain == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(plain);
}

index::TupleKey TupleOf(const py::tuple& fields) {
  index::TupleKey key;
  for (const py::handle given : fields) {
    const py::object field = PlainNumber(given);
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
      const Bytes bytes(field, "a field of the key", "int, float, bool, str or bytes");
      key.Append(std::string_view(reinterpret_cast<const char*>(bytes.span().data()), bytes.span().size()));
    }
  }
  return key;
}

py::object ObjectOf(std::string_view bytes) {
  return py::bytes(bytes.data(), bytes.size());
}

// A str; bytes if they are no UTF-8.
py::object TextOf(std::string_view bytes) {
  PyObject* const text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), nullptr);
  if (text != nullptr) return py::reinterpret_steal<py::object>(text);
  PyErr_Clear();
  return ObjectOf(bytes);
}

// `form`: kTexts or kBytes, for strings.
py::object FieldOf(index::TupleReader* reader, char form);
py::tuple UnpackTuple(std::string_view key, std::string_view forms);

// Says which objects the keys of a table are for Python. Written as text, for the package: "int", "signed" (an int that
// may be negative), "bytes", "str", "tuple", or "tuple:" and a letter for each field (kTexts: a str; else bytes, if it
// is a string). In a "tuple" all strings are str.
class KeyForm {
 public:
  static constexpr char kTexts = 's';
  static constexpr char kBytes = 'b';

  KeyForm() = default;
  explicit KeyForm(std::string_view text) {
    kind_ = text == "int"      ? Kind::kInteger
            : text == "signed" ? Kind::kSigned
            : text == "bytes"  ? Kind::kBytes
            : text == "str"    ? Kind::kText
                               : Kind::kTuple;
    if (text.starts_with("tuple:")) fields_ = text.substr(6);
  }
  py::object ObjectOf(const index::Key& key) const {
    if (key.kind() == index::KeyKind::kInteger) {
      return is_signed() ? py::int_(key.signed_integer()) : py::int_(key.integer());
    }
    switch (kind_) {
      case Kind::kText:
        return TextOf(key.bytes());
      case Kind::kTuple:
        return UnpackTuple(key.bytes(), fields_);
      default:
        return python::ObjectOf(key.bytes());
    }
  }

  bool is_signed() const { return kind_ == Kind::kSigned; }
  // The part of it that a directory keeps.
  txn::KeyForm kept() const {
    switch (kind_) {
      case Kind::kSigned:
        return txn::KeyForm::kSigned;
      case Kind::kText:
        return txn::KeyForm::kText;
      case Kind::kTuple:
        return txn::KeyForm::kTuple;
      default:
        return txn::KeyForm::kPlain;
    }
  }

 private:
  enum class Kind : uint8_t { kInteger, kSigned, kBytes, kText, kTuple };
  Kind kind_ = Kind::kInteger;
  std::string fields_;
};

// The form that is kept, as the package writes it.
std::string KeptForm(const txn::Table& table) {
  if (table.key_form() == txn::KeyForm::kText) return "str";
  if (table.key_form() != txn::KeyForm::kPlain) return std::string(NameOf(table.key_form()));
  return table.options().key_kind == index::KeyKind::kInteger ? "int" : "bytes";
}

py::object ObjectOf(std::span<const std::byte> bytes) {
  return ObjectOf(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// The key of an int, str, tuple, or an object with bytes. Owns its bytes.
class OwnedKey {
 public:
  // `form`: of the table.
  explicit OwnedKey(py::handle given, const KeyForm& form = KeyForm()) {
    const py::object object = PlainNumber(given);
    constexpr const char* kWanted = "int, str, bytes or tuple";
    if (PyBool_Check(object.ptr())) throw py::type_error(absl::StrCat(Is("key", object), ": ", kWanted));
    if (PyLong_Check(object.ptr())) {
      int overflow = 0;
      const int64_t number = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
      if (form.is_signed()) {
        if (overflow != 0) throw py::value_error("a signed key is a number from -2**63 to 2**63 - 1");
        key_ = index::Key::Signed(number);
        return;
      }
      if (overflow < 0 || (overflow == 0 && number < 0)) {
        throw py::value_error("a negative number is no key: gannet.signed(number) makes one of it");
      }
      key_ = index::Key(overflow == 0 ? static_cast<uint64_t>(number) : LargeNumber(object));
    } else if (PyUnicode_Check(object.ptr())) {
      Hold(std::string(Utf8Of(object)));
    } else if (PyTuple_Check(object.ptr())) {
      Hold(std::string(TupleOf(py::reinterpret_borrow<py::tuple>(object)).bytes()));
    } else {
      const Bytes bytes(object, "key", kWanted);
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

struct Table {
  std::shared_ptr<txn::Database> database;
  const txn::Table* table;
  KeyForm form;
};

// A secondary index. `form`: of its own keys; `rows`: of those of its table.
struct Index {
  std::shared_ptr<txn::Database> database;
  const txn::SecondaryIndex* index;
  KeyForm form;
  KeyForm rows;
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
  // Calls function() with the lock, for what a call of another thread may be writing.
  template <class Function>
  auto Look(Function&& function) {
    const Turn turn(this);
    return function();
  }
  template <class Function>
  auto UseTable(const Table& table, Function&& function) {
    CheckOwn(table.database);
    return Use([&](txn::ManualTransaction& t) { return function(*t, *table.table); });
  }
  // UseTable for a function that writes.
  template <class Function>
  auto Change(const Table& table, Function&& function) {
    ++changes_;
    return UseTable(table, std::forward<Function>(function));
  }
  void CheckOwn(const std::shared_ptr<txn::Database>& database) const {
    if (database != database_) throw py::value_error("the table is of another database");
  }

  // Ends it. Does nothing the second time.
  void Close() {
    if (!transaction_.has_value()) return;
    if (!home_.is_here()) return transaction_.reset();
    const Turn turn(this);
    Unlocked([&] { transaction_.reset(); });
  }
  void Restarted() { ++generation_; }
  bool is_open() const { return transaction_.has_value(); }
  uint64_t generation() const { return generation_; }
  // Number of its writes.
  uint64_t changes() const { return changes_; }

 private:
  // One thread's call.
  class Turn {
   public:
    explicit Turn(Transaction* transaction) : transaction_(transaction) {
      if (!transaction->transaction_.has_value()) throw py::value_error("the transaction is closed");
      if (!transaction->home_.is_here()) ThrowIfError(transaction->database_->Begin().status());  // says why
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

  // The members stand in this order because the transaction ends before its database may.
  std::shared_ptr<txn::Database> database_;
  std::optional<txn::ManualTransaction> transaction_;
  std::atomic<bool> in_use_ = false;
  const HomeProcess home_;
  uint64_t generation_ = 0;  // cursors of an earlier one are over
  uint64_t changes_ = 0;
};

// Moves over the rows of a range, in the order of their keys or of a secondary index.
class Cursor {
 public:
  enum class Move : uint8_t { kFirst, kLast, kNext, kPrevious, kSeekForward, kSeekBackward };

  Cursor(std::shared_ptr<Transaction> transaction, const Table& table, txn::CursorOptions options)
      : Cursor(std::move(transaction), table.form, options.keys_only) {
    transaction_->UseTable(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      by_key_.reset(new txn::BlockingCursor(t.OpenCursor(rows, std::move(options))));
    });
  }
  Cursor(std::shared_ptr<Transaction> transaction, const Index& index, txn::CursorOptions options)
      : Cursor(std::move(transaction), index.rows, options.keys_only) {
    index_form_ = index.form;
    transaction_->CheckOwn(index.database);
    transaction_->Use([&](txn::ManualTransaction& t) {
      by_index_.reset(new txn::BlockingIndexCursor(t->OpenCursor(*index.index, std::move(options))));
    });
  }

  // Calls use(cursor&) with the cursor of the engine.
  template <class Use>
  auto AtRow(Use&& use) const {
    return by_index_ != nullptr ? use(*by_index_) : use(*by_key_);
  }

  // True if the cursor is at a row then.
  bool MoveTo(Move move, const index::Key& key) {
    CheckCurrent();
    bool at_row = false;
    ThrowIfError(transaction_->Use([&](txn::ManualTransaction&) {
      Status moved = MoveUnlocked(move, key);
      at_row = valid();
      return moved;
    }));
    return at_row;
  }
  Status MoveUnlocked(Move move, const index::Key& key) {
    return AtRow([&](auto& cursor) {
      switch (move) {
        case Move::kFirst:
          return cursor.First();
        case Move::kLast:
          return cursor.Last();
        case Move::kNext:
          return cursor.Next();
        case Move::kPrevious:
          return cursor.Previous();
        case Move::kSeekForward:
          return cursor.SeekForward(key);
        case Move::kSeekBackward:
          return cursor.SeekBackward(key);
      }
      return Status();
    });
  }
  bool keys_only() const { return keys_only_; }
  bool by_index() const { return by_index_ != nullptr; }
  const KeyForm& form() const { return form_; }
  // The form of the keys that it looks for.
  const KeyForm& seek_form() const { return by_index() ? index_form_ : form_; }
  Transaction& transaction() const { return *transaction_; }
  void CheckCurrent() const {
    if (!is_current()) throw py::value_error("the cursor's transaction has ended, or began again");
  }

  py::object key() const {
    return OfRow([this] { return form_.ObjectOf(AtRow([](const auto& cursor) { return cursor.key(); })); });
  }
  py::object payload() const {
    if (keys_only_) return py::none();
    return OfRow([this] { return ObjectOf(AtRow([](const auto& cursor) { return cursor.payload(); })); });
  }
  py::object index_key() const {
    if (by_index_ == nullptr) throw py::value_error("the cursor goes by no index");
    return OfRow([this] { return index_form_.ObjectOf(ValueOrThrow(by_index_->index_key()).view()); });
  }

  // All rows from `first` on, in the direction of `next`: the keys, and the payloads one after the other.
  py::tuple Gather(Move first, Move next) {
    CheckCurrent();
    std::vector<index::OwnedKey> keys;
    std::string payloads;
    const Status status = transaction_->Use([&](txn::ManualTransaction&) {
      return AtRow([&](auto& cursor) {
        Status moved = MoveUnlocked(first, {});
        for (; moved.ok() && cursor.valid(); moved = MoveUnlocked(next, {})) {
          keys.emplace_back(cursor.key());
          payloads.append(reinterpret_cast<const char*>(cursor.payload().data()), cursor.payload().size());
        }
        return moved;
      });
    });
    ThrowIfError(status);
    py::list list(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) list[i] = form_.ObjectOf(keys[i].view());
    return py::make_tuple(list, py::bytearray(payloads.data(), payloads.size()));
  }

 private:
  Cursor(std::shared_ptr<Transaction> transaction, KeyForm form, bool keys_only)
      : transaction_(std::move(transaction)),
        form_(std::move(form)),
        keys_only_(keys_only),
        generation_(transaction_->generation()) {}

  bool is_current() const { return transaction_->is_open() && generation_ == transaction_->generation(); }
  // Called in the turn of the transaction, as all that looks at the cursor's row.
  bool valid() const {
    return AtRow([](const auto& cursor) { return cursor.valid(); });
  }
  // of(), if the cursor is at a row; otherwise None.
  template <class Of>
  py::object OfRow(Of&& of) const {
    if (!is_current()) return py::none();
    return transaction_->Look([&]() -> py::object { return valid() ? of() : py::none(); });
  }

  std::shared_ptr<Transaction> transaction_;
  KeyForm form_;
  KeyForm index_form_;
  bool keys_only_;
  uint64_t generation_;
  // One of these.
  std::unique_ptr<txn::BlockingCursor> by_key_;
  std::unique_ptr<txn::BlockingIndexCursor> by_index_;
};

// The iterator of Transaction.scan and keys. It copies some rows at a time, without the interpreter's lock, and makes
// one object after the other of them. A write of the transaction ends the batch, because it may change the rows that
// follow: they are read again.
class Rows {
 public:
  // `dtype`: of the rows; none: they are bytes.
  Rows(Cursor cursor, bool reverse, py::object dtype)
      : cursor_(std::move(cursor)), reverse_(reverse), dtype_(std::move(dtype)) {
    if (!dtype_.is_none()) from_buffer_ = py::module_::import("numpy").attr("frombuffer");
  }

  // A new reference; null at the end.
  PyObject* Next() {
    if (is_filling_) throw std::runtime_error("two threads use one iterator at the same time");
    if (next_ == keys_.size() || cursor_.transaction().changes() != changes_) [[unlikely]] {
      if (!Fill()) return nullptr;
    }
    const size_t at = next_++;
    py::object key = cursor_.form().ObjectOf(keys_[at].view());
    if (cursor_.keys_only()) return key.release().ptr();
    const size_t begin = at == 0 ? 0 : ends_[at - 1];
    py::object row =
        array_ ? py::reinterpret_steal<py::object>(PySequence_GetItem(array_.ptr(), static_cast<Py_ssize_t>(at)))
               : ObjectOf(std::string_view(payloads_).substr(begin, ends_[at] - begin));
    if (!row) throw py::error_already_set();
    PyObject* const pair = PyTuple_New(2);
    if (pair == nullptr) throw py::error_already_set();
    PyTuple_SET_ITEM(pair, 0, key.release().ptr());
    PyTuple_SET_ITEM(pair, 1, row.release().ptr());
    return pair;
  }

 private:
  using Move = Cursor::Move;
  static constexpr size_t kGrowth = 8;
  static constexpr size_t kMostRows = 256;
  static constexpr size_t kMostBytes = size_t{256} << 10;

  // Reads the next rows. False: there are none.
  bool Fill() {
    if (over_) return false;
    cursor_.CheckCurrent();
    // Both steps have the interpreter's lock, which is given up between them.
    is_filling_ = true;
    const absl::Cleanup filled = [this] { is_filling_ = false; };
    Transaction& transaction = cursor_.transaction();
    const bool changed = transaction.changes() != changes_;
    if (at_end_ && next_ == keys_.size() && !changed) return End();
    // The cursor is at the last row of the batch, or behind all; the loop is at the row before next_.
    const bool goes_back = has_begun_ && (next_ < keys_.size() || (at_end_ && changed));
    const index::OwnedKey last = next_ > 0 ? keys_[next_ - 1] : last_;
    const Move next = reverse_ ? Move::kPrevious : Move::kNext;
    changes_ = transaction.changes();
    keys_.clear();
    payloads_.clear();
    ends_.clear();
    next_ = 0;
    // An index has no order in which a row that was moved can be found again: such a batch has one row.
    most_ = cursor_.by_index() ? 1 : std::min(most_ == 0 ? 1 : most_ * kGrowth, kMostRows);
    const Status status = transaction.Use([&](txn::ManualTransaction&) {
      return cursor_.AtRow([&](auto& cursor) {
        Status moved;
        if (!has_begun_) {
          moved = cursor_.MoveUnlocked(reverse_ ? Move::kLast : Move::kFirst, {});
        } else if (goes_back && !cursor_.by_index()) {
          moved = cursor_.MoveUnlocked(reverse_ ? Move::kSeekBackward : Move::kSeekForward, last.view());
          if (moved.ok() && cursor.valid() && cursor.key() == last.view()) moved = cursor_.MoveUnlocked(next, {});
        } else if (cursor.valid()) {
          moved = cursor_.MoveUnlocked(next, {});
        }
        has_begun_ = true;
        while (moved.ok() && cursor.valid()) {
          keys_.emplace_back(cursor.key());
          if (!cursor_.keys_only()) {
            payloads_.append(reinterpret_cast<const char*>(cursor.payload().data()), cursor.payload().size());
            ends_.push_back(payloads_.size());
          }
          if (keys_.size() >= most_ || payloads_.size() >= kMostBytes) break;
          moved = cursor_.MoveUnlocked(next, {});
        }
        at_end_ = !cursor.valid();
        return moved;
      });
    });
    if (!status.ok()) End();
    ThrowIfError(status);
    if (keys_.empty()) return End();
    last_ = keys_.back();
    if (from_buffer_ && !cursor_.keys_only()) {
      const auto row_bytes = dtype_.attr("itemsize").cast<size_t>();
      for (size_t i = 0; i < ends_.size(); ++i) {
        if (ends_[i] == (i + 1) * row_bytes) continue;
        throw py::value_error(absl::StrCat("a row has ", ends_[i] - i * row_bytes, " bytes, and the dtype ", row_bytes,
                                           ": was the table widened? Give Database.table its new dtype"));
      }
      array_ = from_buffer_(py::bytearray(payloads_.data(), payloads_.size()), dtype_);
    }
    return true;
  }
  bool End() {
    over_ = true;
    keys_.clear();
    next_ = 0;
    return false;
  }

  Cursor cursor_;
  const bool reverse_;
  const py::object dtype_;
  py::object from_buffer_;
  bool has_begun_ = false;
  bool is_filling_ = false;
  bool over_ = false;  // the loop has met the end, or an error
  // The batch: rows [next_, keys_.size()) are still to come.
  std::vector<index::OwnedKey> keys_;
  std::string payloads_;
  std::vector<size_t> ends_;
  py::object array_;  // of the payloads, with a dtype
  size_t next_ = 0;
  size_t most_ = 0;       // rows of the next batch
  bool at_end_ = false;   // no row of the range followed the batch when it was read
  uint64_t changes_ = 0;  // of the transaction then
  index::OwnedKey last_;  // the last key of the batch
};

// The type's function for `next`: pybind11 takes many times as long to come to a method.
PyObject* NextOf(PyObject* self) noexcept {
  try {
    auto* const rows =
        static_cast<Rows*>(reinterpret_cast<py::detail::instance*>(self)->get_value_and_holder().value_ptr());
    return rows != nullptr ? rows->Next() : nullptr;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// start <= key < stop, or the keys that begin with a prefix.
txn::KeyRange RangeOf(const py::object& start, const py::object& stop, const py::object& prefix, const KeyForm& form) {
  if (!prefix.is_none()) {
    const OwnedKey key(prefix);
    if (key.view().kind() != index::KeyKind::kBytes) throw py::type_error("a prefix is bytes, a str or a tuple");
    return txn::KeyRange::Prefix(key.view().bytes());
  }
  txn::KeyRange range;
  if (!start.is_none()) range.from = {txn::KeyCopy(OwnedKey(start, form).view()), true};
  if (!stop.is_none()) range.to = {txn::KeyCopy(OwnedKey(stop, form).view()), false};
  return range;
}

// The rows of a search, as a list of (key, payload).
py::list ListOf(const txn::ScanRows& rows, const KeyForm& form) {
  py::list list(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    list[i] = py::make_tuple(form.ObjectOf(rows.key(i)), ObjectOf(rows.payload(i)));
  }
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
    if (!home_.is_here()) return;  // a forked child, which has none of these threads
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
    if (!home_.is_here()) return;
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
  const HomeProcess home_;
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
        py::handle(held.get())(name, ReadableText(text));
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
    } else if (option == "salvage") {
      given.salvage = value.cast<bool>();
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
                  uint64_t expected_rows, const std::string& application, const std::string& form) {
  const index::IndexKind kind = ValueOrThrow(index::IndexKindOf(index));
  const txn::TableOptions options{.name = name,
                                  .key_kind = integer_keys ? index::KeyKind::kInteger : index::KeyKind::kBytes,
                                  .max_key_bytes = integer_keys ? index::kIntegerKeyBytes : max_key_bytes,
                                  .key_form = KeyForm(form).kept(),
                                  .index = kind,
                                  .payload_bytes = payload_bytes,
                                  .variable_length = variable_length,
                                  .expected_rows = expected_rows,
                                  .application = application};
  return {database, ValueOrThrow(Unlocked([&] { return database->CreateTable(options); })), KeyForm(form)};
}

py::object FieldOf(index::TupleReader* reader, char form) {
  int64_t number = 0;
  uint64_t large = 0;
  double real = 0;
  bool yes = false;
  std::string bytes;
  if (reader->Read(&number).ok()) return py::int_(number);
  if (reader->Read(&large).ok()) return py::int_(large);
  if (reader->Read(&bytes).ok()) return form == KeyForm::kTexts ? TextOf(bytes) : ObjectOf(std::string_view(bytes));
  if (reader->Read(&real).ok()) return py::float_(real);
  ThrowIfError(reader->Read(&yes));
  return py::bool_(yes);
}

// Fields behind those that `forms` has have kTexts.
py::tuple UnpackTuple(std::string_view key, std::string_view forms) {
  index::TupleReader reader(key);
  py::list fields;
  for (size_t i = 0; !reader.done(); ++i) {
    fields.append(FieldOf(&reader, i < forms.size() ? forms[i] : KeyForm::kTexts));
  }
  return py::tuple(fields);
}

// A field of an index, for Python: whether it is one of the row's key, its type, its place, its size.
using FieldTuple = std::tuple<bool, std::string, uint32_t, uint32_t>;
constexpr const char* kFieldTypes[] = {"unsigned", "signed", "floating", "text", "bytes"};  // IndexField::Type

FieldTuple TupleOf(const txn::IndexField& field) {
  return {field.source == txn::IndexField::Source::kKey, kFieldTypes[static_cast<size_t>(field.type)], field.offset,
          field.bytes};
}

txn::IndexField FieldOf(const FieldTuple& tuple) {
  const auto& [of_key, type, offset, bytes] = tuple;
  size_t number = 0;
  while (number < std::size(kFieldTypes) && type != kFieldTypes[number]) ++number;
  if (number == std::size(kFieldTypes)) throw py::value_error("no type of a field: " + type);
  return {.source = of_key ? txn::IndexField::Source::kKey : txn::IndexField::Source::kPayload,
          .type = static_cast<txn::IndexField::Type>(number),
          .offset = offset,
          .bytes = bytes};
}

Index IndexOf(const std::shared_ptr<txn::Database>& database, const txn::SecondaryIndex* index, KeyForm rows) {
  std::string form = "tuple:";
  for (const txn::IndexField& field : index->fields()) {
    form += field.type == txn::IndexField::Type::kBytes ? KeyForm::kBytes : KeyForm::kTexts;
  }
  return {database, index, index->by_function() ? KeyForm("bytes") : KeyForm(form), std::move(rows)};
}

Index CreateIndex(const std::shared_ptr<txn::Database>& database, const std::string& name, const Table& table,
                  const std::vector<FieldTuple>& fields, bool unique) {
  if (table.database != database) throw py::value_error("the table is of another database");
  ThrowIfError(txn::CheckState(*table.table));  // another table may have the name of one that was dropped
  txn::SecondaryIndexOptions options{.name = name, .table = table.table->name(), .unique = unique};
  for (const FieldTuple& field : fields) options.fields.push_back(FieldOf(field));
  return IndexOf(database, ValueOrThrow(Unlocked([&] { return database->CreateIndex(options); })), table.form);
}

using Box = std::tuple<double, double, double, double>;

index::Rectangle RectangleOf(const Box& box) {
  return {std::get<0>(box), std::get<1>(box), std::get<2>(box), std::get<3>(box)};
}

// The cursors and iterators over a table, or over an index.
template <class Over>
void DefineRanges(py::class_<Transaction, std::shared_ptr<Transaction>>* type) {
  type->def("cursor", [](const std::shared_ptr<Transaction>& self, const Over& over, const py::object& start,
                         const py::object& stop, const py::object& prefix, bool keys_only) {
    return Cursor(self, over, {.range = RangeOf(start, stop, prefix, over.form), .keys_only = keys_only});
  });
  type->def("rows", [](const std::shared_ptr<Transaction>& self, const Over& over, const py::object& start,
                       const py::object& stop, const py::object& prefix, bool keys_only, bool reverse,
                       const py::object& dtype) {
    return Rows(Cursor(self, over, {.range = RangeOf(start, stop, prefix, over.form), .keys_only = keys_only}), reverse,
                dtype);
  });
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
    const OwnedKey owned(key, table.form);
    const auto view = self.UseTable(
        table, [&](txn::BlockingTransaction& t, const txn::Table& rows) { return t.GetView(rows, owned.view()); });
    if (absl::IsNotFound(view.status())) return py::none();
    return ObjectOf(ValueOrThrow(view));
  });
  type.def("exists", [](Transaction& self, const Table& table, const py::object& key) {
    const OwnedKey owned(key, table.form);
    return ValueOrThrow(self.UseTable(
        table, [&](txn::BlockingTransaction& t, const txn::Table& rows) { return t.Exists(rows, owned.view()); }));
  });
  type.def("insert", [](Transaction& self, const Table& table, const py::object& key, const py::object& row) {
    const OwnedKey owned(key, table.form);
    const Bytes bytes(row);
    ThrowIfError(self.Change(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.Insert(rows, owned.view(), bytes.span());
    }));
  });
  type.def("update", [](Transaction& self, const Table& table, const py::object& key, const py::object& row) {
    const OwnedKey owned(key, table.form);
    const Bytes bytes(row);
    if (!table.table->options().variable_length && bytes.span().size() != table.table->payload_bytes()) {
      ThrowIfError(txn::PayloadDoesNotFit(*table.table, bytes.span().size()));
    }
    ThrowIfError(self.Change(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.Update(rows, owned.view(), bytes.span());
    }));
  });
  type.def("upsert", [](Transaction& self, const Table& table, const py::object& key, const py::object& row) {
    const OwnedKey owned(key, table.form);
    const Bytes bytes(row);
    ThrowIfError(self.Change(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.Upsert(rows, owned.view(), bytes.span());
    }));
  });
  type.def("update_if", [](Transaction& self, const Table& table, const py::object& key, const py::object& expected,
                           const py::object& row) {
    const OwnedKey owned(key, table.form);
    const Bytes old(expected);
    const Bytes bytes(row);
    return ValueOrThrow(self.Change(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.UpdateIf(rows, owned.view(), old.span(), bytes.span());
    }));
  });
  type.def("remove", [](Transaction& self, const Table& table, const py::object& key) {
    const OwnedKey owned(key, table.form);
    ThrowIfError(self.Change(
        table, [&](txn::BlockingTransaction& t, const txn::Table& rows) { return t.Remove(rows, owned.view()); }));
  });
  const auto add = []<class Number>(std::type_identity<Number>, Transaction& self, const Table& table,
                                    const py::object& key, auto delta, uint32_t offset) {
    const OwnedKey owned(key, table.form);
    Number sum = 0;
    ThrowIfError(self.Change(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.AddAt<Number>(rows, owned.view(), offset, delta, &sum);
    }));
    return sum;
  };
  const auto define_add = [&]<class Number, class Delta>(const char* name, std::type_identity<Number> number,
                                                         std::type_identity<Delta>) {
    type.def(name, [add, number](Transaction& self, const Table& table, const py::object& key, Delta delta,
                                 uint32_t offset) { return add(number, self, table, key, delta, offset); });
  };
  constexpr std::type_identity<int64_t> kSigned;
  constexpr std::type_identity<uint64_t> kUnsigned;
  constexpr std::type_identity<double> kDouble;
  define_add("add_integer", kSigned, kSigned);
  define_add("add_unsigned", kUnsigned, kSigned);
  define_add("add_unsigned", kUnsigned, kUnsigned);  // of a delta that is too large for the one before
  define_add("add_double", kDouble, kDouble);
  type.def("search", [](Transaction& self, const Table& table, const Box& box) {
    txn::ScanRows found;
    ThrowIfError(self.UseTable(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.Search(rows, RectangleOf(box), &found);
    }));
    return ListOf(found, table.form);
  });
  type.def("nearest", [](Transaction& self, const Table& table, double x, double y, size_t count) {
    txn::ScanRows found;
    ThrowIfError(self.UseTable(table, [&](txn::BlockingTransaction& t, const txn::Table& rows) {
      return t.Nearest(rows, {.x = x, .y = y, .count = count}, &found);
    }));
    return ListOf(found, table.form);
  });
  // (primary key, payload); None if there is no such row.
  type.def("get_by", [](Transaction& self, const Index& index, const py::object& key) -> py::object {
    const OwnedKey owned(key);
    self.CheckOwn(index.database);
    const StatusOr<txn::RowBy> found =
        self.Use([&](txn::ManualTransaction& t) { return t->GetBy(*index.index, owned.view()); });
    if (absl::IsNotFound(found.status())) return py::none();
    const txn::RowBy row = ValueOrThrow(found);
    return py::make_tuple(index.rows.ObjectOf(row.key), ObjectOf(row.payload));
  });
  DefineRanges<Table>(&type);
  DefineRanges<Index>(&type);
}

void DefineCursor(py::module_& module) {
  using Move = Cursor::Move;
  py::class_<Cursor> type(module, "Cursor");
  type.def("first", [](Cursor& self) { return self.MoveTo(Move::kFirst, {}); });
  type.def("last", [](Cursor& self) { return self.MoveTo(Move::kLast, {}); });
  type.def("next", [](Cursor& self) { return self.MoveTo(Move::kNext, {}); });
  type.def("previous", [](Cursor& self) { return self.MoveTo(Move::kPrevious, {}); });
  type.def("seek_forward", [](Cursor& self, const py::object& key) {
    const OwnedKey owned(key, self.seek_form());
    return self.MoveTo(Move::kSeekForward, owned.view());
  });
  type.def("seek_backward", [](Cursor& self, const py::object& key) {
    const OwnedKey owned(key, self.seek_form());
    return self.MoveTo(Move::kSeekBackward, owned.view());
  });
  type.def("key", &Cursor::key);
  type.def("payload", &Cursor::payload);
  type.def("index_key", &Cursor::index_key);
  type.def("gather", [](Cursor& self, bool reverse) {
    return reverse ? self.Gather(Move::kLast, Move::kPrevious) : self.Gather(Move::kFirst, Move::kNext);
  });
}

void DefineRows(py::module_& module) {
  py::class_<Rows>(module, "Rows", py::custom_type_setup([](PyHeapTypeObject* type) {
                     type->ht_type.tp_iter = &PyObject_SelfIter;
                     type->ht_type.tp_iternext = &NextOf;
                   }));
}

void DefineIndex(py::module_& module) {
  py::class_<Index> type(module, "Index");
  // The same index, of rows whose keys have another form.
  type.def("with_keys", [](const Index& self, const std::string& form) {
    return Index{self.database, self.index, self.form, KeyForm(form)};
  });
  type.def_property_readonly("name", [](const Index& self) { return self.index->name(); });
  type.def_property_readonly("table", [](const Index& self) { return self.index->table().name(); });
  type.def_property_readonly("unique", [](const Index& self) { return self.index->unique(); });
  type.def_property_readonly("fields", [](const Index& self) {
    std::vector<FieldTuple> fields;
    for (const txn::IndexField& field : self.index->fields()) fields.push_back(TupleOf(field));
    return fields;
  });
  type.def_property_readonly("is_complete", [](const Index& self) { return self.index->is_complete(); });
}

void DefineTable(py::module_& module) {
  py::class_<Table> type(module, "Table");
  // The same table, whose keys have another form.
  type.def("with_keys", [](const Table& self, const std::string& form) {
    return Table{self.database, self.table, KeyForm(form)};
  });
  type.def_property_readonly("name", [](const Table& self) { return self.table->name(); });
  type.def_property_readonly(
      "integer_keys", [](const Table& self) { return self.table->options().key_kind == index::KeyKind::kInteger; });
  // The form that the directory has, also if with_keys gave another one: "int", "signed", "bytes", "str" or "tuple".
  type.def_property_readonly("key_form", [](const Table& self) { return KeptForm(*self.table); });
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
    if (found == nullptr || found->secondary() != nullptr) return std::nullopt;
    return Table{self, found, KeyForm(KeptForm(*found))};
  });
  type.def("tables", [](const Handle& self) {
    std::vector<std::string> names;
    for (const txn::Table* table : self->tables()) {
      if (table->secondary() == nullptr) names.push_back(table->name());
    }
    return names;
  });
  type.def("create_index", &CreateIndex);
  type.def("find_index", [](const Handle& self, const std::string& name) -> std::optional<Index> {
    const txn::SecondaryIndex* const found = self->FindIndex(name);
    if (found == nullptr) return std::nullopt;
    return IndexOf(self, found, KeyForm("bytes"));
  });
  type.def("indexes", [](const Handle& self) {
    std::vector<std::string> names;
    for (const txn::Table* table : self->tables()) {
      if (table->secondary() != nullptr) names.push_back(table->name());
    }
    return names;
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
  DefineRows(module);
  DefineIndex(module);
  module.def("open", &Open);
  py::module_::import("atexit").attr("register")(py::cpp_function([] { Gate::Only().Close(); }));
  module.def("pack", [](const py::tuple& fields) {
    const index::TupleKey key = TupleOf(fields);
    return py::bytes(key.bytes().data(), key.bytes().size());
  });
  module.def("unpack", [](const py::object& key) {
    const Bytes bytes(key, "key", "bytes");
    const std::string_view view(reinterpret_cast<const char*>(bytes.span().data()), bytes.span().size());
    return UnpackTuple(view, std::string(view.size(), KeyForm::kBytes));
  });
  module.def("pack_rectangle", [](const Box& box, uint64_t id) {
    return ObjectOf(ValueOrThrow(index::EncodeRectangleKey(RectangleOf(box), id)).view().bytes());
  });
  module.def("unpack_rectangle", [](const py::object& key) {
    const OwnedKey owned(key);
    const index::RectangleKey decoded = ValueOrThrow(index::DecodeRectangleKey(owned.view()));
    return py::make_tuple(Box{decoded.box.min_x, decoded.box.min_y, decoded.box.max_x, decoded.box.max_y}, decoded.id);
  });
  module.attr("version") = GANNET_VERSION;
}

}  // namespace gannet::python
