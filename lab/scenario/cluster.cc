#include "lab/scenario/cluster.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/random.h"
#include "base/thread.h"
#include "index/registry.h"
#include "lab/scenario/memory_check.h"
#include "lab/scenario/run.h"
#include "txn/record/record.h"
#include "txn/run/database_state.h"

namespace gannet::scenario {
namespace {

constexpr char kDirectory[] = "/data";
constexpr char kStart[] = "start";
constexpr uint64_t kBytesPerNode = uint64_t{256} << 20;
constexpr int64_t kNotKnown = -1;
constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kVerbsTakeNanos = 1'000'000;
constexpr uint64_t kRepairTakesNanos = 500'000'000;   // limit; repair takes about 10 ms
constexpr uint64_t kPendingTakesNanos = 200'000'000;  // limit; an operation in progress may still have to fail
constexpr size_t kLocationBytes = size_t{32} << 10;   // a larger cache is more memory to clear in each session
constexpr size_t kPageCacheBytes = size_t{24} << 10;  // for some of the leaves, so that they are evicted

// Simulates a disk that takes 20 to 120 us for writes and syncs, and now and then much longer.
void SpendDiskTime(rdma::sim::Simulation* simulation, log::DiskOperation operation) {
  using log::DiskOperation;
  if (operation != DiskOperation::kWrite && operation != DiskOperation::kSync &&
      operation != DiskOperation::kSyncDirectory)
    return;
  Random& random = simulation->random();
  uint64_t nanos = 20'000 + random.Below(100'000);
  if (random.OneIn(200)) nanos += random.Below(3'000'000);
  SleepForNanos(nanos);
}

}  // namespace

Cluster::Cluster(rdma::sim::Simulation* simulation, const ScenarioOptions* drawn, CreateTables create_tables)
    : simulation_(simulation), drawn_(drawn), create_tables_(std::move(create_tables)) {
  if (drawn_->durability == "sync") {
    disk_ = std::make_shared<log::FaultyFileSystem>(Mix64(drawn_->seed ^ 0xd15c));
    simulation->OnFaults([this] { ApplyDiskFaults(); });
  }
}

void Cluster::ApplyDiskFaults() {
  const rdma::sim::Faults& faults = simulation_->faults();
  const auto one_in = [](double probability) {
    return probability <= 0 ? uint64_t{0} : static_cast<uint64_t>(std::max(1.0, 1 / probability));
  };
  disk_->SetOptions({.write_error_one_in = one_in(faults.disk_write_error),
                     .short_write_one_in = one_in(faults.disk_short_write),
                     .sync_error_one_in = one_in(faults.disk_sync_error),
                     .before = [simulation = simulation_](log::DiskOperation operation, const std::string&) {
                       SpendDiskTime(simulation, operation);
                     }});
  ScheduleFullDisk();
}

// A full disk still has a little space, which the log must have reserved for commits in progress.
void Cluster::ScheduleFullDisk() {
  if (full_is_scheduled_ || simulation_->faults().disk_full_every == 0) return;
  full_is_scheduled_ = true;
  simulation_->At(simulation_->now() + simulation_->Exponential(simulation_->faults().disk_full_every), [this] {
    full_is_scheduled_ = false;
    if (simulation_->faults().disk_full_every == 0) return;
    const StatusOr<uint64_t> room = disk_->FreeBytes("/");
    if (room.ok()) disk_->SetCapacity(kUnlimited - *room + simulation_->random().Below(drawn_->log_segment_bytes));
    if (simulation_->tracing()) simulation_->Trace("the disk is full");
    simulation_->At(simulation_->now() + 1 + simulation_->random().Below(simulation_->faults().disk_full_nanos),
                    [this] { disk_->SetCapacity(kUnlimited); });
    ScheduleFullDisk();
  });
}

Cluster::~Cluster() = default;

