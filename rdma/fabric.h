// START HERE: the contract of READ / WRITE / CAS / FAA / CALL.
//
// A Fabric joins up to num_nodes() nodes. A Node lends registered memory and serves calls; a Channel, one per worker
// thread, performs verbs on the memory of any node and calls any node's handlers.
//
//   co_await channel.Read(from, buffer, 64);               // one READ, one round trip
//   co_await channel.Post(operations);                     // many verbs, one doorbell, one round trip
//   co_await channel.Call(node, kMethod, request, response, timeout);
//
// Every backend promises the following. Code above may rely on nothing else.
//
//  1. Words. Each aligned 8-byte word is read and written atomically.
//  2. Lines. The 64-byte lines of one READ or one WRITE are accessed in any order. If capabilities().line_consistent, a
//     READ returns a line as it was between two WRITEs, never a mixture. This needs each WRITE to give the line's first
//     word a value that it never had before (a version is one). Alternatively the READ returns kLineBusy as the first
//     word; the rest of the line is then undefined. A READ or WRITE of a part of a line without its first word is
//     atomic by words only. (NICs access whole lines, and the shm backend does the same. SoftRoCE does not.) If the
//     capability is false, weaker rules hold. A READ that starts with a line's first word returns kLineBusy or the
//     value that the word had both before and after the rest was read. A WRITE that starts with a line's first word
//     changes that word last. These rules suffice to read an object untorn if every writer locks its first word first,
//     as in versioned.h. A CPU that modifies a line with several stores while others may READ it first stores
//     kLineBusy, or another word that tells readers to retry, in the line's first word. It stores the final first word
//     last. Only versioned.h does this. No object may keep a word for which IsLineBusy is true as the first word of a
//     line for longer than that. Concurrent WRITEs of one line by two channels may mix.
//  3. Order. WRITEs and atomics of one channel to one node take effect in the order posted. A READ posted after them
//     sees them. An operation posted after a READ may take effect before the READ, unless it is posted after the READ
//     has completed. Operations to different nodes are unordered.
//  4. Atomics (on aligned 8-byte words) are atomic with each other. They are atomic with CPU instructions of the owner
//     only if capabilities().cpu_coherent_atomics. An atomic that races with a WRITE of the same word finds the value
//     before the WRITE, the value after it, or kLineBusy. If the atomic then modifies the word, either change may be
//     lost. So WRITE only words whose value makes every other CAS fail, such as a lock that is held.
//  5. Death. A node can die at any instruction. Verbs and calls to it then complete with Unavailable in bounded time;
//     they may or may not have taken effect. A call that passes its deadline completes with DeadlineExceeded; it, too,
//     may or may not have taken effect. Once the node is not Alive, or another process has taken its place, none of its
//     verbs takes effect, none of them keeps a line busy, and its channels are Unavailable. Two live nodes can lose
//     their connection (a cut cable, a stopped process): each then finds the other not Alive, and Alive again later. A
//     caller that must notice this names the connection of a verb or call (Node::ConnectionTo). If that connection has
//     ended, the verb or call is Unavailable and has no effect.
//  6. Rights. The first part of a node's heap, up to Node::writable_offset(), is for READs. A WRITE or an atomic there
//     is PermissionDenied for every node and changes nothing. Only the owner's CPU writes it. A NIC refuses such a verb
//     in hardware, also if another program issued it.
//
// Sizes are in bytes. READ and WRITE need 8-byte aligned remote addresses and sizes that are multiples of 8. Anything
// else is InvalidArgument, and so is a range outside the node's heap or across its two parts. Local buffers need no
// alignment and must live until the operation has completed.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "rdma/global_address.h"
#include "rdma/statistics.h"

