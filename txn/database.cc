#include "txn/database.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "index/registry.h"
#include "log/utf8.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/database_state.h"
#include "txn/durable/catalog.h"
#include "txn/durable/durability.h"
#include "txn/peer/owner_service.h"
#include "txn/record/record.h"
#include "txn/run/manual_lease.h"
#include "txn/run/run_sessions.h"
#include "txn/run/session.h"
#include "txn/run/transaction_impl.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

constexpr absl::string_view kInsteadOfCreate =
    "use CreateTableOnAllNodes if all are in this process, or create every new table before it";
constexpr size_t kMaxTableNameBytes = 255;
constexpr size_t kMaxApplicationBytes = 4096;
constexpr int kMostThreads = 1024;
constexpr absl::Duration kMostPrecedence = absl::Seconds(65);  // of a ticket (precedence.h)
constexpr uint64_t kMostLogBytes = uint64_t{1} << 44;          // 16 TiB: the largest file of ext4

// Checks the durations and counts that a program may have computed wrongly, by name, before anything is done.
Status CheckNumbers(const DatabaseOptions& options) {
  const auto wrong = [](absl::string_view name, absl::string_view is, absl::string_view must_be) {
    return absl::InvalidArgumentError(absl::StrCat("DatabaseOptions::", name, " is ", is, "; it must be ", must_be));
  };
  const auto text = [](absl::Duration duration) { return absl::FormatDuration(duration); };
  if (options.group_commit < absl::Microseconds(1) || options.group_commit > kMaxGroupCommit) {
    return wrong("group_commit", text(options.group_commit),
                 absl::StrCat("from 1us to ", absl::FormatDuration(kMaxGroupCommit)));
  }
  if (options.call_timeout <= absl::ZeroDuration())
    return wrong("call_timeout", text(options.call_timeout), "positive");
  if (options.durable_within <= absl::ZeroDuration()) {
    return wrong("durable_within", text(options.durable_within), "positive");
  }
  if (options.checkpoint_every < absl::ZeroDuration()) {
    return wrong("checkpoint_every", text(options.checkpoint_every), "positive, or 0 for never");
  }
  const auto number = [](auto value) { return absl::StrCat(value); };
  if (!(options.checkpoint_log_multiple >= 0) || std::isinf(options.checkpoint_log_multiple)) {
    return wrong("checkpoint_log_multiple", number(options.checkpoint_log_multiple), "positive, or 0 for never");
  }
  if (options.recovery_threads < 1 || options.recovery_threads > kMostThreads) {
    return wrong("recovery_threads", number(options.recovery_threads), absl::StrCat("from 1 to ", kMostThreads));
  }
  if (options.server_threads < 0 || options.server_threads > kMostThreads) {
    return wrong("server_threads", number(options.server_threads), absl::StrCat("from 0 to ", kMostThreads));
  }
  if (options.precedence_limit < absl::ZeroDuration() || options.precedence_limit > kMostPrecedence) {
    return wrong("precedence_limit", text(options.precedence_limit),
                 absl::StrCat("from 0 to ", absl::FormatDuration(kMostPrecedence)));
  }
  if (options.precedence_after < absl::ZeroDuration() || options.precedence_after > kMostPrecedence) {
    return wrong("precedence_after", text(options.precedence_after),
                 absl::StrCat("from 0 to ", absl::FormatDuration(kMostPrecedence)));
  }
  if (options.log_segment_bytes > kMostLogBytes) {
    return wrong("log_segment_bytes", number(options.log_segment_bytes), absl::StrCat("at most ", kMostLogBytes));
  }
  if (options.log_large_buffer_bytes > kMaxLogLargeBuffer) {
    return wrong("log_large_buffer_bytes", number(options.log_large_buffer_bytes),
                 absl::StrCat("at most ", kMaxLogLargeBuffer));
  }
  if (options.log_preallocate_bytes > kMostLogBytes) {
    return wrong("log_preallocate_bytes", number(options.log_preallocate_bytes),
                 absl::StrCat("at most ", kMostLogBytes));
  }
  if (options.checkpoint_bytes_per_second != 0 && options.checkpoint_bytes_per_second < kLeastCheckpointRate) {
    return wrong("checkpoint_bytes_per_second", number(options.checkpoint_bytes_per_second),
                 absl::StrCat("at least ", kLeastCheckpointRate, ", or 0 for as fast as the disk"));
  }
  if (options.log_buffer_bytes < kMinLogBuffer || options.log_buffer_bytes > kMaxLogBuffer) {
    return wrong("log_buffer_bytes", number(options.log_buffer_bytes),
                 absl::StrCat("from ", kMinLogBuffer, " to ", kMaxLogBuffer));
  }
  // The file system would take the part before the zero byte as the name, and make a database there.
  if (options.directory.find('\0') != std::string::npos) {
    return wrong("directory", absl::StrCat("'", absl::CHexEscape(options.directory), "'"), "without a zero byte");
  }
  // A number that was cast to an enum, possibly of a newer version.
  if (options.read_path > ReadPathPolicy::kOrderedByCall) {
    return wrong("read_path", number(static_cast<int>(options.read_path)), "a ReadPathPolicy");
  }
  if (options.durability > DurabilityMode::kSync) {
    return wrong("durability", number(static_cast<int>(options.durability)), "a DurabilityMode");
  }
  if (options.medium > LogMedium::kPmem) {
    return wrong("medium", number(static_cast<int>(options.medium)), "a LogMedium");
  }
  return absl::OkStatus();
}

