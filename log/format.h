// The log's format, versions 1 and 2. docs/log_format.md describes the same for people.
//
// A log is a directory of segments, log-<16 hex digits>, each preallocated and written from front to back. Version 2 is
// as version 1, but for what has not been written yet: the file was a segment before, so its old content lies there
// instead of zeros. A batch names its segment, so a batch of then is not taken for one of now.
//
//   segment   | header 4096 | batch | batch | ... | zeros |
//   batch     | header 64 | transaction | transaction | ... | zeros up to a multiple of 4096 |
//   transaction  | crc32c 4 | bytes 4 | epoch 8 | id 8 | changes 4 | part 4 | change | change | ... | zeros to 8 |
//   change    | kind 1 | key bytes 1 | table 2 | payload bytes 4 | version 8 | key, to 8 | payload, to 8 |
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

#include "rdma/base/status.h"

namespace gannet::log {

inline constexpr uint64_t kSegmentMagic = 0x31474f4c544e4e47;    // "GNNTLOG1"
inline constexpr uint64_t kSegmentEndMark = 0x444e454f4c544e47;  // "GNTLOEND"
inline constexpr uint32_t kBatchMagic = 0x31544247;              // "GBT1"
inline constexpr uint32_t kFormatVersion = 2;                    // the newest that is known
inline constexpr size_t kSegmentHeaderBytes = 4096;
inline constexpr size_t kBatchHeaderBytes = 64;
inline constexpr size_t kTransactionHeaderBytes = 32;
inline constexpr size_t kChangeHeaderBytes = 16;
inline constexpr size_t kMaxKeyBytes = 64;

// The standard CRC-32C (Castagnoli): of "123456789" it is 0xe3069283. `before`: of what precedes `data`.
uint32_t Crc32c(std::span<const std::byte> data, uint32_t before = 0);

struct SegmentHeader {
  uint32_t version = 1;
  bool reused() const { return version >= 2; }
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

enum class ChangeKind : uint8_t {
  kPut = 1,     // insert or update: the whole payload
  kRemove = 2,  // no payload
};

enum class TransactionPart : uint32_t {
  kWhole = 0,     // all there is of it; id is 0
  kPart = 1,      // counts only together with the decision of the same epoch and id, in the log of node IdNode(id)
  kDecision = 2,  // the coordinator's: its own changes (perhaps none), and the transaction has committed
};

// The id of a transaction of several nodes: unique within its epoch.
constexpr uint64_t TransactionIdOf(uint16_t coordinator, uint64_t counter) {
  return uint64_t{coordinator} << 48 | (counter & ((uint64_t{1} << 48) - 1));
}
constexpr uint16_t IdNode(uint64_t id) {
  return static_cast<uint16_t>(id >> 48);
}

// A change, its key and payload lying in somebody else's buffer.
struct ChangeView {
  ChangeKind kind = ChangeKind::kPut;
  uint16_t table = 0;
  uint64_t version = 0;
  std::span<const std::byte> key;  // an integer key is its big-endian 8 bytes
  std::span<const std::byte> payload;
};

constexpr size_t Padded8(size_t bytes) {
  return (bytes + 7) & ~size_t{7};
}
constexpr size_t ChangeBytes(size_t key_bytes, size_t payload_bytes) {
  return kChangeHeaderBytes + Padded8(key_bytes) + Padded8(payload_bytes);
}

// Writes one transaction into a buffer that is large enough (kTransactionHeaderBytes + sum of ChangeBytes) and need not
// be aligned.
class TransactionEncoder {
 public:
  explicit TransactionEncoder(std::byte* at) : begin_(at), at_(at + kTransactionHeaderBytes) {}
  // Room for the payload, for the caller to fill before Finish. A key of at most kMaxKeyBytes; a removal has no
  // payload.
  std::byte* Add(ChangeKind kind, uint16_t table, uint64_t version, std::span<const std::byte> key,
                 size_t payload_bytes);
  // Returns the bytes of the whole, a multiple of 8.
  size_t Finish(uint64_t epoch, TransactionPart part = TransactionPart::kWhole, uint64_t id = 0);

 private:
  std::byte* begin_;
  std::byte* at_;
  uint32_t changes_ = 0;
};

// Reads transactions from a batch's body; never reads beyond it, whatever the bytes are. The body must outlive it. A
// copy goes on by itself from where the original is.
class TransactionDecoder {
 public:
  explicit TransactionDecoder(std::span<const std::byte> body) : rest_(body) {}
  // The next transaction. False at the end. DataLoss if it is damaged; `consumed()` is then its offset, else that of
  // what follows it.
  StatusOr<bool> Next();
  // After DataLoss: on to where the damaged transaction says that it ends. False if that cannot be.
  bool SkipDamaged();
  uint64_t epoch() const { return epoch_; }
  TransactionPart part() const { return part_; }
  uint64_t id() const { return id_; }
  uint32_t changes() const { return changes_; }
  size_t consumed() const { return consumed_; }
  // The next change of this transaction; false after the last. Next() has checked them all.
  bool NextChange(ChangeView* change);

 private:
  std::span<const std::byte> rest_;     // after this transaction
  std::span<const std::byte> current_;  // changes not yet taken
  size_t consumed_ = 0;
  uint64_t epoch_ = 0;
  uint64_t id_ = 0;
  TransactionPart part_ = TransactionPart::kWhole;
  uint32_t changes_ = 0;
};

std::string SegmentName(uint64_t segment);
// Of what SegmentName makes; nothing else is a segment.
std::optional<uint64_t> SegmentOfName(std::string_view name);

}  // namespace gannet::log