namespace gannet::rdma {

// First word of a line that a CPU (or a backend that emulates a NIC by CPU) is modifying right now. Its top bit is the
// lock bit of every versioned object, so a reader that knows only that bit retries too.
inline constexpr uint64_t kLineBusy = ~uint64_t{0};
// Smallest value of a busy line's first word in memory. The owner's CPU may see the number of the channel that modifies
// the line in the low bits; a READ returns kLineBusy.
inline constexpr uint64_t kFirstLineBusy = ~uint64_t{0xffff};
constexpr bool IsLineBusy(uint64_t first_word) {
  return first_word >= kFirstLineBusy;
}

struct Capabilities {
  bool line_consistent = true;
  bool cpu_coherent_atomics = true;
  // READ, WRITE, CAS and FAA finish within Post (shm), so awaiting them never suspends.
  bool completes_at_once = false;
};

enum class Verb : uint8_t { kRead, kWrite, kCompareAndSwap, kFetchAndAdd };

// One verb. Plain data: a batch is an array of these.
struct Operation {
  Verb verb = Verb::kRead;
  uint32_t size = 0;
  GlobalAddress remote;
  void* local = nullptr;    // READ: destination; WRITE: source
  uint64_t expected = 0;    // CAS: value to compare with
  uint64_t operand = 0;     // CAS: new value; FAA: addend
  uint64_t result = 0;      // CAS, FAA: the value found (the CAS happened if result == expected)
  uint64_t connection = 0;  // from an earlier Node::ConnectionTo; 0: the current one

  static Operation Read(GlobalAddress from, void* to, uint32_t size) {
    return {.verb = Verb::kRead, .size = size, .remote = from, .local = to};
  }
  static Operation Write(const void* from, GlobalAddress to, uint32_t size) {
    return {.verb = Verb::kWrite, .size = size, .remote = to, .local = const_cast<void*>(from)};
  }
  static Operation CompareAndSwap(GlobalAddress word, uint64_t expected, uint64_t desired) {
    return {.verb = Verb::kCompareAndSwap, .size = 8, .remote = word, .expected = expected, .operand = desired};
  }
  static Operation FetchAndAdd(GlobalAddress word, uint64_t addend) {
    return {.verb = Verb::kFetchAndAdd, .size = 8, .remote = word, .operand = addend};
  }
};

using MethodId = uint16_t;
// Methods are numbered by the layer that owns them, so that none collide: rdma 0-63, index 64-255, txn 256-511,
// tpcc 512-767, ycsb 768-1023, cluster 1024-1279, other programs 4096-59999, tests from 60000.

inline constexpr size_t kMaxMessageBytes = 128 * 1024;  // of a request or a response, each

// Size of the part of a node's heap that others can only READ (6), in percent. The indexes of TPC-C need a seventh of
// the heap at first and a fifth as they grow; a B+tree over the smallest records needs a third.
inline constexpr uint32_t kDefaultReadOnlyPercent = 25;

// A method's code. It runs on a server thread, or on a worker that serves between its coroutines, and possibly on
// several threads at once: it must be thread-safe. It may wait for verbs, but not for calls. It reads `request` (valid
// in the call, untrusted: check lengths), writes at most response.size() bytes and returns their number. The caller
// receives an error status unchanged.
using Handler =
    std::function<StatusOr<size_t>(NodeId caller, std::span<const std::byte> request, std::span<std::byte> response)>;

// What an activity, such as one access of a transaction, awaited on a channel: see Channel::Measure.
struct Activity {
  uint64_t postings = 0;  // batches of READs, WRITEs and atomics
  uint64_t calls = 0;
  uint64_t posting_nanos = 0;  // from postings to their completions
  uint64_t late_nanos = 0;     // from completions to the resumptions of their waiters: others ran on the worker
};

// State of an operation in flight, shared by its awaiter and the backend. The backend sets `status` and calls
// Deliver, which resumes `waiter`, from Channel::Poll, on the channel's thread. The waiter may be resumed long after
// the completion. So a backend that knows more says when the operation completed, by the node's NowNanos: after
// `done_after`, and not after `done_before`. The two are equal if it knows the time exactly. 0: it does not know.
class Channel;
struct Completion {
  Status status;
  size_t response_bytes = 0;
  std::coroutine_handle<> waiter;  // null: see Channel::PostAlone
  Channel* channel = nullptr;      // of the waiter
  bool done = false;               // delivered, if there is no waiter
  uint64_t done_after = 0;
  uint64_t done_before = 0;
};

struct CallRequest {
  NodeId node;
  MethodId method;
  std::span<const std::byte> request;
  std::span<std::byte> response;
  absl::Duration timeout;
  uint64_t connection = 0;  // see Operation::connection
};

// Called by backends when the completion is complete.
inline void Deliver(Completion* completion);

// The common part of the awaiters below.
class ChannelAwaiter {
 public:
  inline void await_suspend(std::coroutine_handle<> waiter) noexcept;

