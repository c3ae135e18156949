// Decides which thread runs when: cores, waits, and the event loop. Simulation is its public interface.
//
// The scheduler has no stack of its own: a thread that must wait processes the next events on its own stack until one
// of them resumes a thread. So an event costs no switch, and a switch goes straight from one thread to the next.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rdma/sim/event_queue.h"
#include "rdma/sim/sim_thread.h"
#include "rdma/sim/simulation.h"

namespace gannet::rdma::sim {

class Scheduler {
 public:
  explicit Scheduler(const SimulationOptions& options);
  ~Scheduler();

  uint64_t now() const { return clock_; }
  SimThread* running() const { return running_; }
  bool in_event() const { return in_event_; }
  SimThread* thread(uint64_t id) const { return threads_[id].get(); }

  void Post(uint64_t at, Happening* what) { queue_.Push(at < clock_ ? clock_ : at, Tagged(what, kHappening)); }

  SimThread* Start(NodeId node, std::string name, std::function<void()> body);
  // The running thread works for `nanos`. Then events and other threads that are due run.
  void Advance(uint64_t nanos) {
    clock_ += nanos;
    cpu(running_->node).busy_nanos += nanos;
    if (clock_ - lead_nanos_ >= queue_.next_time() || clock_ >= slice_ends_) [[unlikely]]
      EndTurn();
  }
  // The running thread goes to the end of its node's ready queue. Returns false if no thread waits there.
  bool YieldCore();
  // The running thread waits in `state` until it is woken (returns true) or `deadline`, in virtual time, has come
  // (false).
  bool Wait(SimThread::State state, const void* key, uint64_t deadline);
  // The running thread polls until Unpark(key), or until its quantum has ended while other threads waited for a core.
  // It keeps its core for that time.
  void Poll(const void* key);
  void Unpark(const void* key, size_t most);
  void Idle(uint64_t deadline);
  // The pollers of the running thread poll now, so earlier wake-ups are consumed.
  void PollersLook() {
    if (running_->wake_at <= clock_) running_->wake_at = UINT64_MAX;
    running_->seen_wakes = cpu(running_->node).wakes;
  }
  void WakeIdle(NodeId node);
  void WakeIdle(SimThread* thread, uint64_t at);
  // Is any thread of `node` idle?
  bool AnyIdle(NodeId node) { return !cpu(node).idle.empty(); }

  void Kill(NodeId node);
  void Pause(NodeId node, uint64_t until);
  void Bind(NodeId node);

  uint64_t digest() const { return digest_; }
  void AddToDigest(uint64_t value) { digest_ = (digest_ ^ value) * 0x9e3779b97f4a7c15ull ^ digest_ >> 29; }
  const SimulationStatistics& statistics() const { return statistics_; }
  void CountPreemption() { ++statistics_.preemptions; }
  uint64_t busy_nanos(NodeId node) { return cpu(node).busy_nanos; }

 private:
  enum Tag : uintptr_t { kHappening, kResume, kTimer };
  static constexpr uintptr_t kTagMask = 3;
  static uintptr_t Tagged(void* target, Tag tag) { return reinterpret_cast<uintptr_t>(target) | tag; }

  struct Cpu {
    int free_cores = 0;
    uint64_t busy_nanos = 0;
    uint64_t paused_until = 0;
    uint64_t wakes = 0;  // number of WakeIdle calls
    ThreadList ready;
    ThreadList idle;
  };

  Cpu& cpu(NodeId node) { return cpus_[node == kNoNode ? kMaxSimNodes : node]; }

  static void Entry(void* thread);
  [[noreturn]] void RunThread(SimThread* thread);

  // Takes events until one resumes `self`.
  void RunOthers(SimThread* self);
  void SwitchTo(SimThread* next, SimThread* self);
  // Handles an event. Returns the thread to switch to, or null.
  SimThread* Happen(const Event& event);
  SimThread* Resume(SimThread* thread, uint64_t time);
  void TimerFired(SimThread* thread, uint64_t time);
  void EndSliceOfPoller(SimThread* thread);
  // Adds the time that it polled to its node's work.
  void CountPolling(SimThread* thread);
  void EndTurn();
  // Returns true if other threads had the core in between.
  bool EndSlice();
  void ReapFinished();

  // `thread` may run from `at` on, as soon as it has a core.
  void MakeRunnable(SimThread* thread, uint64_t at);
  void ReleaseCore(SimThread* thread);
  void ArmTimer(SimThread* thread, uint64_t deadline);
  // Removes it from the list in which it waits.
  void Detach(SimThread* thread);
  void Wake(SimThread* thread, uint64_t at, bool timed_out);
  [[noreturn]] void NothingWillHappen();

  const int cores_per_node_;
  const uint64_t quantum_nanos_;
  const uint64_t lead_nanos_;
  uint64_t clock_ = 0;
  uint64_t slice_ends_ = UINT64_MAX;  // when other threads may take the running thread's core
  SimThread* running_ = nullptr;
  bool in_event_ = false;
  SimThread* finished_ = nullptr;  // its stack is still in use
  EventQueue queue_;
  std::array<Cpu, kMaxSimNodes + 1> cpus_;           // the last entry is for threads without a node
  std::vector<std::unique_ptr<SimThread>> threads_;  // by id, never freed
  absl::flat_hash_map<const void*, ThreadList> parked_;
  uint64_t digest_ = 0x243f6a8885a308d3ull;
  SimulationStatistics statistics_;
};

}  // namespace gannet::rdma::sim
