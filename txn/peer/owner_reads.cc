// OwnerService: records, for transactions that let the owner look them up.
#include <algorithm>
#include <array>
#include <cstring>

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

// Keys of a kTxnReadMany that are looked up together.
constexpr size_t kAnswerGroup = 32;

}  // namespace

// Writes the answer about one record, without its outcome, and adds the word behind it to *words. `found`: what the
// index said just now. DataLoss: the index is damaged. kLocked: nothing was written but the record's state, and the
// caller has taken part of the writer's room for nothing.
StatusOr<ReadOutcome> OwnerService::AnswerRead(const Table& table, const Key& key, index::FindResult found,
                                               rdma::WireWriter& writer, SeenWords* words) const {
  uint64_t state = 0;
  for (int spins = 0; spins < kOwnersSpins; ++spins) {
    if (spins > 0) {
      CpuRelax();
      found = table.local_index().Find(key);
    }
    if (found.is_lost()) return IndexDamaged(table, key);
    if (found.record.is_null()) {
      index::PutWitness(writer, found.witness);
      words->Add(*local_, found.witness);
      return ReadOutcome::kAbsent;
    }
    if (!LeadsToKey(*local_, table, key, found.record)) return IndexDamaged(table, key);
    const std::byte* record = local_->Direct(found.record);
    state = LoadWord(record);
    if (IsLocked(state)) continue;
    if (IsAbsent(state)) {
      if (StillLeadsTo(table, key, found.record)) return IndexDamaged(table, key);
      continue;
    }
    const uint64_t meta = LoadWord(record + rdma::PlaceOf(index::kMetaDataOffset));
    const uint32_t payload_bytes = index::RecordMeta::Unpack(meta).payload_bytes;
    if (payload_bytes > table.accepted_payload_bytes()) continue;  // torn
    rdma::WireWriter attempt = writer;                             // writes to the same place if this one fails
    attempt.PutAddress(found.record);
    attempt.PutU64(state);
    attempt.PutU64(meta);
    attempt.PutU32(payload_bytes);
    rdma::CopyOut(record, index::PayloadDataOffset(key.size()), attempt.Reserve(payload_bytes));
    Charge(Cost::kRecordLine, 1 + payload_bytes / rdma::kLineDataBytes);
    PreemptionPoint();
    if (LoadWord(record) != state) continue;
    writer = attempt;
    words->Add(record, state);
    return ReadOutcome::kPresent;
  }
  Sometimes<"owner: a record to read stays locked">();
  writer.PutU64(state);
  return ReadOutcome::kLocked;
}

StatusOr<size_t> OwnerService::Read(std::span<const std::byte> request, std::span<std::byte> response) {
  rdma::WireReader reader(request);
  index::IndexService::Guard guard(&local_->indexes);  // before it finds the table, which may be dropped
  const Table* table = local_->TableById(reader.GetU16());
  bool valid;
  const Key key = index::GetKey(reader, &valid);
  GANNET_RETURN_IF_ERROR(reader.Finish());
  if (table == nullptr || !valid || !IsKeyOf(*table, key)) {
    return absl::InvalidArgumentError("read: no such table, or not a key of it");
  }
  rdma::WireWriter writer(response);
  const std::span<std::byte> outcome = writer.Reserve(1);
  const index::FindResult found = table->local_index().Find(key);
  if (!found.record.is_null()) Charge(Cost::kIndexStep);  // a dependent miss, as the node before it was
  SeenWords words;
  const StatusOr<ReadOutcome> read = AnswerRead(*table, key, found, writer, &words);
  if (!read.ok()) return read.status();
  if (*read == ReadOutcome::kLocked) return LockedHere(found.record);  // for long: the caller asks again
  if (!outcome.empty()) outcome[0] = static_cast<std::byte>(*read);
  return writer.Finish();
}

// Answers as many requests as its room allows: the caller asks again for the rest.
StatusOr<size_t> OwnerService::ReadMany(std::span<const std::byte> request, std::span<std::byte> response) {
  rdma::WireReader reader(request);
  const size_t n = reader.GetU16();
  if (n == 0 || n > kMostKeysPerRead) return absl::InvalidArgumentError("read: no keys, or too many");
  rdma::WireWriter writer(response);
  const std::span<std::byte> confirmed = writer.Reserve(1);
  const std::span<std::byte> count = writer.Reserve(sizeof(uint16_t));
  uint16_t served = 0;
  bool any_locked = false;
  SeenWords words;
  index::IndexService::Guard guard(&local_->indexes);
  std::array<const Table*, kAnswerGroup> tables;
  std::array<Key, kAnswerGroup> keys;
  std::array<index::FindResult, kAnswerGroup> found;
  bool full = false;
  for (size_t first = 0; first < n && !full; first += kAnswerGroup) {
    const size_t size = std::min(kAnswerGroup, n - first);
    for (size_t i = 0; i < size; ++i) {
      tables[i] = local_->TableById(reader.GetU16());
      bool valid;
      keys[i] = index::GetKey(reader, &valid);
      if (!reader.ok() || tables[i] == nullptr || !valid || !IsKeyOf(*tables[i], keys[i])) {
        return absl::InvalidArgumentError("read: malformed request, no such table, or not a key of it");
      }
    }
    // The misses of the lookups in one table overlap, and then those of all records.
    for (size_t begin = 0; begin < size;) {
      size_t end = begin + 1;
      while (end < size && tables[end] == tables[begin]) ++end;
      tables[begin]->local_index().FindMany(std::span(keys).subspan(begin, end - begin),
                                            std::span(found).subspan(begin, end - begin));
      begin = end;
    }
    for (size_t i = 0; i < size; ++i) {
      if (!found[i].record.is_null()) Prefetch(local_->Direct(found[i].record));
    }
    Charge(Cost::kIndexStep, (size + kOverlappedMisses - 1) / kOverlappedMisses);
    for (size_t i = 0; i < size && !full; ++i) {
      full = writer.room() < ReadAnswerBytes(tables[i]->accepted_payload_bytes());
      if (full) break;
      const std::span<std::byte> outcome = writer.Reserve(1);
      const StatusOr<ReadOutcome> read = AnswerRead(*tables[i], keys[i], found[i], writer, &words);
      if (!read.ok()) return read.status();
      any_locked |= *read == ReadOutcome::kLocked;
      outcome[0] = static_cast<std::byte>(*read);
      ++served;
    }
  }
  if (!full) GANNET_RETURN_IF_ERROR(reader.Finish());
  if (!writer.ok() || served == 0) return absl::InvalidArgumentError("read: the client has no room for a record");
  std::memcpy(count.data(), &served, sizeof served);
  confirmed[0] = static_cast<std::byte>(!any_locked && words.Hold());
  return writer.Finish();
}

}  // namespace gannet::txn
