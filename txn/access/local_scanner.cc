#include "txn/access/local_scanner.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "rdma/versioned.h"
#include "txn/access/access_internal.h"
#include "txn/access/row_shape.h"
#include "txn/node/index_damage.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

// False: *look has the reason (gone: scan again; conflict; or damaged).
bool LocalScanner::AppendRow(const Table& table, const index::Entry& entry, ScanRows* rows, ScanOptions options,
                             Look* look) {
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
                                             : static_cast<uint32_t>(table.accepted_payload_bytes());
  }
  ScanRows::Item& row = rows->Add(key, size);
  GetRequest request{.table = &table,
                     .key = key,
                     .out = rows->PayloadOf(row),
                     .offset = 0,
                     .for_update = options.for_update,
                     .up_to_end = true};
  *look = reader_.LookAt(&request, entry.record);
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
bool LocalScanner::IsGoneForGood(const Table& table, const index::Entry& entry) const {
  const uint64_t state = LoadWord(session_->Direct(entry.record));
  return !IsLocked(state) && IsAbsent(state) && StillLeadsTo(table, entry.key.view(), entry.record);
}

Status LocalScanner::Append(const Table& table, const RowsWanted& wanted, ScanRows* rows, ScanOptions options) {
  index::LocalIndex& index = table.local_index();
  if (wanted.nearest.has_value()) {
    index::NearestQuery query = *wanted.nearest;
    query.count = LimitBeyondRemovals(writes_, table, wanted.range, query.count);
    const auto find = [&](index::ScanResult* found) { return index.Nearest(query, found); };
    return AppendFound(table, find, rows, options);
  }
  if (wanted.window.has_value()) {
    const auto find = [&](index::ScanResult* found) { return index.Search({.window = *wanted.window}, found); };
    return AppendFound(table, find, rows, options);
  }
  index::ScanRange range = wanted.range;
  range.limit = LimitBeyondRemovals(writes_, table, range, range.limit);
  if (table.index_traits().scans_records) return AppendScanned(table, range, rows, options);
  const auto find = [&](index::ScanResult* found) { return index.Scan(range, found); };
  return AppendFound(table, find, rows, options);
}

// The copies of one scan: where they are, and where they end at the latest. The scan says what is ahead, and
// AppendUnlocked which records come next and where their rows go. CopyRows has all of it in local variables, and calls
// nothing: so most of it stays in registers.
struct LocalScanner::CopyRun {
  using CopyRowsFunction = void (*)(const RowShape&, const std::byte*, CopyRun*);

  CopyRowsFunction copy_rows;
  const rdma::GlobalAddress* from;
  const rdma::GlobalAddress* from_end;
  // Records that are prefetched, one for each row: a core has only some cache misses in flight.
  const rdma::GlobalAddress* ahead;
  const rdma::GlobalAddress* ahead_end;
  ScanRows::Item* item;
  ReadEntry* read;
  KeyStart last;     // of the last row's key, unless Copying::kAlone
  std::byte* bytes;  // place 0 of the rows' bytes
  std::byte* to;
  const std::byte* to_end;
  size_t lacks;   // so many bytes were wanted, and there was no room for them
  bool in_doubt;  // the last row may be out of order

  void MakeRoom(size_t size, RowBytes* rows) {
    to = rows->Room(size);
    bytes = to - rows->size();
    to_end = rows->end_of_room();
    lacks = 0;
  }
};

