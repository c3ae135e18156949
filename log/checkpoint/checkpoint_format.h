// The files of a checkpoint, versions 1 and 2. docs/log_format.md is the description for people.
//
//   file    | header 4096 | block | block | ... | last block |
//   block   | crc32c 4 | magic 4 | bytes 4 | records 4 | record | record | ... | zeros to a multiple of 4096 |
//   record  | key bytes 2 | table 2 | payload bytes 4 | epoch 8 | version 8 | key, to 8 | payload, to 8 |
//
// The last block has no records; its 16 bytes give the numbers of blocks and of records before it. A block's CRC32C
// covers the bytes after itself, up to the end of the records; `bytes` is the size of the records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "log/checkpoint/checkpoint.h"
#include "log/format/identity.h"
#include "log/format/transaction_format.h"

namespace gannet::log {

inline constexpr uint64_t kCheckpointMagic = 0x31504b43544e4e47;  // "GNNTCKP1"
inline constexpr uint32_t kCheckpointBlockMagic = 0x31424347;     // "GCB1"
inline constexpr uint32_t kCheckpointVersion = 2;
inline constexpr size_t kCheckpointHeaderBytes = 4096;
inline constexpr size_t kBlockHeaderBytes = 16;
inline constexpr size_t kRecordHeaderBytes = 24;
inline constexpr size_t kLastBlockBytes = 16;

struct CheckpointHeader {
  uint64_t checkpoint = 0;
  uint16_t table = 0;
  Identity database{};  // from version 2 on

  void Encode(std::span<std::byte, kCheckpointHeaderBytes> to) const;
  // Errors as in SegmentHeader::Decode.
  static StatusOr<CheckpointHeader> Decode(std::span<const std::byte, kCheckpointHeaderBytes> from);
};

constexpr size_t RecordBytes(const CheckpointRecord& record) {
  return kRecordHeaderBytes + Padded8(record.key.size()) + Padded8(record.payload.size());
}
constexpr uint64_t BlockBytesOnDisk(uint64_t body_bytes) {
  return (kBlockHeaderBytes + body_bytes + 4095) / 4096 * 4096;
}

// `to` has room for RecordBytes and is zeroed. Returns RecordBytes.
size_t EncodeRecord(const CheckpointRecord& record, std::byte* to);

struct BlockHeader {
  uint32_t crc = 0;
  uint32_t body_bytes = 0;
  uint32_t records = 0;

  // Fills in the header of `block`, which has kBlockHeaderBytes for the header and then the body. Returns the CRC.
  static uint32_t Seal(std::span<std::byte> block, uint32_t records);
  // Decodes a header, which is not yet checked against the body.
  static StatusOr<BlockHeader> Decode(std::span<const std::byte, kBlockHeaderBytes> from);
};

// Decodes the records of a block. `block`: BlockBytesOnDisk of its header, including the header.
class BlockDecoder {
 public:
  // DataLoss unless the whole block is valid.
  static StatusOr<BlockDecoder> Check(const BlockHeader& header, std::span<const std::byte> block);
  bool Next(CheckpointRecord* record);
  // Bytes of the records.
  std::span<const std::byte> body() const { return body_; }

 private:
  explicit BlockDecoder(std::span<const std::byte> body) : body_(body) {}
  std::span<const std::byte> body_;
};

}  // namespace gannet::log