Status CheckOptions(const DatabaseOptions& options, rdma::NodeId node, int num_nodes) {
  if (options.data_nodes < 0 || options.data_nodes > num_nodes) {
    return absl::InvalidArgumentError(absl::StrCat("DatabaseOptions::data_nodes is ", options.data_nodes,
                                                   "; the fabric has ", num_nodes, " nodes, so choose 0 to ",
                                                   num_nodes));
  }
  if (options.run_sessions < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("DatabaseOptions::run_sessions is ", options.run_sessions, ", at least 1"));
  }
  if (!log::IsUtf8(options.application) || options.application.size() > kMaxApplicationBytes) {
    return absl::InvalidArgumentError(absl::StrCat("DatabaseOptions::application has ", options.application.size(),
                                                   " bytes: give at most ", kMaxApplicationBytes, ", of UTF-8"));
  }
  if (options.data_nodes != 0 && options.data_nodes < num_nodes && !options.directory.empty()) {
    return absl::UnimplementedError(absl::StrCat("node ", node, ": a cluster with client nodes keeps no log; leave ",
                                                 "DatabaseOptions::directory empty, or make all nodes data nodes"));
  }
  return CheckNumbers(options);
}

// The manifest is JSON and keeps names unchanged; reports and dumps print them.
Status CheckName(const std::string& name) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the table's name '", absl::CHexEscape(name.substr(0, kMaxTableNameBytes)), "' ", what));
  };
  if (name.empty()) return absl::InvalidArgumentError("TableOptions::name is empty: every table has a name");
  if (name.size() > kMaxTableNameBytes) {
    return wrong(absl::StrCat("... has ", name.size(), " bytes, at most ", kMaxTableNameBytes));
  }
  if (!log::IsUtf8(name)) return wrong("is not UTF-8");
  if (std::ranges::any_of(name, [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); })) {
    return wrong("has a control character");
  }
  return absl::OkStatus();
}

// For a message about keys that are too long for a kind of index: the kinds that take keys of `max_key_bytes`. Empty if
// none does.
std::string KindsForKeysOf(size_t max_key_bytes) {
  std::string kinds;
  for (const std::string_view name : index::IndexKindNames()) {
    const index::IndexTraits& traits = index::FindIndexKind(name)->traits;
    if (traits.max_key_bytes < max_key_bytes) continue;
    absl::StrAppend(&kinds, kinds.empty() ? "; kinds that take such keys: " : ", ",
                    absl::string_view(name.data(), name.size()), traits.ordered ? "" : " (no order)");
  }
  return kinds;
}

