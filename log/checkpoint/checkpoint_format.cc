#include "log/checkpoint/checkpoint_format.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "log/format/crc32c.h"
#include "log/format/little_endian.h"

namespace gannet::log {

namespace {

constexpr uint32_t kFirstCheckpointWithDatabase = 2;

namespace header_at {
constexpr size_t kMagic = 0;
constexpr size_t kCrc = 8;
constexpr size_t kVersion = 12;
constexpr size_t kCheckpoint = 16;
constexpr size_t kTable = 24;
constexpr size_t kEnd = 26;
constexpr size_t kDatabase = 32;  // from version 2 on
constexpr size_t kEndWithDatabase = 48;
}  // namespace header_at

namespace block_at {
constexpr size_t kCrc = 0;
constexpr size_t kMagic = 4;
constexpr size_t kBodyBytes = 8;
constexpr size_t kRecords = 12;
}  // namespace block_at

namespace record_at {
constexpr size_t kKeyBytes = 0;
constexpr size_t kTable = 2;
constexpr size_t kPayloadBytes = 4;
constexpr size_t kEpoch = 8;
constexpr size_t kVersion = 16;
}  // namespace record_at

// Bytes of the record at the beginning of `from`, or 0 if there is no valid one.
size_t ValidRecordBytes(std::span<const std::byte> from) {
  namespace at = record_at;
  if (from.size() < kRecordHeaderBytes) return 0;
  const size_t key_bytes = LoadLittle<uint16_t>(&from[at::kKeyBytes]);
  const size_t payload_bytes = LoadLittle<uint32_t>(&from[at::kPayloadBytes]);
  if (key_bytes > kMaxKeyBytes) return 0;
  const size_t payload_begin = kRecordHeaderBytes + Padded8(key_bytes);
  const size_t payload_end = payload_begin + payload_bytes;
  const size_t bytes = Padded8(payload_end);
  if (bytes > from.size()) return 0;
  if (!AllZero(from.subspan(kRecordHeaderBytes + key_bytes, Padded8(key_bytes) - key_bytes))) return 0;
  if (!AllZero(from.subspan(payload_end, bytes - payload_end))) return 0;
  return bytes;
}

}  // namespace

void CheckpointHeader::Encode(std::span<std::byte, kCheckpointHeaderBytes> to) const {
  namespace at = header_at;
  std::fill(to.begin(), to.end(), std::byte{0});
  StoreLittle(&to[at::kMagic], kCheckpointMagic);
  StoreLittle(&to[at::kVersion], kCheckpointVersion);
  StoreLittle(&to[at::kCheckpoint], checkpoint);
  StoreLittle(&to[at::kTable], table);
  StoreIdentity(&to[at::kDatabase], database);
  StoreLittle(&to[at::kCrc], Crc32c(to.subspan<at::kVersion>()));
}

StatusOr<CheckpointHeader> CheckpointHeader::Decode(std::span<const std::byte, kCheckpointHeaderBytes> from) {
  namespace at = header_at;
  if (LoadLittle<uint64_t>(&from[at::kMagic]) != kCheckpointMagic)
    return absl::DataLossError("it does not begin like a checkpoint file of Gannet");
  if (LoadLittle<uint32_t>(&from[at::kCrc]) != Crc32c(from.subspan<at::kVersion>()))
    return absl::DataLossError("the checksum of the file header does not match");
  const auto version = LoadLittle<uint32_t>(&from[at::kVersion]);
  if (version == 0 || version > kCheckpointVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the checkpoint has format version ", version,
                                                   ", this program knows versions up to ", kCheckpointVersion,
                                                   ": use the version of Gannet that wrote it, or a newer one"));
  }
  const bool has_database = version >= kFirstCheckpointWithDatabase;
  if (!AllZero(from.subspan(at::kEnd, at::kDatabase - at::kEnd)) ||
      !AllZero(from.subspan(has_database ? at::kEndWithDatabase : at::kDatabase)))
    return absl::DataLossError("the file header has bytes set that should be zero");
  CheckpointHeader header;
  if (has_database) header.database = LoadIdentity(&from[at::kDatabase]);
  header.checkpoint = LoadLittle<uint64_t>(&from[at::kCheckpoint]);
  header.table = LoadLittle<uint16_t>(&from[at::kTable]);
  return header;
}

