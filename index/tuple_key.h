// TupleKey: a byte key made of several fields, whose order is that of the fields, first field first.
//
//   t.Get(districts, Key::Tuple(warehouse, district), &row);
//   t.Rows(districts, KeyRange::Prefix(Key::Tuple(warehouse).bytes()))    // all districts of a warehouse
//   Status status = ReadTuple(cursor.key().bytes(), &warehouse, &district);
//
// Fields are integers, bool, double, and strings (of any bytes). The encoding is a part of what a directory holds, and
// does not change:
//
//   string    02, the bytes (00 as 01 01, 01 as 01 02), 00
//   integer   14 + n, the number in n bytes, highest first, n as small as possible (0: no bytes); a negative one:
//             14 - n, and the ones' complement of its amount
//   double    21, its 8 bytes, highest first: all inverted if it is negative, else the sign bit alone. -0 comes before
//             0; a NaN before or after all others
//   bool      26 (false) or 27 (true)
//
// No field's encoding begins another one's, so the keys that begin with certain fields are those whose bytes begin with
// the bytes of these. Fields of different types at one position are in the order of their first bytes. (Except for
// strings, this is the encoding of FoundationDB's tuple layer.)
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/status.h"
#include "index/key.h"

namespace gannet::index {

// Owns its bytes, without a heap object if they are at most kShortKeyBytes. A table says if they are too many for it.
class TupleKey {
 public:
  template <class... Fields>
  static TupleKey Of(const Fields&... fields) {
    TupleKey key;
    (key.Append(fields), ...);
    return key;
  }

  std::string_view bytes() const { return {bytes_.data(), bytes_.size()}; }
  // A view, valid as long as this object is there and unchanged.
  operator Key() const { return Key(bytes()); }  // NOLINT: a tuple is passed as a key

  void Append(std::string_view field);
  void Append(const std::string& field) { Append(std::string_view(field)); }
  void Append(const char* field) { Append(std::string_view(field)); }
  void Append(bool field);
  void Append(double field);
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>) void Append(Integer field) {
    if constexpr (std::signed_integral<Integer>) {
      if (field < 0) return AppendInteger(/*negative=*/true, ~static_cast<uint64_t>(int64_t{field}) + 1);
    }
    AppendInteger(/*negative=*/false, static_cast<uint64_t>(field));
  }

  friend bool operator==(const TupleKey& a, const TupleKey& b) { return a.bytes() == b.bytes(); }
  friend auto operator<=>(const TupleKey& a, const TupleKey& b) { return a.bytes() <=> b.bytes(); }

 private:
  // The number is `amount`, or minus that.
  void AppendInteger(bool negative, uint64_t amount);

  absl::InlinedVector<char, kShortKeyBytes> bytes_;
};

// Reads the fields of a tuple, first one first. Accepts any bytes. Not thread-safe.
class TupleReader {
 public:
  // `bytes` must outlive it.
  explicit TupleReader(std::string_view bytes) : rest_(bytes) {}

  // InvalidArgument: there is no field, it is of another type, it does not fit, or the bytes are no tuple. *field is
  // then unchanged, and so is the place of the reader.
  Status Read(std::string* field);
  Status Read(bool* field);
  Status Read(double* field);
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>) Status Read(Integer* field) {
    bool negative = false;
    uint64_t amount = 0;
    std::string_view rest = rest_;
    GANNET_RETURN_IF_ERROR(ReadInteger(&rest, &negative, &amount));
    using Limits = std::numeric_limits<Integer>;
    const uint64_t most = static_cast<uint64_t>(Limits::max()) + (negative && Limits::is_signed ? 1 : 0);
    if (amount > most || (negative && !Limits::is_signed)) return DoesNotFit();
    *field = static_cast<Integer>(negative ? ~amount + 1 : amount);
    rest_ = rest;
    return absl::OkStatus();
  }
  // True if all fields have been read.
  bool done() const { return rest_.empty(); }
  // The bytes of the fields that were not read yet.
  std::string_view rest() const { return rest_; }

 private:
  static Status DoesNotFit();
  static Status ReadInteger(std::string_view* rest, bool* negative, uint64_t* amount);

  std::string_view rest_;
};

// Reads a tuple of exactly these fields. After an error some of them may have been set.
template <class... Fields>
Status ReadTuple(std::string_view bytes, Fields*... fields) {
  TupleReader reader(bytes);
  Status status;
  static_cast<void>(((status = reader.Read(fields)).ok() && ...));
  if (status.ok() && !reader.done()) return absl::InvalidArgumentError("the tuple has more fields");
  return status;
}

template <class... Fields>
TupleKey Key::Tuple(const Fields&... fields) {
  return TupleKey::Of(fields...);
}

}  // namespace gannet::index