Status CheckOptions(const TableOptions& options, int data_nodes) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("table '", options.name, "': ", what));
  };
  GANNET_RETURN_IF_ERROR(CheckName(options.name));
  if (options.payload_bytes > kMaxPayloadBytes) {
    return wrong(absl::StrCat("payload_bytes is ", options.payload_bytes, ", at most ", kMaxPayloadBytes));
  }
  if (options.key_kind == index::KeyKind::kInteger && options.max_key_bytes != index::kIntegerKeyBytes) {
    return wrong("max_key_bytes is for byte keys; leave it at 8 for integer keys");
  }
  // A number that was cast to an enum, possibly of a newer version: the log would have changes that no recovery
  // accepts.
  if (index::FindIndexKind(options.index) == nullptr) {
    return wrong(absl::StrCat("index is ", static_cast<int>(options.index), ", which is not an IndexKind"));
  }
  if (const auto own = index::ReadOwnOptions(index::EntryOf(options.index), options.index_options); !own.ok()) {
    return wrong(absl::StrCat("index_options: ", own.status().message()));
  }
  if (options.key_kind != index::KeyKind::kInteger && options.key_kind != index::KeyKind::kBytes) {
    return wrong(absl::StrCat("key_kind is ", static_cast<int>(options.key_kind), ", which is not a KeyKind"));
  }
  const index::IndexKindEntry& kind = index::EntryOf(options.index);
  if (const Status fits = CheckKeyForm(options.key_form, options.key_kind, kind.traits.spatial); !fits.ok()) {
    return wrong(fits.message());
  }
  if (options.max_key_bytes == 0 || options.max_key_bytes > kind.traits.max_key_bytes) {
    return wrong(absl::StrCat("max_key_bytes is ", options.max_key_bytes, ", from 1 to ", kind.traits.max_key_bytes,
                              " with an index of kind ", kind.name,
                              options.max_key_bytes == 0 ? "" : KindsForKeysOf(options.max_key_bytes)));
  }
  if (!log::IsUtf8(options.application) || options.application.size() > kMaxApplicationBytes) {
    return wrong(absl::StrCat("application has ", options.application.size(), " bytes: give at most ",
                              kMaxApplicationBytes, ", of UTF-8"));
  }
  if (options.placement.ranges != nullptr) {
    const Status fits = options.placement.ranges->Check(options.key_kind, options.max_key_bytes, data_nodes);
    if (!fits.ok()) return wrong(fits.message());
  } else if (!options.placement.replicated &&
             (options.placement.owner == nullptr || options.placement.range_owner == nullptr)) {
    return wrong("placement has no owner or range_owner function");
  }
  return absl::OkStatus();
}

}  // namespace

Database::Database(std::unique_ptr<DatabaseState> state) : state_(std::move(state)) {
  state_->run_sessions =
      std::make_unique<RunSessions>([this] { return OpenSession(); }, static_cast<size_t>(state_->options.run_sessions),
                                    state_->options.durable_within);
}

Database::~Database() {
  if (!state_->sessions.home().is_here()) {
    static_cast<void>(state_.release());  // a copy in a child, whose parts wait for threads that are not there
    return;
  }
  state_->run_sessions->Clear();
  state_->debts->Stop();
  if (state_->sessions.CloseAnyway()) state_->durability->Close(/*keep_unlogged=*/true).IgnoreError();
  if (state_->repairer != nullptr) state_->repairer->Stop();
  state_->node->Shutdown();
  state_->epochs->Stop();
}

