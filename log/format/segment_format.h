// The log's format, versions 1 to 5: segments and batches. docs/log_format.md describes it for readers.
//
// A log is a directory of segments, log-<16 hex digits>, each preallocated and written from front to back. The
// unwritten part is zeros, or old content if the file was a segment before (version 2; from version 3 on a flag says
// so). A batch names its segment, so an old batch is not taken for one of the current segment.
//
//   segment   | header 4096 | batch | batch | ... | zeros |
//   batch     | header 64 | transaction | transaction | ... | zeros up to a multiple of 4096 |
//   transaction  transaction_format.h; from version 3 on its changes take less space
//
// All numbers little-endian. A CRC32C covers what follows it up to the end of its unit (segment header, batch header,
// transaction). A batch is durable before the next one is begun, so only the last batch can be torn; invalid bytes
// before a valid batch are damage. Fields not named above are zero, and readers check this.
//
// Epochs. If a batch's `closed_epoch` is c, then up to this batch the log has everything of the epochs up to c, of all
// nodes. The batch may also have transactions of later epochs; they count only once a later batch closes their epoch.
// Replay takes, for every key, the change with the greatest (epoch, version) among the transactions of epochs up to the
// recovered epoch. Within one epoch the version orders the changes of one key, also across removals and new inserts.
//
// Transactions of several nodes. Each node's log has the changes of its own records: the coordinator's with
// TransactionPart::kDecision, the others' with kPart, all with the same epoch and id. The decision is appended last. So
// a part counts only if the coordinator's log has the decision, in a recovered epoch; a part without a decision is
// void.
//
// Runs. A program that opens a log for writing begins a new segment. Its header says where the log ended before:
// segment, offset, batch number, and the recovered epoch. Everything beyond that end in older segments is void
// permanently. Within a run, such a header also replaces a segment after an I/O error: what was written there without
// success is void. A segment without a complete header holds no batch (a crash interrupted its creation). It stays
// where it is, its number is not used again, and the next header takes over from it at kSegmentHeaderBytes.
//
// From version 5 on a run has an identity, drawn at random and the same on all nodes, and each header names the run
// before its own. So two directories that went on separately from one copy differ, and a mixture of their files is
// noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "log/format/identity.h"

namespace gannet::log {

inline constexpr uint64_t kSegmentMagic = 0x31474f4c544e4e47;    // "GNNTLOG1"
inline constexpr uint64_t kSegmentEndMark = 0x444e454f4c544e47;  // "GNTLOEND"
inline constexpr uint32_t kBatchMagic = 0x31544247;              // "GBT1"
inline constexpr uint32_t kFormatVersion = 5;                    // the newest known version, which is written
inline constexpr size_t kSegmentHeaderBytes = 4096;
inline constexpr size_t kBatchHeaderBytes = 64;

struct SegmentHeader {
  uint32_t version = kFormatVersion;
  bool reused = false;   // the file was a segment before
  uint64_t segment = 0;  // number, as in the file's name; ascending, without gaps
  uint64_t bytes = 0;    // of the file
  uint64_t run = 0;      // ascending; +1 each time the log is opened for writing
  uint16_t node = 0;
  uint16_t num_nodes = 1;
  uint64_t first_batch = 0;  // number of this segment's first batch
  // Offset at which this segment takes over from the previous one: batches there from this offset on, and with numbers
  // from first_batch on, are void. 0: there is no previous segment.
  uint64_t previous_end = 0;
  // Epoch recovered when this run began: transactions of earlier runs with later epochs are void.
  uint64_t recovered_epoch = 0;
  // Epoch that the segments before this one have closed, so that they can be removed. At least recovered_epoch.
  uint64_t closed_epoch = 0;
  Identity database{};  // from version 4 on
  // These are there from version 5 on. They are the identities of this run, and of the run before it in this log.
  Identity run_identity{};
  Identity previous_run_identity{};

  void Encode(std::span<std::byte, kSegmentHeaderBytes> to) const;
  // InvalidArgument: no segment of Gannet, or a version that this program does not know (the message says which).
  // DataLoss: damaged.
  static StatusOr<SegmentHeader> Decode(std::span<const std::byte, kSegmentHeaderBytes> from);
  static bool HasMagic(std::span<const std::byte, kSegmentHeaderBytes> from);
  // True if a crash while the header was being written explains why it is invalid: its first or its last word (the
  // marks) is still zero. The header lies in one sector, and persistent memory is written from front to back.
  static bool Torn(std::span<const std::byte, kSegmentHeaderBytes> from);
};

struct BatchHeader {
  uint64_t batch = 0;    // number: ascending without gaps over all segments of a log, except at a takeover
  uint64_t segment = 0;  // that holds it: a stray block, or a copy of a batch in a payload, is not valid
  uint64_t closed_epoch = 0;
  uint64_t wall_nanos = 0;    // since 1970, for people
  uint32_t body_bytes = 0;    // without header and padding
  uint32_t transactions = 0;  // in the body

  void Encode(std::span<std::byte, kBatchHeaderBytes> to) const;
  static StatusOr<BatchHeader> Decode(std::span<const std::byte, kBatchHeaderBytes> from);
};

constexpr uint64_t BatchBytesOnDisk(uint64_t body_bytes) {
  return (kBatchHeaderBytes + body_bytes + 4095) / 4096 * 4096;
}

std::string SegmentName(uint64_t segment);
// Number in a name that SegmentName made; nothing for other names, which are no segments.
std::optional<uint64_t> SegmentOfName(std::string_view name);
// Names of files that will become segments are this and a number.
inline constexpr std::string_view kSpareSegmentPrefix = "new-segment-";

}  // namespace gannet::log