// Copies rows. It ends before a record that is locked or absent, that changes meanwhile, or for which there is no room.
// Unless kAlone, it also ends before a record that cannot be one of the table, and after a row whose key does not begin
// with more than that of the row before: such a row is in doubt, because it may be out of order.
template <index::KeyKind kKind, LocalScanner::Copying kCopying>
[[gnu::noinline]] void LocalScanner::CopyRows(const RowShape& shape, const std::byte* memory, CopyRun* run) {
  const CopyRun begin = *run;
  const rdma::GlobalAddress* from = begin.from;
  const rdma::GlobalAddress* ahead = begin.ahead;
  ScanRows::Item* item = begin.item;
  ReadEntry* read = begin.read;
  std::byte* to = begin.to;
  // All records are this node's, so their addresses differ from places in memory by the same number.
  const auto memory_of_zero = reinterpret_cast<uintptr_t>(memory) -
                              (begin.from != begin.from_end ? begin.from->bits() - begin.from->offset() : 0);
  const auto at = [memory_of_zero](rdma::GlobalAddress address) {
    return reinterpret_cast<const std::byte*>(memory_of_zero + address.bits());
  };
  const bool second_line = shape.second_line;
  const uint32_t copied_bytes = shape.copied_bytes;
  KeyStart last = begin.last;
  bool follows = true;
  for (; from != begin.from_end && follows; ++from) {
    const rdma::GlobalAddress address = *from;
    if (ahead != begin.ahead_end) {
      const std::byte* const next = at(*ahead++);
      Prefetch(next);
      if (second_line) Prefetch(next + kLineBytes);
    }
    const std::byte* const record = at(address);
    const uint64_t state = LoadWord(record);
    if ((state & (rdma::kLockBit | index::kAbsentBit)) != 0) [[unlikely]]
      break;
    const index::RecordMeta meta = index::LoadMeta(record);
    if (kCopying != Copying::kAlone && !shape.MayBeCopied<kKind>(meta)) [[unlikely]]
      break;
    const size_t key_room = kKind == index::KeyKind::kInteger ? kWordBytes : index::StoredKeyBytes(meta.key_bytes);
    const uint32_t size = meta.payload_bytes & copied_bytes;
    const size_t room = RoundUp(key_room + size, kWordBytes);
    if (static_cast<size_t>(begin.to_end - to) < room) [[unlikely]] {
      run->lacks = room;
      break;
    }
    CopyFromKey(record, room, to);
    if constexpr (kCopying == Copying::kSimulated) PreemptionPoint();
    if (LoadWord(record) != state) [[unlikely]]
      break;
    *item++ = {.key_place = static_cast<size_t>(to - begin.bytes),
               .key_bytes = meta.key_bytes,
               .payload_bytes = size,
               .handle = {}};
    *read++ = {address, state};
    if constexpr (kCopying != Copying::kAlone) {
      const KeyStart next = shape.StartOf<kKind>(to, meta.key_bytes);
      follows = last < next;
      last = next;
    }
    to += room;
  }
  run->from = from;
  run->ahead = ahead;
  run->item = item;
  run->read = read;
  run->last = last;
  run->to = to;
  run->in_doubt = !follows;
}

LocalScanner::CopyRun LocalScanner::BeginCopies(const RowShape& shape) {
  const auto of_kind = [&]<index::KeyKind kKind>() {
    if (Runtime::Current() != nullptr) return CopyRows<kKind, Copying::kSimulated>;
    return shape.others_write ? CopyRows<kKind, Copying::kWatched> : CopyRows<kKind, Copying::kAlone>;
  };
  CopyRun run{};
  run.copy_rows = shape.key_kind == index::KeyKind::kInteger ? of_kind.operator()<index::KeyKind::kInteger>()
                                                             : of_kind.operator()<index::KeyKind::kBytes>();
  return run;
}

// The short way for records that the transaction neither writes nor reads for update: appends the rows of as many as
// CopyRows copies, and returns their number. Prefetches one of the records ahead for each row.
size_t LocalScanner::AppendUnlocked(const RowShape& shape, std::span<const rdma::GlobalAddress> records, CopyRun* run,
                                    ScanRows* rows) {
  constexpr size_t kMostLeaves = 2048;  // bytes that the rows of most leaves take
  run->from = records.data();
  run->from_end = records.data() + records.size();
  run->item = rows->rows_.Room(records.size());
  run->read = reads_.RoomForRecords(records.size());
  run->MakeRoom(kMostLeaves, &rows->bytes_);
  while (true) {
    run->copy_rows(shape, session_->memory, run);
    rows->bytes_.Cut(static_cast<size_t>(run->to - run->bytes));
    if (run->lacks == 0) [[likely]]
      break;
    run->MakeRoom(run->lacks, &rows->bytes_);
  }
  const auto done = static_cast<size_t>(run->from - records.data());
  rows->rows_.Resize(rows->rows_.size() + done);
  reads_.AddWritten(done);
  return done;
}

// True if the last two rows are in the order of a scan. A key in a record can have been overwritten by a client that
// breaks the rules; the index itself is in order.
bool LocalScanner::EndsInOrder(const ScanRows& rows, bool reverse) {
  const ScanRows::Item* a = &rows.rows_[rows.rows_.size() - 2];
  const ScanRows::Item* b = &rows.rows_.back();
  if (reverse) std::swap(a, b);
  if (rows.key_kind_ == index::KeyKind::kInteger) return rows.KeyOf(*a) < rows.KeyOf(*b);
  // The keys are compared by words, which are filled up with zeros, and then by length.
  const size_t shorter = std::min(a->key_bytes, b->key_bytes);
  for (size_t at = 0; at < shorter; at += kWordBytes) {
    uint64_t of_a;
    uint64_t of_b;
    std::memcpy(&of_a, rows.bytes_.At(a->key_place + at, kWordBytes).data(), kWordBytes);
    std::memcpy(&of_b, rows.bytes_.At(b->key_place + at, kWordBytes).data(), kWordBytes);
    if (of_a != of_b) return __builtin_bswap64(of_a) < __builtin_bswap64(of_b);
  }
  return a->key_bytes < b->key_bytes;
}

