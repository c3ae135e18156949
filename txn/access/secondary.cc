// Secondary indexes (txn/store/secondary_index.h): how a transaction keeps them, and reads rows by them.
//
// KeepIndexes compares, for each row of the write set, the entry that the row had with the one that it has now. What it
// had is computed from the row as it was read: that is still in the record of this node, or in the image of a record of
// another node, and the commit checks by the lock that it has not changed. Entries are removed before others are
// inserted, so rows may exchange keys. A note for each row and index says which entry the write set leaves, so
// KeepIndexes may be called again after further writes.
//
// An index may be published while transactions run (Database::CreateIndex). Every commit looks for the indexes of its
// tables after all its reads. So a transaction that read a row as one left it that knew the index knows it, too; and
// the entries of a row are those of its last version that such a transaction wrote, or there is none. What is missing
// is added by the build, whose scan begins when all transactions have ended that may not know the index.
//
// On several nodes it is published on one after the other. Until all have it, a commit that finds it is a conflict
// (SecondaryIndex::is_being_published): otherwise one node could write a row with its entry, and another node, which
// does not know the index yet, change that row and leave the entry.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sometimes.h"
#include "rdma/versioned.h"
#include "txn/access/access.h"
#include "txn/access/access_internal.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"
#include "txn/store/secondary_index.h"

