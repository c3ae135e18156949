#include "txn/database.h"

#include <algorithm>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "index/claim_boards.h"
#include "index/own_locations.h"
#include "index/registry.h"
#include "index/shared_leaf/claim/claim_ranges.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/durable/catalog.h"
#include "txn/durable/durability.h"
#include "txn/peer/owner_service.h"
#include "txn/run/database_state.h"
#include "txn/run/manual_session.h"
#include "txn/run/run_sessions.h"
#include "txn/run/session.h"
#include "txn/schema/new_table.h"
#include "txn/schema/schema.h"
#include "txn/session/session_registry.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

// A change of the tables of this node.
template <class Change>
auto ChangeSchema(DatabaseState* node, const Change& change) {
  return change(Schema(Nodes(&node, 1)));
}

// Others may have claimed leaves of a process that was in this node's place before. They use their copies until their
// leases have ended, so nothing changes here before.
void AwaitOldLeases(const DatabaseState& state) {
  bool may_be_claimed = false;
  for (const Table* const table : state.tables) {
    may_be_claimed = may_be_claimed || index::EntryOf(table->options().index).traits.has_claims;
  }
  const uint64_t end = state.attached_nanos + NanosOf(index::kClaimTerm);
  const uint64_t now = NowNanos();
  if (state.local->calls() && may_be_claimed && now < end) SleepForNanos(end - now);
}

Status WaitForDataNodes(const DatabaseState& state, absl::Duration timeout) {
  const int data_nodes = state.local->data_nodes;
  if (data_nodes == state.fabric->num_nodes()) return state.fabric->WaitForAll(timeout);
  const uint64_t deadline = NowNanos() + NanosOf(timeout);
  for (;;) {
    std::string missing;
    for (int i = 0; i < data_nodes; ++i) {
      if (!state.fabric->Alive(static_cast<rdma::NodeId>(i))) absl::StrAppend(&missing, " ", i);
    }
    if (missing.empty()) return absl::OkStatus();
    if (NowNanos() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("after ", absl::FormatDuration(timeout), " these nodes are not there:", missing));
    }
    SleepForNanos(1'000'000);
  }
}

Status StartNode(DatabaseState& state, absl::Duration wait_for_others) {
  const std::lock_guard lock(state.create_mutex);
  const auto agree = [&state] { return state.table_digests->PublishAndCompare(state.tables, state.local->data_nodes); };
  GANNET_RETURN_IF_ERROR(MakeIndexes(state));
  AwaitOldLeases(state);
  GANNET_RETURN_IF_ERROR(state.durability->Start(wait_for_others, agree, state.next_table, state.catalog_generation));
  state.started = true;
  // A node that makes no calls gets none: no thread waits for them.
  if (state.local->calls()) {
    GANNET_RETURN_IF_ERROR(state.node->Serve(state.options.server_threads));
    GANNET_RETURN_IF_ERROR(WaitForDataNodes(state, wait_for_others));
    GANNET_RETURN_IF_ERROR(state.pending->Start());
  }
  if (state.repairer != nullptr) state.repairer->Start();
  return state.epochs->Start();
}

}  // namespace

Database::Database(std::unique_ptr<DatabaseState> state) : state_(std::move(state)) {
  state_->database = this;
  state_->run_sessions =
      std::make_unique<RunSessions>([this] { return OpenSession(); }, static_cast<size_t>(state_->options.run_sessions),
                                    state_->options.durable_within);
}

Database::~Database() {
  if (!IsHere()) {
    static_cast<void>(state_.release());  // a copy in a child, whose parts wait for threads that are not there
    return;
  }
  state_->run_sessions->Clear();
  state_->pending->Stop();
  if (state_->sessions.CloseAnyway()) state_->durability->Close(/*keep_unlogged=*/true).IgnoreError();
  if (state_->repairer != nullptr) state_->repairer->Stop();
  state_->node->Shutdown();
  state_->epochs->Stop();
}

bool Database::IsHere() const {
  return state_->sessions.home().is_here();
}

