// The messages between a transaction and the owner of records that it inserts, removes or reads by call. Only this file
// encodes and decodes them; rdma/rpc.h has the integers. request_ledger.h says what happens to repeated and late
// requests.
//
//   kTxnPrepare   request:  Caller, u16 n, n x PrepareItem
//                 response: u8 outcome, then kPrepared: n x Prepared; kExists: u64 address, u64 state of what is there,
//                 u16 n, n x Prepared of the items before it, which stay made
//   kTxnFinish    request:  Caller, u16 n, n x FinishItem                response: empty
//   kTxnCancel    request:  Caller, as of a kTxnPrepare                  response: empty
//   kTxnDecide    request:  Caller, u8 flags (1: the first of a transaction, 2: its last, 4: do nothing yet),
//                           u16 n, n x (u16 node, bytes work)             response: empty
//   kTxnFinishFor request:  u16 node, u64 incarnation, bytes work          response: empty
//                           work: u64 owner bits, u16 n, n x FinishItem
//   kTxnJoin      request:  u64 incarnation                              response: empty
//   kTxnForwarded request:  u16 node, u64 incarnation                    response: u8 1: yes
//   kTxnLog       request:  u64 epoch, then one encoded transaction (transaction_format.h)  response: empty
//   kTxnLend      request:  u32 bytes of a record, u16 wanted, u16 n, n x (u16 table, u64 address, u64 word): earlier
//                           blocks that are records now
//                 response: u16 n, n x (u64 address, u64 word, u16 incarnation)
//   kTxnRead      request:  u16 table, key
//                 response: u8 present, u64 address, u64 state [, u64 meta, bytes payload]; if not present, the address
//                           and value of the witness
//   kTxnReadMany  request:  u16 n, n x (u16 table, key)
//                 response: u8 confirmed, u16 m, the first m records, at least one: each u8 ReadOutcome, then as above;
//                           if it is locked, only its u64 state
//   kTxnScan      request:  u16 table, u8 flags (1: reverse, 2: it continues, 4: of a window, 8: its position is
//                           long), key from, key to; of a window in their place its 4 ordered doubles
//                           (index/rectangle.h); u64 limit; if it continues, the position in the previous answer
//                 response: u8 flags (1: more, it ends before the range and the limit do; 2: confirmed; 4: the position
//                           is long), the position behind what it has, u16 n, n x witness of what was passed, u32 n,
//                           n x ScannedRow; if there is more, at least one of either. A position: 9 x u64, a long one
//                           129 x u64, in the order of the keys (index::ScanPosition)
//
// confirmed: all words of the answer held their values at one moment (seen_words.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/change_wire.h"
#include "index/index.h"
#include "index/key_wire.h"
#include "index/record_header.h"
#include "rdma/fabric.h"
#include "rdma/global_address.h"
#include "rdma/rpc.h"
#include "txn/node/lent_records.h"
#include "txn/store/table.h"

namespace gannet::txn {

using index::Key;

// Numbers of the methods of this layer, among those of rdma/fabric.h (256-511).
inline constexpr rdma::MethodId kTxnPrepare = 256;    // make locked placeholders for inserts
inline constexpr rdma::MethodId kTxnFinish = 257;     // remove records from the index and mark them absent
inline constexpr rdma::MethodId kTxnRead = 258;       // find a record and return it: the RPC read path
inline constexpr rdma::MethodId kTxnLog = 259;        // append changes of the owner's records to its log
inline constexpr rdma::MethodId kTxnCancel = 260;     // undo a kTxnPrepare if it was carried out; otherwise prevent it
inline constexpr rdma::MethodId kTxnDecide = 261;     // note a commit over several nodes, and do the owner's part
inline constexpr rdma::MethodId kTxnFinishFor = 262;  // do the owner's part of a dead node's decision
inline constexpr rdma::MethodId kTxnJoin = 263;       // announce that locks will be asked for
inline constexpr rdma::MethodId kTxnScan = 265;       // find the records of a range and return them
inline constexpr rdma::MethodId kTxnReadMany = 266;   // the same as kTxnRead for several records
inline constexpr rdma::MethodId kTxnLend = 267;       // lend blocks for records
inline constexpr rdma::MethodId kTxnForwarded = 264;  // returns whether all decisions of a dead node are carried out

// The caller: u64 name (owner bits of its worker, index/lock_word.h, and a slot in the low bits), u64 number of the
// request.
struct Caller {
  uint64_t name = 0;
  uint64_t number = 0;

