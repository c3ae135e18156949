// Scans of this node's records by its own CPU: the index tells the records, whose keys and payloads are copied as
// direct_access.cc says.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "rdma/versioned.h"
#include "txn/access/access.h"
#include "txn/access/access_internal.h"
#include "txn/access/key_status.h"
#include "txn/owner/index_damage.h"
#include "txn/record/record.h"
#include "txn/session/session_internal.h"

namespace gannet::txn {

using index::PayloadDataOffset;

index::ScanRange Access::BeyondOwnRemovals(const Table& table, index::ScanRange range) const {
  if (range.limit == SIZE_MAX) return range;
  const size_t removals = writes_.RemovalsIn(table, range);
  if (range.limit < SIZE_MAX - removals) range.limit += removals;
  return range;
}

// False: *look has the reason (gone: scan again; conflict; or damaged).
bool Access::AppendRow(const Table& table, const index::Entry& entry, ScanRows* rows, ScanOptions options, Look* look) {
  const Key key = entry.key.view();
  if (!LeadsToKey(*session_->local, table, key, entry.record)) [[unlikely]] {
    *look = Look::kDamaged;
    return false;
  }
  const int own = writes_.FindRecord(entry.record);
  if (own >= 0 && writes_[own].is_removed()) {
    *look = Look::kDone;
    return true;
  }
  uint32_t size = 0;
  if (!options.keys_only) {
    size = own >= 0                          ? writes_[own].payload_bytes
           : table.options().variable_length ? index::LoadMeta(session_->Direct(entry.record)).payload_bytes
                                             : static_cast<uint32_t>(table.payload_bytes());
  }
  ScanRows::Item& row = rows->Add(key);
  GetRequest request{
      .table = &table, .key = key, .out = rows->MakePayload(&row, size), .for_update = options.for_update};
  *look = LookDirect(&request, entry.record);
  if (*look == Look::kDone && request.status.ok() && (options.keys_only || size == request.payload_bytes)) {
    row.handle = request.handle;
    return true;
  }
  rows->rows_.pop_back();
  // A size that changed between the check and the copy is a conflict like any other.
  if (*look == Look::kDone) *look = Look::kGone;
  return false;
}

// A scan again would find the same.
bool Access::IsGoneForGood(const Table& table, const index::Entry& entry) const {
  const uint64_t state = LoadWord(session_->Direct(entry.record));
  return !IsLocked(state) && IsAbsent(state) && StillLeadsTo(table, entry.key.view(), entry.record);
}

Status Access::ScanDirect(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options) {
  const index::ScanRange wider = BeyondOwnRemovals(table, range);
  if (table.index_traits().scans_records) return AppendScanned(table, wider, rows, options);
  const auto find = [&](index::ScanResult* found) { return table.local_index().Scan(wider, found); };
  return AppendFound(table, find, rows, options);
}

namespace {

// True if what a scan copies of a row may reach into the record's second line.
bool MayTakeSecondLine(const Table& table, ScanOptions options) {
  const size_t key_bytes = table.options().key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : 0;
  return !options.keys_only && PayloadDataOffset(key_bytes) + table.payload_bytes() > rdma::kLineDataBytes;
}

// Copies whole words of a record's data, from its key on.
void CopyFromKey(const std::byte* record, size_t words, std::byte* to) {
  const auto copy = [&to](const std::byte* from, size_t count) {
    for (; count > 0; --count, from += kWordBytes, to += kWordBytes) {
      const uint64_t word = LoadWord(from);
      std::memcpy(to, &word, kWordBytes);
    }
  };
  constexpr size_t kPlace = rdma::PlaceOf(index::kKeyDataOffset);
  constexpr size_t kInFirst = (kLineBytes - kPlace) / kWordBytes;
  copy(record + kPlace, std::min(words, kInFirst));
  if (words <= kInFirst) [[likely]]
    return;
  words -= kInFirst;
  // Each line begins with its version.
  constexpr size_t kInLine = rdma::kLineDataBytes / kWordBytes;
  for (const std::byte* line = record + kLineBytes;; line += kLineBytes, words -= kInLine) {
    copy(line + kWordBytes, std::min(words, kInLine));
    if (words <= kInLine) return;
  }
}

}  // namespace

// What the rows of a table may look like, and what a scan wants of them.
struct Access::RowShape {
  RowShape(const Table& table, ScanOptions options)
      : payload_bytes(table.payload_bytes()),
        key_kind(table.options().key_kind),
        max_key_bytes(key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : table.options().max_key_bytes),
        least_key_bytes(key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : 0),
        variable_length(table.options().variable_length),
        keys_only(options.keys_only) {}

