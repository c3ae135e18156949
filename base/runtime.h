// The interface between the program and the machine: threads, time, waiting. Outside a simulation (Runtime::Current()
// is null) the operating system provides all of it, at the cost of one predicted branch. Within a simulation
// (rdma/sim), every thread of every node is a fiber of one thread of the operating system, and time is virtual.
//
// Library code takes its threads, mutexes and sleeps from base/thread.h and its time from base/clock.h, which use this
// interface. It marks where it may be preempted (PreemptionPoint) and what costs time (Charge). Nothing above base
// needs to know whether it is simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace gannet {

// Operations that cost a simulated CPU time. rdma/sim/costs.cc has the nanoseconds of each, and says how they were
// measured. The name says what one unit is.
enum class Cost : uint8_t {
  kWorkerRound,  // a turn of a worker's loop: its pollers
  kPostVerb,     // preparing one verb and ringing for it
  kCompletion,   // taking one completion
  kHandleCall,   // receiving a request, finding its handler, sending the response
  kIndexStep,    // a dependent memory access of an index: a node of a tree, a bucket
  kModelStep,    // evaluating one line of a learned model
  kTrainKey,     // training a model, per key
  kRecordLine,   // copying a line of a record in or out, or of a node of an R-tree
  kTransaction,  // begin and end of one, without its accesses
  kLogByte,      // encoding and checksums
  kTakenLine,    // a line of memory that another core has changed last (TakeLine)
};
// Number of prefetched misses that take the time of a dependent one: 23 ns each, where a dependent one takes 80 ns
// (XStore, OSDI'20, section 3: 43 million random reads per second on one core).
inline constexpr size_t kOverlappedMisses = 4;
inline constexpr size_t kNumCosts = static_cast<size_t>(Cost::kTakenLine) + 1;

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Null: no simulation; the program runs on the machine itself.
  static Runtime* Current() { return current_; }

  // Clock of the node whose thread is running; only differences mean something.
  virtual uint64_t NowNanos() = 0;
  // Nanoseconds since 1970.
  virtual uint64_t WallNanos() = 0;

  // The running thread works for `units` of `kind`. Other threads may run during that time.
  virtual void Charge(Cost kind, uint64_t units) = 0;
  // The running thread is about to change this line, as other threads do: it gets it when all have had it that asked
  // before.
  virtual void TakeLine(const void* line) = 0;
  // One iteration of a loop that waits for another thread.
  virtual void Relax() = 0;
  // Offers the core to other threads.
  virtual void Yield() = 0;
  // The simulation may preempt the thread here.
  virtual void Preempt() = 0;
  virtual void SleepUntil(uint64_t deadline_nanos) = 0;

  class Thread;  // defined by the implementation
  // Starts a thread on the node of the running one. Every thread is joined, unless its node died.
  virtual Thread* Start(std::string name, std::function<void()> body) = 0;
  virtual void Join(Thread* thread) = 0;

  // Waits until Unpark(key), at most until `deadline_nanos` (UINT64_MAX: no limit). False: the deadline has passed. No
  // wake-up is lost, because nothing else runs between the caller's last check of its condition and this call.
  virtual bool Park(const void* key, uint64_t deadline_nanos) = 0;
  // Wakes at most `most` of the threads that wait for `key`.
  virtual void Unpark(const void* key, size_t most) = 0;

  // An idle worker waits here until the deadline, or until something happens that concerns one of its pollers: a
  // completion of a channel that it polls, a request to its node, or WakeIdle. Events since the worker last charged a
  // Cost::kWorkerRound, after which its pollers run, count, too.
  virtual void Idle(uint64_t deadline_nanos) = 0;
  // Called when something happened that pollers of this node look for (a new durable epoch).
  virtual void WakeIdle() = 0;

  // Replaces a thread_local variable, which all simulated threads would share. Initially null; released with the
  // thread. Slots are numbered in base/thread.h.
  virtual std::shared_ptr<void>& Local(size_t slot) = 0;

  // Replaces a counter of the process: 1, 2, 3, ...
  virtual uint64_t NextNumber() = 0;
  // Cores of the running thread's node.
  virtual int cores() = 0;

  // Called when library code passes one of its kill points (log/file/kill_point.h). If the node dies there, the call
  // does not return.
  virtual void Passed(int kill_point) = 0;

 protected:
  static void SetCurrent(Runtime* runtime) { current_ = runtime; }

 private:
  static inline constinit thread_local Runtime* current_ = nullptr;
};

// Marks a point where another thread or a verb may run: between two accesses of shared memory that are not one atomic
// step.
inline void PreemptionPoint() {
  if (Runtime* runtime = Runtime::Current()) [[unlikely]]
    runtime->Preempt();
}
// Marks a latch or counter of many threads, before it is changed.
inline void TakeLine(const void* line) {
  if (Runtime* runtime = Runtime::Current()) [[unlikely]]
    runtime->TakeLine(line);
}
inline void Charge(Cost kind, uint64_t units = 1) {
  if (Runtime* runtime = Runtime::Current()) [[unlikely]]
    runtime->Charge(kind, units);
}

}  // namespace gannet
