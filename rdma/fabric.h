// START HERE: the contract of READ / WRITE / CAS / FAA / CALL.
//
// A Fabric joins up to num_nodes() nodes. A Node lends registered memory and serves calls; a Channel, one per worker
// thread, performs verbs on the memory of any node and calls any node's handlers.
//
//   co_await channel.Read(from, buffer, 64);               // one READ, one round trip
//   co_await channel.Post(operations);                     // many verbs, one doorbell, one round trip
//   co_await channel.Call(node, kMethod, request, response, timeout);
//
// What code above may rely on, on every backend, and nothing else:
//
//  1. Words. An aligned 8-byte word is read and written whole.
//  2. Lines. The 64-byte lines of one READ or one WRITE are accessed in any order. If capabilities().line_consistent, a
//     READ returns a line as it was between two WRITEs, never a mixture, provided that each WRITE gives the line's
//     first word a value that it never had before (a version does); or it returns kLineBusy as the first word, and then
//     the rest means nothing. A READ or WRITE of a part of a line without its first word is consistent by words only.
//     (NICs access whole lines; shm makes it so. SoftRoCE does not.) Where it is false, this much holds: a READ that
//     starts with a line's first word returns as that word what stood there both before and after all the rest was
//     read, or kLineBusy; a WRITE that starts with one changes it last. That is enough to read an object untorn if all
//     who write it lock its first word before, as versioned.h has it. A CPU that modifies a line with several stores
//     while others may READ it must first store kLineBusy, or another word that tells readers to retry, in the line's
//     first word, and the final first word last: see versioned.h, the one place that does it. No object may keep
//     a word that IsLineBusy as the first of a line for longer than that. WRITEs of one line by two channels at once
//     may mix.
//  3. Order. WRITEs and atomics of one channel to one node take effect in the order posted; a READ posted after them
//     sees them. An operation posted after a READ may take effect before it, unless it waits for the READ's completion.
//     Operations to different nodes are unordered.
//  4. Atomics (on aligned 8-byte words) are atomic with each other. With CPU instructions of the owner they are atomic
//     only if capabilities().cpu_coherent_atomics. An atomic on a word that somebody WRITEs finds it as it was before,
//     as it is after, or kLineBusy. If it modifies the word then, either change may be lost: so WRITE only words whose
//     value makes every other CAS fail, such as a lock that is held.
//  5. Death. A node can die at any instruction. Verbs and calls to it then complete with Unavailable in bounded time;
//     what they were to do may have been done or not. A call's deadline gives DeadlineExceeded, with the same doubt.
//     Once it is not Alive, or another has its place, no verb of it takes effect, no line is busy with one, and its
//     channels are Unavailable. Two nodes that live may lose each other, too (a cut cable, a process that stands
//     still): each finds the other not Alive then, and Alive again later. Whoever must not go on as if nothing had
//     happened says over which connection a verb or call is to go (Node::ConnectionTo); it is Unavailable, and not
//     done, if that is no more.
//  6. Rights. The first part of a node's heap, up to Node::writable_offset(), is for READs: a WRITE or an atomic there,
//     whoever posts it, is PermissionDenied and changes nothing. Only the owner's CPU writes it. A card refuses such a
//     verb itself, also if its issuer is not this program.
//
// Sizes are in bytes. READ and WRITE need 8-byte aligned remote addresses and sizes that are multiples of 8; anything
// else, or a range outside the node's heap or across its two parts, is InvalidArgument. Local buffers need no alignment
// and must live until the operation completed.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/time/time.h"
#include "base/status.h"
#include "rdma/counters.h"
#include "rdma/global_address.h"