DatabaseState::~DatabaseState() = default;

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
                .data_nodes = options.data_nodes == 0 ? fabric->num_nodes() : options.data_nodes});
  // Not removed: the epochs end before the slab. Other nodes may READ memory that is free.
  if (!state->local->calls()) {
    state->epochs->AddChore([slab = state->slab.get()] { slab->TrimIfWorth(/*alone=*/true); });
  }
  // Also if nothing is logged, because every node's memory has the same layout.
  StatusOr<std::unique_ptr<EpochWords>> words = EpochWords::Create(fabric, state->node.get(), state->slab.get());
  if (!words.ok()) return words.status();
  StatusOr<std::byte*> removals = state->slab->AllocateExtent(RemovalVersions::kBytes);
  if (!removals.ok()) return removals.status();
  StatusOr<std::byte*> digests = state->slab->AllocateExtent(TableDigests::kBytes);
  if (!digests.ok()) return digests.status();
  state->table_digests = std::make_unique<TableDigests>(fabric, state->node.get(), *digests);
  StatusOr<std::unique_ptr<Durability>> durability = Durability::Open(state->local.get(), *std::move(words), *removals);
  if (!durability.ok()) return durability.status();
  state->durability = *std::move(durability);
  state->owner_service = std::make_unique<OwnerService>(state->local.get(), state->durability.get(), state->peers.get(),
                                                        [s = state.get()] {
                                                          if (s->repairer != nullptr) s->repairer->Wake();
                                                        });
  state->debts = std::make_unique<DebtCollector>(state->local.get());
  if (fabric->num_nodes() > 1) {
    state->repairer = std::make_unique<Repairer>(state->local.get(), state->peers.get(), state->owner_service.get(),
                                                 state->incarnation.get());
  }
  std::unique_ptr<Database> database(new Database(std::move(state)));
  const StatusOr<Catalog> catalog = database->state_->durability->ReadCatalog();
  if (!catalog.ok()) return catalog.status();
  GANNET_RETURN_IF_ERROR(database->AdoptTables(*catalog));
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
  // For the smallest table.
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
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckHome());
  GANNET_RETURN_IF_ERROR(CheckNewTable(options, data_nodes()));
  const std::lock_guard lock(state_->create_mutex);
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckOpen());
  Table* table = state_->tables.Find(options.name);
  if (table != nullptr) GANNET_RETURN_IF_ERROR(CheckLife(*table));
  if (table != nullptr && table->created_) {
    return absl::AlreadyExistsError(absl::StrCat("there is a table '", options.name, "' already"));
  }
  if (table == nullptr && state_->started) GANNET_RETURN_IF_ERROR(CheckChangeable(kInsteadOfCreate));
  StatusOr<TableOptions> complete = Complete(options);
  if (!complete.ok()) return complete.status();
  if (table == nullptr) {
    StatusOr<Table*> made = MakeTable(*std::move(complete));
    if (!made.ok()) return made.status();
    return *made;
  }
  GANNET_RETURN_IF_ERROR(TakeOver(table, options, *std::move(complete)));
  return table;
}

Status Database::CheckTable(const TableOptions& options, int data_nodes) {
  return CheckOptions(options, data_nodes);
}

Status Database::CheckNewTable(const TableOptions& options, int data_nodes) {
  GANNET_RETURN_IF_ERROR(CheckOptions(options, data_nodes));
  if (!options.placement.unknown) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("table '", options.name, "': placement is Placement::Unknown; say which node owns which key"));
}

Status Database::CheckTableName(const std::string& name) {
  return CheckName(name);
}

StatusOr<TableOptions> Database::Complete(TableOptions options) {
  const index::IndexKindEntry& kind = index::EntryOf(options.index);
  StatusOr<index::OwnOptions> own = index::ReadOwnOptions(kind, options.index_options);
  if (!own.ok()) return own.status();
  const StatusOr<IndexRights> rights = index::RightsFor(kind, options.index_rights);
  if (!rights.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("table '", options.name, "': ", rights.status().message()));
  }
  options.index_options = std::move(own->text);
  options.index_rights = *rights;
  return options;
}