 protected:
  explicit ChannelAwaiter(Channel* channel) : channel_(channel) {}
  // Called before the operation is submitted and when its waiter continues. `kind`: Activity::postings or ::calls.
  inline void Begin();
  void End(uint64_t Activity::*kind) {
    if (activity_ != nullptr) [[unlikely]]
      Measure(kind);
  }

  Channel* channel_;
  Completion completion_;

 private:
  // These are called only if an activity is measured.
  void NoteBegin();
  void Measure(uint64_t Activity::*kind);

  Activity* activity_ = nullptr;  // the one that awaits this, if it is measured
  uint64_t begun_nanos_ = 0;
};

// Awaiting a batch returns its first error, or Ok. After an error each of the other operations may or may not have
// taken effect.
class [[nodiscard]] BatchAwaiter : public ChannelAwaiter {
 public:
  BatchAwaiter(Channel* channel, std::span<Operation> operations) : ChannelAwaiter(channel), operations_(operations) {}
  inline bool await_ready();
  Status await_resume() {
    End(&Activity::postings);
    return std::move(completion_.status);
  }

 private:
  std::span<Operation> operations_;
};

// READ or WRITE: awaiting returns a Status.
class [[nodiscard]] OperationAwaiter : public ChannelAwaiter {
 public:
  OperationAwaiter(Channel* channel, const Operation& operation) : ChannelAwaiter(channel), operation_(operation) {}
  inline bool await_ready();
  Status await_resume() {
    End(&Activity::postings);
    return std::move(completion_.status);
  }

 protected:
  Operation operation_;
};

// CAS or FAA: awaiting returns the value found.
class [[nodiscard]] AtomicAwaiter : public OperationAwaiter {
 public:
  using OperationAwaiter::OperationAwaiter;
  StatusOr<uint64_t> await_resume() {
    End(&Activity::postings);
    if (!completion_.status.ok()) return std::move(completion_.status);
    return operation_.result;
  }
};

// CALL: awaiting returns the number of bytes of the response, or the error of the handler or of the fabric.
class [[nodiscard]] CallAwaiter : public ChannelAwaiter {
 public:
  CallAwaiter(Channel* channel, const CallRequest& call) : ChannelAwaiter(channel), call_(call) {}
  inline bool await_ready();
  StatusOr<size_t> await_resume() {
    End(&Activity::calls);
    if (!completion_.status.ok()) return std::move(completion_.status);
    return completion_.response_bytes;
  }

 private:
  CallRequest call_;
};

// Access of one worker thread to every node's memory. Not thread-safe. If a channel is destroyed, coroutines that wait
// for its calls are never resumed.
class Channel {
 public:
  virtual ~Channel() = default;

  OperationAwaiter Read(GlobalAddress from, void* to, uint32_t size) { return {this, Operation::Read(from, to, size)}; }
  OperationAwaiter Write(const void* from, GlobalAddress to, uint32_t size) {
    return {this, Operation::Write(from, to, size)};
  }
  AtomicAwaiter CompareAndSwap(GlobalAddress word, uint64_t expected, uint64_t desired) {
    return {this, Operation::CompareAndSwap(word, expected, desired)};
  }
  AtomicAwaiter FetchAndAdd(GlobalAddress word, uint64_t addend) {
    return {this, Operation::FetchAndAdd(word, addend)};
  }
  // Posts all operations, with one doorbell per node. `operations` must live until the await returns.
  BatchAwaiter Post(std::span<Operation> operations) { return {this, operations}; }