namespace gannet::rdma {

// First word of a line that a CPU (or a backend that emulates a NIC by CPU) is modifying right now. Its top bit is the
// lock bit of every versioned object, so a reader that knows only that bit retries too.
inline constexpr uint64_t kLineBusy = ~uint64_t{0};
// In memory, as the owner's CPU sees it, the last bits may tell which channel is at it; a READ gives kLineBusy.
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
  uint64_t connection = 0;  // Node::ConnectionTo of earlier; 0: whichever there is

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
// Methods are numbered by the layer that owns them, so that none collides: rdma 0-63, index 64-255, txn 256-511,
// tpcc 512-767, ycsb 768-1023, tests from 60000.

inline constexpr size_t kMaxMessageBytes = 128 * 1024;  // of a request or a response, each

// Runs on a server thread, or on a worker that serves between its coroutines, and maybe on several at once: must be
// thread-safe, and must not wait for other nodes. Reads
// `request` (valid during the call, untrusted: check lengths), writes at most response.size() bytes and returns how
// many. An error status travels to the caller as it is.
using Handler =
    std::function<StatusOr<size_t>(NodeId caller, std::span<const std::byte> request, std::span<std::byte> response)>;

// What an awaiter and a backend share about an operation in flight. The backend sets `status` and resumes `waiter` from
// Channel::Poll, on the channel's thread.
struct Completion {
  Status status;
  size_t response_bytes = 0;
  std::coroutine_handle<> waiter;
};

struct CallRequest {
  NodeId node;
  MethodId method;
  std::span<const std::byte> request;
  std::span<std::byte> response;
  absl::Duration timeout;
  uint64_t connection = 0;  // as Operation::connection
};

class Channel;

// Awaiting gives the first error of the batch, or Ok. After an error the other operations may have happened or not.
class [[nodiscard]] BatchAwaiter {
 public:
  BatchAwaiter(Channel* channel, std::span<Operation> operations) : channel_(channel), operations_(operations) {}
  inline bool await_ready();
  void await_suspend(std::coroutine_handle<> waiter) noexcept { completion_.waiter = waiter; }
  Status await_resume() { return std::move(completion_.status); }

 private:
  Channel* channel_;
  std::span<Operation> operations_;
  Completion completion_;
};

// READ or WRITE: awaiting gives Status.
class [[nodiscard]] OperationAwaiter {
 public:
  OperationAwaiter(Channel* channel, const Operation& operation) : channel_(channel), operation_(operation) {}
  inline bool await_ready();
  void await_suspend(std::coroutine_handle<> waiter) noexcept { completion_.waiter = waiter; }
  Status await_resume() { return std::move(completion_.status); }

 protected:
  Channel* channel_;
  Operation operation_;
  Completion completion_;
};

// CAS or FAA: awaiting gives the value found.
class [[nodiscard]] AtomicAwaiter : public OperationAwaiter {
 public:
  using OperationAwaiter::OperationAwaiter;
  StatusOr<uint64_t> await_resume() {
    if (!completion_.status.ok()) return std::move(completion_.status);
    return operation_.result;
  }
};

// CALL: awaiting gives the number of bytes of the response, or the handler's or the fabric's error.
class [[nodiscard]] CallAwaiter {
 public:
  CallAwaiter(Channel* channel, const CallRequest& call) : channel_(channel), call_(call) {}
  inline bool await_ready();
  void await_suspend(std::coroutine_handle<> waiter) noexcept { completion_.waiter = waiter; }
  StatusOr<size_t> await_resume() {
    if (!completion_.status.ok()) return std::move(completion_.status);
    return completion_.response_bytes;
  }

 private:
  Channel* channel_;
  CallRequest call_;
  Completion completion_;
};

// One worker thread's way to every node's memory. Not thread-safe. A coroutine that waits for a call is never resumed
// if its channel is destroyed first.
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
  // All operations with one doorbell per node. `operations` must live until the await returns.
  BatchAwaiter Post(std::span<Operation> operations) { return {this, operations}; }

  // Runs `method` at `node` (which may be this channel's own) and waits for its response.
  CallAwaiter Call(NodeId node, MethodId method, std::span<const std::byte> request, std::span<std::byte> response,
                   absl::Duration timeout = kDefaultCallTimeout, uint64_t connection = 0) {
    return {this, CallRequest{node, method, request, response, timeout, connection}};
  }
  static constexpr absl::Duration kDefaultCallTimeout = absl::Seconds(5);