namespace gannet::txn {
namespace {

Key KeyOfEntry(std::string_view bytes) {
  return Key(bytes);
}

// While a unique index is built, two rows may have one key, and the entry is that of the row that the build, or a
// transaction, came to first. The other row has none: a transaction that changes it leaves the entry alone. (If both
// rows still have the key when the build comes to the second one, the index is given up.)
bool MayBeOfAnotherRow(const SecondaryIndex& index) {
  return index.unique() && !index.is_complete();
}

// True if an entry of a unique index with this payload leads to `row`.
bool LeadsTo(std::span<const std::byte> payload, const Key& row) {
  std::string primary_key;
  SecondaryIndex::AppendPrimaryKey(row, &primary_key);
  return std::ranges::equal(payload, std::as_bytes(std::span(primary_key)));
}

// A row has no entry although the index is complete, or an entry leads to no row. Either is a state that never existed,
// which the validation finds, or the index is wrong: the caller validates before it tells the user.
[[gnu::cold]] Status Dangling(const SecondaryIndex& index, std::string_view entry_key, const char* what) {
  return absl::DataLossError(absl::StrCat(
      index.DescribeEntry(entry_key), ": ", what, "; the index does not belong to the table as it is",
      index.by_function() ? ", possibly because its function has changed" : "", ": drop it and create it again"));
}

}  // namespace

bool Access::HasIndexedWrites() const {
  return std::ranges::any_of(writes_.entries(), [](const WriteEntry& entry) {
    return entry.kind != WriteKind::kNone && entry.table->secondary_indexes() != nullptr;
  });
}

std::string_view Access::KeepText(std::string_view text) {
  const std::span<std::byte> copy = writes_.arena().Copy(std::as_bytes(std::span(text.data(), text.size())));
  return {reinterpret_cast<const char*>(copy.data()), copy.size()};
}

// The payload of a record as the transaction read it, or its first bytes.
Status Access::CopyBase(const WriteEntry& entry, std::span<std::byte> out) const {
  const size_t place = index::PayloadDataOffset(entry.key.size());
  rdma::CopyOut(entry.is_direct() ? entry.direct : entry.image, place, out);
  if (!entry.is_direct() || LoadWord(entry.direct) == entry.seen) return absl::OkStatus();
  Sometimes<"secondary: a row has changed since it was read">();
  return Conflict(AbortCause::kRow);
}

// The key of the row's entry; nothing if it has none.
StatusOr<std::optional<std::string_view>> Access::EntryKeyOf(const SecondaryIndex& index, const Key& key,
                                                             std::span<const std::byte> payload) {
  entry_key_.clear();
  const StatusOr<bool> has = index.AppendKey(key, payload, &entry_key_);
  if (!has.ok()) return has.status();
  if (!*has) return std::nullopt;
  if (!index.unique()) SecondaryIndex::AppendPrimaryKey(key, &entry_key_);
  const size_t most = index.entries().options().max_key_bytes;
  if (entry_key_.size() > most) {
    return absl::InvalidArgumentError(absl::StrCat(NameOfRow(index.table(), key), ": its entry in ", index.Describe(),
                                                   " has a key of ", entry_key_.size(), " bytes, at most ", most));
  }
  return std::optional<std::string_view>(entry_key_);
}

// The number of the note about the row of `entry` in `index`; a new one has the entry that the row had when it was
// read.
StatusOr<uint32_t> Access::NoteOf(WriteEntry& entry, const SecondaryIndex& index) {
  for (uint32_t i = entry.index_note; i != UINT32_MAX; i = index_notes_[i].next) {
    if (index_notes_[i].index == &index) return i;
  }
  IndexNote note{.index = &index, .entry = {}, .next = entry.index_note};
  if (entry.kind != WriteKind::kInsert) {
    row_bytes_.resize(std::min<size_t>(entry.image_payload_bytes, index.payload_bytes_needed()));
    if (Status s = CopyBase(entry, row_bytes_); !s.ok()) return Failed(std::move(s));
    const StatusOr<std::optional<std::string_view>> had = EntryKeyOf(index, entry.key, row_bytes_);
    if (!had.ok()) return had.status();
    if (had->has_value()) note.entry = KeepText(**had);
  }
  entry.index_note = static_cast<uint32_t>(index_notes_.size());
  index_notes_.push_back(note);
  return entry.index_note;
}

Status Access::CollectIndexChanges(std::span<const uint32_t> written, IndexChanges* changes) {
  for (const uint32_t i : written) {
    WriteEntry& entry = writes_[i];
    const SecondaryIndexes* const indexes = entry.table->secondary_indexes();
    if (entry.kind == WriteKind::kNone || indexes == nullptr) continue;
    for (const SecondaryIndex* index : *indexes) {
      if (index->is_being_published()) [[unlikely]] {
        Sometimes<"secondary: a commit finds an index that is being published">();
        return Failed(Conflict(AbortCause::kTable));
      }
      const StatusOr<uint32_t> number = NoteOf(entry, *index);
      if (!number.ok()) return number.status();
      std::optional<std::string_view> has;
      if (!entry.is_removed()) {
        row_bytes_.resize(std::min<size_t>(entry.payload_bytes, index->payload_bytes_needed()));
        writes_.CopyPayload(entry, 0, row_bytes_);
        const StatusOr<std::optional<std::string_view>> key = EntryKeyOf(*index, entry.key, row_bytes_);
        if (!key.ok()) return key.status();
        has = *key;
      }
      const IndexNote& note = index_notes_[*number];
      if (note.entry == has) continue;
      if (note.entry.has_value()) changes->removals.push_back({*number, entry.key});
      if (has.has_value()) changes->insertions.push_back({*number, entry.key, KeepText(*has)});
    }
  }
  return absl::OkStatus();
}

coro::Task<Status> Access::KeepIndexes(bool last) {
  std::vector<uint32_t> written = writes_.TakeTouched();
  if (last) {
    written.clear();
    for (uint32_t i = 0; i < writes_.size(); ++i) written.push_back(i);
  }
  IndexChanges changes;
  Status status = CollectIndexChanges(written, &changes);
  if (status.ok()) {
    coro::Task<Status> keeping = ChangeIndexes(&changes, last);
    status = co_await keeping;
  }
  if (!status.ok()) writes_.TouchAgain(written);
  co_return status;
}

coro::Task<Status> Access::ChangeIndexes(const IndexChanges* changes, bool last) {
  std::vector<GetRequest> requests;
  const auto ask = [&](const SecondaryIndex& index, std::string_view key, bool for_update) {
    GetRequest& request = requests.emplace_back();
    request.table = &index.entries();
    request.key = KeyOfEntry(key);
    request.offset = 0;
    request.for_update = for_update;
  };
  for (const IndexRemoval& each : changes->removals) {
    const SecondaryIndex& index = *index_notes_[each.note].index;
    ask(index, *index_notes_[each.note].entry, /*for_update=*/true);
    if (!MayBeOfAnotherRow(index)) continue;
    const size_t room = index.entries().payload_bytes();
    requests.back().out = {writes_.arena().Allocate(room), room};
    requests.back().up_to_end = true;
  }
  const size_t removals = requests.size();
  if (removals > 0) {
    coro::Async<Status> getting = GetMany(requests);
    const Status got = co_await getting;
    if (!got.ok()) co_return got;
  }
  for (size_t i = 0; i < removals; ++i) {
    IndexNote& note = index_notes_[changes->removals[i].note];
    const bool is_own = requests[i].out.empty() || !requests[i].status.ok() ||
                        LeadsTo(requests[i].out.first(requests[i].payload_bytes), changes->removals[i].row);
    if (!is_own) {
      Sometimes<"secondary: an entry is of another row with this key">();
    } else if (absl::IsNotFound(requests[i].status)) {
      // While the index is built, the build has not come to the row yet.
      if (note.index->is_complete()) co_return Dangling(*note.index, *note.entry, "the entry of a row is missing");
      Sometimes<"secondary: a row changes before the build has its entry">();
    } else {
      GANNET_CO_RETURN_IF_ERROR(requests[i].status);
      GANNET_CO_RETURN_IF_ERROR(RemoveEntry(requests[i].handle));
    }
    note.entry = std::nullopt;
  }
  // The commit finds the rows that have the keys already. Until then they would stand between this transaction's reads
  // and its own entries.
  requests.clear();
  if (!last) {
    GANNET_CO_RETURN_IF_ERROR(CheckKeysDiffer(*changes));
    for (const IndexInsertion& each : changes->insertions) {
      const SecondaryIndex& index = *index_notes_[each.note].index;
      if (index.unique()) ask(index, each.entry, /*for_update=*/false);
    }
  }
  if (!requests.empty()) {
    coro::Async<Status> getting = GetMany(requests);
    const Status got = co_await getting;
    if (!got.ok()) co_return got;
    for (const GetRequest& request : requests) {
      if (request.status.ok()) co_return KeyExists(*request.table, request.key);
      if (!absl::IsNotFound(request.status)) co_return request.status;
    }
  }
  for (const IndexInsertion& each : changes->insertions) {
    IndexNote& note = index_notes_[each.note];
    GANNET_CO_RETURN_IF_ERROR(InsertEntry(*note.index, each.entry, each.row));
    note.entry = each.entry;
  }
  co_return absl::OkStatus();
}

// AlreadyExists if two rows are to get one key of a unique index. The write set does not tell: an entry that it removed
// and inserted again is an update, of which a second insert of the key does not know.
Status Access::CheckKeysDiffer(const IndexChanges& changes) const {
  std::vector<std::pair<const SecondaryIndex*, std::string_view>> keys;
  for (const IndexInsertion& each : changes.insertions) {
    const SecondaryIndex* const index = index_notes_[each.note].index;
    if (index->unique()) keys.emplace_back(index, each.entry);
  }
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice == keys.end()) return absl::OkStatus();
  return KeyExists(twice->first->entries(), KeyOfEntry(twice->second));
}

