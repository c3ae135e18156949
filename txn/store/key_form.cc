#include "txn/store/key_form.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace gannet::txn {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"", "text", "tuple", "signed"};  // by KeyForm

}  // namespace

std::string_view NameOf(KeyForm form) {
  return kNames[static_cast<size_t>(form)];
}

StatusOr<KeyForm> KeyFormOf(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found != kNames.end()) return static_cast<KeyForm>(found - kNames.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(name), "' is no form of keys; there are text, tuple and signed"));
}

Status CheckKeyForm(KeyForm form, index::KeyKind kind, bool spatial) {
  if (static_cast<size_t>(form) >= kNames.size()) {
    return absl::InvalidArgumentError(absl::StrCat("key_form is ", static_cast<int>(form), ", which is not a KeyForm"));
  }
  const bool integer = kind == index::KeyKind::kInteger;
  const bool needs_integer = form == KeyForm::kSigned;
  if (form == KeyForm::kPlain || (needs_integer ? integer : !integer && !spatial)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("key_form is ", std::string(NameOf(form)), ", which is for ",
                                                 needs_integer ? "integer" : "byte", " keys, and its keys are ",
                                                 integer   ? "integers"
                                                 : spatial ? "rectangles"
                                                           : "bytes",
                                                 ": leave the form out, or choose other keys"));
}

}  // namespace gannet::txn
