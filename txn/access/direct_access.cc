// Reads of this node's records by its own CPU: no verb, no suspension, no copy beyond the caller's.
//
// A record is read as versioned.h says for the owner's CPU: state word, payload, state word again. Every writer, a
// transaction here or a NIC, locks the state word first, so two equal unlocked words mean an untorn copy.
//
// A record that the index still names may be absent. Either a transaction is removing it (the index entry goes first,
// but we may have read that before), or has inserted it and not committed (then it is locked). The first kind is looked
// up again. The second is waited for briefly, like every locked record, and is a conflict after that.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/sometimes.h"
#include "rdma/versioned.h"
#include "txn/access/access.h"
#include "txn/access/access_internal.h"
#include "txn/access/key_status.h"
#include "txn/owner/index_damage.h"
#include "txn/record/record.h"
#include "txn/session/session_internal.h"

namespace gannet::txn {

using index::FindResult;
using index::PayloadDataOffset;

namespace {

constexpr int kSpinsOnLock = 256;

// One attempt to copy what `request` asks for from a record. False if it was locked or changed during the copy; then
// *state is the last word seen.
bool TryCopy(const std::byte* record, GetRequest* request, uint64_t* state) {
  *state = LoadWord(record);
  if (IsLocked(*state)) return false;
  request->payload_bytes = index::LoadMeta(record).payload_bytes;
  const std::span<std::byte> out = OutWithin(*request, request->payload_bytes);
  rdma::CopyOut(record, PayloadDataOffset(request->key.size()) + request->offset, out);
  Charge(Cost::kRecordLine, 1 + out.size() / rdma::kLineDataBytes);
  PreemptionPoint();
  const uint64_t after = LoadWord(record);
  const bool unchanged = after == *state;
  *state = after;
  return unchanged;
}

}  // namespace

Status Conflict() {
  static thread_local const Status conflict(absl::StatusCode::kAborted,
                                            "conflict with another transaction; run it again");
  return conflict;
}

Status LockedTooLong(const rdma::Fabric& fabric, uint64_t state) {
  if (IsLocked(state) && !rdma::IsLineBusy(state) && !fabric.Alive(LockOwnerNode(state))) {
    Sometimes<"txn: a record is locked by a worker that is gone">();
    return absl::UnavailableError(absl::StrCat("a record is locked by worker ", LockOwnerChannel(state), " of node ",
                                               LockOwnerNode(state),
                                               ", which is gone; its records are being repaired, try again"));
  }
  return Conflict();
}

[[gnu::cold]] Status Access::Failed(Status status, std::span<GetRequest> requests) {
  for (GetRequest& request : requests) request.status = status;
  return Failed(std::move(status));
}

void Access::ReadMissing(GetRequest* request, const index::Witness& witness) {
  if (const int own = writes_.FindInsert(*request->table, request->key); own >= 0) {
    writes_.ReadOwn(own, request);
    return;
  }
  reads_.AddWitness(witness);
  request->payload_bytes = 0;
  request->handle = {};
  request->status = Status(absl::StatusCode::kNotFound, "");
}

Status Access::Served(GetRequest* request) {
  if (request->status.ok()) [[likely]]
    return absl::OkStatus();
  if (absl::IsAborted(request->status)) return request->status;
  if (absl::IsNotFound(request->status)) request->status = KeyNotFound(*request->table, request->key);
  return absl::OkStatus();
}

Access::Look Access::LookDirect(GetRequest* request, rdma::GlobalAddress address) {
  if (!LeadsToKey(*session_->local, *request->table, request->key, address)) [[unlikely]]
    return Look::kDamaged;
  if (const int own = writes_.FindRecord(address); own >= 0) {
    writes_.ReadOwn(own, request);
    return Look::kDone;
  }
  std::byte* record = session_->Direct(address);
  uint64_t state;
  int spins = 0;
  while (!TryCopy(record, request, &state)) {
    if (++spins > kSpinsOnLock) {
      Sometimes<"read: a record of this node stays locked">();
      request->status = LockedTooLong(session_->local->fabric, state);
      return Look::kConflict;
    }
    CpuRelax();
  }
  if (IsAbsent(state)) {
    Sometimes<"read: a record of this node goes away between index and read">();
    return Look::kGone;
  }
  if (request->for_update) {
    request->handle = writes_.AddForUpdate(*request, address, state, record, nullptr);
  } else {
    request->handle = {};
    reads_.AddRecord(address, state);
  }
  request->status = StatusWithin(*request, request->payload_bytes);
  return Look::kDone;
}

Status Access::GetDirect(GetRequest* request) {
  GANNET_RETURN_IF_ERROR(CheckKey(*request->table, request->key));
  for (int looks = 0; looks < kLookAgain; ++looks) {
    const FindResult found = request->table->local_index().Find(request->key);
    if (found.is_lost()) [[unlikely]]
      return IndexDamaged(*request->table, request->key);
    if (found.record.is_null()) {
      ReadMissing(request, found.witness);
      return Served(request);
    }
    switch (LookDirect(request, found.record)) {
      case Look::kDone:
        return Served(request);
      case Look::kConflict:
        return request->status;
      case Look::kGone:
        if (StillLeadsTo(*request->table, request->key, found.record)) {
          return IndexDamaged(*request->table, request->key);
        }
        CpuRelax();
        break;
      case Look::kDamaged:
        return IndexDamaged(*request->table, request->key);
    }
  }
  return Conflict();
}

namespace {

// Number of requests that pass through the steps of a lookup together: more than the cache misses that a core can have
// in flight.
constexpr size_t kLookupGroup = 64;

bool HoldsKey(const std::byte* record, const Key& key) {
  if (key.kind() != index::KeyKind::kInteger) return index::RecordHoldsKey(record, key);
  return LoadWord(record + rdma::PlaceOf(index::kKeyDataOffset)) == key.integer();
}

void PrefetchLines(const std::byte* record, const GetRequest& request) {
  const size_t from = PayloadDataOffset(request.key.size()) + request.offset;
  for (size_t at = from; at < from + request.out.size(); at += rdma::kLineDataBytes) {
    Prefetch(record + rdma::PlaceOf(at));
  }
}

}  // namespace

// Puts the certain or probable addresses of all requests' records into found_, and prefetches their lines. Indexes that
// predict records take two steps, such as the buckets and then the records, each for all requests at once: a cache miss
// is waited for once per step.
Status Access::LocateDirect(std::span<GetRequest> requests) {
  found_.resize(std::max(found_.size(), requests.size()));
  pending_.clear();
  for (uint32_t i = 0; i < requests.size(); ++i) {
    const GetRequest& request = requests[i];
    GANNET_RETURN_IF_ERROR(CheckKey(*request.table, request.key));
    if (request.table->index_traits().guesses_records) {
      request.table->local_index().PrefetchFor(request.key);
    } else {
      pending_.push_back(i);
    }
  }
  FindOrdered(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const GetRequest& request = requests[i];
    if (request.table->index_traits().guesses_records) {
      found_[i] = {.record = request.table->local_index().GuessRecord(request.key)};
    }
    if (found_[i].record.is_null()) continue;
    Prefetch(session_->Direct(found_[i].record));
    PrefetchLines(session_->Direct(found_[i].record), request);
  }
  return absl::OkStatus();
}

// Looks up the requests in pending_, those of one table together; results go to found_.
void Access::FindOrdered(std::span<const GetRequest> requests) {
  while (!pending_.empty()) {
    const Table* table = requests[pending_.front()].table;
    keys_.clear();
    group_.clear();
    size_t kept = 0;
    for (const uint32_t i : pending_) {
      if (requests[i].table == table) {
        keys_.push_back(requests[i].key);
        group_.push_back(i);
      } else {
        pending_[kept++] = i;
      }
    }
    pending_.resize(kept);
    results_.resize(std::max(results_.size(), keys_.size()));
    table->local_index().FindMany(keys_, std::span(results_).first(keys_.size()));
    for (size_t n = 0; n < group_.size(); ++n) found_[group_[n]] = results_[n];
  }
}

Status Access::GetManyDirect(std::span<GetRequest> requests) {
  for (; requests.size() > kLookupGroup; requests = requests.subspan(kLookupGroup)) {
    GANNET_RETURN_IF_ERROR(GetGroupDirect(requests.first(kLookupGroup)));
  }
  return GetGroupDirect(requests);
}

Status Access::GetGroupDirect(std::span<GetRequest> requests) {
  GANNET_RETURN_IF_ERROR(LocateDirect(requests));
  for (size_t i = 0; i < requests.size(); ++i) {
    GetRequest& request = requests[i];
    FindResult found = found_[i];
    if (request.table->index_traits().guesses_records &&
        (found.record.is_null() || !HoldsKey(session_->Direct(found.record), request.key))) [[unlikely]] {
      found = request.table->local_index().Find(request.key);
    }
    if (found.is_lost()) [[unlikely]]
      return IndexDamaged(*request.table, request.key);
    if (found.record.is_null()) {
      ReadMissing(&request, found.witness);
      GANNET_RETURN_IF_ERROR(Served(&request));
      continue;
    }
    switch (LookDirect(&request, found.record)) {
      case Look::kDone:
        GANNET_RETURN_IF_ERROR(Served(&request));
        break;
      case Look::kConflict:
        return request.status;
      case Look::kGone:
        GANNET_RETURN_IF_ERROR(GetDirect(&request));
        break;
      case Look::kDamaged:
        return IndexDamaged(*request.table, request.key);
    }
  }
  return absl::OkStatus();
}

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

// True if a key as it lies in a record, of `bytes` bytes, can be one of the table.
bool CanBeKeyOf(const Table& table, uint16_t bytes) {
  const TableOptions& options = table.options();
  return options.key_kind == index::KeyKind::kInteger ? bytes == index::kIntegerKeyBytes
                                                      : bytes <= options.max_key_bytes;
}

// True if what a scan copies of a row may reach into the record's second line.
bool MayTakeSecondLine(const Table& table, ScanOptions options) {
  const size_t key_bytes = table.options().key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : 0;
  return !options.keys_only && PayloadDataOffset(key_bytes) + table.payload_bytes() > rdma::kLineDataBytes;
}

// Copies `size` bytes of a record's data, from its key on, in whole words: up to 7 bytes more are copied.
void CopyFromKey(const std::byte* record, size_t size, std::byte* to) {
  const std::byte* from = record + rdma::PlaceOf(index::kKeyDataOffset);
  const std::byte* end_of_line = record + kLineBytes;
  for (size_t words = RoundUp(size, kWordBytes) / kWordBytes; words > 0; --words) {
    if (from == end_of_line) {
      end_of_line += kLineBytes;
      from += kWordBytes;  // the line's version
    }
    const uint64_t word = LoadWord(from);
    std::memcpy(to, &word, kWordBytes);
    from += kWordBytes;
    to += kWordBytes;
  }
}

}  // namespace

