#include "log/format/segment_format.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "log/format/crc32c.h"
#include "log/format/little_endian.h"
#include "log/format/transaction_format.h"

namespace gannet::log {

namespace {

// Byte positions. docs/log_format.md has the same as tables. In every version of the format, present and future, a
// segment begins with its magic, the checksum of the rest of its header, and the version.
namespace segment_at {
constexpr size_t kMagic = 0;
constexpr size_t kCrc = 8;
constexpr size_t kVersion = 12;
constexpr size_t kSegment = 16;
constexpr size_t kBytes = 24;
constexpr size_t kRun = 32;
constexpr size_t kFirstBatch = 40;
constexpr size_t kPreviousEnd = 48;
constexpr size_t kRecoveredEpoch = 56;
constexpr size_t kClosedEpoch = 64;
constexpr size_t kNode = 72;
constexpr size_t kNumNodes = 74;
constexpr size_t kFlags = 76;
constexpr size_t kEndMark = 80;
// Places in headers from version 4 on.
constexpr size_t kDatabase = 88;
constexpr size_t kSecondEndMark = 104;
// Places in headers from version 5 on.
constexpr size_t kRunIdentity = 112;
constexpr size_t kPreviousRunIdentity = 128;
constexpr size_t kThirdEndMark = 144;
}  // namespace segment_at

// Earlier versions have no flags: version 2 itself means that the file is reused, version 1 that it is not.
constexpr uint32_t kFirstVersionWithFlags = 3;
constexpr uint32_t kReusedFlag = 1;
constexpr uint32_t kFirstSegmentWithDatabase = 4;
constexpr uint32_t kFirstVersionWithRuns = 5;

// The place of the last word of the header of this version, an end mark; the rest is zero.
size_t LastMark(uint32_t version) {
  if (version >= kFirstVersionWithRuns) return segment_at::kThirdEndMark;
  return version >= kFirstSegmentWithDatabase ? segment_at::kSecondEndMark : segment_at::kEndMark;
}

namespace batch_at {
constexpr size_t kCrc = 0;
constexpr size_t kMagic = 4;
constexpr size_t kBatch = 8;
constexpr size_t kSegment = 16;
constexpr size_t kClosedEpoch = 24;
constexpr size_t kWallNanos = 32;
constexpr size_t kBodyBytes = 40;
constexpr size_t kTransactions = 44;
constexpr size_t kEnd = 48;
}  // namespace batch_at

}  // namespace

void SegmentHeader::Encode(std::span<std::byte, kSegmentHeaderBytes> to) const {
  namespace at = segment_at;
  std::fill(to.begin(), to.end(), std::byte{0});
  StoreLittle(&to[at::kMagic], kSegmentMagic);
  StoreLittle(&to[at::kVersion], version);
  if (version >= kFirstVersionWithFlags) StoreLittle(&to[at::kFlags], reused ? kReusedFlag : 0);
  StoreLittle(&to[at::kSegment], segment);
  StoreLittle(&to[at::kBytes], bytes);
  StoreLittle(&to[at::kRun], run);
  StoreLittle(&to[at::kNode], node);
  StoreLittle(&to[at::kNumNodes], num_nodes);
  StoreLittle(&to[at::kFirstBatch], first_batch);
  StoreLittle(&to[at::kPreviousEnd], previous_end);
  StoreLittle(&to[at::kRecoveredEpoch], recovered_epoch);
  StoreLittle(&to[at::kClosedEpoch], closed_epoch);
  StoreLittle(&to[at::kEndMark], kSegmentEndMark);
  if (version >= kFirstSegmentWithDatabase) {
    StoreIdentity(&to[at::kDatabase], database);
    StoreLittle(&to[at::kSecondEndMark], kSegmentEndMark);
  }
  if (version >= kFirstVersionWithRuns) {
    StoreIdentity(&to[at::kRunIdentity], run_identity);
    StoreIdentity(&to[at::kPreviousRunIdentity], previous_run_identity);
    StoreLittle(&to[at::kThirdEndMark], kSegmentEndMark);
  }
  StoreLittle(&to[at::kCrc], Crc32c(to.subspan<at::kVersion>()));
}

StatusOr<SegmentHeader> SegmentHeader::Decode(std::span<const std::byte, kSegmentHeaderBytes> from) {
  namespace at = segment_at;
  if (!HasMagic(from)) return absl::InvalidArgumentError("it does not begin as a log segment of Gannet does");
  if (LoadLittle<uint32_t>(&from[at::kCrc]) != Crc32c(from.subspan<at::kVersion>()))
    return absl::DataLossError("the checksum of the segment header does not match");
  SegmentHeader header;
  header.version = LoadLittle<uint32_t>(&from[at::kVersion]);
  if (header.version == 0 || header.version > kFormatVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the log has format version ", header.version,
                                                   ", this program knows versions up to ", kFormatVersion,
                                                   ": use the version of Gannet that wrote it, or a newer one"));
  }
  header.segment = LoadLittle<uint64_t>(&from[at::kSegment]);
  header.bytes = LoadLittle<uint64_t>(&from[at::kBytes]);
  header.run = LoadLittle<uint64_t>(&from[at::kRun]);
  header.node = LoadLittle<uint16_t>(&from[at::kNode]);
  header.num_nodes = LoadLittle<uint16_t>(&from[at::kNumNodes]);
  header.first_batch = LoadLittle<uint64_t>(&from[at::kFirstBatch]);
  header.previous_end = LoadLittle<uint64_t>(&from[at::kPreviousEnd]);
  header.recovered_epoch = LoadLittle<uint64_t>(&from[at::kRecoveredEpoch]);
  header.closed_epoch = LoadLittle<uint64_t>(&from[at::kClosedEpoch]);
  const size_t last_mark = LastMark(header.version);
  bool ends = true;
  for (const size_t mark : {at::kEndMark, at::kSecondEndMark, at::kThirdEndMark})
    ends &= mark > last_mark || LoadLittle<uint64_t>(&from[mark]) == kSegmentEndMark;
  if (header.version >= kFirstSegmentWithDatabase) header.database = LoadIdentity(&from[at::kDatabase]);
  if (header.version >= kFirstVersionWithRuns) {
    header.run_identity = LoadIdentity(&from[at::kRunIdentity]);
    header.previous_run_identity = LoadIdentity(&from[at::kPreviousRunIdentity]);
  }
  if (!ends || !AllZero(from.subspan(last_mark + sizeof(kSegmentEndMark))))
    return absl::DataLossError("the segment header has bytes set that should be zero");
  const auto flags = LoadLittle<uint32_t>(&from[at::kFlags]);
  if ((flags & ~(header.version >= kFirstVersionWithFlags ? kReusedFlag : 0)) != 0)
    return absl::DataLossError("the segment header has flags set that its version does not know");
  header.reused = header.version == 2 || flags == kReusedFlag;
  return header;
}

