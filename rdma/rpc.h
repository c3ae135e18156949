// Encoding of requests and responses: fixed-width little-endian integers and length-prefixed byte strings, written and
// read in the same order. Both ends check bounds, because a peer's messages are untrusted.
//
//   std::array<std::byte, 64> buffer;                       // the caller
//   WireWriter writer(buffer);
//   writer.PutU32(table);
//   writer.PutString(key);
//   StatusOr<size_t> n = co_await channel->Call(owner, kFind, writer.written(), response);
//
//   WireReader reader(request);                             // the handler
//   const uint32_t table = reader.GetU32();
//   const std::span<const std::byte> key = reader.GetBytes();
//   GANNET_RETURN_IF_ERROR(reader.Finish());                // the message must end here
//   WireWriter writer(response);
//   writer.PutU64(address.bits());
//   return writer.Finish();                                 // number of bytes, or ResourceExhausted
//
// Errors are sticky: after a Get past the end every Get returns zero or an empty span, and ok() is false. So a decoder
// may read everything first and check once. It must check before it uses a value as an index or a length.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/status.h"
#include "rdma/global_address.h"

namespace gannet::rdma {

static_assert(std::endian::native == std::endian::little, "wire integers are little-endian, as x86 stores them");

class WireWriter {
 public:
  // `buffer` must outlive this.
  explicit WireWriter(std::span<std::byte> buffer) : buffer_(buffer) {}

  void PutU8(uint8_t value) { PutRaw(&value, sizeof value); }
  void PutU16(uint16_t value) { PutRaw(&value, sizeof value); }
  void PutU32(uint32_t value) { PutRaw(&value, sizeof value); }
  void PutU64(uint64_t value) { PutRaw(&value, sizeof value); }
  void PutAddress(GlobalAddress address) { PutU64(address.bits()); }
  // Writes a length of four bytes, then the bytes.
  void PutBytes(std::span<const std::byte> bytes) {
    PutU32(static_cast<uint32_t>(bytes.size()));
    PutRaw(bytes.data(), bytes.size());
  }
  void PutString(std::string_view text) { PutBytes(std::as_bytes(std::span(text))); }

  // Returns `bytes` bytes that the caller fills in place. If they do not fit, the span is empty and ok() is false.
  std::span<std::byte> Reserve(size_t bytes) {
    if (!Take(bytes)) return {};
    return buffer_.subspan(size_ - bytes, bytes);
  }

  // False once a value did not fit; nothing is written after that.
  bool ok() const { return ok_; }
  size_t size() const { return size_; }
  size_t room() const { return buffer_.size() - size_; }
  std::span<const std::byte> written() const { return buffer_.first(size_); }
  // The return value of a handler: the size written, or ResourceExhausted.
  StatusOr<size_t> Finish() const;

 private:
  bool Take(size_t bytes) {
    if (!ok_ || bytes > buffer_.size() - size_) [[unlikely]]
      return ok_ = false;
    size_ += bytes;
    return true;
  }
  void PutRaw(const void* from, size_t bytes) {
    if (Take(bytes) && bytes > 0) std::memcpy(buffer_.data() + size_ - bytes, from, bytes);
  }

  std::span<std::byte> buffer_;
  size_t size_ = 0;
  bool ok_ = true;
};

class WireReader {
 public:
  // `message` must outlive this and the spans it returns.
  explicit WireReader(std::span<const std::byte> message) : message_(message) {}

  uint8_t GetU8() { return Get<uint8_t>(); }
  uint16_t GetU16() { return Get<uint16_t>(); }
  uint32_t GetU32() { return Get<uint32_t>(); }
  uint64_t GetU64() { return Get<uint64_t>(); }
  GlobalAddress GetAddress() { return GlobalAddress::FromBits(GetU64()); }
  // Points into the message.
  std::span<const std::byte> GetBytes() { return GetRaw(GetU32()); }
  std::string_view GetString() {
    const std::span<const std::byte> bytes = GetBytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // Returns `bytes` bytes that have no length prefix: the reverse of Reserve.
  std::span<const std::byte> GetRaw(size_t bytes) {
    if (!ok_ || bytes > remaining()) [[unlikely]] {
      ok_ = false;
      return {};
    }
    at_ += bytes;
    return message_.subspan(at_ - bytes, bytes);
  }

  bool ok() const { return ok_; }
  size_t remaining() const { return message_.size() - at_; }
  // InvalidArgument if the message was too short or has bytes left.
  Status Finish() const;

 private:
  template <class T>
  T Get() {
    const std::span<const std::byte> bytes = GetRaw(sizeof(T));
    T value = 0;
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  std::span<const std::byte> message_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace gannet::rdma
