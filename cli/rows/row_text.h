// Keys and payloads as text: on command lines, in the shell, in CSV and JSON files. One form for all commands.
//
//   text     bytes as UTF-8 text. A backslash is written \\; control characters and bytes that are no UTF-8 are written
//            \n, \r, \t or \xNN (two hexadecimal digits). When text is read, \" and \' also stand for the quotes.
//   hex      bytes as pairs of hexadecimal digits, "5a7f"; 0x before them is allowed
//   tuple    a byte key of fields (index/tuple_key.h): (12,"Main",true,2.5). Strings are escaped as in `text`, and
//            quotes in them, too. A number with a point or an exponent is a double, any other one an integer.
//   signed   an integer key made by Key::Signed, which may be negative
//
// A user chooses the form of keys; otherwise it is the one that the catalog has of the table (txn/store/key_form.h), or
// text. Integer keys are decimal numbers from 0 to 2^64 - 1 (in `text` and `hex`). A key of a spatial table is a tuple
// of five numbers in every form: (min_x,min_y,max_x,max_y,id).
//
// In a file the name of a column, or of a member of a JSON object, names the form: key, key_hex, key_tuple, key_signed;
// payload, payload_hex. In JSON, text is the string itself, without backslashes; bytes that are no UTF-8 are in
// key_base64 or payload_base64. Integers are numbers there; tuples and rectangles are arrays. (A tuple that JSON cannot
// hold, with a NaN or with bytes that are no UTF-8, is written in hex.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "index/key.h"
#include "index/tuple_text.h"
#include "nlohmann/json_fwd.hpp"
#include "txn/store/key_range.h"
#include "txn/store/table.h"

namespace gannet::cli {

enum class KeyForm : uint8_t { kText, kHex, kTuple, kSigned };
enum class PayloadForm : uint8_t { kText, kHex };

// The help text of --keys.
inline constexpr const char* kKeyFormHelp =
    "How keys are written: text, hex, tuple or signed. Default: as the table was made (gannet tables), else text";
// Parse the values of flags: "text, hex, tuple or signed"; "text or hex". InvalidArgument: another name.
StatusOr<KeyForm> ParseKeyForm(const std::string& text);
StatusOr<PayloadForm> ParsePayloadForm(const std::string& text);

struct RowForms {
  std::optional<KeyForm> keys = {};  // none: that of the table
  PayloadForm payloads = PayloadForm::kText;
};

// Form `tuple` of these fields.
std::string TupleText(const std::vector<index::TupleField>& fields);

// A row that was read from a file.
struct RowBytesOwned {
  txn::KeyCopy key{index::Key()};
  std::string payload;
};

// The form of the rows of one table. Immutable; thread-safe.
class RowText {
 public:
  // InvalidArgument: the table's keys cannot have this form.
  static StatusOr<RowText> For(const txn::Table& table, const RowForms& forms);

  std::string KeyText(const index::Key& key) const;
  std::string PayloadText(std::string_view payload) const;
  // InvalidArgument, one clause, says what the text must be. Sizes are not checked: the operation does that.
  StatusOr<txn::KeyCopy> ParseKey(std::string_view text) const;
  StatusOr<std::string> ParsePayload(std::string_view text) const;

  // Names of the columns in a file.
  std::string KeyColumn() const;
  std::string PayloadColumn() const;
  // Whether a key is a number: one that is not negative, or of form `signed`.
  bool has_integer_keys() const { return kind_ == index::KeyKind::kInteger; }
  bool has_rectangles() const { return spatial_; }
  KeyForm key_form() const { return keys_; }
  // The same table with the forms that these columns name. InvalidArgument: no column of rows.
  StatusOr<RowText> WithColumns(std::string_view key_column, std::string_view payload_column) const;

  nlohmann::ordered_json ToJson(const index::Key& key, std::string_view payload) const;
  // Reads an object of ToJson of any forms. InvalidArgument names the member that is wrong or missing.
  StatusOr<RowBytesOwned> FromJson(const nlohmann::ordered_json& row) const;

 private:
  RowText(index::KeyKind kind, bool spatial, KeyForm keys, PayloadForm payloads)
      : kind_(kind), spatial_(spatial), keys_(keys), payloads_(payloads) {}
  StatusOr<txn::KeyCopy> KeyOfJson(std::string_view member, const nlohmann::ordered_json& value) const;

  index::KeyKind kind_;
  bool spatial_;
  KeyForm keys_;
  PayloadForm payloads_;
};

}  // namespace gannet::cli
