// The program on the nodes that the conformance suite does not drive itself: it answers a few methods, and runs jobs in
// threads of its own that access memory concurrently with the test.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/thread.h"
#include "rdma/fabric.h"

namespace gannet::rdma::conformance {

// Methods. Requests and responses are encoded by rdma/rpc.h.
inline constexpr MethodId kEcho = 60000;   // answers with the request
inline constexpr MethodId kFail = 60001;   // {u32 status code, string message}: fails with this status
inline constexpr MethodId kStall = 60002;  // {u64 offset}: answers when the word there, in its own memory, is not zero
inline constexpr MethodId kPattern = 60003;   // {u32 bytes, u8 first}: answers with bytes that count up from `first`
inline constexpr MethodId kSum = 60004;       // answers with {u64 sum of the request's bytes}
inline constexpr MethodId kStartJob = 60005;  // {Job}: starts a thread
inline constexpr MethodId kJobs = 60006;      // answers {u64 running, u64 violations found by jobs so far}
inline constexpr MethodId kCaller = 60007;    // answers {u16 caller}
inline constexpr MethodId kNobody = 60099;    // has no handler

enum class JobKind : uint8_t {
  kWriteWord,            // WRITEs one word, all of whose bytes are equal
  kWriteLines,           // WRITEs `lines` lines; all words of a line are equal, and grow
  kWriteVersioned,       // locks, WRITEs and unlocks a versioned object whose data bytes are all equal
  kWriteVersionedByCpu,  // the same by the CPU of the object's owner, which the peer must be
  kInstallLine,          // locks a versioned object of one line, then WRITEs it with its new, unlocked state
  kFetchAndAdd,          // adds one by FAA
  kCompareAndSwap,       // adds one by CAS, retried until it succeeds
  kFetchAndAddByCpu,     // adds one by the owner's CPU
  kCheckOrder,  // by the owner's CPU: loads the word at `target`, then the one a line later, which must not be smaller
};

struct Job {
  JobKind kind = JobKind::kWriteWord;
  GlobalAddress target;
  uint64_t count = 0;
  uint32_t lines = 1;
};

// Each data byte of an object that kWriteVersioned writes, at version v.
constexpr std::byte VersionedByte(uint64_t version) {
  return static_cast<std::byte>(version * 37 + 1);
}

class FabricPeer {
 public:
  // Takes node `id` of `fabric`, which must outlive this, and serves.
  FabricPeer(Fabric* fabric, NodeId id);
  ~FabricPeer();

 private:
  void Register();
  void Start(const Job& job);

  Fabric* fabric_;
  NodeId id_;
  std::unique_ptr<Node> node_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> running_ = 0;
  std::atomic<uint64_t> violations_ = 0;
  std::vector<Thread> jobs_;
};

}  // namespace gannet::rdma::conformance