StatusOr<std::unique_ptr<Database>> Database::Open(rdma::Fabric* fabric, rdma::NodeId node,
                                                   const DatabaseOptions& options) {
  return Open(fabric, node, options, /*most_bytes=*/0);
}

StatusOr<std::unique_ptr<Database>> Database::Open(rdma::Fabric* fabric, rdma::NodeId node,
                                                   const DatabaseOptions& options, uint64_t most_bytes) {
  if (const Status status = CheckOptions(options, node, fabric->num_nodes()); !status.ok()) return status;
  auto state = std::make_unique<DatabaseState>();
  state->options = options;
  state->fabric = fabric;
  state->incarnation = std::make_unique<Incarnation>(fabric->num_nodes());
  state->peers = std::make_unique<Peers>(fabric->num_nodes(), node);
  StatusOr<std::unique_ptr<rdma::Node>> attached = fabric->Attach(node);
  if (!attached.ok()) return attached.status();
  state->node = std::move(*attached);
  state->attached_nanos = NowNanos();
  state->slab = std::make_unique<rdma::SlabAllocator>(state->node.get(), most_bytes);
  StatusOr<std::unique_ptr<rdma::EpochManager>> epochs =
      rdma::EpochManager::Create(fabric, state->node.get(), state->slab.get());
  if (!epochs.ok()) return epochs.status();
  state->epochs = std::move(*epochs);
  state->precedence = std::make_unique<Precedence>(state->epochs.get(), node, fabric->num_nodes(),
                                                   options.precedence_after, options.precedence_limit);
  state->indexes = std::make_unique<index::IndexService>(state->node.get(), state->slab.get(), state->epochs.get());
  index::RegisterAllIndexMethods(state->indexes.get());
  state->lent_records = std::make_unique<LentRecords>(state->node.get());
  state->record_stock = std::make_unique<RecordStock>(state->node.get());
  constexpr uint64_t kLocationsShare = 32;  // of memory
  state->location_budget = std::make_shared<index::LocationBudget>(
      std::min<uint64_t>(options.own_location_bytes, state->node->memory().size() / kLocationsShare));
  if (fabric->num_nodes() > 1) {
    const StatusOr<std::byte*> board = rdma::SlabCache(state->slab.get()).Allocate(index::kBoardBytes);
    if (!board.ok()) return board.status();
    state->claims =
        std::make_unique<index::shared_leaf::ClaimHolder>(state->node.get(), *board, state->incarnation->number());
  }
  state->local = std::make_unique<LocalNode>(
      LocalNode{.options = state->options,
                .fabric = *fabric,
                .node = *state->node,
                .indexes = *state->indexes,
                .tables = state->tables,
                .record_bytes = state->record_bytes,
                .client_caches = state->client_caches,
                .lent_records = *state->lent_records,
                .record_stock = *state->record_stock,
                .index_damage = state->index_damage,
                .claims = state->claims.get(),
                .data_nodes = options.data_nodes == 0 ? fabric->num_nodes() : options.data_nodes});
  // The chore is not removed, because the epochs end before the slab. Other nodes may READ memory that is free.
  if (!state->local->calls()) {
    state->epochs->AddChore([slab = state->slab.get()] { slab->TrimIfWorth(/*alone=*/true); });
  }
  // The words are there even if nothing is logged, because every node's memory has the same layout.
  StatusOr<std::unique_ptr<EpochWords>> words = EpochWords::Create(fabric, state->node.get(), state->slab.get());
  if (!words.ok()) return words.status();
  StatusOr<std::byte*> removals = state->slab->AllocateExtent(RemovalVersions::kBytes);
  if (!removals.ok()) return removals.status();
  StatusOr<std::byte*> digests = state->slab->AllocateExtent(TableDigests::kBytes);
  if (!digests.ok()) return digests.status();
  state->table_digests = std::make_unique<TableDigests>(fabric, state->node.get(), *digests);
  Catalog catalog;
  StatusOr<std::unique_ptr<Durability>> durability =
      Durability::Open(state->local.get(), *std::move(words), *removals, &catalog);
  if (!durability.ok()) return durability.status();
  state->durability = *std::move(durability);
  state->owner_service = std::make_unique<OwnerService>(
      state->local.get(), state->durability.get(), state->peers.get(),
      RepairCalls{.wake =
                      [s = state.get()] {
                        if (s->repairer != nullptr) s->repairer->Wake();
                      },
                  .release_dead = [s = state.get()] { return s->repairer == nullptr || s->repairer->ReleaseDead(); }});
  state->pending = std::make_unique<PendingCompleter>(state->local.get());
  if (fabric->num_nodes() > 1) {
    state->repairer = std::make_unique<Repairer>(state->local.get(), state->peers.get(), state->owner_service.get(),
                                                 state->incarnation.get());
  }
  std::unique_ptr<Database> database(new Database(std::move(state)));
  GANNET_RETURN_IF_ERROR(AdoptTables(*database->state_, catalog));
  return database;
}

StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& directory, DatabaseOptions options) {
  if (directory.empty()) return absl::InvalidArgumentError("Database::Open: name a directory");
  options.directory = directory;
  return OpenAlone(options);
}

StatusOr<std::unique_ptr<Database>> Database::OpenInMemory(DatabaseOptions options) {
  options.directory.clear();
  return OpenAlone(options);
}

StatusOr<std::unique_ptr<Database>> Database::OpenAlone(const DatabaseOptions& options) {
  // Each part of the heap could take all that the database may use, as far as address space allows that: so memory is
  // short only when it is used up, however it is divided between indexes and records.
  constexpr uint64_t kMostDoubled = uint64_t{1} << 40;
  // The least memory that the smallest table needs.
  constexpr uint64_t kLeastMemory = uint64_t{128} << 10;
  if (options.memory_bytes < kLeastMemory) {
    return absl::InvalidArgumentError(absl::StrCat("DatabaseOptions::memory_bytes is ", options.memory_bytes,
                                                   "; it must be at least ", kLeastMemory,
                                                   " (--memory-per-node of the program)"));
  }
  rdma::ShmOptions memory{.num_nodes = 1, .bytes_per_node = options.memory_bytes};
  const bool any_division = options.memory_bytes <= kMostDoubled;
  if (any_division) {
    memory.bytes_per_node *= 2;
    memory.read_only_percent = 50;
  }
  auto fabric = rdma::ShmFabric::InProcess(memory);
  if (!fabric.ok()) return fabric.status();
  auto database = Open(fabric->get(), 0, options, any_division ? options.memory_bytes : 0);
  if (database.ok()) (*database)->state_->owned_fabric = *std::move(fabric);
  return database;
}

StatusOr<const Table*> Database::CreateTable(const TableOptions& options) {
  return ChangeSchema(state_.get(), [&](Schema schema) { return schema.CreateTable(options); });
}
Status Database::RenameTable(std::string_view from, const std::string& to) {
  return ChangeSchema(state_.get(), [&](Schema schema) { return schema.RenameTable(from, to); });
}
Status Database::DropTable(std::string_view name) {
  return ChangeSchema(state_.get(), [&](Schema schema) { return schema.DropTable(name); });
}
Status Database::WidenTable(std::string_view name, size_t payload_bytes) {
  return ChangeSchema(state_.get(), [&](Schema schema) { return schema.WidenTable(name, payload_bytes); });
}
Status Database::ArrangeTable(std::string_view name) {
  return ChangeSchema(state_.get(), [&](Schema schema) { return schema.ArrangeTable(name); });
}
StatusOr<const SecondaryIndex*> Database::CreateIndex(const SecondaryIndexOptions& options) {
  return ChangeSchema(state_.get(), [&](Schema schema) { return schema.CreateIndex(options); });
}

