// The log's format, versions 1 to 3: segments and batches. docs/log_format.md describes the same for people.
//
// A log is a directory of segments, log-<16 hex digits>, each preallocated and written from front to back. What has not
// been written yet is zeros, or, if the file was a segment before (version 2; from version 3 on a flag), its old
// content. A batch names its segment, so a batch of then is not taken for one of now.
//
//   segment   | header 4096 | batch | batch | ... | zeros |
//   batch     | header 64 | transaction | transaction | ... | zeros up to a multiple of 4096 |
//   transaction  transaction_format.h; from version 3 on its changes take less space
//
// All numbers little-endian. A CRC32C covers what follows it up to the end of its unit (segment header, batch header,
// transaction). One batch is written durably before the next is begun, so only the last can be torn; whatever is
// invalid before a valid batch is damage. Whatever is not named above is zero, and readers check that it is.
//
// Epochs. A batch whose `closed_epoch` is c says: with this batch, everything of the epochs up to c is in the log, of
// all nodes. A transaction of a later epoch may lie in it, too; it counts only once a later batch closes its epoch.
// Replaying means: of every key, the change with the greatest (epoch, version), over transactions of epochs up to the
// recovered epoch. Within one epoch the version orders the changes of one key, also over removals and new inserts.
//
// Transactions of several nodes. Each node's log has the changes of its own records: at the coordinator with
// TransactionPart::kDecision, at the others as kPart, all with the same epoch and id. The decision is appended last, so
// a part counts only if the coordinator's log has the decision (of a recovered epoch); a part without one was given up.
//
// Runs. Whoever opens a log for writing begins a new segment, whose header says where the log ended before: segment,
// offset, batch number, and the epoch that was recovered. What lies beyond that, in older segments, is void for ever.
// Within a run the same header gives up a segment after an I/O error: what was written there without success is void.
// A segment that never got a whole header and holds no batch (a crash while it was made) is left where it is; its
// number is not used again, and the next header takes over from it at kSegmentHeaderBytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace gannet::log {

inline constexpr uint64_t kSegmentMagic = 0x31474f4c544e4e47;    // "GNNTLOG1"
inline constexpr uint64_t kSegmentEndMark = 0x444e454f4c544e47;  // "GNTLOEND"
inline constexpr uint32_t kBatchMagic = 0x31544247;              // "GBT1"
inline constexpr uint32_t kFormatVersion = 3;  // the newest that is known, and the one that is written
inline constexpr size_t kSegmentHeaderBytes = 4096;
inline constexpr size_t kBatchHeaderBytes = 64;

struct SegmentHeader {
  uint32_t version = kFormatVersion;
  bool reused = false;   // the file was a segment before
  uint64_t segment = 0;  // number, as in the file's name; ascending, without gaps
  uint64_t bytes = 0;    // of the file
  uint64_t run = 0;      // ascending; +1 whenever the log is opened for writing
  uint16_t node = 0;
  uint16_t num_nodes = 1;
  uint64_t first_batch = 0;  // number of this segment's first batch
  // Where this segment takes over from the one before: batches there from this offset on, and numbers from first_batch
  // on, are void. 0: there is none before.
  uint64_t previous_end = 0;
  // Epoch recovered when this run began: transactions of earlier runs with later epochs are void.
  uint64_t recovered_epoch = 0;
  // Closed by everything before this segment, so that the older ones can be removed: at least recovered_epoch.
  uint64_t closed_epoch = 0;

  void Encode(std::span<std::byte, kSegmentHeaderBytes> to) const;
  // InvalidArgument: no segment of Gannet, or of a version this program does not know (the message says which).
  // DataLoss: damaged.
  static StatusOr<SegmentHeader> Decode(std::span<const std::byte, kSegmentHeaderBytes> from);
  static bool HasMagic(std::span<const std::byte, kSegmentHeaderBytes> from);
  // Whether an invalid header is what a crash leaves of one that was being written: its first or its last word (the
  // magics) is still zero. All of it lies in one sector, and persistent memory is written from front to back.
  static bool Torn(std::span<const std::byte, kSegmentHeaderBytes> from);
};

struct BatchHeader {
  uint64_t batch = 0;    // number: ascending without gaps over all segments of a log, except where a takeover says so
  uint64_t segment = 0;  // in which it lies: a block that strayed, or a copy of one in a payload, is no batch
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
// Of what SegmentName makes; nothing else is a segment.
std::optional<uint64_t> SegmentOfName(std::string_view name);
// Names of files that will be segments: this and a number.
inline constexpr std::string_view kSpareSegmentPrefix = "new-segment-";

}  // namespace gannet::log