Status Cluster::OnEachNode(const std::string& name, const std::function<Status(int node)>& work) {
  std::vector<Status> statuses(static_cast<size_t>(nodes()));
  std::vector<Runtime::Thread*> threads;
  for (int node = 0; node < nodes(); ++node) {
    if (name != kStart && !lives(node)) continue;
    threads.push_back(
        simulation_->StartOn(static_cast<rdma::NodeId>(node), absl::StrCat(name, " ", node),
                             [&work, node, status = &statuses[static_cast<size_t>(node)]] { *status = work(node); }));
  }
  for (Runtime::Thread* thread : threads) simulation_->Join(thread);
  // A node without memory does not start, and the other nodes then report how long they waited for it.
  const auto no_memory = std::ranges::find_if(statuses, absl::IsResourceExhausted);
  if (no_memory != statuses.end()) return *no_memory;
  for (const Status& status : statuses) GANNET_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

Status Cluster::InSession(int node, const std::string& name, const std::function<Status(txn::Session& session)>& work) {
  Status status;
  simulation_->Join(simulation_->StartOn(static_cast<rdma::NodeId>(node), name, [&] {
    StatusOr<std::unique_ptr<txn::Session>> session = database(node).OpenSession();
    status = session.ok() ? work(**session) : session.status();
  }));
  return status;
}

Status Cluster::Start() {
  rdma::sim::SimFabricOptions options;
  options.num_nodes = nodes();
  options.bytes_per_node = kBytesPerNode;
  options.nic = *rdma::sim::FindNicProfile(drawn_->nic);
  options.nic.cpu_coherent_atomics = *drawn_->coherent;
  StatusOr<std::unique_ptr<rdma::sim::SimFabric>> fabric = rdma::sim::SimFabric::Create(simulation_, options);
  if (!fabric.ok()) return fabric.status();
  fabric_ = std::move(*fabric);
  databases_.clear();
  databases_.resize(static_cast<size_t>(nodes()));
  Status started = OnEachNode(kStart, [this](int node) { return StartNode(node); });
  has_data_ = has_data_ || started.ok();
  return started;
}

// In three seeds of four a node claims all leaves of a table, or two divide the keys. A data node may be dead.
Status Cluster::SetClaimRanges(txn::Database& database) const {
  if (drawn_->seed % 4 == 0) return absl::OkStatus();
  const auto count = static_cast<uint64_t>(nodes());
  for (const txn::Table* const table : database.tables()) {
    if (!index::EntryOf(table->options().index).traits.has_claims) continue;
    const uint64_t drawn = Mix64(drawn_->seed + table->id() + (moves_ << 32));
    const bool is_integer = table->options().key_kind == index::KeyKind::kInteger;
    std::vector<index::ClaimRange> ranges(is_integer && (drawn >> 32) % 2 == 0 ? 2 : 1);
    ranges[0].first = is_integer ? index::Key(uint64_t{0}) : index::Key("");
    ranges[0].node = static_cast<rdma::NodeId>(drawn % count);
    if (ranges.size() > 1) {
      ranges[1].first = index::Key(1 + (drawn >> 8) % 64);
      ranges[1].node = static_cast<rdma::NodeId>(drawn / 2 % count);
    }
    const Status set = database.SetClaimRanges(table->name(), ranges);
    const bool may_be = absl::IsNotFound(set) ||  // it was dropped meanwhile
                        absl::IsUnavailable(set) || absl::IsDeadlineExceeded(set);
    if (!may_be) GANNET_RETURN_IF_ERROR(set);
  }
  return absl::OkStatus();
}

Status Cluster::MoveRanges() {
  if (drawn_->seed % 4 != 1) return absl::OkStatus();
  const uint64_t node = moves_++ % databases_.size();
  if (databases_[node] == nullptr) return absl::OkStatus();
  Status moved;
  simulation_->Join(simulation_->StartOn(static_cast<rdma::NodeId>(node), "ranges",
                                         [&] { moved = SetClaimRanges(*databases_[node]); }));
  return moved;
}

Status Cluster::StartNode(int node) {
  txn::DatabaseOptions options;
  options.seed = drawn_->seed;
  options.recovery_threads = 1;
  options.server_threads = drawn_->server_threads;
  options.read_path = drawn_->read_path == "calls"       ? txn::ReadPathPolicy::kCall
                      : drawn_->read_path == "one_sided" ? txn::ReadPathPolicy::kOneSided
                                                         : txn::ReadPathPolicy::kAdaptive;
  options.call_timeout = absl::Nanoseconds(static_cast<int64_t>(drawn_->call_timeout_nanos));
  options.precedence_after = absl::Nanoseconds(static_cast<int64_t>(drawn_->precedence_after_nanos));
  options.precedence_limit = absl::Nanoseconds(static_cast<int64_t>(drawn_->precedence_limit_nanos));
  options.location_cache_bytes = kLocationBytes;
  options.page_cache_bytes = kPageCacheBytes;
  if (*drawn_->client) options.data_nodes = nodes() - 1;
  if (disk_ != nullptr) {
    options.directory = kDirectory;
    options.create_if_missing = !has_data_;
    options.files = disk_;
    options.durability = txn::DurabilityMode::kSync;
    options.durable_within = absl::Nanoseconds(static_cast<int64_t>(drawn_->durable_within_nanos));
    options.log_segment_bytes = drawn_->log_segment_bytes;
    options.log_buffer_bytes = drawn_->log_buffer_bytes;
    options.checkpoint_every = absl::Milliseconds(static_cast<int64_t>(drawn_->seed % 4 * 5));
    options.checkpoint_log_multiple = options.checkpoint_every == absl::ZeroDuration() ? 1 : 0;
    options.checkpoint_log_least_bytes = 4 * drawn_->log_segment_bytes;
  }
  StatusOr<std::unique_ptr<txn::Database>> opened =
      txn::Database::Open(fabric_.get(), static_cast<rdma::NodeId>(node), options);
  if (!opened.ok()) return opened.status();
  GANNET_RETURN_IF_ERROR(create_tables_(**opened));
  std::unique_ptr<txn::Database>& database = databases_[static_cast<size_t>(node)];
  database = std::move(*opened);
  GANNET_RETURN_IF_ERROR(database->Start());
  GANNET_RETURN_IF_ERROR(SetClaimRanges(*database));
  unaccounted_.resize(static_cast<size_t>(nodes()), kNotKnown);
  int64_t& unaccounted = unaccounted_[static_cast<size_t>(node)];
  if (unaccounted != kNotKnown) return absl::OkStatus();  // later, some memory may wait for its grace period
  const StatusOr<int64_t> bytes = UnaccountedBytes(*database);
  if (bytes.ok()) unaccounted = *bytes;
  return bytes.status();
}

void Cluster::CutPower() {
  KillProcesses();
  disk_->Crash();
}

void Cluster::KillAll() {
  KillProcesses();
  disk_->KillPrograms();
}

void Cluster::KillProcesses() {
  for (int node = 0; node < nodes(); ++node) fabric_->Kill(static_cast<rdma::NodeId>(node));
  // The objects of dead nodes are not destroyed: a power cut runs no destructors.
  for (std::unique_ptr<txn::Database>& database : databases_) static_cast<void>(database.release());
  databases_.clear();
  static_cast<void>(fabric_.release());
}

void Cluster::Kill(int node, uint64_t after_verbs) {
  const auto id = static_cast<rdma::NodeId>(node);
  if (after_verbs > 0) {
    fabric_->KillAfterVerbs(id, after_verbs);
    const uint64_t deadline = simulation_->now() + kVerbsTakeNanos;
    while (fabric_->Runs(id) && simulation_->now() < deadline) SleepForNanos(1'000);
  }
  fabric_->Kill(id);
  static_cast<void>(databases_[static_cast<size_t>(node)].release());  // as at a power cut
}

Status Cluster::Restart(int node) {
  Status status;
  simulation_->Join(
      simulation_->StartOn(static_cast<rdma::NodeId>(node), "restart", [&] { status = StartNode(node); }));
  return status;
}

std::string Cluster::Unrepaired() const {
  for (const std::unique_ptr<txn::Database>& database : databases_) {
    if (database == nullptr) continue;
    const txn::Peers& peers = *database->state().peers;
    for (int node = 0; node < nodes(); ++node) {
      const auto id = static_cast<rdma::NodeId>(node);
      const txn::Peers::Phase phase = peers.phase(id);
      // It may have died and returned before the others noticed: then the incarnation that joined is the earlier one.
      const bool there = lives(node) && peers.incarnation(id) == databases_[id]->state().incarnation->number();
      const bool unnoticed = phase == txn::Peers::Phase::kJoined && !there;
      if (!unnoticed && (phase == txn::Peers::Phase::kStranger || phase == txn::Peers::Phase::kJoined)) continue;
      static constexpr const char* kPhases[] = {"stranger", "joined", "accused", "dying", "forwarded"};
      const uint64_t now = lives(node) ? databases_[id]->state().incarnation->number() : 0;
      return absl::StrFormat("for node %d node %d is %s as incarnation %d; now it is %d (0: it is dead)",
                             database->node_id(), node, kPhases[static_cast<size_t>(phase)], peers.incarnation(id),
                             now);
    }
  }
  return "";
}

Status Cluster::AwaitRepair() {
  const uint64_t deadline = simulation_->now() + kRepairTakesNanos;
  for (std::string left = Unrepaired(); !left.empty(); left = Unrepaired()) {
    if (simulation_->now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("what a dead node left is not repaired: ", left));
    }
    SleepForNanos(1'000'000);
  }
  return absl::OkStatus();
}

Status Cluster::AwaitPending() {
  const uint64_t deadline = simulation_->now() + kPendingTakesNanos;
  for (const std::unique_ptr<txn::Database>& database : databases_) {
    if (database == nullptr) continue;
    txn::PendingCompleter::Open open = database->state().pending->open();
    for (; open.pending > 0; open = database->state().pending->open()) {
      if (simulation_->now() > deadline) {
        return absl::DeadlineExceededError(absl::StrCat("node ", database->node_id(), " still owes ", open.pending,
                                                        " operations at other nodes, the oldest since ", open.since,
                                                        " ns; it is ", simulation_->now(), " ns"));
      }
      SleepForNanos(100'000);
    }
  }
  return absl::OkStatus();
}

void Cluster::StopFaults() {
  simulation_->SetFaults({});
  fabric_->MendAll();
}

int Cluster::first_living() const {
  int node = 0;
  while (!lives(node)) ++node;
  return node;
}

Status Cluster::Close() {
  GANNET_RETURN_IF_ERROR(OnEachNode("close", [this](int node) { return database(node).Close(); }));
  GANNET_RETURN_IF_ERROR(OnEachNode("destroy", [this](int node) -> Status {
    databases_[static_cast<size_t>(node)].reset();
    return absl::OkStatus();
  }));
  databases_.clear();
  fabric_.reset();
  return absl::OkStatus();
}

Status Cluster::CheckStructures() {
  GANNET_RETURN_IF_ERROR(AwaitPending());
  return OnEachNode("check", [this](int node) -> Status {
    for (const txn::Table* table : database(node).tables()) {
      if (Status status = CheckTable(node, *table); !status.ok()) {
        return {status.code(), absl::StrCat("node ", node, ", table ", table->name(), ": ", status.message())};
      }
    }
    return CheckMemory(database(node), unaccounted_[static_cast<size_t>(node)]);
  });
}

Status Cluster::CheckTable(int node, const txn::Table& table) {
  GANNET_RETURN_IF_ERROR(table.local_index().CheckStructure());
  txn::DatabaseState& state = database(node).state();
  if (!table.index_traits().client_writes && state.index_damage.Of(table.id()) > 0) {
    return absl::InternalError("a record was locked that its index did not lead to");
  }
  std::vector<rdma::GlobalAddress> records;
  index::WalkPosition position;
  for (bool more = true; more;) {
    records.clear();
    index::IndexService::Guard guard(state.indexes.get());
    more = table.local_index().Walk(&position, &records);
    for (const rdma::GlobalAddress record : records) {
      const uint64_t word = LoadWord(state.node->memory().data() + record.offset());
      if (!txn::IsLocked(word) && !txn::IsAbsent(word)) continue;
      return absl::InternalError(absl::StrCat("the record at ", record.ToString(), " is still ",
                                              txn::IsAbsent(word) ? "absent" : "locked", ", by worker ",
                                              txn::LockOwnerChannel(word), " of node ", txn::LockOwnerNode(word)));
    }
  }
  return absl::OkStatus();
}

}  // namespace gannet::scenario
