#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rdma/base/stop.h"
#include "txn/arena.h"
#include "txn/database.h"
#include "txn/record.h"
#include "txn/session_internal.h"

namespace gannet::txn {
namespace {

// Leaves keep some room, so that the first inserts between loaded keys do not split every one of them.
constexpr double kFill = 0.9;

Status CheckStopOfLoad(const SessionState& session) {
  return CheckStop(session.db->options.stop, "rows were loaded");
}

}  // namespace

struct BulkLoader::State {
  SessionState* session;
  const Table* table;
  std::vector<index::LoadEntry> entries;
  Arena arena;  // the bytes of their keys
};

BulkLoader::BulkLoader(Session* session, const Table* table)
    : state_(std::make_unique<State>(State{&session->state(), table, {}, {}})) {}

BulkLoader::~BulkLoader() = default;

Status BulkLoader::Add(const Key& key, std::span<const std::byte> payload) {
  const TableOptions& options = state_->table->options();
  SessionState& session = *state_->session;
  GANNET_RETURN_IF_ERROR(CheckStopOfLoad(session));
  if (key.kind() != options.key_kind || key.size() > options.max_key_bytes ||
      (options.variable_length ? payload.size() > options.payload_bytes : payload.size() != options.payload_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("loading table ", options.name, ": key ", key.ToString(),
                                                   " or its payload of ", payload.size(),
                                                   " bytes does not fit the table"));
  }
  if (state_->table->OwnerOf(key, session.self) != session.self) {
    return absl::InvalidArgumentError(
        absl::StrCat("loading table ", options.name, ": key ", key.ToString(), " belongs to another node"));
  }
  if (options.index != IndexKind::kHash && !state_->entries.empty() && !(state_->entries.back().key < key)) {
    return absl::InvalidArgumentError(
        absl::StrCat("loading table ", options.name, ": key ", key.ToString(), " is not above the one before it"));
  }
  StatusOr<NewRecord> made = MakeLockedRecord(*session.slab, state_->table->id(), key, payload, session.owner_bits);
  if (!made.ok()) return made.status();
  StoreWord(made->block, NextState(made->state, false));
  session.live_bytes->Add(state_->table->id(), BlockBytesOf(key, payload.size()));
  state_->entries.push_back({state_->arena.Keep(key), session.db->node->AddressOf(made->block)});
  return absl::OkStatus();
}

Status BulkLoader::Finish() {
  GANNET_RETURN_IF_ERROR(CheckStopOfLoad(*state_->session));
  rdma::EpochManager::Participant& participant = *state_->session->participant;
  DatabaseState& db = *state_->session->db;
  const bool counts = db.durability != nullptr && !state_->entries.empty();
  if (counts) db.loads.Begin(state_->table->id());
  const uint64_t entered = participant.Enter();
  index::Context context{state_->session->slab.get(), &participant};
  Status status = state_->table->local_index().BulkLoad(context, state_->entries, kFill);
  participant.Leave(entered);
  // FailedPrecondition says that the table was not empty: nothing was added. Another failure may have left a part.
  if (counts) db.loads.End(state_->table->id(), /*seen=*/!absl::IsFailedPrecondition(status));
  state_->entries = {};
  state_->arena = {};
  return status;
}

}  // namespace gannet::txn
