// Runs clients whose history is judged.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"
#include "index/registry.h"
#include "lab/scenario/abandon.h"
#include "lab/scenario/cluster.h"
#include "lab/scenario/run.h"
#include "lab/scenario/scenario.h"
#include "lab/scenario/workload/workload.h"
#include "rdma/sim/sim_thread.h"

namespace gannet::scenario {
namespace {

// The virtual time after the faults, even if all clients make progress at once; at most as long as the faults.
constexpr uint64_t kLeastSoundNanos = 10'000'000;
// The virtual time of some grace periods, in which empty leaves are removed from their trees.
constexpr uint64_t kTreesShrinkNanos = 12'000'000;
constexpr uint64_t kStopNanos = 3'000'000'000;  // virtual; a client that still runs after this hangs

// One run. Its methods are called on the observer.
class Run {
 public:
  Run(rdma::sim::Simulation* simulation, const ScenarioOptions& drawn)
      : simulation_(simulation), drawn_(drawn), control_{.simulation = simulation, .rest_nanos = drawn.rest_nanos} {}

  Status Execute(ScenarioReport* report);
  const Control& control() const { return control_; }

 private:
  struct Member {
    int node;
    std::unique_ptr<Client> client;
  };
  // The threads of all workers between two power cuts, and their clients.
  struct Crew {
    std::vector<bool> rests;  // by node: whether its clients rest
    std::vector<Runtime::Thread*> threads;
    std::vector<Member> members;
    size_t unfinished() const {
      return static_cast<size_t>(std::ranges::count_if(threads, [](const auto* thread) { return !thread->over(); }));
    }
  };

  void StartCrew();
  void StartWorkers(int node);
  void WorkerThread(int node, Crew* crew);
  // Opens a session, runs its clients until they end, and closes the session.
  void RunSession(int node, Crew* crew);
  // Sleeps for `nanos`, or until Broken().
  void Watch(uint64_t nanos);
  Status StopCrew();
  Status RunFaultyPhase(ScenarioReport* report);
  Status CutPower();
  Status StartAgain();
  Status KillOne();
  Status Check();
  Status RunSoundPhase();
  std::vector<uint64_t> CommittedByNode() const;
  // A living node that has committed nothing since `before`; or -1.
  int NodeWithoutProgress(const std::vector<uint64_t>& before) const;
  // Waits until every living node has committed something, at most for drawn_.settle_nanos.
  Status AwaitProgress(const std::vector<uint64_t>& before);
  // A client saw something impossible, or the run must stop.
  bool IsBroken() const { return !control_.broken.empty() || IsStopRequested(drawn_.stop); }
  Status Broken() const {
    if (!control_.broken.empty()) return absl::InternalError(control_.broken);
    return CheckStop(drawn_.stop, "the clients ran");
  }

