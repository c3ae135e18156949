#include "index/key.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gannet::index {

Status CheckMaxKeyBytes(size_t max_key_bytes) {
  if (max_key_bytes >= 1 && max_key_bytes <= kMaxKeyBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("keys of an index have 1 to ", kMaxKeyBytes, " bytes, not ", max_key_bytes));
}

std::string Key::ToString() const {
  if (kind_ == KeyKind::kInteger) return absl::StrCat(integer_);
  if (kind_ == KeyKind::kNone) return "a negative number";
  return absl::StrCat("0x", absl::BytesToHexString(absl::string_view(data_, size_)));
}

}  // namespace gannet::index