  // Runs `method` at `node` (which may be this channel's own) and waits for its response.
  CallAwaiter Call(NodeId node, MethodId method, std::span<const std::byte> request, std::span<std::byte> response,
                   absl::Duration timeout = kDefaultCallTimeout, uint64_t connection = 0) {
    return {this, CallRequest{node, method, request, response, timeout, connection}};
  }
  static constexpr absl::Duration kDefaultCallTimeout = absl::Seconds(5);

  // While an Alone exists, no coroutine is resumed that waits on this channel: a thread that holds a lock for which
  // threads of other nodes wait, without yielding, must not begin to wait for another such lock. At its end those are
  // resumed whose verbs have completed meanwhile. In between, the running coroutine posts by PostAlone, which returns
  // when all operations have completed, and awaits nothing. What is posted so is not part of an Activity. There is at
  // most one at a time.
  class Alone {
   public:
    explicit Alone(Channel* channel) : channel_(channel) { channel_->alone_ = true; }
    ~Alone() { channel_->EndAlone(); }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    Channel* channel_;
  };
  Status PostAlone(std::span<Operation> operations);
  bool is_alone() const { return alone_; }

  // Delivers completions by resuming their waiters, and returns their number. The worker calls it between coroutines.
  virtual size_t Poll() = 0;

  NodeId node() const { return node_; }
  // Number of this channel within its node, 0-based: (node, index) names a worker in the whole cluster.
  uint16_t index() const { return index_; }
  const Capabilities& capabilities() const { return capabilities_; }

  // Pointer to `address` if it lies in this channel's own node, for direct access (the local path); null otherwise.
  std::byte* Local(GlobalAddress address) const {
    return address.node() == node_ ? memory_ + address.offset() : nullptr;
  }

  const VerbCounters& counters() const { return counters_; }
  // Called by readers of versioned objects: they discarded one more READ because it was torn or locked.
  void CountRetry() { ++counters_.retries; }

  // Begins a measurement: from now on the sums of *activity grow with everything that the running coroutine awaits on
  // this channel, and with what the coroutines that it calls await. Null ends that. While such an await is suspended,
  // other coroutines are not measured, or are for activities of their own. Before the coroutine suspends in any other
  // way (Worker::Yield) it ends the measurement, and begins again when it continues. Returns the activity measured
  // until now, or null.
  Activity* Measure(Activity* activity) { return std::exchange(activity_, activity); }

 protected:
  friend class ChannelAwaiter;
  friend class BatchAwaiter;
  friend class OperationAwaiter;
  friend class CallAwaiter;
  friend void Deliver(Completion* completion);

  Channel(NodeId node, uint16_t index, std::byte* memory, const Capabilities& capabilities)
      : node_(node), index_(index), memory_(memory), capabilities_(capabilities) {}

  // Starts the batch. True: it has finished, and completion->status is set. False: Poll() will set the status and
  // resume completion->waiter, which the awaiter sets before that.
  virtual bool Submit(std::span<Operation> operations, Completion* completion) = 0;
  virtual bool SubmitCall(const CallRequest& call, Completion* completion) = 0;

  VerbCounters counters_;

 private:
  void EndAlone();

  NodeId node_;
  uint16_t index_;
  std::byte* memory_;
  Capabilities capabilities_;
  Activity* activity_ = nullptr;  // of the running coroutine
  bool alone_ = false;
  std::vector<Completion*> deferred_;  // complete, and not delivered because of alone_
};

// This process's member of the fabric: its memory and its handlers. Thread-safe, but register handlers before Serve.
class Node {
 public:
  virtual ~Node() = default;