Status Access::RemoveEntry(RecordHandle handle) {
  writes_.SetKeepsIndexes(true);
  Status removed = writes_.Remove(handle);
  writes_.SetKeepsIndexes(false);
  return removed;
}

Status Access::InsertEntry(const SecondaryIndex& index, std::string_view entry_key, const Key& row) {
  entry_payload_.clear();
  if (index.unique()) SecondaryIndex::AppendPrimaryKey(row, &entry_payload_);
  writes_.SetKeepsIndexes(true);
  Status inserted = writes_.Insert(index.entries(), KeyOfEntry(entry_key), std::as_bytes(std::span(entry_payload_)));
  writes_.SetKeepsIndexes(false);
  return inserted;
}

// ---------------------------------------------------------------------------------------------------------------------
// Reads by an index.

coro::Task<StatusOr<RowBy>> Access::GetBy(const SecondaryIndex& index, std::string_view entry_key, bool for_update) {
  if (writes_.has_touched()) {
    coro::Task<Status> keeping = KeepIndexes(/*last=*/false);
    const Status kept = co_await keeping;
    if (!kept.ok()) co_return kept;
  }
  coro::Async<StatusOr<std::span<const std::byte>>> looking = GetView(index.entries(), KeyOfEntry(entry_key));
  const StatusOr<std::span<const std::byte>> entry = co_await looking;
  if (absl::IsNotFound(entry.status())) co_return absl::NotFoundError(index.DescribeEntry(entry_key));
  if (!entry.ok()) co_return entry.status();
  const StatusOr<Key> row = index.PrimaryKeyOf(entry_key, *entry);
  if (!row.ok()) co_return row.status();
  GetRequest request = RequestForView(index.table(), *row);
  request.for_update = for_update;
  do {
    coro::Async<Status> getting = GetMany(std::span(&request, 1));
    const Status got = co_await getting;
    if (!got.ok()) co_return got;
    if (absl::IsNotFound(request.status)) co_return Dangling(index, entry_key, "it leads to a row that is not there");
    if (!request.status.ok()) co_return request.status;
  } while (!HasWholeView(&request));
  RowBy found;
  found.key = *row;
  found.payload = request.out.first(request.payload_bytes);
  found.handle = request.handle;
  co_return found;
}