  bool MayHaveKeyOf(const index::RecordMeta& meta) const {
    return meta.key_bytes <= max_key_bytes && meta.key_bytes >= least_key_bytes;
  }
  bool MayHavePayloadOf(const index::RecordMeta& meta) const {
    return meta.payload_bytes == payload_bytes || (variable_length && meta.payload_bytes < payload_bytes);
  }

  size_t payload_bytes;
  index::KeyKind key_kind;
  size_t max_key_bytes;
  size_t least_key_bytes;
  bool variable_length;
  bool keys_only;
};

// The short way for a record that is neither locked nor absent, and that the transaction neither writes nor reads for
// update. False if it is locked, absent, changes meanwhile, or cannot be one of the table: nothing was appended.
bool Access::AppendUnlocked(const RowShape& shape, rdma::GlobalAddress address, ScanRows* rows) {
  const std::byte* const record = session_->Direct(address);
  const uint64_t state = LoadWord(record);
  if (IsLocked(state) || IsAbsent(state)) [[unlikely]]
    return false;
  const index::RecordMeta meta = index::LoadMeta(record);
  if (!shape.MayHaveKeyOf(meta) || !shape.MayHavePayloadOf(meta)) [[unlikely]]
    return false;
  const size_t key_room = index::StoredKeyBytes(meta.key_bytes);
  const uint32_t size = shape.keys_only ? 0 : meta.payload_bytes;
  const size_t room = RoundUp(key_room + size, kWordBytes);
  const size_t place = rows->bytes_.Append(room);
  CopyFromKey(record, room / kWordBytes, rows->bytes_.At(place, room).data());
  PreemptionPoint();
  if (LoadWord(record) != state) [[unlikely]] {
    rows->bytes_.Cut(place);
    return false;
  }
  rows->rows_.push_back({.key_place = place,
                         .place = place + key_room,
                         .size = size,
                         .handle = {},
                         .key_bytes = meta.key_bytes,
                         .key_kind = shape.key_kind});
  reads_.AddRecord(address, state);
  return true;
}

// True if the last two rows are in the order of a scan. A key in a record can have been overwritten by a client that
// breaks the rules; the index itself is in order.
bool Access::EndsInOrder(const ScanRows& rows, bool reverse) {
  const ScanRows::Item* a = &rows.rows_[rows.rows_.size() - 2];
  const ScanRows::Item* b = &rows.rows_.back();
  if (reverse) std::swap(a, b);
  // The first words decide in most cases; a key shorter than a word is filled up with zeros.
  if (a->key_bytes > 0 && b->key_bytes > 0) {
    const auto first_word = [&](const ScanRows::Item* row) {
      uint64_t word;
      std::memcpy(&word, rows.bytes_.At(row->key_place, kWordBytes).data(), kWordBytes);
      return row->key_kind == index::KeyKind::kBytes ? __builtin_bswap64(word) : word;
    };
    const uint64_t of_a = first_word(a);
    const uint64_t of_b = first_word(b);
    if (of_a != of_b) return of_a < of_b;
  }
  return rows.KeyOf(*a) < rows.KeyOf(*b);
}

// Copies the rows of one leaf while the records of the next one are on their way. Order and sizes are checked, because
// clients can write into records; the places come from leaves, where they cannot.
Status Access::AppendScanned(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options) {
  const RowShape shape(table, options);
  const bool second_line = MayTakeSecondLine(table, options);
  const size_t first_row = rows->rows_.size();
  const size_t first_byte = rows->bytes_.size();
  const bool has_writes = !writes_.entries().empty();
  for (int looks = 0; looks < kLookAgain; ++looks) {
    scan_.Clear();
    ahead_.clear();
    const size_t reads = reads_.records().size();
    Look look = Look::kDone;
    index::Entry failed;
    const auto prefetch = [&](rdma::GlobalAddress address) {
      const std::byte* const record = session_->Direct(address);
      Prefetch(record);
      if (second_line) Prefetch(record + kLineBytes);
    };
    // One by one: a core has only some cache misses in flight.
    const auto copy = [&](std::span<const rdma::GlobalAddress> coming) {
      Charge(Cost::kRecordLine, ahead_.size());
      size_t come = 0;
      for (const rdma::GlobalAddress record : ahead_) {
        if (come < coming.size()) prefetch(coming[come++]);
        const size_t before = rows->rows_.size();
        const bool own = options.for_update || (has_writes && writes_.FindRecord(record) >= 0);
        if (own || !AppendUnlocked(shape, record, rows)) [[unlikely]] {
          failed.record = record;
          failed.key = index::LoadKey(session_->Direct(record), table.options().key_kind);
          const index::RecordMeta meta = index::LoadMeta(session_->Direct(record));
          if (!shape.MayHaveKeyOf(meta) || meta.payload_bytes > shape.payload_bytes) {
            look = Look::kDamaged;
            return false;
          }
          if (!AppendRow(table, failed, rows, options, &look)) return false;
        }
        if (rows->rows_.size() > before && before > first_row && !EndsInOrder(*rows, range.reverse)) [[unlikely]] {
          failed.key = rows->key(before);
          look = Look::kDamaged;
          return false;
        }
      }
      while (come < coming.size()) prefetch(coming[come++]);
      return true;
    };
    const auto take = [&](std::span<const rdma::GlobalAddress> records, const index::Witness& witness) {
      if (!copy(records)) return false;
      scan_.witnesses.push_back(witness);
      ahead_.assign(records.begin(), records.end());
      return true;
    };
    GANNET_RETURN_IF_ERROR(table.local_index().ScanRecords(range, take));
    if (look == Look::kDone && copy({})) {
      for (const index::Witness& witness : scan_.witnesses) reads_.AddWitness(witness);
      if (rows->rows_.size() == first_row) return absl::OkStatus();
      // Rows in order are in the range if the first and the last one are.
      const Key lowest = range.reverse ? rows->key(rows->size() - 1) : rows->key(first_row);
      const Key highest = range.reverse ? rows->key(first_row) : rows->key(rows->size() - 1);
      if (lowest < range.from) [[unlikely]]
        return IndexDamaged(table, lowest);
      if (range.to < highest) [[unlikely]]
        return IndexDamaged(table, highest);
      return absl::OkStatus();
    }
    if (look == Look::kConflict) return Conflict();
    if (look == Look::kDamaged || IsGoneForGood(table, failed)) return IndexDamaged(table, failed.key.view());
    // A record was removed during the scan: it begins again (AppendFound says why entries read for update may stay).
    reads_.ForgetRecordsFrom(reads);
    rows->rows_.resize(first_row);
    rows->bytes_.Cut(first_byte);
    CpuRelax();
  }
  return Conflict();
}

Status Access::AppendFound(const Table& table, absl::FunctionRef<Status(index::ScanResult*)> find, ScanRows* rows,
                           ScanOptions options) {
  // Rows whose records are on their way while one is copied: more than the cache misses that a core can have in flight.
  // A scan of thousands of rows would push the first out of the nearest cache again if it asked for all at once.
  constexpr size_t kRowsAhead = 32;
  const bool second_line = MayTakeSecondLine(table, options);
  const size_t first_row = rows->rows_.size();
  const size_t first_byte = rows->bytes_.size();
  for (int looks = 0; looks < kLookAgain; ++looks) {
    scan_.Clear();
    GANNET_RETURN_IF_ERROR(find(&scan_));
    const size_t reads = reads_.records().size();
    const std::vector<index::Entry>& entries = scan_.entries;
    const auto prefetch = [&](size_t i) {
      const std::byte* const record = session_->Direct(entries[i].record);
      Prefetch(record);
      if (second_line) Prefetch(record + kLineBytes);
    };
    for (size_t i = 0; i < std::min(entries.size(), kRowsAhead); ++i) prefetch(i);
    Look look = Look::kDone;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i + kRowsAhead < entries.size()) prefetch(i + kRowsAhead);
      const index::Entry& entry = entries[i];
      if (AppendRow(table, entry, rows, options, &look)) continue;
      if (look == Look::kDamaged || (look == Look::kGone && IsGoneForGood(table, entry))) {
        return IndexDamaged(table, entry.key.view());
      }
      break;
    }
    if (look == Look::kConflict) return Conflict();
    if (look == Look::kDone) {
      for (const index::Witness& witness : scan_.witnesses) reads_.AddWitness(witness);
      return absl::OkStatus();
    }
    // A record was removed during the scan. Forgets what was read so far (entries read for update stay, unchanged: the
    // commit validates them, so a stale one costs an abort, never a wrong answer).
    reads_.ForgetRecordsFrom(reads);
    rows->rows_.resize(first_row);
    rows->bytes_.Cut(first_byte);
    CpuRelax();
  }
  return Conflict();
}

