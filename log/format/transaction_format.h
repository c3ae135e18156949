// Encoding and decoding of the transactions and changes in a batch's body.
//
//   transaction  | crc32c 4 | bytes 4 | epoch 8 | id 8 | changes 4 | part 4 | change | change | ... | zeros to 8 |
//
//   change, version 3     | control 2 | table 1-2 | payload bytes 0-4 | version 0-8 | key | payload |
//   change, versions 1-2  | kind 1 | key bytes 1 | table 2 | payload bytes 4 | version 8 | key, to 8 | payload, to 8 |
//
// All numbers little-endian. In version 3 each takes only as many bytes as it needs, and the control word says how
// many:
//
//   bits 0-3    bytes of the version, at most 8
//   bits 4-7    the key. 0-8: it has 8 bytes; the number that they make, big-endian, is stored in this many bytes
//                        9: one byte with its length (not 8, at most 64), then its bytes
//                       10: two bytes with its length (65 to 1,024), then its bytes
//   bits 8-9    bytes of the payload's length field: 0 (no payload), 1, 2, or (3) 4
//   bit 10      the table's number: 0: in 1 byte, 1: in 2
//   bit 11      the kind: a put, or a removal (which has no payload)
//   bits 12-15  zero
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "log/format/little_endian.h"

namespace gannet::log {

inline constexpr size_t kTransactionHeaderBytes = 32;
inline constexpr size_t kMaxKeyBytes = 1024;
// Longest key that every program of Gannet which knows version 3 reads. Longer ones are only in directories whose
// manifest says so (kChangedTablesManifestVersion), which an older program refuses.
inline constexpr size_t kShortKeyBytes = 64;
inline constexpr size_t kIntegerKeyBytes = 8;

enum class ChangeKind : uint8_t {
  kPut = 1,     // insert or update: the whole payload
  kRemove = 2,  // no payload
};

enum class TransactionPart : uint32_t {
  kWhole = 0,     // the whole transaction; id is 0
  kPart = 1,      // counts only together with the decision of the same epoch and id, in the log of node IdNode(id)
  kDecision = 2,  // the coordinator's changes (possibly none); says that the transaction has committed
};

// Id of a transaction of several nodes, unique within its epoch.
constexpr uint64_t TransactionIdOf(uint16_t coordinator, uint64_t counter) {
  return uint64_t{coordinator} << 48 | (counter & ((uint64_t{1} << 48) - 1));
}
constexpr uint16_t IdNode(uint64_t id) {
  return static_cast<uint16_t>(id >> 48);
}

constexpr size_t Padded8(size_t bytes) {
  return (bytes + 7) & ~size_t{7};
}

// A change. Its payload and a long key lie in another buffer.
struct ChangeView {
  ChangeKind kind = ChangeKind::kPut;
  uint16_t table = 0;
  uint64_t version = 0;
  std::span<const std::byte> payload;
  std::span<const std::byte> long_key;
  std::array<std::byte, kIntegerKeyBytes> short_key;  // the key, if `key_is_short`
  bool key_is_short = false;

  // An integer key is its big-endian 8 bytes. Valid as long as this object and the buffer.
  std::span<const std::byte> key() const { return key_is_short ? std::span<const std::byte>(short_key) : long_key; }
};

namespace internal {

inline constexpr size_t kByteKey = 9;
inline constexpr size_t kLongByteKey = 10;
inline constexpr std::array<uint8_t, 4> kLengthBytes = {0, 1, 2, 4};

constexpr size_t SignificantBytes(uint64_t number) {
  return static_cast<size_t>(64 - std::countl_zero(number) + 7) / 8;
}
constexpr size_t LengthCode(size_t payload_bytes) {
  return payload_bytes == 0 ? 0 : payload_bytes < 0x100 ? 1 : payload_bytes < 0x10000 ? 2 : 3;
}
constexpr uint16_t ControlWord(size_t version_bytes, size_t key_code, size_t length_code, bool wide_table,
                               ChangeKind kind) {
  return static_cast<uint16_t>(version_bytes | key_code << 4 | length_code << 8 | size_t{wide_table} << 10 |
                               size_t{kind == ChangeKind::kRemove} << 11);
}

}  // namespace internal

// Largest size of a change, and of a transaction without its changes: its header, and the bytes after its end that the
// encoder and the caller who fills in payloads may overwrite.
constexpr size_t MaxChangeBytes(size_t key_bytes, size_t payload_bytes) {
  return 2 + 2 + 4 + 8 + 2 + key_bytes + payload_bytes;
}
inline constexpr size_t kPayloadSlackBytes = 56;
inline constexpr size_t kTransactionOverheadBytes = kTransactionHeaderBytes + kPayloadSlackBytes + 8;

// Writes one transaction, in version 3, into a buffer that is large enough (kTransactionOverheadBytes + sum of
// MaxChangeBytes) and need not be aligned.
class TransactionEncoder {
 public:
  explicit TransactionEncoder(std::byte* at) : begin_(at), at_(at + kTransactionHeaderBytes) {}