  virtual NodeId id() const = 0;
  // Registered memory of this node. Offsets below heap_offset() belong to the fabric. The heap is initially zero.
  virtual std::span<std::byte> memory() = 0;
  virtual uint64_t heap_offset() const = 0;
  // Begin of the part of the heap that other nodes may WRITE (heap_parts.h).
  virtual uint64_t writable_offset() const = 0;

  // Gives memory of the heap, in whole huge pages, back to the system: it is zero afterwards, and takes none of the
  // machine's memory until it is used again. False: this node's memory has to stay resident, and nothing has changed.
  virtual bool GiveBack(std::span<std::byte> pages) {
    (void)pages;
    return false;
  }

  // Opens a channel for one worker thread. ResourceExhausted: all channels of the node are open.
  virtual StatusOr<std::unique_ptr<Channel>> OpenChannel() = 0;

  virtual void Handle(MethodId method, Handler handler) = 0;
  // Starts `threads` server threads. After a request they poll for a while, then sleep until a doorbell rings.
  virtual Status Serve(int threads) = 0;
  // Runs at most `limit` waiting requests on the calling thread and returns their number. For workers that also serve.
  virtual size_t ServePending(size_t limit) = 0;
  // Sums of the time that this node's threads have spent on calls so far.
  virtual ServedTime served_time() const = 0;
  // Number of this node's connection to `peer`, or to itself. It changes whenever the two may have lost each other, or
  // another process has taken the peer's place (its own place: it has died). 0: there is no connection.
  virtual uint64_t ConnectionTo(NodeId peer) const = 0;
  // Ends `connection` (not 0), because a node has found dead the `peer` that it leads to. True: the connection has
  // ended, and no verb that was posted over it takes effect in this node's memory any more. On a fabric whose nodes
  // agree on which nodes are alive, the connection ends with the peer. On any other fabric this call cuts it; a live
  // `peer` may then come back over a new connection. False: call again.
  virtual bool CutOff(NodeId peer, uint64_t connection) = 0;

  // Leaves the fabric cleanly: stops the server threads and answers waiting requests with Unavailable.
  virtual void Shutdown() = 0;

  GlobalAddress AddressOf(const void* pointer) {
    return GlobalAddress(id(), static_cast<uint64_t>(static_cast<const std::byte*>(pointer) - memory().data()));
  }
};

class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual const Capabilities& capabilities() const = 0;
  virtual int num_nodes() const = 0;
  // Takes the place of node `id`. FailedPrecondition: a live process has it.
  virtual StatusOr<std::unique_ptr<Node>> Attach(NodeId id) = 0;
  // False once `id` has left or is known to have died (its process has ended).
  virtual bool Alive(NodeId id) const = 0;
  // Waits until all nodes are attached.
  virtual Status WaitForAll(absl::Duration timeout) = 0;
};

inline void ChannelAwaiter::Begin() {
  activity_ = channel_->activity_;
  if (activity_ != nullptr) [[unlikely]]
    NoteBegin();
}

inline void Deliver(Completion* completion) {
  if (completion->waiter == nullptr) {
    completion->done = true;
  } else if (completion->channel->alone_) [[unlikely]] {
    completion->channel->deferred_.push_back(completion);
  } else {
    completion->waiter.resume();
  }
}

inline void ChannelAwaiter::await_suspend(std::coroutine_handle<> waiter) noexcept {
  completion_.waiter = waiter;
  completion_.channel = channel_;
  if (activity_ != nullptr) [[unlikely]]
    channel_->activity_ = nullptr;
}

inline bool BatchAwaiter::await_ready() {
  Begin();
  return channel_->Submit(operations_, &completion_);
}
inline bool OperationAwaiter::await_ready() {
  Begin();
  return channel_->Submit({&operation_, 1}, &completion_);
}
inline bool CallAwaiter::await_ready() {
  Begin();
  return channel_->SubmitCall(call_, &completion_);
}

}  // namespace gannet::rdma