  static constexpr size_t kBytes = 2 * sizeof(uint64_t);  // in a message
  static constexpr uint64_t NameOf(uint64_t owner_bits, uint16_t slot) { return owner_bits | slot; }
  uint64_t owner_bits() const { return name & ~uint64_t{0xffff}; }
};

// A record that was asked for: not in the index, found, or still locked after a while.
enum class ReadOutcome : uint8_t { kAbsent, kPresent, kLocked };

// Most records of one kTxnReadMany. There may be fewer: each needs this much room in the message.
inline constexpr size_t kMostKeysPerRead = 1024;
inline constexpr size_t kAskedKeyBytes = sizeof(TableId) + index::kMostWireKeyBytes;

// Largest size of an answer about one record with a payload of this size.
constexpr size_t ReadAnswerBytes(size_t payload_bytes) {
  return 32 + payload_bytes;
}

enum class PrepareOutcome : uint8_t { kPrepared, kExists, kConflict };

struct PrepareItem {
  TableId table;
  Key key;
  std::span<const std::byte> payload;
  bool move = false;           // a new place for a record that stays in the index; not inserted there
  uint64_t above_version = 0;  // version of the record that moves
};

struct Prepared {
  rdma::GlobalAddress record;
  uint64_t state = 0;  // without lock and owner
  index::Change change{};
};

enum class FinishKind : uint8_t {
  kRemove,   // out of the index, absent, unlocked
  kUnmake,   // a prepared record that is not in the index: absent, unlocked
  kReplace,  // the index then leads to `moved_to`, which becomes present; `record` becomes absent; both unlocked
  kInstall,  // `image` is written, the record is present, unlocked
};

struct FinishItem {
  FinishKind kind;
  TableId table;
  Key key;
  rdma::GlobalAddress record;
  uint64_t state = 0;  // of `record` before this transaction locked it
  rdma::GlobalAddress moved_to{};
  uint64_t moved_state = 0;
  std::span<const std::byte> image{};  // whole lines; empty for a placeholder, which is already complete
};

// Largest size of an item with an image of this size.
constexpr size_t FinishItemBytes(size_t image_bytes) {
  return 64 + index::kMaxKeyBytes + image_bytes;
}
inline constexpr uint8_t kFirstOfDecision = 1;
inline constexpr uint8_t kLastOfDecision = 2;
inline constexpr uint8_t kDecisionIsNoted = 4;  // it is only noted

inline void Put(rdma::WireWriter& writer, const Caller& caller) {
  writer.PutU64(caller.name);
  writer.PutU64(caller.number);
}
inline Caller GetCaller(rdma::WireReader& reader) {
  const uint64_t name = reader.GetU64();
  return {name, reader.GetU64()};
}

inline size_t PrepareItemBytes(const Key& key, size_t payload_bytes) {
  return 1 + sizeof(TableId) + index::WireKeyBytes(key) + sizeof(uint32_t) + payload_bytes + sizeof(uint64_t);
}
inline void Put(rdma::WireWriter& writer, const PrepareItem& item) {
  writer.PutU8(item.move ? 1 : 0);
  writer.PutU16(item.table);
  index::PutKey(writer, item.key);
  writer.PutBytes(item.payload);
  writer.PutU64(item.above_version);
}
inline bool Get(rdma::WireReader& reader, PrepareItem* item) {
  bool valid;
  item->move = reader.GetU8() != 0;
  item->table = reader.GetU16();
  item->key = index::GetKey(reader, &valid);
  item->payload = reader.GetBytes();
  item->above_version = reader.GetU64();
  return valid && reader.ok();
}

// Bytes of the response to a prepare of `items` items whose changes list at most two words each, as B+trees do.
constexpr size_t PreparedBytes(size_t items) {
  return 1 + 16 + 2 + items * (16 + index::ChangeBytes(2));
}

// `reserve`: bytes of the response that later items need. A change that would take them is sent as one that lists no
// word.
inline void Put(rdma::WireWriter& writer, const Prepared& prepared, size_t reserve) {
  writer.PutAddress(prepared.record);
  writer.PutU64(prepared.state);
  index::PutChange(writer, prepared.change, reserve);
}
inline bool Get(rdma::WireReader& reader, Prepared* prepared) {
  prepared->record = reader.GetAddress();
  prepared->state = reader.GetU64();
  return index::GetChange(reader, &prepared->change);
}

inline void Put(rdma::WireWriter& writer, const FinishItem& item) {
  writer.PutU8(static_cast<uint8_t>(item.kind));
  writer.PutU16(item.table);
  index::PutKey(writer, item.key);
  writer.PutAddress(item.record);
  writer.PutU64(item.state);
  writer.PutAddress(item.moved_to);
  writer.PutU64(item.moved_state);
  if (item.kind == FinishKind::kInstall) writer.PutBytes(item.image);
}
inline bool Get(rdma::WireReader& reader, FinishItem* item) {
  bool valid;
  const uint8_t kind = reader.GetU8();
  item->kind = static_cast<FinishKind>(kind);
  item->table = reader.GetU16();
  item->key = index::GetKey(reader, &valid);
  item->record = reader.GetAddress();
  item->state = reader.GetU64();
  item->moved_to = reader.GetAddress();
  item->moved_state = reader.GetU64();
  if (item->kind == FinishKind::kInstall) item->image = reader.GetBytes();
  return valid && reader.ok() && kind <= static_cast<uint8_t>(FinishKind::kInstall);
}

inline constexpr size_t kMostUsedPerLend = 128;
inline constexpr size_t kMostLentPerLend = 128;
inline constexpr size_t kLendRequestBytes = 8 + kMostUsedPerLend * 18;
inline constexpr size_t kLendResponseBytes = 2 + kMostLentPerLend * 18;

struct LendRequest {
  uint32_t bytes = 0;
  uint16_t wanted = 0;          // at most kMostLentPerLend
  std::vector<UsedBlock> used;  // at most kMostUsedPerLend; their incarnations are not sent
};

inline void Put(rdma::WireWriter& writer, const LendRequest& request) {
  writer.PutU32(request.bytes);
  writer.PutU16(request.wanted);
  writer.PutU16(static_cast<uint16_t>(request.used.size()));
  for (const UsedBlock& used : request.used) {
    writer.PutU16(used.table);
    writer.PutAddress(used.block.address);
    writer.PutU64(used.block.lent_word);
  }
}
inline bool Get(rdma::WireReader& reader, LendRequest* request) {
  request->bytes = reader.GetU32();
  request->wanted = reader.GetU16();
  const uint16_t n = reader.GetU16();
  if (n > kMostUsedPerLend || request->wanted > kMostLentPerLend) return false;
  for (uint16_t i = 0; i < n; ++i) {
    UsedBlock& used = request->used.emplace_back();
    used.table = reader.GetU16();
    used.block.address = reader.GetAddress();
    used.block.lent_word = reader.GetU64();
  }
  return reader.ok();
}
inline void PutLent(rdma::WireWriter& writer, std::span<const LentBlock> blocks) {
  writer.PutU16(static_cast<uint16_t>(blocks.size()));
  for (const LentBlock& block : blocks) {
    writer.PutAddress(block.address);
    writer.PutU64(block.word);
    writer.PutU16(block.incarnation);
  }
}
inline bool GetLent(rdma::WireReader& reader, std::vector<LentBlock>* blocks) {
  const uint16_t n = reader.GetU16();
  if (n > kMostLentPerLend) return false;
  for (uint16_t i = 0; i < n; ++i) {
    LentBlock& block = blocks->emplace_back();
    block.address = reader.GetAddress();
    block.word = reader.GetU64();
    block.incarnation = reader.GetU16();
  }
  return reader.ok();
}

struct ScanRequest {
  TableId table = 0;
  index::ScanRange range;
  // A search: the rows whose rectangles meet it, in the order of their keys. Of `range` only the limit counts then.
  std::optional<index::Rectangle> window = {};
  std::optional<index::ScanPosition> position = {};  // where to continue; none: at the beginning of the range
};

inline constexpr uint8_t kMoreRows = 1;
inline constexpr uint8_t kConfirmedRows = 2;
inline constexpr uint8_t kLongPosition = 4;

// Words of a position in a message; `is_long` if the table's keys may be longer than kShortKeyBytes.
constexpr size_t PositionWordsIn(bool is_long) {
  return is_long ? index::kMostPositionWords : index::kFewPositionWords;
}
// All of these words are sent, although an index may use only some of them. `position` has no more.
inline void PutPosition(rdma::WireWriter& writer, const index::ScanPosition& position, bool is_long) {
  for (const uint64_t word : position.words) writer.PutU64(word);
  for (size_t i = position.words.size(); i < PositionWordsIn(is_long); ++i) writer.PutU64(0);
}
inline index::ScanPosition GetPosition(rdma::WireReader& reader, bool is_long) {
  index::ScanPosition position;
  position.words.resize(PositionWordsIn(is_long));
  for (uint64_t& word : position.words) word = reader.GetU64();
  return position;
}

// A record as it is at its owner.
struct ScannedRow {
  Key key;
  rdma::GlobalAddress record;
  uint64_t state = 0;
  index::RecordMeta meta;
  std::span<const std::byte> payload{};
};

// Largest size of a row with a key and a payload of these sizes.
constexpr size_t ScannedRowBytes(size_t key_bytes, size_t payload_bytes) {
  return 40 + key_bytes + payload_bytes;
}

inline void Put(rdma::WireWriter& writer, const ScanRequest& request) {
  writer.PutU16(request.table);
  const bool is_long = request.position && request.position->words.size() > index::kFewPositionWords;
  writer.PutU8(static_cast<uint8_t>((request.range.reverse ? 1 : 0) | (request.position ? 2 : 0) |
                                    (request.window ? 4 : 0) | (is_long ? 8 : 0)));
  if (request.window) {
    for (const double edge :
         {request.window->min_x, request.window->min_y, request.window->max_x, request.window->max_y}) {
      writer.PutU64(index::OrderedWord(edge));
    }
  } else {
    index::PutKey(writer, request.range.from);
    index::PutKey(writer, request.range.to);
  }
  writer.PutU64(request.range.limit);
  if (request.position) PutPosition(writer, *request.position, is_long);
}
inline bool Get(rdma::WireReader& reader, ScanRequest* request) {
  bool from_valid = true;
  bool to_valid = true;
  request->table = reader.GetU16();
  const uint8_t flags = reader.GetU8();
  request->range.reverse = (flags & 1) != 0;
  if ((flags & 4) != 0) {
    index::Rectangle& window = request->window.emplace();
    for (double* const edge : {&window.min_x, &window.min_y, &window.max_x, &window.max_y}) {
      *edge = index::NumberOf(reader.GetU64());
    }
  } else {
    request->range.from = index::GetKey(reader, &from_valid);
    request->range.to = index::GetKey(reader, &to_valid);
  }
  request->range.limit = reader.GetU64();
  if ((flags & 2) != 0) request->position = GetPosition(reader, (flags & 8) != 0);
  return from_valid && to_valid && reader.ok();
}

inline void Put(rdma::WireWriter& writer, const ScannedRow& row) {
  index::PutKey(writer, row.key);
  writer.PutAddress(row.record);
  writer.PutU64(row.state);
  writer.PutU64(row.meta.Pack());
  writer.PutBytes(row.payload);
}
inline bool Get(rdma::WireReader& reader, ScannedRow* row) {
  bool valid;
  row->key = index::GetKey(reader, &valid);
  row->record = reader.GetAddress();
  row->state = reader.GetU64();
  row->meta = index::RecordMeta::Unpack(reader.GetU64());
  row->payload = reader.GetBytes();
  return valid && reader.ok();
}

}  // namespace gannet::txn
