// KeyForm: what the keys of a table mean to those that make them. A data directory keeps it with the table, so that
// programs that print rows, or take keys from a user, need not be told: the program gannet, messages, other languages.
// The engine compares numbers and bytes, whatever the form is, and does not check that keys have it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "index/key.h"

namespace gannet::txn {

enum class KeyForm : uint8_t {
  kPlain,   // numbers from 0 on, bytes, or rectangles; or the form is not known
  kText,    // byte keys that are UTF-8
  kTuple,   // byte keys of Key::Tuple
  kSigned,  // integer keys of Key::Signed
};

// "text", "tuple", "signed"; empty for kPlain. Data directories have these names.
std::string_view NameOf(KeyForm form);
// InvalidArgument: no form has this name.
StatusOr<KeyForm> KeyFormOf(std::string_view name);
// InvalidArgument, a clause: a table with these keys cannot have this form, or it is none. `spatial`: its keys are
// rectangles.
Status CheckKeyForm(KeyForm form, index::KeyKind kind, bool spatial);

}  // namespace gannet::txn
