#include "rdma/control/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <memory>

#include "base/check.h"

namespace gannet::rdma::control {
namespace {

constexpr std::array<unsigned char, 12> kNonce{};

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

unsigned char* Raw(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}
const unsigned char* Raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

void Append(std::vector<std::byte>* to, std::span<const std::byte> bytes) {
  const uint64_t size = bytes.size();
  const auto length = std::as_bytes(std::span(&size, 1));
  to->insert(to->end(), length.begin(), length.end());
  to->insert(to->end(), bytes.begin(), bytes.end());
}

}  // namespace

void FillRandom(std::span<std::byte> bytes) {
  const int ok = RAND_bytes(Raw(bytes.data()), static_cast<int>(bytes.size()));
  GANNET_CHECK(ok == 1, "the system has no random bytes");
}

Key Authenticate(std::span<const std::byte> key, std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<std::byte> text;
  for (const std::span<const std::byte> part : parts) Append(&text, part);
  Key mac;
  unsigned int bytes = kKeyBytes;
  const unsigned char* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), Raw(text.data()),
                                   text.size(), Raw(mac.data()), &bytes);
  GANNET_CHECK(made != nullptr && bytes == kKeyBytes, "HMAC-SHA256 made %d bytes", bytes);
  return mac;
}

bool SameBytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::vector<std::byte> Seal(const Key& key, std::span<const std::byte> plain) {
  const Cipher cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  std::vector<std::byte> sealed(plain.size() + kTagBytes);
  int bytes = 0, last = 0;
  const bool made =
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Raw(key.data()), kNonce.data()) == 1 &&
      EVP_EncryptUpdate(cipher.get(), Raw(sealed.data()), &bytes, Raw(plain.data()), static_cast<int>(plain.size())) ==
          1 &&
      EVP_EncryptFinal_ex(cipher.get(), Raw(sealed.data()) + bytes, &last) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, sealed.data() + plain.size()) == 1;
  GANNET_CHECK(made, "AES-256-GCM failed after %d bytes", bytes);
  return sealed;
}

StatusOr<std::vector<std::byte>> Open(const Key& key, std::span<const std::byte> sealed) {
  if (sealed.size() < kTagBytes) return absl::PermissionDeniedError("the sealed message is too short");
  Tag tag;
  const std::span<const std::byte> body = sealed.first(sealed.size() - kTagBytes);
  std::copy(sealed.end() - kTagBytes, sealed.end(), tag.begin());
  const Cipher cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  std::vector<std::byte> plain(body.size());
  int bytes = 0, last = 0;
  std::array<unsigned char, 16> rest;
  const bool opened =
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Raw(key.data()), kNonce.data()) == 1 &&
      EVP_DecryptUpdate(cipher.get(), Raw(plain.data()), &bytes, Raw(body.data()), static_cast<int>(body.size())) ==
          1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), rest.data(), &last) == 1;
  if (!opened) return absl::PermissionDeniedError("the sealed message was made with another key, or changed");
  return plain;
}

}  // namespace gannet::rdma::control
