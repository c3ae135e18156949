// The identity of a database as the files of its log and of its checkpoints have it, so that a file of another database
// is not taken for one of this database. The manifest has the same as 32 hex digits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace gannet::log {

struct Identity {
  std::array<uint8_t, 16> bytes{};  // all zero: not known, or written before files had an identity

  // The identity is not known if `text` is not 32 hex digits, such as the empty text in manifests of version 1.
  static Identity FromText(std::string_view text);
  static Identity Random();    // drawn from base/entropy.h
  std::string ToText() const;  // 32 hex digits
  bool is_known() const { return *this != Identity{}; }
  bool operator==(const Identity&) const = default;
};

inline void StoreIdentity(std::byte* to, const Identity& identity) {
  std::memcpy(to, identity.bytes.data(), identity.bytes.size());
}
inline Identity LoadIdentity(const std::byte* from) {
  Identity identity;
  std::memcpy(identity.bytes.data(), from, identity.bytes.size());
  return identity;
}

// The reason why a file that says `found` is not of the database `expected`, with what to do; empty: it may be.
std::string OtherDatabase(const Identity& found, const Identity& expected);

}  // namespace gannet::log