  rdma::sim::Simulation* simulation_;
  const ScenarioOptions& drawn_;
  Control control_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<Cluster> cluster_;
  Crew* crew_ = nullptr;  // leaked at a power cut, with the objects of its threads
  uint32_t next_client_ = 1;
};

void Run::StartCrew() {
  crew_ = new Crew;
  crew_->rests.resize(static_cast<size_t>(drawn_.nodes));
  for (int node = 0; node < drawn_.nodes; ++node) {
    if (cluster_->lives(node)) StartWorkers(node);
  }
}

void Run::StartWorkers(int node) {
  for (int worker = 0; worker < drawn_.workers_per_node; ++worker) {
    crew_->threads.push_back(simulation_->StartOn(static_cast<rdma::NodeId>(node),
                                                  absl::StrCat("worker ", node, ".", worker),
                                                  [this, node, crew = crew_] { WorkerThread(node, crew); }));
  }
}

void Run::WorkerThread(int node, Crew* crew) {
  RunSession(node, crew);
  while (drawn_.session_nanos != kWholeRun && !control_.stop && control_.broken.empty()) RunSession(node, crew);
}

void Run::RunSession(int node, Crew* crew) {
  StatusOr<std::unique_ptr<txn::Session>> session = cluster_->database(node).OpenSession();
  if (!session.ok()) {
    control_.broken = absl::StrCat("no session on node ", node, ": ", session.status().ToString());
    return;
  }
  for (int i = 0; i < drawn_.coroutines; ++i) {
    std::unique_ptr<Client> client = workload_->NewClient(**session, next_client_++);
    if (drawn_.session_nanos != kWholeRun) client->EndAt(simulation_->now() + drawn_.session_nanos);
    if (crew->rests[static_cast<size_t>(node)]) client->Rest();
    (*session)->worker().Spawn(client->Run());
    crew->members.push_back({node, std::move(client)});
  }
  (*session)->worker().Run();
}

void Run::Watch(uint64_t nanos) {
  constexpr uint64_t kSlice = 1'000'000;
  const uint64_t until = simulation_->now() + nanos;
  while (simulation_->now() < until && !IsBroken()) {
    SleepForNanos(std::min(until - simulation_->now(), kSlice));
    const Status moved = cluster_->MoveRanges();
    if (!moved.ok()) control_.broken = moved.ToString();
  }
}

std::vector<uint64_t> Run::CommittedByNode() const {
  std::vector<uint64_t> committed(static_cast<size_t>(drawn_.nodes));
  for (const Member& member : crew_->members) committed[static_cast<size_t>(member.node)] += member.client->committed();
  return committed;
}

Status Run::StopCrew() {
  control_.stop = true;
  const uint64_t deadline = simulation_->now() + kStopNanos;
  while (crew_->unfinished() > 0 && simulation_->now() < deadline && !IsBroken()) {
    SleepForNanos(100'000);
  }
  GANNET_RETURN_IF_ERROR(Broken());
  if (crew_->unfinished() > 0) {
    return absl::DeadlineExceededError(absl::StrFormat("%d of %d workers still hang %d s after they were told to stop",
                                                       crew_->unfinished(), crew_->threads.size(),
                                                       kStopNanos / 1'000'000'000));
  }
  for (Runtime::Thread* thread : crew_->threads) simulation_->Join(thread);
  delete std::exchange(crew_, nullptr);
  control_.stop = false;
  return absl::OkStatus();
}

Status Run::RunFaultyPhase(ScenarioReport* report) {
  const std::vector<Interruption> interruptions = InterruptionsOf(drawn_);
  const uint64_t nanos = drawn_.faulty_nanos / (interruptions.size() + 1);
  const auto watch = [&] {
    Watch(nanos / 2 + simulation_->random().Below(nanos));
    return Broken();
  };
  StartCrew();
  simulation_->SetFaults(*drawn_.faults);
  for (const Interruption interruption : interruptions) {
    GANNET_RETURN_IF_ERROR(watch());
    switch (interruption) {
      case Interruption::kPowerCut:
        GANNET_RETURN_IF_ERROR(CutPower());
        ++report->power_cuts;
        break;
      case Interruption::kDeath:
        GANNET_RETURN_IF_ERROR(KillOne());
        ++report->deaths;
        break;
      case Interruption::kCheck:
        GANNET_RETURN_IF_ERROR(Check());
        ++report->checks;
        break;
    }
  }
  if (drawn_.keys >= kManyKeys) Watch(kTreesShrinkNanos);
  return watch();
}

// Closes the sessions first: what they have retired would not become free otherwise.
Status Run::Check() {
  cluster_->StopFaults();
  GANNET_RETURN_IF_ERROR(StopCrew());
  GANNET_RETURN_IF_ERROR(cluster_->AwaitRepair());
  GANNET_RETURN_IF_ERROR(cluster_->CheckStructures());
  StartCrew();
  simulation_->SetFaults(*drawn_.faults);
  return absl::OkStatus();
}

Status Run::CutPower() {
  cluster_->CutPower();
  return StartAgain();
}

Status Run::StartAgain() {
  crew_ = nullptr;
  simulation_->SetFaults({});
  GANNET_RETURN_IF_ERROR(cluster_->Start());
  StartCrew();
  simulation_->SetFaults(*drawn_.faults);
  return absl::OkStatus();
}

// Kills one node at a time: if two die together, the survivors may lack what they need (txn/peer/repair.h).
Status Run::KillOne() {
  GANNET_RETURN_IF_ERROR(cluster_->AwaitRepair());
  int victim = drawn_.nodes - 1;
  if (!*drawn_.client) {
    victim = static_cast<int>(simulation_->random().Below(static_cast<uint64_t>(drawn_.nodes)));
    while (!cluster_->lives(victim)) victim = (victim + 1) % drawn_.nodes;
  }
  Random& random = simulation_->random();
  cluster_->Kill(victim, random.OneIn(4) ? 0 : 1 + random.Below(200));
  if (drawn_.durability != "none") {  // commits of the others since then may depend on what it had not made durable
    Watch(random.Below(5'000'000));
    GANNET_RETURN_IF_ERROR(Broken());
    cluster_->KillAll();
    return StartAgain();
  }
  if (!*drawn_.client) return absl::OkStatus();
  Watch(random.Below(3'000'000));
  GANNET_RETURN_IF_ERROR(cluster_->Restart(victim));
  StartWorkers(victim);
  return absl::OkStatus();
}

// There are no faults any more. Every node must make progress; and when no new transactions begin, every client must
// finish its own. While all compete for few keys, an optimistic client may lose for a long time: a client that scans
// all keys loses to every other commit. So if a node has made no progress, the clients of the other nodes begin nothing
// more. A client that only lost conflicts then makes progress; a client that waits for something that is never released
// does not.
Status Run::RunSoundPhase() {
  cluster_->StopFaults();
  control_.rest_nanos = 0;  // where nodes are dead, errors go on; threads in their rest wake up in it
  const std::vector<uint64_t> before = CommittedByNode();
  Watch(std::min({drawn_.settle_nanos, drawn_.faulty_nanos, kLeastSoundNanos}));
  GANNET_RETURN_IF_ERROR(AwaitProgress(before));
  if (NodeWithoutProgress(before) >= 0) {
    const std::vector<uint64_t> now = CommittedByNode();
    for (const Member& member : crew_->members) {
      const auto node = static_cast<size_t>(member.node);
      if (now[node] == before[node]) continue;
      member.client->Rest();
      crew_->rests[node] = true;
    }
    GANNET_RETURN_IF_ERROR(AwaitProgress(before));
  }
  if (const int node = NodeWithoutProgress(before); node >= 0) {
    return absl::DeadlineExceededError(absl::StrFormat(
        "no progress: node %d committed nothing in the %d ms after the faults stopped, though the others "
        "rested in the second half of them",
        node, 2 * drawn_.settle_nanos / 1'000'000));
  }
  GANNET_RETURN_IF_ERROR(StopCrew());
  return cluster_->AwaitRepair();
}

Status Run::AwaitProgress(const std::vector<uint64_t>& before) {
  const uint64_t until = simulation_->now() + drawn_.settle_nanos;
  while (NodeWithoutProgress(before) >= 0 && simulation_->now() < until && !IsBroken()) {
    Watch(std::min(until - simulation_->now(), kLeastSoundNanos));
  }
  return Broken();
}

int Run::NodeWithoutProgress(const std::vector<uint64_t>& before) const {
  const std::vector<uint64_t> now = CommittedByNode();
  if (!workload_->CanGoOn([this](int node) { return cluster_->lives(node); })) return -1;
  for (size_t node = 0; node < before.size(); ++node) {
    if (now[node] == before[node] && cluster_->lives(static_cast<int>(node))) return static_cast<int>(node);
  }
  return -1;
}

Status Run::Execute(ScenarioReport* report) {
  StatusOr<std::unique_ptr<Workload>> workload = MakeWorkload(drawn_, &control_);
  if (!workload.ok()) return workload.status();
  workload_ = std::move(*workload);
  cluster_ = std::make_unique<Cluster>(simulation_, &drawn_, [this](txn::Database& database) -> Status {
    for (txn::TableOptions& table : workload_->Tables()) {
      if (index::EntryOf(table.index).traits.client_writes) {
        table.index_rights = *index::IndexRightsOf(drawn_.index_rights);
      }
      GANNET_RETURN_IF_ERROR(database.CreateTable(table).status());
    }
    return absl::OkStatus();
  });
  GANNET_RETURN_IF_ERROR(cluster_->Start());
  GANNET_RETURN_IF_ERROR(
      cluster_->InSession(0, "load", [this](txn::Session& session) { return workload_->Load(session); }));
  GANNET_RETURN_IF_ERROR(RunFaultyPhase(report));
  GANNET_RETURN_IF_ERROR(RunSoundPhase());
  for (int node = 0; node < drawn_.nodes; ++node) {
    if (!cluster_->lives(node)) control_.dead.push_back(node);
  }
  GANNET_RETURN_IF_ERROR(cluster_->InSession(
      cluster_->first_living(), "read all",
      [this, whole = cluster_->AllLive()](txn::Session& session) { return workload_->ReadAll(session, whole); }));
  GANNET_RETURN_IF_ERROR(cluster_->CheckStructures());
  GANNET_RETURN_IF_ERROR(cluster_->Close());
  Judgement judgement = workload_->Judge();
  report->passed = judgement.passed;
  report->undecided = judgement.undecided;
  report->verdict = std::move(judgement.verdict);
  report->details = std::move(judgement.details);
  report->checked_edges = judgement.edges;
  return Broken();
}

}  // namespace

Status RunClients(rdma::sim::Simulation* simulation, const ScenarioOptions& drawn, ScenarioReport* report) {
  auto run = std::make_unique<Run>(simulation, drawn);
  Status status = run->Execute(report);
  const Control& control = run->control();
  report->committed = control.committed;
  report->failed = control.failed;
  report->unknown = control.unknown;
  report->aborts = control.aborts;
  if (!status.ok()) Abandon(std::move(run));  // its threads may still refer to it
  return status;
}

}  // namespace gannet::scenario