bool SegmentHeader::HasMagic(std::span<const std::byte, kSegmentHeaderBytes> from) {
  return LoadLittle<uint64_t>(&from[segment_at::kMagic]) == kSegmentMagic;
}

bool SegmentHeader::Torn(std::span<const std::byte, kSegmentHeaderBytes> from) {
  namespace at = segment_at;
  const auto is_zero = [&](size_t place) { return LoadLittle<uint64_t>(&from[place]) == 0; };
  if (is_zero(at::kMagic) || is_zero(at::kEndMark)) return true;
  const auto version = LoadLittle<uint32_t>(&from[at::kVersion]);
  return version <= kFormatVersion && is_zero(LastMark(version));
}

void BatchHeader::Encode(std::span<std::byte, kBatchHeaderBytes> to) const {
  namespace at = batch_at;
  // Decode refuses other numbers, so the batch and all after it would be lost.
  GANNET_CHECK(body_bytes % 8 == 0 && transactions <= body_bytes / kTransactionHeaderBytes,
               "batch %d of segment %d has %d transactions in %d bytes", batch, segment, transactions, body_bytes);
  std::fill(to.begin(), to.end(), std::byte{0});
  StoreLittle(&to[at::kMagic], kBatchMagic);
  StoreLittle(&to[at::kBatch], batch);
  StoreLittle(&to[at::kSegment], segment);
  StoreLittle(&to[at::kClosedEpoch], closed_epoch);
  StoreLittle(&to[at::kWallNanos], wall_nanos);
  StoreLittle(&to[at::kBodyBytes], body_bytes);
  StoreLittle(&to[at::kTransactions], transactions);
  StoreLittle(&to[at::kCrc], Crc32c(to.subspan<at::kMagic>()));
}

StatusOr<BatchHeader> BatchHeader::Decode(std::span<const std::byte, kBatchHeaderBytes> from) {
  namespace at = batch_at;
  if (LoadLittle<uint32_t>(&from[at::kMagic]) != kBatchMagic) return absl::DataLossError("no batch begins here");
  if (LoadLittle<uint32_t>(&from[at::kCrc]) != Crc32c(from.subspan<at::kMagic>()))
    return absl::DataLossError("the checksum of the batch header does not match");
  BatchHeader header;
  header.batch = LoadLittle<uint64_t>(&from[at::kBatch]);
  header.segment = LoadLittle<uint64_t>(&from[at::kSegment]);
  header.closed_epoch = LoadLittle<uint64_t>(&from[at::kClosedEpoch]);
  header.wall_nanos = LoadLittle<uint64_t>(&from[at::kWallNanos]);
  header.body_bytes = LoadLittle<uint32_t>(&from[at::kBodyBytes]);
  header.transactions = LoadLittle<uint32_t>(&from[at::kTransactions]);
  if (!AllZero(from.subspan<at::kEnd>()))
    return absl::DataLossError("the batch header has bytes set that should be zero");
  if (header.body_bytes % 8 != 0 || header.transactions > header.body_bytes / kTransactionHeaderBytes)
    return absl::DataLossError("the sizes in the batch header contradict each other");
  return header;
}

std::string SegmentName(uint64_t segment) {
  return absl::StrFormat("log-%016x", segment);
}

std::optional<uint64_t> SegmentOfName(std::string_view name) {
  constexpr std::string_view kPrefix = "log-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  uint64_t segment = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), segment, 16);
  return name == SegmentName(segment) ? std::optional(segment) : std::nullopt;
}

}  // namespace gannet::log
