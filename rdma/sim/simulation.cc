#include "rdma/sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/entropy.h"
#include "rdma/sim/node_clock.h"
#include "rdma/sim/scheduler.h"

namespace gannet::rdma::sim {
namespace {

// What clocks show at virtual time 0: more than any skew, so that no clock shows 0, which means "never".
constexpr int64_t kBootNanos = 1'000'000'000'000;
constexpr uint64_t kRelaxNanos = 40;   // PAUSE takes 140 cycles since Skylake
constexpr uint64_t kYieldNanos = 300;  // a sched_yield, measured here without another runnable thread

// The event of Simulation::At.
struct Action final : Happening {
  explicit Action(std::vector<Action*>* used_up) : Happening(1), used(used_up) {}
  void Happen() override {
    const std::function<void()> what = std::exchange(action, nullptr);
    used->push_back(this);
    what();
  }

  std::function<void()> action;
  std::vector<Action*>* used;
};

// Separate from Simulation::random(), so that drawing a secret does not shift other random numbers.
class Entropy final : public SimulatedEntropy {
 public:
  explicit Entropy(uint64_t seed) : random_(Mix64(seed) ^ 0x5ec7e75eed) {}
  uint64_t Draw() override { return random_(); }

 private:
  Random random_;
};

}  // namespace

struct Simulation::State final : Happening {
  explicit State(const SimulationOptions& the_options)
      : Happening(2), options(the_options), random(the_options.seed), scheduler(options), entropy(options.seed) {
    for (size_t i = 0; i < clocks.size(); ++i) {
      clocks[i] = i == kMaxSimNodes ? NodeClock() : NodeClock(options.faults, Random(Mix64(options.seed) + i));
    }
  }

  const NodeClock& clock() { return clocks[std::min<size_t>(scheduler.running()->node, kMaxSimNodes)]; }
  // Converts a time that the running thread's clock shows to virtual time.
  uint64_t ToVirtual(uint64_t shown) {
    if (shown > uint64_t{INT64_MAX}) return UINT64_MAX;
    return clock().ToVirtual(static_cast<int64_t>(shown) - kBootNanos);
  }

  // Pauses a random node, and schedules the next pause.
  void Happen() override;
  void SchedulePause();

