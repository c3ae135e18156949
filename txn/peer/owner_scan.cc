// OwnerService: rows of ranges and of windows, for transactions that let the owner find them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/cache_line.h"
#include "base/sometimes.h"
#include "rdma/versioned.h"
#include "txn/node/index_damage.h"
#include "txn/peer/owner_service.h"
#include "txn/peer/seen_words.h"
#include "txn/record/record.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

// Most rows of one answer, however short they are.
constexpr size_t kMostRows = 1024;
// Most leaves that one answer passes, with rows or without. They leave room for the longest row.
constexpr size_t kMostWitnesses = 2048;
constexpr size_t kWitnessBytes = 16;
static_assert(256 + index::kMostPositionWords * sizeof(uint64_t) + kMostWitnesses * kWitnessBytes +
                  ScannedRowBytes(index::kMaxKeyBytes, kMaxPayloadBytes) <=
              rdma::kMaxMessageBytes);

// Reads a whole and unlocked row; false if it cannot. row->payload points into `payload`.
bool ReadRow(const std::byte* record, const Table& table, size_t key_bytes, std::vector<std::byte>* payload,
             ScannedRow* row) {
  for (int spins = 0; spins < kOwnersSpins; ++spins, CpuRelax()) {
    row->state = LoadWord(record);
    if (IsLocked(row->state)) continue;
    if (IsAbsent(row->state)) return false;  // it has left the index since
    row->meta = index::LoadMeta(record);
    if (row->meta.payload_bytes > table.accepted_payload_bytes()) continue;  // torn
    payload->resize(row->meta.payload_bytes);
    row->payload = *payload;
    uint64_t state = 0;
    if (rdma::TryReadLocal(record, index::PayloadDataOffset(key_bytes), *payload, &state) && state == row->state) {
      Charge(Cost::kRecordLine, rdma::LinesFor(index::PayloadDataOffset(key_bytes) + payload->size()));
      return true;
    }
  }
  return false;
}

// One step of the scan or search.
Status FindRows(const Table& table, const ScanRequest& asked, size_t limit,
                std::optional<index::ScanPosition>* position, index::ScanResult* found) {
  if (asked.window) {
    return table.local_index().SearchStep({.window = *asked.window}, limit, kMostWitnesses, position, found);
  }
  if (!IsKeyOf(table, asked.range.from) || !IsKeyOf(table, asked.range.to)) {
    return absl::InvalidArgumentError("scan: not keys of the table");
  }
  index::ScanRange range = asked.range;
  range.limit = limit;
  return table.local_index().ScanStep(range, kMostWitnesses, position, found);
}

}  // namespace

StatusOr<size_t> OwnerService::Scan(std::span<const std::byte> request, std::span<std::byte> response) {
  rdma::WireReader reader(request);
  ScanRequest asked;
  const bool valid = Get(reader, &asked);
  GANNET_RETURN_IF_ERROR(reader.Finish());
  index::IndexService::Guard guard(&local_->indexes);  // before it finds the table, which may be dropped
  const Table* table = local_->TableById(asked.table);
  if (!valid || table == nullptr) return absl::InvalidArgumentError("scan: no such table, or not keys of it");
  index::ScanResult found;
  std::optional<index::ScanPosition> position = asked.position;
  GANNET_RETURN_IF_ERROR(FindRows(*table, asked, std::min(asked.range.limit, kMostRows), &position, &found));
  const std::span<const index::Entry> entries(found.entries);
  const std::byte* const memory = local_->node.memory().data();
  for (const index::Entry& entry : entries) Prefetch(memory + entry.record.offset());
  Charge(Cost::kIndexStep, (entries.size() + kOverlappedMisses - 1) / kOverlappedMisses);

  rdma::WireWriter writer(response);
  const std::span<std::byte> flags = writer.Reserve(1);
  const bool is_long = table->options().max_key_bytes > index::kShortKeyBytes;
  const std::span<std::byte> behind = writer.Reserve(PositionWordsIn(is_long) * sizeof(uint64_t));
  writer.PutU16(static_cast<uint16_t>(found.witnesses.size()));
  SeenWords words;
  for (const index::Witness& witness : found.witnesses) {
    index::PutWitness(writer, witness);
    words.Add(*local_, witness);
  }
  const std::span<std::byte> count = writer.Reserve(sizeof(uint32_t));
  uint32_t n = 0;
  std::vector<std::byte> payload;
  for (const index::Entry& entry : entries) {
    ScannedRow row;
    row.key = entry.key.view();
    row.record = entry.record;
    if (!LeadsToKey(*local_, *table, row.key, entry.record)) return IndexDamaged(*table, row.key);
    if (!ReadRow(memory + entry.record.offset(), *table, row.key.size(), &payload, &row)) {
      Sometimes<"owner: a row to scan stays locked or is gone">();
      GANNET_RETURN_IF_ERROR(CheckLeadsToKey(*local_, *table, row.key, entry.record));
      return LockedHere(entry.record);
    }
    if (writer.room() < ScannedRowBytes(row.key.size(), payload.size())) break;
    Put(writer, row);
    words.Add(memory + entry.record.offset(), row.state);
    ++n;
  }
  if (!writer.ok() || (n == 0 && !entries.empty())) {
    return absl::InvalidArgumentError("scan: the client has no room for a row");
  }
  if (n < entries.size()) {
    position = table->local_index().PositionBehind(entries[n - 1].key.view(), !asked.window && asked.range.reverse);
  }
  const bool more = position.has_value() && n < asked.range.limit;
  const bool confirmed = !more && !asked.position.has_value() && words.Hold();
  if (confirmed) Sometimes<"owner: all rows of an answer are of one moment">();
  flags[0] =
      static_cast<std::byte>((more ? kMoreRows : 0) | (confirmed ? kConfirmedRows : 0) | (is_long ? kLongPosition : 0));
  rdma::WireWriter position_writer(behind);
  PutPosition(position_writer, position.value_or(index::ScanPosition{}), is_long);
  std::memcpy(count.data(), &n, sizeof n);
  return writer.Finish();
}

}  // namespace gannet::txn
