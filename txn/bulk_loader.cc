#include "txn/bulk_loader.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/stop.h"
#include "txn/durable/durability.h"
#include "txn/node/row_checks.h"
#include "txn/record/record.h"
#include "txn/run/database_state.h"
#include "txn/run/session.h"
#include "txn/session/session_state.h"
#include "txn/store/arena.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

// Leaves keep some room, so that the first inserts between loaded keys do not split every one of them.

Status CheckStopOfLoad(const SessionState& session) {
  GANNET_RETURN_IF_ERROR(session.registry->CheckHome());
  return CheckStop(session.local->options.stop, "rows were loaded");
}

[[gnu::cold]] Status Finished(const Table& table) {
  return absl::FailedPreconditionError(
      absl::StrCat("a load of ", NameOf(table), " is over after Finish: make another BulkLoader"));
}

// A load makes no entries of secondary indexes.
Status CheckNoIndex(const Table& table) {
  if (table.secondary() != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(table), " has the entries of a secondary index: it is not loaded"));
  }
  const SecondaryIndexes* const indexes = table.secondary_indexes();
  if (indexes == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(indexes->front()->Describe(), " is kept by transactions: load ",
                                                    NameOf(table), " first, then create the index"));
}

// Rows that were added when it had `row_bytes` do not fit a table whose rows all have its size.
Status CheckSize(const Table& table, size_t row_bytes) {
  if (table.options().variable_length || table.payload_bytes() == row_bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(NameOf(table), " was widened from ", row_bytes, " to ",
                                                    table.payload_bytes(), " bytes while rows were added: load it ",
                                                    "again"));
}

}  // namespace

struct BulkLoader::State {
  SessionState* session;
  const Table* table;
  std::vector<index::LoadEntry> entries;
  Arena arena;           // the bytes of their keys
  size_t row_bytes = 0;  // of the table when the first of them was added
  Status failure = {};   // of the first Add that failed
  bool finished = false;

  Status Add(const Key& key, std::span<const std::byte> payload);
  Status PutInOrder();
  size_t TakeBack(index::Context& context, bool indexed);
  void Clear() {
    entries = {};
    arena = {};
  }
};

Status BulkLoader::State::Add(const Key& key, std::span<const std::byte> payload) {
  GANNET_RETURN_IF_ERROR(CheckStopOfLoad(*session));
  GANNET_RETURN_IF_ERROR(CheckOwnTable(*session->local, *table));
  GANNET_RETURN_IF_ERROR(CheckNoIndex(*table));
  GANNET_RETURN_IF_ERROR(CheckKey(*table, key));
  if (entries.empty()) row_bytes = table->payload_bytes();
  GANNET_RETURN_IF_ERROR(CheckFits(*table, payload.size()));
  if (table->OwnerOf(key, session->self) != session->self) {
    return absl::InvalidArgumentError(absl::StrCat("loading ", NameOfRow(*table, key), ": it belongs to another node"));
  }
  if (table->index_traits().ordered && !entries.empty() && !(entries.back().key < key)) {
    return absl::InvalidArgumentError(
        absl::StrCat("loading ", NameOfRow(*table, key), ": it is not above the one before it"));
  }
  StatusOr<NewRecord> made = MakeLockedRecord(*session->slab, table->id(), key, payload, session->owner_bits);
  if (!made.ok()) return made.status();
  StoreWord(made->block, NextState(made->state, false));
  session->live_bytes->Add(table->id(), BlockBytesOf(key, payload.size()));
  entries.push_back({arena.Keep(key), session->local->node.AddressOf(made->block)});
  return absl::OkStatus();
}

// Sorts the entries by key, as an index's BulkLoad requires. InvalidArgument if a key was added twice.
Status BulkLoader::State::PutInOrder() {
  const auto before = [](const index::LoadEntry& a, const index::LoadEntry& b) { return a.key < b.key; };
  if (!std::ranges::is_sorted(entries, before)) std::ranges::sort(entries, before);
  const auto twice = std::ranges::adjacent_find(entries, [&](const auto& a, const auto& b) { return !before(a, b); });
  if (twice == entries.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("loading ", NameOfRow(*table, twice->key), ": it was added twice"));
}

// Frees all records. `indexed`: some may be in the index, and a reader may have their addresses. Returns the number of
// records that were in it.
size_t BulkLoader::State::TakeBack(index::Context& context, bool indexed) {
  size_t seen = 0;
  for (const index::LoadEntry& entry : entries) {
    std::byte* const record = session->memory + entry.record.offset();
    const size_t payload_bytes = index::LoadMeta(record).payload_bytes;
    const size_t bytes = index::RecordBytes(entry.key.size(), payload_bytes);
    const Status removed = indexed ? table->local_index().Remove(context, entry.key, entry.record).status()
                                   : absl::NotFoundError("nothing is indexed yet");
    MarkAbsent(record, RecordLines(entry.key, payload_bytes), LoadWord(record));
    session->live_bytes->Add(table->id(), -BlockBytesOf(entry.key, payload_bytes));
    if (!absl::IsNotFound(removed)) ++seen;
    if (removed.ok()) {
      context.epoch->Retire(record, bytes, context.slab);
    } else if (absl::IsNotFound(removed)) {
      context.slab->Free(record, bytes);
    }  // with any other error the index may lead there still
  }
  Clear();
  return seen;
}

BulkLoader::BulkLoader(Session* session, const Table* table)
    : state_(std::make_unique<State>(State{&session->state(), table, {}, {}})) {}

BulkLoader::~BulkLoader() {
  if (!state_->session->home.is_here()) return;
  state_->TakeBack(state_->session->context, /*indexed=*/false);
}

Status BulkLoader::Add(const Key& key, PayloadBytes row) {
  if (state_->finished) return Finished(*state_->table);
  if (state_->failure.ok()) state_->failure = state_->Add(key, row);
  return state_->failure;
}

Status BulkLoader::Finish() {
  if (state_->finished) return Finished(*state_->table);
  GANNET_RETURN_IF_ERROR(CheckStopOfLoad(*state_->session));
  rdma::EpochManager::Participant& participant = *state_->session->participant;
  Durability& durability = *state_->session->durability;
  index::Context& context = state_->session->context;
  Status ready = std::exchange(state_->failure, absl::OkStatus());
  if (ready.ok()) ready = state_->PutInOrder();
  if (!ready.ok()) {
    state_->TakeBack(context, /*indexed=*/false);
    return ready;
  }
  const bool counts = durability.has_directory() && !state_->entries.empty();
  if (counts) durability.loads().Begin(state_->table->id());
  const uint64_t entered = participant.Enter();
  // A table that is usable now stays until this has left the epoch (Database::DropTable), and an index that is
  // published later is built after that.
  Status status = CheckUsable(*state_->table);
  if (status.ok()) status = CheckNoIndex(*state_->table);
  if (status.ok() && !state_->entries.empty()) status = CheckSize(*state_->table, state_->row_bytes);
  const bool indexed = status.ok();
  if (indexed) status = state_->table->local_index().BulkLoad(context, state_->entries, index::kLoadFill);
  const size_t seen = status.ok() ? state_->entries.size() : state_->TakeBack(context, indexed);
  participant.Leave(entered);
  // A transaction that saw a row of a failed load also depends on data that a crash removes.
  if (counts) durability.loads().End(state_->table->id(), /*seen=*/seen > 0);
  state_->Clear();
  state_->finished = status.ok();
  return status;
}

}  // namespace gannet::txn