// Copies the rows of one leaf while the records of the next one are on their way. Sizes are checked, and the order if
// there are other nodes, because clients can write into records; the places come from leaves, where they cannot.
Status LocalScanner::AppendScanned(const Table& table, const index::ScanRange& range, ScanRows* rows,
                                   ScanOptions options) {
  const RowShape shape(table, range.reverse, options, session_->change_counters == nullptr);
  const size_t first_row = rows->rows_.size();
  const size_t first_byte = rows->bytes_.size();
  const bool may_be_own = options.for_update || !writes_.entries().empty();
  rows->key_kind_ = shape.key_kind;
  CopyRun run = BeginCopies(shape);
  for (int looks = 0; looks < kLookAgain; ++looks) {
    scan_.Clear();
    ahead_.clear();
    const size_t reads = reads_.records().size();
    Look look = Look::kDone;
    index::Entry failed;
    run.last = {};
    const auto is_in_order = [&](size_t before) {
      if (rows->rows_.size() == before || before == first_row || EndsInOrder(*rows, range.reverse)) return true;
      failed.key = rows->key(before);
      look = Look::kDamaged;
      return false;
    };
    // The long way for one record.
    const auto copy_one = [&](rdma::GlobalAddress record) {
      failed.record = record;
      failed.key = index::LoadKey(session_->Direct(record), table.options().key_kind);
      const index::RecordMeta meta = index::LoadMeta(session_->Direct(record));
      // The only node may have got a longer maximum since the scan began (widen_table.cc).
      if (!shape.MayHaveKeyOf(meta) || meta.payload_bytes > table.accepted_payload_bytes()) {
        look = Look::kDamaged;
        return false;
      }
      const size_t before = rows->rows_.size();
      if (!AppendRow(table, failed, rows, options, &look)) return false;
      run.last = {UINT64_MAX, UINT64_MAX};  // the next row is in doubt
      return is_in_order(before);
    };
    const auto copy = [&](std::span<const rdma::GlobalAddress> coming) {
      Charge(Cost::kRecordLine, ahead_.size());
      run.ahead = coming.data();
      run.ahead_end = coming.data() + coming.size();
      std::span<const rdma::GlobalAddress> left = ahead_;
      while (!left.empty()) {
        if (may_be_own && (options.for_update || writes_.FindRecord(left.front()) >= 0)) {
          if (!copy_one(left.front())) return false;
          left = left.subspan(1);
          continue;
        }
        const size_t done = AppendUnlocked(shape, may_be_own ? left.first(1) : left, &run, rows);
        if (run.in_doubt) {
          if (!is_in_order(rows->rows_.size() - 1)) return false;
        } else if (done == 0) {
          if (!copy_one(left.front())) return false;
          left = left.subspan(1);
        }
        left = left.subspan(done);
      }
      for (; run.ahead != run.ahead_end; ++run.ahead) shape.PrefetchRow(session_->Direct(*run.ahead));
      return true;
    };
    const auto take = [&](std::span<const rdma::GlobalAddress> records, const index::Witness& witness) {
      // A scan of at most so many rows mostly finds them.
      const size_t left = range.limit == SIZE_MAX ? 0 : range.limit - std::min(range.limit, rows->size() - first_row);
      reads_.quiescent().Look(session_->change_counters, reads_.records().size(), left);
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
    if (look == Look::kConflict) return session_->LockedTooLong(LoadWord(session_->Direct(failed.record)));
    if (look == Look::kDamaged || IsGoneForGood(table, failed)) return IndexDamaged(table, failed.key.view());
    // A record was removed during the scan: it begins again (AppendFound says why entries read for update may stay).
    reads_.ForgetRecordsFrom(reads);
    rows->rows_.Resize(first_row);
    rows->bytes_.Cut(first_byte);
    CpuRelax();
  }
  return Conflict(AbortCause::kIndex);
}

Status LocalScanner::AppendFound(const Table& table, absl::FunctionRef<Status(index::ScanResult*)> find, ScanRows* rows,
                                 ScanOptions options) {
  // Rows whose records are on their way while one is copied: more than the cache misses that a core can have in flight.
  // A scan of thousands of rows would push the first out of the nearest cache again if it asked for all at once.
  constexpr size_t kRowsAhead = 32;
  const bool second_line = MayTakeSecondLine(table, options);
  reads_.quiescent().Look(session_->change_counters, reads_.records().size(), 0);
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
      if (look == Look::kConflict) return session_->LockedTooLong(LoadWord(session_->Direct(entry.record)));
      if (look == Look::kDamaged || (look == Look::kGone && IsGoneForGood(table, entry))) {
        return IndexDamaged(table, entry.key.view());
      }
      break;
    }
    if (look == Look::kDone) {
      for (const index::Witness& witness : scan_.witnesses) reads_.AddWitness(witness);
      return absl::OkStatus();
    }
    // A record was removed during the scan. Forgets what was read so far (entries read for update stay, unchanged: the
    // commit validates them, so a stale one costs an abort, never a wrong answer).
    reads_.ForgetRecordsFrom(reads);
    rows->rows_.Resize(first_row);
    rows->bytes_.Cut(first_byte);
    CpuRelax();
  }
  return Conflict(AbortCause::kIndex);
}

}  // namespace gannet::txn