void Access::AppendOwnRow(uint32_t number, ScanRows* rows, ScanOptions options) {
  const WriteEntry& entry = writes_[number];
  const uint32_t size = options.keys_only ? 0 : entry.payload_bytes;
  ScanRows::Item& row = rows->Add(entry.key);
  row.handle = RecordHandle{number};
  writes_.CopyPayload(entry, 0, rows->MakePayload(&row, size));
}

// Adds this transaction's inserts, which are not in the index yet, at their places.
void Access::MergeOwnInserts(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options) {
  if (writes_.has_inserts()) {
    group_.clear();
    writes_.InsertsIn(table, range, &group_);
    for (const uint32_t i : group_) AppendOwnRow(i, rows, options);
    if (!group_.empty()) {
      std::sort(rows->rows_.begin(), rows->rows_.end(), [&](const ScanRows::Item& a, const ScanRows::Item& b) {
        return range.reverse ? rows->KeyOf(b) < rows->KeyOf(a) : rows->KeyOf(a) < rows->KeyOf(b);
      });
    }
  }
  if (rows->rows_.size() > range.limit) rows->rows_.resize(range.limit);
}

coro::Async<Status> Access::Scan(const Table& table, const index::ScanRange& asked, ScanRows* rows,
                                 ScanOptions options) {
  // The ends may be keys of *rows. This transaction keeps copies of their bytes, also for the coroutines that it calls.
  index::ScanRange range = asked;
  range.from = writes_.arena().Keep(asked.from);
  range.to = writes_.arena().Keep(asked.to);
  rows->Clear();
  if (Status s = CheckKey(table, range.from); !s.ok()) return s;
  if (Status s = CheckKey(table, range.to); !s.ok()) return s;
  if (!table.index_traits().ordered) {
    return Status(absl::FailedPreconditionError(absl::StrCat(NameOf(table), " has no ordered index (",
                                                             index::EntryOf(table.options().index).name,
                                                             "): create it with one to scan it")));
  }
  if (range.to < range.from || range.limit == 0) return absl::OkStatus();
  if (!table.OwnsRange(range.from, range.to, session_->self) || !session_->direct) {
    return ScanRemote(table, range, rows, options);
  }
  Status status = ScanDirect(table, range, rows, options);
  if (!status.ok()) [[unlikely]] {
    rows->rows_.clear();
    return Failed(std::move(status));
  }
  MergeOwnInserts(table, range, rows, options);
  return status;
}

}  // namespace gannet::txn
