// A worker's channel on the verbs fabric: a lane to each node, one completion queue for all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rdma/fabric.h"
#include "rdma/verbs/call_client.h"
#include "rdma/verbs/lane.h"
#include "rdma/verbs/node_parts.h"
#include "rdma/verbs/staging.h"

namespace gannet::rdma::verbs {

class VerbsChannel final : public Channel, private Lane::Listener {
 public:
  static StatusOr<std::unique_ptr<Channel>> Open(std::shared_ptr<NodeParts> parts, uint16_t index);
  ~VerbsChannel() override;

  size_t Poll() override;

 protected:
  bool Submit(std::span<Operation> operations, Completion* completion) override;
  bool SubmitCall(const CallRequest& call, Completion* completion) override;

 private:
  VerbsChannel(std::shared_ptr<NodeParts> parts, uint16_t index);
  // Time at which a node's link was first seen down; 0: it is not down.
  struct Trouble {
    uint64_t since_ns = 0;
    uint64_t next_try_ns = 0;
  };

  Status MakeQueue();

  const control::Agent& agent() const { return *parts_->core->agent; }
  bool Admits(const Operation& operation) const;
  bool IsConnected(NodeId node, uint64_t connection);
  Lane& lane(NodeId node) { return lanes_[node]; }
  bool busy() const { return unfinished_batches_ > 0 || !calls_.idle(); }

  // Called before new work is added: ends the work of an earlier session with that node.
  void Refresh(Lane* lane);
  // Makes sure that the lane has a link that is up or connecting.
  void Connect(Lane* lane);
  // Continues the work that waits in this lane.
  void Tend(Lane* lane, uint64_t now);
  // Does what Tend does, if the lane's link is down or its queue pair broke.
  void TendBroken(Lane* lane, uint64_t now);
  size_t TakeCompletions();
  // Called when nothing has completed. If this has lasted long enough, the thread sleeps until something completes.
  void Rest(uint64_t now);
  void Take(const ibv_wc& completion);
  Status TakeReceived(Lane* lane, const ibv_wc& completion, uint32_t buffer);
  // Ends a link that is unusable, and all work that waits for the node.
  void Break(Lane* lane, const std::string& why);
  Batch* NewBatch(Completion* completion);
  void FinishBatch(Batch* batch) override;

  std::shared_ptr<NodeParts> parts_;
  Staging staging_;
  CompletionEvents events_;  // null: this channel never sleeps
  CompletionQueue cq_;
  std::vector<Lane> lanes_;        // by node
  std::vector<Trouble> troubles_;  // by node
  std::vector<Completion*> finished_;
  CallClient calls_;
  std::vector<std::unique_ptr<Batch>> batches_;
  std::vector<Batch*> free_batches_;
  size_t unfinished_batches_ = 0;
  uint32_t next_link_ = 1;
  uint64_t next_deadline_check_ns_ = 0;
  uint64_t polled_ns_ = 0;      // when Poll last looked for completions
  uint64_t idle_since_ns_ = 0;  // start of the wait for operations in flight; 0: not waiting
};

}  // namespace gannet::rdma::verbs
