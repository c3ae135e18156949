#include "index/key.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gannet::index {

std::string Key::ToString() const {
  if (kind_ == KeyKind::kInteger) return absl::StrCat(integer_);
  return absl::StrCat("0x", absl::BytesToHexString(absl::string_view(data_, size_)));
}

}  // namespace gannet::index
