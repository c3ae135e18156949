// The cryptography of the control channel, by OpenSSL: random bytes, HMAC-SHA256, a constant-time comparison, and
// authenticated encryption (AES-256-GCM).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace gannet::rdma::control {

inline constexpr size_t kKeyBytes = 32;
using Key = std::array<std::byte, kKeyBytes>;  // of HMAC and of AES; also a nonce of the handshake
inline constexpr size_t kTagBytes = 16;
using Tag = std::array<std::byte, kTagBytes>;  // of AES-GCM; also the first bytes of an HMAC

// Returns unpredictable bytes. Stops the program if the system has none, because there is no safe way to continue.
void FillRandom(std::span<std::byte> bytes);

// HMAC-SHA256 of the parts, each preceded by its length, so that different lists of parts have different texts.
Key Authenticate(std::span<const std::byte> key, std::initializer_list<std::span<const std::byte>> parts);

bool SameBytes(std::span<const std::byte> a, std::span<const std::byte> b);

// One message per key (the nonce is fixed): a key is derived for each purpose.
std::vector<std::byte> Seal(const Key& key, std::span<const std::byte> plain);
// PermissionDenied if it was not sealed with this key or was changed since.
StatusOr<std::vector<std::byte>> Open(const Key& key, std::span<const std::byte> sealed);

inline std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace gannet::rdma::control