StatusOr<std::unique_ptr<Table>> Database::PrepareTable(TableOptions complete,
                                                        const std::function<void(Table*)>& prepare) {
  if (state_->next_table > std::numeric_limits<TableId>::max()) {
    return absl::ResourceExhaustedError(absl::StrCat("table '", complete.name, "': all ",
                                                     std::numeric_limits<TableId>::max() + 1,
                                                     " numbers of tables have been used"));
  }
  std::unique_ptr<Table> table(
      new Table(static_cast<TableId>(state_->next_table), std::move(complete), data_nodes(), node_id()));
  table->created_ = true;
  if (prepare != nullptr) prepare(table.get());
  GANNET_RETURN_IF_ERROR(MakeIndex(table.get()));
  return table;
}

StatusOr<Table*> Database::MakeTable(TableOptions complete, const std::function<void(Table*)>& prepare) {
  StatusOr<std::unique_ptr<Table>> prepared = PrepareTable(std::move(complete), prepare);
  if (!prepared.ok()) return prepared.status();
  std::unique_ptr<Table> table = *std::move(prepared);
  if (!state_->started) return AddTable(std::move(table));
  ++state_->next_table;  // also after an error: the manifest may have the table
  Catalog catalog = DescribeCatalog();
  catalog.tables.push_back(DescribeTable(*table));
  if (Status noted = state_->durability->NoteCatalog(catalog); !noted.ok()) {
    state_->unused_tables.push_back(std::move(table));  // the service knows its index
    return NotNoted("a table is created", noted);
  }
  return AddTable(std::move(table));
}

// One node cannot change the catalogs of the others.
Status Database::CheckChangeable(absl::string_view instead, size_t nodes) const {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckOpen());
  if (static_cast<size_t>(state_->fabric->num_nodes()) == nodes) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("a cluster of several nodes does not change its tables after "
                   "Database::Start: ",
                   instead, ", on every node"));
}

Catalog Database::DescribeCatalog() const {
  Catalog catalog{.tables = {}, .next_table = state_->next_table, .generation = state_->catalog_generation};
  for (const Table* table : state_->tables) catalog.tables.push_back(DescribeTable(*table));
  return catalog;
}

StatusOr<Table*> Database::ChangeableTable(std::string_view name, absl::string_view what, absl::string_view instead,
                                           size_t nodes) const {
  if (!state_->started) return absl::FailedPreconditionError(absl::StrCat("call Database::Start before ", what));
  GANNET_RETURN_IF_ERROR(CheckChangeable(instead, nodes));
  Table* const table = state_->tables.Find(name);
  if (table == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no table '", absl::CHexEscape(std::string(name)), "'"));
  }
  GANNET_RETURN_IF_ERROR(CheckLife(*table));
  return table;
}

Table* Database::AddTable(std::unique_ptr<Table> table) {
  const TableId id = table->id();
  state_->next_table = std::max(state_->next_table, id + uint32_t{1});
  state_->record_bytes.AddTable(id);
  return state_->tables.Add(std::move(table));
}

// The program creates a table that the directory has.
Status Database::TakeOver(Table* table, const TableOptions& asked, TableOptions complete) {
  const Table as_asked(table->id(), complete, data_nodes(), node_id());
  GANNET_RETURN_IF_ERROR(CheckSameTable(DescribeTable(*table), DescribeTable(as_asked), data_nodes()));
  const TableOptions& kept = table->options();
  if (!asked.index_rights.has_value()) complete.index_rights = kept.index_rights;
  if (asked.application.empty()) complete.application = kept.application;
  if (asked.key_form == KeyForm::kPlain) complete.key_form = table->key_form();
  const bool says_form = complete.key_form != table->key_form();
  const bool may_say_form = !says_form || state_->fabric->num_nodes() == 1;
  if (table->local_index_ == nullptr) {
    const size_t least_payload_bytes = table->least_payload_bytes();
    table->options_ = std::move(complete);
    table->placement_name_ = table->options_.placement.name();
    table->Derive();
    table->least_payload_bytes_ = least_payload_bytes;
    GANNET_RETURN_IF_ERROR(MakeIndex(table));
  } else if (!table->knows_owners() || complete.index_rights != kept.index_rights ||
             complete.application != kept.application || !may_say_form) {
    return absl::FailedPreconditionError(absl::StrCat("table '", table->name(),
                                                      "' has been opened with other TableOptions::",
                                                      !table->knows_owners()                       ? "placement"
                                                      : complete.index_rights != kept.index_rights ? "index_rights"
                                                      : complete.application != kept.application   ? "application"
                                                                                                   : "key_form",
                                                      "; create it before Database::Start"));
  } else if (says_form) {
    // A program can use its table although the disk is full.
    table->key_form_.store(complete.key_form, std::memory_order_relaxed);
    state_->durability->NoteCatalogNowOrLater(DescribeCatalog()).IgnoreError();
  }
  table->created_ = true;
  return absl::OkStatus();
}