  // Delivers completions, resuming their waiters, and returns how many. The worker calls it between coroutines.
  virtual size_t Poll() = 0;

  NodeId node() const { return node_; }
  // Number of this channel within its node, 0-based: (node, index) names a worker in the whole cluster.
  uint16_t index() const { return index_; }
  const Capabilities& capabilities() const { return capabilities_; }

  // Where `address` lies for direct access, if it is in this channel's own node; else null. This is the local path.
  std::byte* Local(GlobalAddress address) const {
    return address.node() == node_ ? memory_ + address.offset() : nullptr;
  }

  const VerbCounters& counters() const { return counters_; }
  // For the readers of versioned objects: one more READ was thrown away because it was torn or locked.
  void CountRetry() { ++counters_.retries; }

 protected:
  friend class BatchAwaiter;
  friend class OperationAwaiter;
  friend class CallAwaiter;

  Channel(NodeId node, uint16_t index, std::byte* memory, const Capabilities& capabilities)
      : node_(node), index_(index), memory_(memory), capabilities_(capabilities) {}

  // Starts the batch. True: it is finished and completion->status is set. False: Poll() will set it and resume
  // completion->waiter (set by then).
  virtual bool Submit(std::span<Operation> operations, Completion* completion) = 0;
  virtual bool SubmitCall(const CallRequest& call, Completion* completion) = 0;

  VerbCounters counters_;

 private:
  NodeId node_;
  uint16_t index_;
  std::byte* memory_;
  Capabilities capabilities_;
};

// What this process lends to the others. Thread-safe, except that handlers are registered before Serve.
class Node {
 public:
  virtual ~Node() = default;

  virtual NodeId id() const = 0;
  // Registered memory of this node. Offsets below heap_offset() belong to the fabric; the heap is zero at first.
  virtual std::span<std::byte> memory() = 0;
  virtual uint64_t heap_offset() const = 0;
  // Where the part of the heap begins that others may WRITE (heap_parts.h).
  virtual uint64_t writable_offset() const = 0;

  // A channel for one worker thread. Fails with ResourceExhausted when the node has given out all of them.
  virtual StatusOr<std::unique_ptr<Channel>> OpenChannel() = 0;

  virtual void Handle(MethodId method, Handler handler) = 0;
  // Starts `threads` server threads. They poll for a while after work, then sleep until a doorbell rings.
  virtual Status Serve(int threads) = 0;
  // Runs at most `limit` waiting requests on the calling thread and returns how many. For workers that serve too.
  virtual size_t ServePending(size_t limit) = 0;
  // Names this node's connection to `peer`: another number whenever they may have lost each other since, or the other
  // is another process. 0: there is none.
  virtual uint64_t ConnectionTo(NodeId peer) const = 0;
  // Somebody has found dead the `peer` that `connection` leads to (not 0). True: it has ended, and no verb that was
  // posted over it takes effect in this node's memory any more. A fabric whose nodes agree about who lives ends it with
  // the peer. One where they may not cuts it; if `peer` lives, it may come back by another. False: ask again.
  virtual bool CutOff(NodeId peer, uint64_t connection) = 0;

  // Leaves the fabric in order: stops the server threads, answers what waits with Unavailable.
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
  // Takes the place of node `id`. FailedPrecondition if it is taken by someone alive.
  virtual StatusOr<std::unique_ptr<Node>> Attach(NodeId id) = 0;
  // False once `id` has left or is known to have died (its process is gone).
  virtual bool Alive(NodeId id) const = 0;
  // Waits until all nodes are attached.
  virtual Status WaitForAll(absl::Duration timeout) = 0;
};

inline bool BatchAwaiter::await_ready() {
  return channel_->Submit(operations_, &completion_);
}
inline bool OperationAwaiter::await_ready() {
  return channel_->Submit({&operation_, 1}, &completion_);
}
inline bool CallAwaiter::await_ready() {
  return channel_->SubmitCall(call_, &completion_);
}

}  // namespace gannet::rdma