  // Adds a change and returns the room for its payload, which the caller fills before the next call. The caller may
  // also overwrite kPayloadSlackBytes after it. The key has at most kMaxKeyBytes; a removal has no payload.
  std::byte* Add(ChangeKind kind, uint16_t table, uint64_t version, std::span<const std::byte> key,
                 size_t payload_bytes);
  // Adds a change with an integer key.
  std::byte* Add(ChangeKind kind, uint16_t table, uint64_t version, uint64_t key, size_t payload_bytes) {
    CheckPayload(kind, table, payload_bytes);
    const size_t key_bytes = internal::SignificantBytes(key);
    std::byte* at = at_;
    if (table < 0x100 && payload_bytes - 1 < 0xff) [[likely]] {
      at = PutShortNumbers(at, static_cast<uint8_t>(table), version, key_bytes, static_cast<uint8_t>(payload_bytes));
    } else {
      at = PutNumbers(at, kind, table, version, key_bytes, payload_bytes);
    }
    StoreLittle(at, key);
    return PassPayload(at + key_bytes, payload_bytes);
  }

  // Returns the size of the transaction in bytes, a multiple of 8.
  size_t Finish(uint64_t epoch, TransactionPart part = TransactionPart::kWhole, uint64_t id = 0);

 private:
  // The decoder refuses a removal with a payload, so the whole transaction would be lost. (Where the kind is a
  // constant, this costs nothing.)
  static void CheckPayload(ChangeKind kind, uint16_t table, size_t payload_bytes) {
    GANNET_CHECK(kind == ChangeKind::kPut || payload_bytes == 0, "a removal from table %d with %d bytes of payload",
                 table, payload_bytes);
  }
  // Stores each number with all its bytes; the next one overwrites the unneeded bytes. Returns the end. (Uses `at` and
  // not at_, which the compiler would reload after each store.)
  static std::byte* PutNumbers(std::byte* at, ChangeKind kind, uint16_t table, uint64_t version, size_t key_code,
                               size_t payload_bytes) {
    const size_t version_bytes = internal::SignificantBytes(version);
    const size_t length_code = internal::LengthCode(payload_bytes);
    const bool wide_table = table >= 0x100;
    StoreLittle(at, internal::ControlWord(version_bytes, key_code, length_code, wide_table, kind));
    at += sizeof(uint16_t);
    StoreLittle(at, table);
    at += size_t{1} + wide_table;
    StoreLittle(at, static_cast<uint32_t>(payload_bytes));
    at += internal::kLengthBytes[length_code];
    StoreLittle(at, version);
    return at + version_bytes;
  }
  // PutNumbers for most puts: a table below 256, and 1 to 255 bytes of payload.
  static std::byte* PutShortNumbers(std::byte* at, uint8_t table, uint64_t version, size_t key_code,
                                    uint8_t payload_bytes) {
    const size_t version_bytes = internal::SignificantBytes(version);
    const uint32_t control = internal::ControlWord(version_bytes, key_code, 1, false, ChangeKind::kPut);
    StoreLittle(at, control | uint32_t{table} << 16 | uint32_t{payload_bytes} << 24);
    at += sizeof(uint32_t);
    StoreLittle(at, version);
    return at + version_bytes;
  }
  std::byte* PassPayload(std::byte* payload, size_t payload_bytes) {
    at_ = payload + payload_bytes;
    ++changes_;
    return payload;
  }

  std::byte* begin_;
  std::byte* at_;
  uint32_t changes_ = 0;
};

// Reads transactions from a batch's body. It never reads beyond the body, even if the bytes are invalid. The body must
// outlive it. A copy continues independently from the original's position.
class TransactionDecoder {
 public:
  // `version`: version of the segment that holds the body.
  TransactionDecoder(std::span<const std::byte> body, uint32_t version) : rest_(body), compact_(version >= 3) {}
  // Moves to the next transaction, and appends its changes to *changes, if that is not null. False at the end.
  // DataLoss: the transaction is damaged; consumed() is then its offset. Otherwise consumed() is the offset after it.
  StatusOr<bool> Next(std::vector<ChangeView>* changes = nullptr);
  // Called after DataLoss. Skips to the end that the damaged transaction's header gives. False if that end is
  // impossible.
  bool SkipDamaged();
  uint64_t epoch() const { return epoch_; }
  TransactionPart part() const { return part_; }
  uint64_t id() const { return id_; }
  uint32_t changes() const { return changes_; }
  size_t consumed() const { return consumed_; }

 private:
  Status TakeAll(std::span<const std::byte> all, uint32_t changes, std::vector<ChangeView>* decoded) const;
  // Takes one change off the front of `from`; false if there is no valid change.
  bool Take(std::span<const std::byte>* from, ChangeView* change) const;

  std::span<const std::byte> rest_;  // after this transaction
  bool compact_;
  size_t consumed_ = 0;
  uint64_t epoch_ = 0;
  uint64_t id_ = 0;
  TransactionPart part_ = TransactionPart::kWhole;
  uint32_t changes_ = 0;
};

}  // namespace gannet::log