// The short way for a record that is neither locked nor absent, and that the transaction neither writes nor reads for
// update: key and payload are copied at once. False: nothing was appended.
bool Access::AppendUnlocked(const Table& table, rdma::GlobalAddress address, ScanRows* rows, bool keys_only) {
  const std::byte* const record = session_->Direct(address);
  const uint64_t state = LoadWord(record);
  if (IsLocked(state) || IsAbsent(state)) return false;
  const index::RecordMeta meta = index::LoadMeta(record);
  const size_t whole = table.payload_bytes();
  if (!CanBeKeyOf(table, meta.key_bytes) ||
      (table.options().variable_length ? meta.payload_bytes > whole : meta.payload_bytes != whole)) {
    return false;
  }
  const size_t key_room = index::StoredKeyBytes(meta.key_bytes);
  const uint32_t size = keys_only ? 0 : meta.payload_bytes;
  const size_t before = rows->bytes_.size();
  const size_t room = RoundUp(key_room + size, kWordBytes);
  const size_t place = rows->bytes_.Append(room);
  CopyFromKey(record, key_room + size, rows->bytes_.At(place, room).data());
  PreemptionPoint();
  if (LoadWord(record) != state) [[unlikely]] {
    rows->bytes_.Cut(before);
    return false;
  }
  rows->rows_.push_back({.key_place = place,
                         .place = place + key_room,
                         .size = size,
                         .handle = {},
                         .key_bytes = meta.key_bytes,
                         .key_kind = table.options().key_kind});
  reads_.AddRecord(address, state);
  return true;
}

