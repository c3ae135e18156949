#include "log/format/utf8.h"

#include <cstddef>
#include <cstdint>

namespace gannet::log {
namespace {

// Length in bytes of the character at the beginning of `text`; 0 if it is not valid.
size_t CharacterBytes(std::string_view text) {
  const auto at = [text](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t lead = at(0);
  if (lead < 0x80) return 1;
  const size_t bytes = lead >= 0xc2 && lead < 0xe0   ? 2
                       : lead >= 0xe0 && lead < 0xf0 ? 3
                       : lead >= 0xf0 && lead < 0xf5 ? 4
                                                     : 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && at(1) < 0xa0) || (lead == 0xf0 && at(1) < 0x90);
  const bool surrogate = lead == 0xed && at(1) >= 0xa0;
  const bool too_large = lead == 0xf4 && at(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : bytes;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace gannet::log
