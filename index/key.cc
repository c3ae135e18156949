#include "index/key.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gannet::index {

Status CheckMaxKeyBytes(size_t max_key_bytes, size_t most) {
  if (max_key_bytes >= 1 && max_key_bytes <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("keys of this kind of index have 1 to ", most, " bytes, not ", max_key_bytes));
}

std::string Key::ToString() const {
  if (kind_ == KeyKind::kInteger) return absl::StrCat(integer_);
  if (kind_ == KeyKind::kNone) return absl::StrCat(static_cast<int64_t>(integer_));
  const std::string shown = absl::BytesToHexString(absl::string_view(data_, std::min<size_t>(size_, kShortKeyBytes)));
  return size_ <= kShortKeyBytes ? absl::StrCat("0x", shown) : absl::StrCat("0x", shown, "... (", size_, " bytes)");
}

void OwnedKey::SetLong(std::string_view bytes) {
  char* const copy = new char[bytes.size()];
  std::memcpy(copy, bytes.data(), bytes.size());
  long_ = copy;
}

}  // namespace gannet::index
