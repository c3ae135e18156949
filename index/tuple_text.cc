#include "index/tuple_text.h"

#include <array>
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "index/tuple_key.h"

namespace gannet::index {

std::string NumberText(double number, bool whole) {
  std::array<char, 32> buffer;
  char* const begin = buffer.data();
  std::string text(begin, std::to_chars(begin, begin + buffer.size(), number).ptr);
  if (!whole && text.find_first_of(".enai") == std::string::npos) text += ".0";
  return text;
}

StatusOr<std::vector<TupleField>> FieldsOfTuple(std::string_view key) {
  std::vector<TupleField> fields;
  index::TupleReader reader(key);
  while (!reader.done()) {
    TupleField field;
    if (reader.Read(&field.string).ok()) {
      field.type = TupleField::Type::kString;
    } else if (reader.Read(&field.natural).ok()) {
      field.type = TupleField::Type::kNatural;
    } else if (reader.Read(&field.negative).ok()) {
      field.type = TupleField::Type::kNegative;
    } else if (reader.Read(&field.truth).ok()) {
      field.type = TupleField::Type::kBool;
    } else {
      GANNET_RETURN_IF_ERROR(reader.Read(&field.number));
      field.type = TupleField::Type::kDouble;
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string TupleText(const std::vector<TupleField>& fields, absl::FunctionRef<std::string(std::string_view)> quoted) {
  std::string text = "(";
  for (const TupleField& field : fields) {
    if (text.size() > 1) text += ',';
    switch (field.type) {
      case TupleField::Type::kString:
        text += quoted(field.string);
        break;
      case TupleField::Type::kNegative:
        text += absl::StrCat(field.negative);
        break;
      case TupleField::Type::kNatural:
        text += absl::StrCat(field.natural);
        break;
      case TupleField::Type::kDouble:
        text += NumberText(field.number, /*whole=*/false);
        break;
      case TupleField::Type::kBool:
        text += field.truth ? "true" : "false";
        break;
    }
  }
  return text + ")";
}

}  // namespace gannet::index