Status Database::SetClaimRanges(std::string_view name, const std::vector<index::ClaimRange>& ranges) {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckOpen());
  const Table* const table = FindTable(name);
  if (table == nullptr) return absl::NotFoundError(absl::StrCat("there is no table ", std::string(name)));
  if (!index::EntryOf(table->options().index).traits.has_claims) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes cannot claim leaves of table ", std::string(name), ", whose index is of kind ",
                     index::EntryOf(table->options().index).name, "; give it one of kind ",
                     index::KindsWith(&index::IndexTraits::has_claims)));
  }
  const int nodes = state_->fabric->num_nodes();
  GANNET_RETURN_IF_ERROR(
      index::shared_leaf::CheckRanges(ranges, table->options().key_kind, table->options().max_key_bytes, nodes,
                                      [table](const index::Key& key) { return TextOf(*table, key); }));
  const SessionRegistry::Call call(&state_->sessions, "SetClaimRanges");
  if (!state_->started) return absl::FailedPreconditionError("call Database::Start before SetClaimRanges");
  if (nodes == 1) return absl::OkStatus();  // it reads its own leaves anyway
  StatusOr<RunSessions::Borrowed> borrowed = state_->run_sessions->Borrow();
  if (!borrowed.ok()) return borrowed.status();
  Session& session = borrowed->session();
  Status all;
  for (int owner = 0; owner < data_nodes(); ++owner) {
    const Status set = session.worker().BlockOn(index::shared_leaf::SetRanges(
        &session.channel(), static_cast<rdma::NodeId>(owner), table->id(), ranges, state_->options.call_timeout));
    if (!set.ok()) all.Update({set.code(), absl::StrCat("ranges at node ", owner, ": ", set.message())});
  }
  return all;
}

const SecondaryIndex* Database::FindIndex(std::string_view name) const {
  const Table* const entries = FindTable(name);
  return entries == nullptr ? nullptr : entries->secondary();
}
const Table* Database::FindTable(std::string_view name) const {
  const Table* const table = state_->tables.Find(name);
  return table != nullptr && table->is_everywhere() ? table : nullptr;
}

std::vector<const Table*> Database::tables() const {
  std::vector<const Table*> result;
  for (const Table* table : state_->tables) {
    if (table->is_everywhere()) result.push_back(table);
  }
  return result;
}

Status Database::Start(absl::Duration wait_for_others) {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckOpen());
  if (state_->started) return absl::FailedPreconditionError("the database has been started");
  if (state_->start_was_called) return absl::FailedPreconditionError("Start has failed; open the database again");
  state_->start_was_called = true;
  Status status;
  try {
    status = StartNode(*state_, wait_for_others);
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(absl::StrCat("a thread cannot be made: ", error.what(),
                                                       "; raise the limit of threads (ulimit -u, or that of the "
                                                       "container), or end others"));
  }
  if (!status.ok()) state_->durability->NoteFailedStart(status);
  return status;
}

StatusOr<std::unique_ptr<Session>> Database::OpenSession() {
  return Session::Open(*state_);
}

Status Database::Run(const std::function<Status(BlockingTransaction&)>& body) {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckHome());
  if (!state_->started) return absl::FailedPreconditionError("call Database::Start before Run");
  if (RunSessions::Borrowed own = state_->run_sessions->BorrowOwn(); own.has_session()) [[likely]]
    return own.session().RunOnThread(body);
  StatusOr<RunSessions::Borrowed> borrowed = state_->run_sessions->Borrow();
  if (!borrowed.ok()) return borrowed.status();
  return borrowed->session().RunOnThread(body);
}

StatusOr<ManualTransaction> Database::Begin() {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckHome());
  if (!state_->started) return absl::FailedPreconditionError("call Database::Start before Begin");
  StatusOr<RunSessions::Borrowed> borrowed = state_->run_sessions->Borrow();
  if (!borrowed.ok()) return borrowed.status();
  return ManualTransaction(std::make_unique<ManualTransaction::Borrowed>(std::move(*borrowed)));
}

Status Database::Checkpoint() {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckHome());
  const SessionRegistry::Call call(&state_->sessions, "Checkpoint");
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckOpen());
  return state_->durability->Checkpoint(state_->options.stop);
}

Status Database::Backup(const std::string& directory) {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckHome());
  const SessionRegistry::Call call(&state_->sessions, "Backup");
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckOpen());
  return state_->durability->Backup(directory, state_->options.stop);
}