  SimulationOptions options;
  Faults faults;
  Random random;
  Scheduler scheduler;
  std::array<NodeClock, kMaxSimNodes + 1> clocks;  // the last: for threads without a node
  NodeId nodes = 0;                                // highest node that has had threads, plus one
  bool pause_is_scheduled = false;
  uint64_t last_number = 0;
  Entropy entropy;
  // A line that threads change: the thread that had it last, and when that has it.
  struct Line {
    const SimThread* by = nullptr;
    uint64_t until = 0;
  };
  absl::flat_hash_map<const void*, Line> lines;
  std::vector<std::unique_ptr<Action>> actions;
  std::vector<Action*> used_actions;
  std::function<void(NodeId, int)> on_kill_point;
  std::vector<std::function<void()>> on_faults;
  std::vector<std::shared_ptr<void>> kept;
  Simulation* simulation = nullptr;
};

void Simulation::State::SchedulePause() {
  if (pause_is_scheduled || faults.pause_every == 0) return;
  pause_is_scheduled = true;
  scheduler.Post(scheduler.now() + simulation->Exponential(faults.pause_every), this);
}

void Simulation::State::Happen() {
  pause_is_scheduled = false;
  if (faults.pause_every != 0 && nodes > 0) {
    const auto node = static_cast<NodeId>(random.Below(nodes));
    simulation->PauseFibersOf(node, scheduler.now() + 1 + random.Below(faults.pause_nanos));
  }
  SchedulePause();
}

Simulation::Simulation(const SimulationOptions& options) : state_(std::make_unique<State>(options)) {
  GANNET_CHECK(Runtime::Current() == nullptr, "this thread has a simulation already");
  state_->simulation = this;
  SetCurrent(this);
  SetFaults(options.faults);
}

Simulation::~Simulation() {
  SetCurrent(nullptr);
}

uint64_t Simulation::now() const {
  return state_->scheduler.now();
}
Random& Simulation::random() {
  return state_->random;
}
const SimulationOptions& Simulation::options() const {
  return state_->options;
}
const Faults& Simulation::faults() const {
  return state_->faults;
}

void Simulation::SetFaults(const Faults& faults) {
  state_->faults = faults;
  if (tracing()) Trace(absl::StrCat("faults: ", faults.ToString()));
  state_->SchedulePause();
  for (const std::function<void()>& action : state_->on_faults) action();
}

Runtime::Thread* Simulation::StartOn(NodeId node, std::string name, std::function<void()> body) {
  if (node != kNoNode) state_->nodes = std::max<NodeId>(state_->nodes, node + 1);
  if (tracing()) Trace(absl::StrCat("starts thread ", name, node == kNoNode ? "" : absl::StrCat(" of node ", node)));
  return state_->scheduler.Start(node, std::move(name), std::move(body));
}

void Simulation::At(uint64_t at, std::function<void()> action) {
  if (state_->used_actions.empty()) {
    state_->actions.push_back(std::make_unique<Action>(&state_->used_actions));
    state_->used_actions.push_back(state_->actions.back().get());
  }
  Action* event = state_->used_actions.back();
  state_->used_actions.pop_back();
  event->action = std::move(action);
  Post(at, event);
}

void Simulation::KillFibersOf(NodeId node) {
  if (tracing()) Trace(absl::StrCat("kills the threads of node ", node));
  state_->scheduler.Kill(node);
}

void Simulation::PauseFibersOf(NodeId node, uint64_t until) {
  if (tracing()) Trace(absl::StrCat("pauses the threads of node ", node, " until ", until));
  state_->scheduler.Pause(node, until);
}

NodeId Simulation::current_node() const {
  return state_->scheduler.in_event() ? kNoNode : state_->scheduler.running()->node;
}

void Simulation::BindCurrentTo(NodeId node) {
  state_->nodes = std::max<NodeId>(state_->nodes, node + 1);
  state_->scheduler.Bind(node);
}

void Simulation::OnKillPoint(std::function<void(NodeId, int)> action) {
  state_->on_kill_point = std::move(action);
}

bool Simulation::tracing() const {
  return state_->options.trace != nullptr;
}

void Simulation::Trace(std::string_view what) {
  if (!tracing()) return;
  std::string line = absl::StrCat(now());
  if (!state_->scheduler.in_event()) {
    const SimThread* thread = state_->scheduler.running();
    if (thread->node != kNoNode) absl::StrAppend(&line, " node ", thread->node);
    absl::StrAppend(&line, " ", thread->name, "(", thread->id, ")");
  }
  absl::StrAppend(&line, ": ", absl::string_view(what.data(), what.size()));
  state_->options.trace(line);
}

uint64_t Simulation::digest() const {
  return state_->scheduler.digest();
}
SimulationStatistics Simulation::statistics() const {
  return state_->scheduler.statistics();
}
uint64_t Simulation::busy_nanos(NodeId node) const {
  return state_->scheduler.busy_nanos(node);
}

uint64_t Simulation::NowNanos() {
  return static_cast<uint64_t>(kBootNanos + state_->clock().FromVirtual(now()));
}
uint64_t Simulation::WallNanos() {
  return state_->options.wall_epoch_nanos + static_cast<uint64_t>(state_->clock().FromVirtual(now()));
}

void Simulation::Charge(Cost kind, uint64_t units) {
  Scheduler& scheduler = state_->scheduler;
  if (scheduler.in_event()) return;
  SimThread* self = scheduler.running();
  const uint64_t picoseconds =
      self->picoseconds + units * state_->options.costs.picoseconds_per_unit[static_cast<size_t>(kind)];
  self->picoseconds = picoseconds % kPicosPerNano;
  scheduler.Advance(picoseconds / kPicosPerNano);
  if (kind == Cost::kWorkerRound) scheduler.PollersLook();
}

// A line goes from core to core. Lines are told apart by their addresses, which are others in each run; but nothing
// depends on their order.
void Simulation::TakeLine(const void* line) {
  Scheduler& scheduler = state_->scheduler;
  const uint64_t nanos = state_->options.costs.picoseconds_per_unit[static_cast<size_t>(Cost::kTakenLine)] / 1000;
  if (nanos == 0 || scheduler.in_event()) return;
  State::Line& taken = state_->lines[line];
  const SimThread* const by = std::exchange(taken.by, scheduler.running());
  if (by == nullptr || by == taken.by) return;
  taken.until = std::max(taken.until, now()) + nanos;
  scheduler.Advance(taken.until - now());
}

void Simulation::Work(uint64_t nanos) {
  if (!state_->scheduler.in_event()) state_->scheduler.Advance(nanos);
}

void Simulation::Poll(const void* key) {
  state_->scheduler.Poll(key);
}

void Simulation::Relax() {
  if (!state_->scheduler.in_event()) state_->scheduler.Advance(kRelaxNanos);
}

// This always takes time: threads that yield to each other while they wait for one that sleeps must let its time come.
void Simulation::Yield() {
  state_->scheduler.YieldCore();
  state_->scheduler.Advance(kYieldNanos);
}

void Simulation::Preempt() {
  Scheduler& scheduler = state_->scheduler;
  if (state_->faults.preempt <= 0 || scheduler.in_event() || !Chance(state_->faults.preempt)) return;
  scheduler.CountPreemption();
  if (tracing()) Trace("is preempted");
  const uint64_t back_at = now() + 1 + random().Below(state_->faults.preempt_nanos);
  scheduler.Wait(SimThread::State::kAsleep, nullptr, back_at);
}

void Simulation::SleepUntil(uint64_t deadline_nanos) {
  const uint64_t deadline = state_->ToVirtual(deadline_nanos);
  if (deadline > now()) state_->scheduler.Wait(SimThread::State::kAsleep, nullptr, deadline);
}

Runtime::Thread* Simulation::Start(std::string name, std::function<void()> body) {
  return StartOn(current_node(), std::move(name), std::move(body));
}

void Simulation::Join(Runtime::Thread* thread) {
  while (!thread->over()) state_->scheduler.Wait(SimThread::State::kParked, thread, UINT64_MAX);
}

bool Simulation::Park(const void* key, uint64_t deadline_nanos) {
  return state_->scheduler.Wait(SimThread::State::kParked, key, state_->ToVirtual(deadline_nanos));
}

void Simulation::Unpark(const void* key, size_t most) {
  state_->scheduler.Unpark(key, most);
}

void Simulation::Idle(uint64_t deadline_nanos) {
  state_->scheduler.Idle(state_->ToVirtual(deadline_nanos));
}

void Simulation::WakeIdle() {
  const NodeId node = current_node();
  state_->scheduler.WakeIdle(kNoNode);
  if (node != kNoNode) return state_->scheduler.WakeIdle(node);
  for (NodeId id = 0; id < state_->nodes; ++id) state_->scheduler.WakeIdle(id);
}

std::shared_ptr<void>& Simulation::Local(size_t slot) {
  return state_->scheduler.running()->locals[slot];
}

uint64_t Simulation::NextNumber() {
  return ++state_->last_number;
}
int Simulation::cores() {
  return state_->options.cores_per_node;
}

void Simulation::Passed(int kill_point) {
  if (state_->on_kill_point) state_->on_kill_point(current_node(), kill_point);
}

uint64_t Simulation::current_fiber() const {
  return state_->scheduler.running()->id;
}
void Simulation::WakeIdleFiber(uint64_t fiber, uint64_t at) {
  state_->scheduler.WakeIdle(state_->scheduler.thread(fiber), at);
}
void Simulation::WakeIdleOf(NodeId node) {
  state_->scheduler.WakeIdle(node);
}
bool Simulation::IsIdle(uint64_t fiber) const {
  return state_->scheduler.thread(fiber)->state == SimThread::State::kIdle;
}
bool Simulation::AnyIdle(NodeId node) const {
  return state_->scheduler.AnyIdle(node);
}
void Simulation::Post(uint64_t at, Happening* what) {
  state_->scheduler.Post(at, what);
}
void Simulation::Keep(std::shared_ptr<void> what) {
  state_->kept.push_back(std::move(what));
}

void Simulation::OnFaults(std::function<void()> action) {
  action();
  state_->on_faults.push_back(std::move(action));
}

uint64_t Simulation::Exponential(uint64_t mean) {
  const double drawn = -std::log(1.0 - random().Unit()) * static_cast<double>(mean);
  return 1 + static_cast<uint64_t>(drawn);
}

}  // namespace gannet::rdma::sim
