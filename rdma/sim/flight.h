// A one-sided verb in flight: it arrives at its target's NIC, accesses memory, and its answer returns. Each step is an
// event, so other events take place between the steps.
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
  uint64_t luck = 0;  // of the posting, if round trips have a spread

  Status ToStatus() const;
};

class Flight final : public Happening {
 public:
  explicit Flight(FabricCore* core) : core_(core) {}

  // Leaves the issuer's NIC. `channel` is told when the verb has returned, unless the channel calls Forget before.
  void Depart(SimChannel* channel, Operation* operation, Attachment* from, Attachment* to, Batch* batch);
  // The channel is gone: no memory of the issuer may be touched from now on.
  void Forget() { channel_ = nullptr; }

  void Happen() override;
  Batch* batch() const { return batch_; }
  Failure failure() const { return failure_; }
  Verb verb() const { return verb_; }
  NodeId target() const { return to_->id; }

  // Neighbours in the channel's list.
  Flight* next = nullptr;
  Flight* previous = nullptr;

 private:
  enum class Stage : uint8_t { kArrive, kAccess, kWriteBack, kReturn };
  // One line of the operation, and the time of its access.
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
  // Tells the issuer at `at`, or later if the answer needs longer.
  void Fail(Failure failure, uint64_t at);
  void Return();

  bool IssuerIsDead() const { return from_->phase == Attachment::Phase::kDead; }
  bool IsFenced() const;
  // True if the connection is still the one over which the verb was sent.
  bool Connected() const;
  bool BreaksHere();
  // The time from the load to the store of an atomic that is not coherent with the CPU.
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
  uint64_t late_ = 0;      // by the spread of round trips
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