Status Database::MakeIndex(Table* table) {
  const TableOptions& options = table->options();
  const index::IndexKindEntry& kind = index::EntryOf(options.index);
  StatusOr<index::OwnOptions> own = index::ReadOwnOptions(kind, options.index_options);
  if (!own.ok()) return own.status();
  StatusOr<std::unique_ptr<index::LocalIndex>> index = kind.create(state_->indexes.get(), table->id(),
                                                                   {.key_kind = options.key_kind,
                                                                    .max_key_bytes = options.max_key_bytes,
                                                                    .expected_keys = options.expected_rows,
                                                                    .rights = *options.index_rights,
                                                                    .own = std::move(own->options)});
  if (!index.ok()) {
    return Status(index.status().code(), absl::StrCat("table '", table->name(), "': ", index.status().message()));
  }
  table->local_index_ = *std::move(index);
  if (!table->index_traits().guesses_records && !table->index_traits().client_writes) {
    table->own_locations_ = std::make_unique<index::OwnLocations>(
        table->id(), options.key_kind, node_id(), state_->node->memory().data(), state_->location_budget);
  }
  return absl::OkStatus();
}

Status Database::AdoptTables(const Catalog& catalog) {
  for (const log::TableDescription& description : catalog.tables) {
    StatusOr<TableOptions> options = OptionsOf(description);
    if (!options.ok()) return options.status();
    GANNET_RETURN_IF_ERROR(CheckOptions(*options, data_nodes()));
    options = Complete(*std::move(options));
    if (!options.ok()) return options.status();
    std::unique_ptr<Table> table(new Table(description.id, *std::move(options), data_nodes(), node_id()));
    if (table->options().placement.unknown) table->placement_name_ = description.placement;
    table->least_payload_bytes_ = description.least_payload_bytes;
    AddTable(std::move(table));
  }
  state_->next_table = std::max(state_->next_table, catalog.next_table);
  state_->first_new_table = state_->next_table;
  state_->catalog_generation = catalog.generation;
  return AdoptSecondary(catalog);
}

// Their size follows from TableOptions::expected_rows, which the program may change until Start.
Status Database::MakeIndexes() {
  for (Table* table : state_->tables) {
    if (table->local_index_ == nullptr) GANNET_RETURN_IF_ERROR(MakeIndex(table));
  }
  return absl::OkStatus();
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
    status = StartNode(wait_for_others);
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(absl::StrCat("a thread cannot be made: ", error.what(),
                                                       "; raise the limit of threads (ulimit -u, or that of the "
                                                       "container), or end others"));
  }
  if (!status.ok()) state_->durability->NoteFailedStart(status);
  return status;
}