coro::Task<Status> Access::RowsOfEntries(const SecondaryIndex& index, const ScanRows& entries, EntrySpan span,
                                         ScanOptions options, ScanRows* rows) {
  rows->Clear();
  const size_t whole = index.table().accepted_payload_bytes();
  const size_t room = options.keys_only                         ? 0
                      : index.table().options().variable_length ? std::min(whole, kFirstViewBytes)
                                                                : whole;
  for (size_t i = span.from; i < span.to; ++i) {
    const StatusOr<Key> row = index.PrimaryKeyOf(entries.key(i).bytes(), entries.payload(i));
    if (!row.ok()) co_return row.status();
    rows->Add(*row, room);
  }
  if (options.keys_only && !options.for_update) co_return absl::OkStatus();
  std::vector<GetRequest> requests;
  std::vector<size_t> numbers;
  for (size_t n = 0; n < rows->rows_.size(); ++n) numbers.push_back(n);
  while (!numbers.empty()) {
    requests.clear();
    for (const size_t n : numbers) {
      ScanRows::Item& item = rows->rows_[n];
      GetRequest& request = requests.emplace_back();
      request.table = &index.table();
      request.key = rows->KeyOf(item);
      request.out = rows->PayloadOf(item);
      request.for_update = options.for_update;
      request.up_to_end = true;
    }
    coro::Async<Status> getting = GetMany(requests);
    const Status got = co_await getting;
    if (!got.ok()) co_return got;
    std::vector<size_t> longer;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (absl::IsNotFound(requests[i].status)) {
        co_return Dangling(index, entries.key(span.from + numbers[i]).bytes(), "it leads to a row that is not there");
      }
      GANNET_CO_RETURN_IF_ERROR(requests[i].status);
      ScanRows::Item& item = rows->rows_[numbers[i]];
      item.handle = requests[i].handle;
      if (options.keys_only) continue;
      if (requests[i].payload_bytes > item.payload_bytes) {
        rows->Enlarge(&item, requests[i].payload_bytes);
        longer.push_back(numbers[i]);
      }
      item.payload_bytes = requests[i].payload_bytes;
    }
    numbers = std::move(longer);
  }
  co_return absl::OkStatus();
}

// ---------------------------------------------------------------------------------------------------------------------
// The build (txn/secondary_build.cc).

coro::Task<Status> Access::AddEntry(const SecondaryIndex& index, Key row) {
  coro::Async<StatusOr<std::span<const std::byte>>> reading = GetView(index.table(), row);
  const StatusOr<std::span<const std::byte>> payload = co_await reading;
  if (absl::IsNotFound(payload.status())) co_return absl::OkStatus();
  if (!payload.ok()) co_return payload.status();
  const StatusOr<std::optional<std::string_view>> key = EntryKeyOf(index, row, *payload);
  if (!key.ok()) co_return key.status();
  if (!key->has_value()) co_return absl::OkStatus();
  const std::string_view entry_key = KeepText(**key);
  coro::Async<StatusOr<std::span<const std::byte>>> looking = GetView(index.entries(), KeyOfEntry(entry_key));
  const StatusOr<std::span<const std::byte>> existing = co_await looking;
  if (absl::IsNotFound(existing.status())) co_return InsertEntry(index, entry_key, row);
  if (!existing.ok()) co_return existing.status();
  const StatusOr<Key> other = index.PrimaryKeyOf(entry_key, *existing);
  if (!other.ok()) co_return other.status();
  if (*other == row) co_return absl::OkStatus();
  co_return absl::AlreadyExistsError(absl::StrCat(
      index.DescribeEntry(entry_key), ": two rows have this key of a unique index: ", NameOfRow(index.table(), *other),
      " and ", NameOfRow(index.table(), row)));
}

coro::Task<Status> Access::RemoveEntryByKey(const SecondaryIndex& index, Key entry_key) {
  GetRequest request = RequestForHandle(index.entries(), entry_key);
  coro::Async<Status> getting = GetMany(std::span(&request, 1));
  const Status got = co_await getting;
  if (!got.ok()) co_return got;
  if (absl::IsNotFound(request.status)) co_return absl::OkStatus();
  GANNET_CO_RETURN_IF_ERROR(request.status);
  co_return RemoveEntry(request.handle);
}

}  // namespace gannet::txn