size_t EncodeRecord(const CheckpointRecord& record, std::byte* to) {
  namespace at = record_at;
  GANNET_CHECK(record.key.size() <= kMaxKeyBytes, "a key of %d bytes", record.key.size());
  StoreLittle(to + at::kKeyBytes, static_cast<uint16_t>(record.key.size()));
  StoreLittle(to + at::kTable, record.table);
  StoreLittle(to + at::kPayloadBytes, static_cast<uint32_t>(record.payload.size()));
  StoreLittle(to + at::kEpoch, record.epoch);
  StoreLittle(to + at::kVersion, record.version);
  std::byte* const key_at = to + kRecordHeaderBytes;
  std::byte* const payload_at = key_at + Padded8(record.key.size());
  if (!record.key.empty()) std::memcpy(key_at, record.key.data(), record.key.size());
  if (!record.payload.empty()) std::memcpy(payload_at, record.payload.data(), record.payload.size());
  return RecordBytes(record);
}

uint32_t BlockHeader::Seal(std::span<std::byte> block, uint32_t records) {
  namespace at = block_at;
  // A block without records is the last one: it has a size of its own.
  const size_t body_bytes = block.size() - kBlockHeaderBytes;
  GANNET_CHECK(
      body_bytes <= UINT32_MAX && (records == 0 ? body_bytes == kLastBlockBytes : body_bytes >= kRecordHeaderBytes),
      "a block of %d bytes with %d records", body_bytes, records);
  StoreLittle(&block[at::kMagic], kCheckpointBlockMagic);
  StoreLittle(&block[at::kBodyBytes], static_cast<uint32_t>(body_bytes));
  StoreLittle(&block[at::kRecords], records);
  const uint32_t crc = Crc32c(block.subspan(at::kMagic));
  StoreLittle(&block[at::kCrc], crc);
  return crc;
}

StatusOr<BlockHeader> BlockHeader::Decode(std::span<const std::byte, kBlockHeaderBytes> from) {
  namespace at = block_at;
  if (LoadLittle<uint32_t>(&from[at::kMagic]) != kCheckpointBlockMagic)
    return absl::DataLossError("no block begins here");
  BlockHeader header;
  header.crc = LoadLittle<uint32_t>(&from[at::kCrc]);
  header.body_bytes = LoadLittle<uint32_t>(&from[at::kBodyBytes]);
  header.records = LoadLittle<uint32_t>(&from[at::kRecords]);
  return header;
}

StatusOr<BlockDecoder> BlockDecoder::Check(const BlockHeader& header, std::span<const std::byte> block) {
  const uint64_t end = kBlockHeaderBytes + uint64_t{header.body_bytes};
  if (block.size() < BlockBytesOnDisk(header.body_bytes)) return absl::DataLossError("the block is cut off");
  if (header.crc != Crc32c(block.subspan(block_at::kMagic, end - block_at::kMagic)))
    return absl::DataLossError("the checksum of the block does not match");
  if (!AllZero(block.subspan(end))) return absl::DataLossError("the padding of the block is not all zeros");
  const auto body = block.subspan(kBlockHeaderBytes, header.body_bytes);
  if (header.records == 0) {
    if (body.size() != kLastBlockBytes) return absl::DataLossError("the last block has a wrong size");
    return BlockDecoder(body);
  }
  uint32_t found = 0;
  for (auto left = body; !left.empty(); ++found) {
    const size_t bytes = ValidRecordBytes(left);
    if (bytes == 0) return absl::DataLossError("a record within the block is not valid");
    left = left.subspan(bytes);
  }
  if (found != header.records) return absl::DataLossError("the block does not hold as many records as its header says");
  return BlockDecoder(body);
}

bool BlockDecoder::Next(CheckpointRecord* record) {
  namespace at = record_at;
  if (body_.empty()) return false;
  const size_t key_bytes = LoadLittle<uint16_t>(&body_[at::kKeyBytes]);
  const size_t payload_bytes = LoadLittle<uint32_t>(&body_[at::kPayloadBytes]);
  record->table = LoadLittle<uint16_t>(&body_[at::kTable]);
  record->epoch = LoadLittle<uint64_t>(&body_[at::kEpoch]);
  record->version = LoadLittle<uint64_t>(&body_[at::kVersion]);
  record->key = body_.subspan(kRecordHeaderBytes, key_bytes);
  record->payload = body_.subspan(kRecordHeaderBytes + Padded8(key_bytes), payload_bytes);
  body_ = body_.subspan(RecordBytes(*record));
  return true;
}

}  // namespace gannet::log
