// A one-sided verb under way: it arrives at its target's NIC, accesses memory, and its answer comes back. Each is an
// event, so what happens between them happens between them.
#pragma once

#include <cstdint>
#include <vector>

#include "rdma/fabric.h"
#include "rdma/sim/fabric_core.h"

namespace gannet::rdma::sim {

// Why a verb failed.
enum class Failure : uint8_t { kNone, kGone, kDisconnected, kCut };

// The verbs of one Submit.
struct Batch {
  Completion* completion = nullptr;
  size_t missing = 0;
  Failure failure = Failure::kNone;
  Verb failed_verb = Verb::kRead;
  NodeId failed_node = 0;

  Status ToStatus() const;
};

class Flight final : public Happening {
 public:
  explicit Flight(FabricCore* core) : core_(core) {}

  // Leaves its NIC. `channel` is told when it is back, unless it forgets about it before.
  void Depart(SimChannel* channel, Operation* operation, Attachment* from, Attachment* to, Batch* batch);
  // The channel is gone: nothing of the issuer's may be touched any more.
  void Forget() { channel_ = nullptr; }

  void Happen() override;
  Batch* batch() const { return batch_; }
  Failure failure() const { return failure_; }
  Verb verb() const { return verb_; }
  NodeId target() const { return to_->id; }

  // In the channel's list.
  Flight* next = nullptr;
  Flight* previous = nullptr;

 private:
  enum class Stage : uint8_t { kArrive, kAccess, kWriteBack, kReturn };
  // A line of the operation, and when it is accessed.
  struct LineAccess {
    uint32_t begin;  // in bytes of the operation
    uint32_t end;
    uint64_t at;
  };

  void Post(uint64_t at, Stage stage);
  void Arrive();
  void Scatter(uint64_t start);
  void Access();
  void AccessAtomically();
  void AccessBytes(uint32_t begin, uint32_t end);
  void SendAnswer();
  // The issuer is told, but not before `at`.
  void Fail(Failure failure, uint64_t at);
  void Return();

  bool IssuerIsDead() const { return from_->phase == Attachment::Phase::kDead; }
  bool IsFenced() const;
  // Is the connection still the one it was sent over?
  bool Connected() const;
  bool BreaksHere();
  // Of an atomic that is not coherent with the CPU: from its load to its store.
  uint64_t WriteBackNanos() const { return core_->options().nic.same_word_nanos / 2; }
  std::byte* At() const { return to_->memory.data() + offset_; }
  void TraceAccess();

  FabricCore* core_;
  SimChannel* channel_ = nullptr;
  Attachment* from_ = nullptr;
  Attachment* to_ = nullptr;
  Batch* batch_ = nullptr;
  Operation* operation_ = nullptr;
  uint64_t offset_ = 0;
  uint64_t departed_ = 0;  // nanoseconds
  uint64_t new_value_ = 0;
  uint32_t size_ = 0;
  uint32_t connection_ = 0;
  Verb verb_ = Verb::kRead;
  Stage stage_ = Stage::kArrive;
  Failure failure_ = Failure::kNone;
  size_t next_line_ = 0;
  std::vector<LineAccess> lines_;  // empty: all at once
};

}  // namespace gannet::rdma::sim
