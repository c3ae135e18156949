// Tuple keys as text, such as (12,"Main",true,2.5), for messages and for programs that print rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"

namespace gannet::index {

// One field of a tuple, of any type.
struct TupleField {
  enum class Type : uint8_t { kString, kNegative, kNatural, kDouble, kBool };
  Type type = Type::kString;
  std::string string = {};
  int64_t negative = 0;
  uint64_t natural = 0;
  double number = 0;
  bool truth = false;
};

// The fields of a tuple key (index/tuple_key.h); InvalidArgument if the bytes are none.
StatusOr<std::vector<TupleField>> FieldsOfTuple(std::string_view key);

// `quoted` writes a string with its quotes. A double has a point or an exponent.
std::string TupleText(const std::vector<TupleField>& fields, absl::FunctionRef<std::string(std::string_view)> quoted);

// The shortest text that is this number; with a point or an exponent, unless `whole` may look like an integer.
std::string NumberText(double number, bool whole);

}  // namespace gannet::index