Status Database::Close() {
  return Close(LastCheckpoint::kIfNeeded);
}

Status Database::CloseWithoutCheckpoint() {
  return Close(LastCheckpoint::kNever);
}

Status Database::Close(LastCheckpoint checkpoint) {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckHome());
  state_->run_sessions->Clear();
  const StatusOr<bool> first = state_->sessions.Close();
  if (!first.ok()) return first.status();
  if (!*first) return absl::OkStatus();
  if (state_->repairer != nullptr) state_->repairer->StopTelling();  // the others close, too
  if (state_->claims != nullptr && state_->started) state_->claims->Leave();
  const std::lock_guard lock(state_->create_mutex);  // the directory is another's afterwards
  return state_->durability->Close(/*keep_unlogged=*/checkpoint == LastCheckpoint::kIfNeeded);
}

const RecoveryReport& Database::recovery() const {
  return state_->durability->recovery();
}
log::LogStatistics Database::log_statistics() const {
  if (!IsHere()) return {};
  return state_->durability->log_statistics();
}
// The epoch of a commit becomes dirty in its coordinator's log, too, before the commit is acknowledged.
uint64_t Database::logged_epoch() const {
  return state_->durability->logged_epoch();
}
uint64_t Database::durable_epoch() const {
  return state_->durability->durable_epoch();
}
CheckpointStatistics Database::checkpoint_statistics() const {
  if (!IsHere()) return {};
  return state_->durability->checkpoint_statistics();
}

Status Database::log_health() const {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckHome());
  return state_->durability->health();
}
std::string Database::log_description() const {
  return state_->durability->Description();
}

PrecedenceStatistics Database::precedence_statistics() const {
  if (!IsHere()) return {};
  return state_->precedence->statistics();
}

TransactionStatistics Database::transaction_statistics() const {
  if (!IsHere()) return {};
  return state_->sessions.transactions();
}

std::vector<TableStatistics> Database::table_statistics() {
  if (!IsHere()) return {};
  std::vector<TableStatistics> result;
  const std::lock_guard no_drop(state_->create_mutex);  // of a table that is being walked
  for (Table* table : state_->tables) {
    TableStatistics statistics{.table = table->name(), .index_kind = index::EntryOf(table->options().index).name};
    statistics.record_bytes = static_cast<uint64_t>(std::max<int64_t>(state_->record_bytes.Of(table->id()), 0));
    statistics.index_damages = state_->index_damage.Of(table->id());
    if (table->has_index()) statistics.index = table->local_index().statistics();
    if (table->own_locations() != nullptr) statistics.own_location_bytes = table->own_locations()->bytes();
    result.push_back(std::move(statistics));
  }
  return result;
}

std::vector<std::pair<std::string, uint64_t>> Database::shared_cache_bytes() const {
  if (!IsHere()) return {};
  std::vector<std::pair<std::string, uint64_t>> result;
  for (Table* table : state_->tables) {
    const uint64_t bytes = state_->client_caches.BytesOf(table->id());
    if (bytes > 0) result.emplace_back(table->name(), bytes);
  }
  return result;
}

std::vector<TablePaths> Database::path_statistics() const {
  if (!IsHere()) return {};
  return PathsOf(state_->tables,
                 [this](TableId table, AccessKind kind) { return state_->sessions.PathsOf(table, kind); });
}
rdma::NodeLoad Database::load_of(rdma::NodeId node) const {
  return state_->epochs->LoadOf(node);
}

rdma::SlabStatistics Database::memory_statistics() const {
  if (!IsHere()) return {};
  return state_->slab->statistics();
}
void Database::PrefaultMemory(uint64_t bytes) {
  if (!IsHere()) return;
  state_->slab->Prefault(bytes);
}
rdma::Fabric& Database::fabric() {
  return *state_->fabric;
}
rdma::NodeId Database::node_id() const {
  return state_->node->id();
}
int Database::data_nodes() const {
  return state_->local->data_nodes;
}
rdma::Node& Database::node() {
  return *state_->node;
}

}  // namespace gannet::txn
