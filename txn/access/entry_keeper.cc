#include "txn/access/entry_keeper.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sometimes.h"
#include "rdma/versioned.h"
#include "txn/access/access_internal.h"
#include "txn/store/key_status.h"
#include "txn/store/secondary_index.h"

namespace gannet::txn {
namespace {

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

// A row of this node was read from its record again: that must be the state on which the transaction builds.
Status CheckBase(const WriteEntry& entry) {
  if (!entry.is_direct() || entry.kind == WriteKind::kInsert || LoadWord(entry.direct) == entry.seen) {
    return absl::OkStatus();
  }
  Sometimes<"secondary: a row has changed since it was read">();
  return Conflict(AbortCause::kRow);
}

}  // namespace

[[gnu::cold]] Status Dangling(const SecondaryIndex& index, std::string_view entry_key, const char* what) {
  return absl::DataLossError(absl::StrCat(
      index.DescribeEntry(entry_key), ": ", what, "; the index does not belong to the table as it is",
      index.by_function() ? ", possibly because its function has changed" : "", ": drop it and create it again"));
}

bool EntryKeeper::HasIndexedWrites() const {
  return std::ranges::any_of(writes_.entries(), [](const WriteEntry& entry) {
    return entry.kind != WriteKind::kNone && entry.table->secondary_indexes() != nullptr;
  });
}

std::string_view EntryKeeper::KeepText(std::string_view text) {
  const std::span<std::byte> copy = writes_.arena().Copy(std::as_bytes(std::span(text.data(), text.size())));
  return {reinterpret_cast<const char*>(copy.data()), copy.size()};
}

// Copies the payload of a record as the transaction read it, or its first bytes.
Status EntryKeeper::CopyBase(const WriteEntry& entry, std::span<std::byte> out) const {
  const size_t place = index::PayloadDataOffset(entry.key.size());
  rdma::CopyOut(entry.is_direct() ? entry.direct : entry.image, place, out);
  return CheckBase(entry);
}

// Returns the key of the row's entry; nothing if it has none.
StatusOr<std::optional<std::string_view>> EntryKeeper::EntryKeyOf(const SecondaryIndex& index, const Key& key,
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

// Returns the number of the note about the row of `entry` in `index`; a new one has the entry that the row had when it
// was read.
StatusOr<uint32_t> EntryKeeper::NoteOf(WriteEntry& entry, const SecondaryIndex& index) {
  for (uint32_t i = entry.index_note; i != UINT32_MAX; i = notes_[i].next) {
    if (notes_[i].index == &index) return i;
  }
  Note note{.index = &index, .entry = {}, .next = entry.index_note};
  if (entry.kind != WriteKind::kInsert) {
    row_bytes_.resize(std::min<size_t>(entry.image_payload_bytes, index.payload_bytes_needed()));
    if (Status s = CopyBase(entry, row_bytes_); !s.ok()) return failure_.Note(std::move(s));
    const StatusOr<std::optional<std::string_view>> had = EntryKeyOf(index, entry.key, row_bytes_);
    if (!had.ok()) return had.status();
    if (had->has_value()) note.entry = KeepText(**had);
  }
  entry.index_note = static_cast<uint32_t>(notes_.size());
  notes_.push_back(note);
  return entry.index_note;
}

Status EntryKeeper::CollectChanges(std::span<const uint32_t> written, Changes* changes) {
  for (const uint32_t i : written) {
    WriteEntry& entry = writes_[i];
    const SecondaryIndexes* const indexes = entry.table->secondary_indexes();
    if (entry.kind == WriteKind::kNone || indexes == nullptr) continue;
    for (const SecondaryIndex* index : *indexes) {
      if (index->is_being_published()) [[unlikely]] {
        Sometimes<"secondary: a commit finds an index that is being published">();
        return failure_.Note(Conflict(AbortCause::kTable));
      }
      const StatusOr<uint32_t> number = NoteOf(entry, *index);
      if (!number.ok()) return number.status();
      std::optional<std::string_view> has;
      if (!entry.is_removed()) {
        row_bytes_.resize(std::min<size_t>(entry.payload_bytes, index->payload_bytes_needed()));
        writes_.CopyPayload(entry, 0, row_bytes_);
        if (Status s = CheckBase(entry); !s.ok()) return failure_.Note(std::move(s));
        const StatusOr<std::optional<std::string_view>> key = EntryKeyOf(*index, entry.key, row_bytes_);
        if (!key.ok()) return key.status();
        has = *key;
      }
      const Note& note = notes_[*number];
      if (note.entry == has) continue;
      if (note.entry.has_value()) changes->removals.push_back({*number, entry.key});
      if (has.has_value()) changes->insertions.push_back({*number, entry.key, KeepText(*has)});
    }
  }
  return absl::OkStatus();
}

coro::Task<Status> EntryKeeper::KeepIndexes(bool last) {
  std::vector<uint32_t> written = writes_.TakeTouched();
  if (last) {
    written.clear();
    for (uint32_t i = 0; i < writes_.size(); ++i) written.push_back(i);
  }
  Changes changes;
  Status status = CollectChanges(written, &changes);
  if (status.ok()) {
    coro::Task<Status> keeping = ChangeIndexes(&changes, last);
    status = co_await keeping;
  }
  if (!status.ok()) writes_.TouchAgain(written);
  co_return status;
}

coro::Task<Status> EntryKeeper::ChangeIndexes(const Changes* changes, bool last) {
  std::vector<GetRequest> requests;
  const auto ask = [&](const SecondaryIndex& index, std::string_view key, bool for_update) {
    GetRequest& request = requests.emplace_back();
    request.table = &index.entries();
    request.key = Key(key);
    request.offset = 0;
    request.for_update = for_update;
  };
  for (const Removal& each : changes->removals) {
    const SecondaryIndex& index = *notes_[each.note].index;
    ask(index, *notes_[each.note].entry, /*for_update=*/true);
    if (!MayBeOfAnotherRow(index)) continue;
    const size_t room = index.entries().payload_bytes();
    requests.back().out = {writes_.arena().Allocate(room), room};
    requests.back().up_to_end = true;
  }
  const size_t removals = requests.size();
  if (removals > 0) {
    coro::Async<Status> getting = points_.GetMany(requests);
    const Status got = co_await getting;
    if (!got.ok()) co_return got;
  }
  for (size_t i = 0; i < removals; ++i) {
    Note& note = notes_[changes->removals[i].note];
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
    for (const Insertion& each : changes->insertions) {
      const SecondaryIndex& index = *notes_[each.note].index;
      if (index.unique()) ask(index, each.entry, /*for_update=*/false);
    }
  }
  if (!requests.empty()) {
    coro::Async<Status> getting = points_.GetMany(requests);
    const Status got = co_await getting;
    if (!got.ok()) co_return got;
    for (const GetRequest& request : requests) {
      if (request.status.ok()) co_return KeyExists(*request.table, request.key);
      if (!absl::IsNotFound(request.status)) co_return request.status;
    }
  }
  for (const Insertion& each : changes->insertions) {
    Note& note = notes_[each.note];
    GANNET_CO_RETURN_IF_ERROR(InsertEntry(*note.index, each.entry, each.row));
    note.entry = each.entry;
  }
  co_return absl::OkStatus();
}

// AlreadyExists if two rows are to get one key of a unique index. The write set does not tell: an entry that it removed
// and inserted again is an update, of which a second insert of the key does not know.
Status EntryKeeper::CheckKeysDiffer(const Changes& changes) const {
  std::vector<std::pair<const SecondaryIndex*, std::string_view>> keys;
  for (const Insertion& each : changes.insertions) {
    const SecondaryIndex* const index = notes_[each.note].index;
    if (index->unique()) keys.emplace_back(index, each.entry);
  }
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice == keys.end()) return absl::OkStatus();
  return KeyExists(twice->first->entries(), Key(twice->second));
}

Status EntryKeeper::RemoveEntry(RecordHandle handle) {
  writes_.SetKeepsIndexes(true);
  Status removed = writes_.Remove(handle);
  writes_.SetKeepsIndexes(false);
  return removed;
}

Status EntryKeeper::InsertEntry(const SecondaryIndex& index, std::string_view entry_key, const Key& row) {
  entry_payload_.clear();
  if (index.unique()) SecondaryIndex::AppendPrimaryKey(row, &entry_payload_);
  writes_.SetKeepsIndexes(true);
  Status inserted = writes_.Insert(index.entries(), Key(entry_key), std::as_bytes(std::span(entry_payload_)));
  writes_.SetKeepsIndexes(false);
  return inserted;
}

// ---------------------------------------------------------------------------------------------------------------------
// The build (txn/schema/create_index.cc).

coro::Task<Status> EntryKeeper::AddEntry(const SecondaryIndex& index, Key row) {
  coro::Async<StatusOr<std::span<const std::byte>>> reading = points_.GetView(index.table(), row);
  const StatusOr<std::span<const std::byte>> payload = co_await reading;
  if (absl::IsNotFound(payload.status())) co_return absl::OkStatus();
  if (!payload.ok()) co_return payload.status();
  const StatusOr<std::optional<std::string_view>> key = EntryKeyOf(index, row, *payload);
  if (!key.ok()) co_return key.status();
  if (!key->has_value()) co_return absl::OkStatus();
  const std::string_view entry_key = KeepText(**key);
  coro::Async<StatusOr<std::span<const std::byte>>> looking = points_.GetView(index.entries(), Key(entry_key));
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

coro::Task<Status> EntryKeeper::RemoveEntryByKey(const SecondaryIndex& index, Key entry_key) {
  GetRequest request = RequestForHandle(index.entries(), entry_key);
  coro::Async<Status> getting = points_.GetMany(std::span(&request, 1));
  const Status got = co_await getting;
  if (!got.ok()) co_return got;
  if (absl::IsNotFound(request.status)) co_return absl::OkStatus();
  GANNET_CO_RETURN_IF_ERROR(request.status);
  co_return RemoveEntry(request.handle);
}

}  // namespace gannet::txn
