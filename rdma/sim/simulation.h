// Simulation: a cluster in one thread of the operating system and in virtual time, driven by one seed.
//
//   sim::Simulation simulation({.seed = 7});  // this thread is now the simulation's observer
//   auto fabric = sim::SimFabric::Create(&simulation, {...});
//   Thread worker("worker", [&] { ... });     // any code that takes its threads from base/thread.h
//   worker.join();                            // virtual time passes while the observer waits
//
// Every thread is a fiber with a stack of its own. A fiber runs until it waits, or until its own clock (the sum of its
// charges) would pass the next event. Then events and other fibers run in the order of virtual time; those with equal
// times run in the order in which they were made. So nothing depends on the machine: the same seed gives the same run.
//
// A node has cores. A runnable fiber of a node waits for a free core. A fiber that has run for a quantum while others
// wait goes to the end of the ready queue. The observer belongs to no node and needs no core. Threads that it starts do
// not either, until they poll a channel of a node or serve its requests: from then on they belong to that node, and die
// with it.
//
// What a simulation cannot find: memory-order bugs (all accesses are sequentially consistent).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/runtime.h"
#include "rdma/global_address.h"
#include "rdma/sim/faults.h"

namespace gannet::rdma::sim {

// Nanoseconds per unit of each Cost. costs.cc names the sources of the defaults.
struct CpuCosts {
  std::array<uint32_t, kNumCosts> picoseconds_per_unit{};
  static CpuCosts Default();
  // Kinds that Default leaves out, because they would change the times of all experiments.
  void AddContendedLines();
};

struct SimulationOptions {
  uint64_t seed = 1;
  int cores_per_node = 4;
  uint64_t quantum_nanos = 1'000'000;
  // A thread may run this far ahead of pending events before they are handled: fewer switches, coarser order.
  uint64_t lead_nanos = 0;
  CpuCosts costs = CpuCosts::Default();
  Faults faults = {};
  uint64_t wall_epoch_nanos = 1'600'000'000'000'000'000;  // WallNanos at virtual time 0
  // If set, gets one line for each event: virtual time, node, what. Lines name fibers, nodes and global addresses,
  // never pointers.
  std::function<void(std::string_view line)> trace = {};
};

inline constexpr NodeId kNoNode = UINT16_MAX;
inline constexpr int kMaxSimNodes = 64;
inline constexpr uint64_t kObserver = 0;  // the observer's fiber

// An event of the simulation itself: a packet arrives, a fault begins.
class Happening {
 public:
  // `label` names the kind of event in the digest.
  explicit Happening(uint32_t label = 0) : label_(label) {}
  // Runs on no fiber, so it must not wait.
  virtual void Happen() = 0;
  uint32_t label() const { return label_; }
  void set_label(uint32_t label) { label_ = label; }

 protected:
  ~Happening() = default;

 private:
  uint32_t label_;
};

struct SimulationStatistics {
  uint64_t events = 0;
  uint64_t switches = 0;
  uint64_t preemptions = 0;
  uint64_t fibers = 0;
};

// A thread of the operating system has at most one simulation at a time.
class Simulation : public Runtime {
 public:
  explicit Simulation(const SimulationOptions& options);
  // Fibers that still run are abandoned: their objects are not destroyed.
  ~Simulation() override;

  // Virtual time of the running fiber, without skew.
  uint64_t now() const;
  Random& random();
  const SimulationOptions& options() const;
  // Sets the faults from now on. {} ends them and mends all links. Clocks keep the skew and drift of options().faults.
  void SetFaults(const Faults& faults);
  const Faults& faults() const;

  // Starts a thread of `node`. Join it with Join, or through Thread of base/thread.h.
  Runtime::Thread* StartOn(NodeId node, std::string name, std::function<void()> body);
  // Runs `action` at virtual time `at` (or now, if that is past) on no fiber, so it must not wait.
  void At(uint64_t at, std::function<void()> action);

  // All fibers of `node` stop where they are and never run again, as after kill -9. If the caller is one of them, this
  // does not return. Their objects are leaked, not destroyed.
  void KillFibersOf(NodeId node);
  // All fibers of `node` stand still until virtual time `until`.
  void PauseFibersOf(NodeId node, uint64_t until);
  // The running fiber's node.
  NodeId current_node() const;
  // The running fiber belongs to `node` from now on, if it belonged to none.
  void BindCurrentTo(NodeId node);

  // `action` is called by Passed, on the fiber that passed the kill point. None by default.
  void OnKillPoint(std::function<void(NodeId node, int kill_point)> action);

  // Adds a line to the trace. Costs nothing if there is no trace; format with absl::StrFormat only if tracing().
  bool tracing() const;
  void Trace(std::string_view what);

  // A digest of the order and time of all events. Equal runs have equal digests.
  uint64_t digest() const;
  SimulationStatistics statistics() const;
  // Virtual nanoseconds of work on the cores of `node`.
  uint64_t busy_nanos(NodeId node) const;

  // --- Runtime ---
  uint64_t NowNanos() override;
  uint64_t WallNanos() override;
  void Charge(Cost kind, uint64_t units) override;
  void TakeLine(const void* line) override;
  void Relax() override;
  void Yield() override;
  void Preempt() override;
  void SleepUntil(uint64_t deadline_nanos) override;
  Runtime::Thread* Start(std::string name, std::function<void()> body) override;
  void Join(Runtime::Thread* thread) override;
  bool Park(const void* key, uint64_t deadline_nanos) override;
  void Unpark(const void* key, size_t most) override;
  void Idle(uint64_t deadline_nanos) override;
  void WakeIdle() override;
  std::shared_ptr<void>& Local(size_t slot) override;
  uint64_t NextNumber() override;
  int cores() override;
  void Passed(int kill_point) override;

  // --- For the fabric ---
  // The running thread works for `nanos`.
  void Work(uint64_t nanos);
  // The running thread polls, and keeps its core, until Unpark(key). It may return earlier: other threads had the core.
  void Poll(const void* key);
  // The running fiber's number, which is the same in equal runs.
  uint64_t current_fiber() const;
  // Fiber `fiber` continues at virtual time `at` (or now, if that is past), if it is idle then.
  void WakeIdleFiber(uint64_t fiber, uint64_t at = 0);
  // Wakes all idle fibers of `node`. A fiber that is not idle polls once more before it becomes idle.
  void WakeIdleOf(NodeId node);
  bool IsIdle(uint64_t fiber) const;
  bool AnyIdle(NodeId node) const;
  void Post(uint64_t at, Happening* what);
  // Keeps `what` alive as long as the simulation, because events may point to it.
  void Keep(std::shared_ptr<void> what);
  // `action` is called whenever faults are set, and now.
  void OnFaults(std::function<void()> action);
  // True with `probability`. Draws nothing if that is 0.
  bool Chance(double probability) { return probability > 0 && random().Unit() < probability; }
  // An exponentially distributed number, at least 1.
  uint64_t Exponential(uint64_t mean);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gannet::rdma::sim