Status Database::StartNode(absl::Duration wait_for_others) {
  const std::lock_guard lock(state_->create_mutex);
  const auto agree = [this] { return state_->table_digests->PublishAndCompare(state_->tables, data_nodes()); };
  GANNET_RETURN_IF_ERROR(MakeIndexes());
  GANNET_RETURN_IF_ERROR(
      state_->durability->Start(wait_for_others, agree, state_->next_table, state_->catalog_generation));
  state_->started = true;
  // A node that makes no calls gets none: no thread waits for them.
  if (state_->local->calls()) {
    GANNET_RETURN_IF_ERROR(state_->node->Serve(state_->options.server_threads));
    GANNET_RETURN_IF_ERROR(WaitForDataNodes(wait_for_others));
    GANNET_RETURN_IF_ERROR(state_->debts->Start());
  }
  if (state_->repairer != nullptr) state_->repairer->Start();
  return state_->epochs->Start();
}

Status Database::WaitForDataNodes(absl::Duration timeout) {
  if (data_nodes() == state_->fabric->num_nodes()) return state_->fabric->WaitForAll(timeout);
  const uint64_t deadline = NowNanos() + static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(timeout)));
  for (;;) {
    std::string missing;
    for (int i = 0; i < data_nodes(); ++i) {
      if (!state_->fabric->Alive(static_cast<rdma::NodeId>(i))) absl::StrAppend(&missing, " ", i);
    }
    if (missing.empty()) return absl::OkStatus();
    if (NowNanos() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("after ", absl::FormatDuration(timeout), " these nodes are not there:", missing));
    }
    SleepForNanos(1'000'000);
  }
}

StatusOr<std::unique_ptr<Session>> Database::OpenSession() {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckHome());
  if (!state_->started) return absl::FailedPreconditionError("call Database::Start before OpenSession");
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckOpen());
  StatusOr<std::unique_ptr<Session>> session = MakeSession();
  while (absl::IsResourceExhausted(session.status()) && state_->run_sessions->CloseIdle()) session = MakeSession();
  return session;
}

StatusOr<std::unique_ptr<Session>> Database::MakeSession() {
  GANNET_RETURN_IF_ERROR(state_->table_digests->Compare());
  StatusOr<std::unique_ptr<rdma::Channel>> channel = state_->node->OpenChannel();
  if (absl::IsResourceExhausted(channel.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(channel.status().message(), ": each session takes one; destroy those that are not needed"));
  }
  if (!channel.ok()) return channel.status();
  const size_t nodes = static_cast<size_t>(state_->fabric->num_nodes());
  auto session = std::make_unique<SessionState>();
  session->database = this;
  session->local = state_->local.get();
  session->precedence = state_->precedence.get();
  session->incarnation = state_->incarnation.get();
  session->durability = state_->durability.get();
  session->registry = &state_->sessions;
  session->collector = state_->debts.get();
  session->channel = std::move(*channel);
  session->slab = std::make_unique<rdma::SlabCache>(state_->slab.get());
  StatusOr<std::unique_ptr<rdma::EpochManager::Participant>> participant =
      rdma::EpochManager::Participant::Join(state_->epochs.get());
  if (!participant.ok()) return participant.status();
  session->participant = *std::move(participant);
  session->context = {session->slab.get(), session->participant.get()};
  session->live_bytes = std::make_unique<LiveBytes>(state_->tables.id_bound());
  session->self = state_->node->id();
  session->owner_bits = OwnerBits(session->self, session->channel->index());
  session->home = state_->sessions.home();
  session->memory = state_->node->memory().data();
  StatusOr<std::unique_ptr<CommitLog>> log = state_->durability->OpenCommitLog();
  if (!log.ok()) return log.status();
  session->log = *std::move(log);
  session->log->AddTo(&session->worker, /*alone=*/!state_->local->calls());
  session->direct = state_->fabric->capabilities().cpu_coherent_atomics;
  if (!state_->local->calls()) {
    session->change_counter = state_->change_counters.Of(session->channel->index());
    session->change_counters = &state_->change_counters;
  }
  session->remote_indexes.resize(state_->tables.id_bound() * nodes);
  session->paths.Resize(state_->tables.id_bound(), nodes, state_->options.read_path);
  session->epochs = state_->epochs.get();
  if (state_->local->calls()) {
    session->worker.AddPoller([c = session->channel.get()] { return c->Poll(); });
    // A waiting worker serves other nodes: on few cores that saves a switch to a server thread.
    session->worker.AddPoller([n = state_->node.get()] { return n->ServePending(4); });
  }
  uint64_t number = 0;
  GANNET_RETURN_IF_ERROR(
      state_->sessions.Add(session->owner_bits, &session->debts, {&session->paths, &session->meter}, &number));
  session->random = Random(0x9e3779b97f4a7c15ull * number + session->self + Mix64(state_->options.seed));
  state_->record_bytes.Open(session->live_bytes.get());
  std::unique_ptr<Session> result(new Session(std::move(session)));
  result->state_->session = result.get();
  result->shares_thread_ = state_->local->calls();
  return result;
}

