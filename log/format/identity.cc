#include "log/format/identity.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/entropy.h"

namespace gannet::log {

Identity Identity::FromText(std::string_view text) {
  Identity identity;
  if (text.size() != 2 * identity.bytes.size()) return identity;
  for (const char digit : text) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(digit))) return identity;
  }
  const std::string bytes = absl::HexStringToBytes(absl::string_view(text.data(), text.size()));
  for (size_t i = 0; i < bytes.size(); ++i) identity.bytes[i] = static_cast<uint8_t>(bytes[i]);
  return identity;
}

Identity Identity::Random() {
  const std::array<uint64_t, 2> bits = {EntropyBits(), EntropyBits() ^ NowNanos()};
  Identity identity;
  static_assert(sizeof(bits) == sizeof(identity.bytes));
  std::memcpy(identity.bytes.data(), bits.data(), sizeof(bits));
  return identity;
}

std::string Identity::ToText() const {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string OtherDatabase(const Identity& found, const Identity& expected) {
  if (!found.is_known() || !expected.is_known() || found == expected) return "";
  return absl::StrCat("the file is of another database (", found.ToText(), ") than the MANIFEST of its directory (",
                      expected.ToText(), "): put the file of this database into its place");
}

}  // namespace gannet::log