// True if the last two rows are in the order of a scan. A key in a record can have been overwritten by a client that
// breaks the rules; the index itself is in order.
bool Access::EndsInOrder(const ScanRows& rows, bool reverse) {
  const ScanRows::Item* a = &rows.rows_[rows.rows_.size() - 2];
  const ScanRows::Item* b = &rows.rows_.back();
  if (reverse) std::swap(a, b);
  if (a->key_kind == index::KeyKind::kBytes && a->key_bytes > 0 && b->key_bytes > 0) {
    const auto first_word = [&](const ScanRows::Item* row) {
      uint64_t word;
      std::memcpy(&word, rows.bytes_.At(row->key_place, kWordBytes).data(), kWordBytes);
      return __builtin_bswap64(word);
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
        if (own || !AppendUnlocked(table, record, rows, options.keys_only)) [[unlikely]] {
          failed.record = record;
          failed.key = index::LoadKey(session_->Direct(record), table.options().key_kind);
          const index::RecordMeta meta = index::LoadMeta(session_->Direct(record));
          if (!CanBeKeyOf(table, meta.key_bytes) || meta.payload_bytes > table.payload_bytes()) {
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

namespace {

// True if the bytes of `key` may lie in [begin, end), which is written while they are used.
bool LiesIn(const Key& key, const void* begin, const void* end) {
  if (key.kind() == index::KeyKind::kInteger) [[likely]]
    return false;
  const std::less<const void*> before;
  const char* const from = key.bytes().data();
  return before(from, end) && before(begin, from + key.size());
}

bool LiesIn(const Key& key, std::span<const std::byte> out) {
  return LiesIn(key, out.data(), out.data() + out.size());
}

// True if the key of a request may lie in the output of a request. All outputs are treated as one piece of memory.
bool KeysLieInOutputs(std::span<const GetRequest> requests) {
  const std::less<const std::byte*> before;
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  for (const GetRequest& request : requests) {
    if (request.out.empty()) continue;
    const std::byte* const last = request.out.data() + request.out.size();
    if (begin == nullptr || before(request.out.data(), begin)) begin = request.out.data();
    if (end == nullptr || before(end, last)) end = last;
  }
  return std::ranges::any_of(requests, [&](const GetRequest& request) { return LiesIn(request.key, begin, end); });
}

}  // namespace

Status Access::LoadDirect(GetRequest* request) {
  Status status = GetDirect(request);
  return status.ok() ? std::move(request->status) : Failed(std::move(status));
}

coro::Async<Status> Access::Get(const Table& table, Key key, std::span<std::byte> out, uint32_t offset) {
  if (LiesIn(key, out)) [[unlikely]]
    key = writes_.arena().Keep(key);
  GetRequest request{.table = &table, .key = key, .out = out, .offset = offset};
  rdma::NodeId owner;
  if (!session_->OwnedHere(table, key, &owner)) [[unlikely]]
    return GetOne(request);
  return LoadDirect(&request);
}

coro::Async<StatusOr<RecordHandle>> Access::GetForUpdate(const Table& table, Key key, std::span<std::byte> out,
                                                         uint32_t offset) {
  if (LiesIn(key, out)) [[unlikely]]
    key = writes_.arena().Keep(key);
  GetRequest request{.table = &table, .key = key, .out = out, .offset = offset, .for_update = true};
  rdma::NodeId owner;
  if (!session_->OwnedHere(table, key, &owner)) [[unlikely]]
    return GetOneForUpdate(request);
  if (Status status = LoadDirect(&request); !status.ok()) return StatusOr<RecordHandle>(std::move(status));
  return StatusOr<RecordHandle>(request.handle);
}

coro::Async<Status> Access::GetMany(std::span<GetRequest> requests) {
  bool all_here = true;
  bool integer_keys = true;
  for (GetRequest& request : requests) {
    rdma::NodeId owner;
    all_here = all_here && session_->OwnedHere(*request.table, request.key, &owner);
    integer_keys = integer_keys && request.key.kind() == index::KeyKind::kInteger;
    request.status = Status(absl::StatusCode::kAborted, "");
    request.payload_bytes = 0;
    request.handle = {};
  }
  if (!integer_keys && KeysLieInOutputs(requests)) [[unlikely]]
    return GetManyApart(requests);
  if (!all_here) [[unlikely]]
    return GetManyMixed(requests);
  Status status = GetManyDirect(requests);
  if (!status.ok()) [[unlikely]]
    return Failed(std::move(status), requests);
  return status;
}

// Uses copies of the keys. The copies, too, may lie between two outputs, and are not checked again.
coro::Task<Status> Access::GetManyApart(std::span<GetRequest> requests) {
  std::vector<GetRequest> copies(requests.begin(), requests.end());
  bool all_here = true;
  for (GetRequest& copy : copies) {
    copy.key = writes_.arena().Keep(copy.key);
    rdma::NodeId owner;
    all_here = all_here && session_->OwnedHere(*copy.table, copy.key, &owner);
  }
  Status status;
  if (all_here) {
    status = GetManyDirect(copies);
    if (!status.ok()) status = Failed(std::move(status), copies);
  } else {
    status = co_await GetManyMixed(copies);
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].status = std::move(copies[i].status);
    requests[i].payload_bytes = copies[i].payload_bytes;
    requests[i].handle = copies[i].handle;
  }
  co_return status;
}

coro::Async<Status> Access::Update(const Table& table, Key key, std::span<const std::byte> data) {
  rdma::NodeId owner;
  if (!session_->OwnedHere(table, key, &owner)) return UpdateByKey(table, key, data);
  GetRequest request{.table = &table, .key = key, .out = {}, .for_update = true};
  if (Status status = LoadDirect(&request); !status.ok()) return status;
  return writes_.Update(request.handle, data, 0, table.options().variable_length);
}

coro::Async<Status> Access::Remove(const Table& table, Key key) {
  rdma::NodeId owner;
  if (!session_->OwnedHere(table, key, &owner)) return RemoveByKey(table, key);
  GetRequest request{.table = &table, .key = key, .out = {}, .for_update = true};
  if (Status status = LoadDirect(&request); !status.ok()) return status;
  return writes_.Remove(request.handle);
}

}  // namespace gannet::txn
