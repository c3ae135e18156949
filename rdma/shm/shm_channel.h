// A worker's channel on the shm fabric: the one-sided verbs, by the caller's CPU.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "rdma/fabric.h"
#include "rdma/shm/adversary.h"
#include "rdma/shm/call_client.h"
#include "rdma/shm/channel_numbers.h"
#include "rdma/shm/line_copy.h"
#include "rdma/shm/region.h"
#include "rdma/verb_check.h"

namespace gannet::rdma::shm {

class ShmChannel final : public Channel {
 public:
  ShmChannel(std::shared_ptr<Region> region, std::shared_ptr<ChannelNumbers> numbers, NodeId node, uint16_t index,
             uint64_t node_word);
  ~ShmChannel() override;

  size_t Poll() override { return calls_.Poll(); }

 protected:
  bool Submit(std::span<Operation> operations, Completion* completion) override;
  bool SubmitCall(const CallRequest& call, Completion* completion) override;

 private:
  bool OwnNodeIsThere() const { return own_word_->load(std::memory_order_acquire) == node_word_; }
  // True if `operation` is allowed and its node is attached.
  bool Admits(const Operation& operation) const;
  // True if the connection is still the named one, or if none is named.
  bool IsConnected(NodeId node, uint64_t connection) const {
    return connection == 0 || region_->control(node).word.load(std::memory_order_acquire) == connection;
  }
  std::byte* At(GlobalAddress address) const { return memory_ + address.node() * memory_stride_ + address.offset(); }
  void Run(Operation& operation);
  void RunAdversarially(std::span<Operation> operations);

  std::shared_ptr<Region> region_;
  std::shared_ptr<ChannelNumbers> numbers_;
  const std::atomic<uint64_t>* own_word_;
  uint64_t node_word_;  // of the attachment this channel belongs to
  std::byte* memory_;   // of node 0
  uint64_t memory_stride_;
  VerbRange range_;
  LineWriter writer_;
  std::optional<Adversary> adversary_;
  CallClient calls_;
};

}  // namespace gannet::rdma::shm
