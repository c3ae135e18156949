// The seam between the program and the machine: threads, time, waiting. Outside a simulation (Runtime::Current() is
// null) all of it is the operating system's, at the price of one predicted branch. Within one (rdma/sim), every thread
// of every node is a fiber of one thread of the operating system, and time is virtual.
//
// Library code takes its threads, mutexes and sleeps from base/thread.h and its time from base/clock.h, which
// come here; it marks where it may be interrupted (PreemptionPoint) and what costs time (Charge). Nothing above
// base needs to know whether it is simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace gannet {

// What costs a simulated CPU time. rdma/sim/costs.cc has the nanoseconds of each, and how they were measured. A unit is
// one of what the name says.
enum class Cost : uint8_t {
  kWorkerRound,  // a turn of a worker's loop: its pollers
  kPostVerb,     // preparing one verb and ringing for it
  kCompletion,   // taking one completion
  kHandleCall,   // receiving a request, finding its handler, sending the response
  kIndexStep,    // a dependent memory access of an index: a node of a tree, a bucket
  kModelStep,    // evaluating one line of a learned model
  kTrainKey,     // training a model, per key
  kRecordLine,   // copying a line of a record in or out
  kTransaction,  // begin to end of one, without its accesses
  kLogByte,      // encoding and checksums
};
inline constexpr size_t kNumCosts = static_cast<size_t>(Cost::kLogByte) + 1;

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Null: the machine itself.
  static Runtime* Current() { return current_; }

  // Of the node whose thread is running; only differences mean something.
  virtual uint64_t NowNanos() = 0;
  // Since 1970.
  virtual uint64_t WallNanos() = 0;

  // The running thread works for so many units of `kind`. Others may run meanwhile.
  virtual void Charge(Cost kind, uint64_t units) = 0;
  // One turn of a loop that waits for another thread.
  virtual void Relax() = 0;
  // Offers the core to others.
  virtual void Yield() = 0;
  // The thread may be interrupted here, if the simulation wants that.
  virtual void Preempt() = 0;
  virtual void SleepUntil(uint64_t deadline_nanos) = 0;

  class Thread;  // of the implementation
  // Starts a thread on the node of the running one. Every thread is joined, unless its node died.
  virtual Thread* Start(std::string name, std::function<void()> body) = 0;
  virtual void Join(Thread* thread) = 0;

  // Waits until Unpark(key), at most until `deadline_nanos` (UINT64_MAX: for ever); false if the time was up. There is
  // no lost wake-up: nothing else runs between the caller's last look at what it waits for and this.
  virtual bool Park(const void* key, uint64_t deadline_nanos) = 0;
  // Wakes at most `most` of those who wait for `key`.
  virtual void Unpark(const void* key, size_t most) = 0;

  // A worker that has nothing to do waits until something happens that one of its pollers may want to see: a completion
  // of a channel that it polls, a request to its node, WakeIdle; or the deadline. What happened since the worker last
  // charged a Cost::kWorkerRound, after which its pollers look, counts, too.
  virtual void Idle(uint64_t deadline_nanos) = 0;
  // Something happened that pollers of this node look for (a new durable epoch).
  virtual void WakeIdle() = 0;

  // In place of thread_local variables that would otherwise be shared by all simulated threads: null at first; released
  // with the thread. Slots are numbered in base/thread.h.
  virtual std::shared_ptr<void>& Local(size_t slot) = 0;

  // In place of a counter of the process: 1, 2, 3, ...
  virtual uint64_t NextNumber() = 0;
  // Cores of the running thread's node.
  virtual int cores() = 0;

  // Library code passed one of its kill points (log/kill_point.h). May never return: then this node has died.
  virtual void Passed(int kill_point) = 0;

 protected:
  static void SetCurrent(Runtime* runtime) { current_ = runtime; }

 private:
  static inline constinit thread_local Runtime* current_ = nullptr;
};

// Where another thread, or a verb, may come in between: between two accesses of shared memory that are not one step.
inline void PreemptionPoint() {
  if (Runtime* runtime = Runtime::Current()) [[unlikely]]
    runtime->Preempt();
}
inline void Charge(Cost kind, uint64_t units = 1) {
  if (Runtime* runtime = Runtime::Current()) [[unlikely]]
    runtime->Charge(kind, units);
}

}  // namespace gannet