Status Database::Run(const std::function<Status(BlockingTransaction&)>& body) {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckHome());
  if (!state_->started) return absl::FailedPreconditionError("call Database::Start before Run");
  if (RunSessions::Lease own = state_->run_sessions->BorrowOwn(); own.has_session()) [[likely]]
    return own.session().RunOnThread(body);
  StatusOr<RunSessions::Lease> lease = state_->run_sessions->Borrow();
  if (!lease.ok()) return lease.status();
  return lease->session().RunOnThread(body);
}

StatusOr<ManualTransaction> Database::Begin() {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckHome());
  if (!state_->started) return absl::FailedPreconditionError("call Database::Start before Begin");
  StatusOr<RunSessions::Lease> lease = state_->run_sessions->Borrow();
  if (!lease.ok()) return lease.status();
  return ManualTransaction(std::make_unique<ManualTransaction::Lease>(std::move(*lease)));
}

Status Database::Checkpoint() {
  GANNET_RETURN_IF_ERROR(state_->sessions.CheckOpen());
  return state_->durability->Checkpoint(state_->options.stop);
}

Status Database::Backup(const std::string& directory) {
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
  const std::lock_guard lock(state_->create_mutex);  // the directory is another's afterwards
  return state_->durability->Close(/*keep_unlogged=*/checkpoint == LastCheckpoint::kIfNeeded);
}

const RecoveryReport& Database::recovery() const {
  return state_->durability->recovery();
}
log::LogStatistics Database::log_statistics() const {
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
  return state_->precedence->statistics();
}

TransactionStatistics Database::transaction_statistics() const {
  return state_->sessions.transactions();
}

std::vector<TableStatistics> Database::table_statistics() {
  std::vector<TableStatistics> result;
  const std::lock_guard no_drop(state_->create_mutex);  // of a table that is being walked
  for (Table* table : state_->tables) {
    TableStatistics statistics{.table = table->name(), .index_kind = index::EntryOf(table->options().index).name};
    statistics.record_bytes = static_cast<uint64_t>(std::max<int64_t>(state_->record_bytes.Of(table->id()), 0));
    statistics.index_damages = state_->index_damage.Of(table->id());
    if (table->local_index_ != nullptr) statistics.index = table->local_index().statistics();
    if (table->own_locations_ != nullptr) statistics.own_location_bytes = table->own_locations_->bytes();
    result.push_back(std::move(statistics));
  }
  return result;
}

std::vector<std::pair<std::string, uint64_t>> Database::shared_cache_bytes() const {
  std::vector<std::pair<std::string, uint64_t>> result;
  for (Table* table : state_->tables) {
    const uint64_t bytes = state_->client_caches.BytesOf(table->id());
    if (bytes > 0) result.emplace_back(table->name(), bytes);
  }
  return result;
}

std::vector<TablePaths> Database::path_statistics() const {
  return PathsOf(state_->tables,
                 [this](TableId table, AccessKind kind) { return state_->sessions.PathsOf(table, kind); });
}
rdma::NodeLoad Database::load_of(rdma::NodeId node) const {
  return state_->epochs->LoadOf(node);
}

rdma::SlabStatistics Database::memory_statistics() const {
  return state_->slab->statistics();
}
void Database::PrefaultMemory(uint64_t bytes) {
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
