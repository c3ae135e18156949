// A node of the shm fabric, in the process that lends it.
#pragma once

#include <memory>
#include <span>

#include "rdma/fabric.h"
#include "rdma/shm/call_server.h"
#include "rdma/shm/channel_numbers.h"
#include "rdma/shm/region.h"

namespace gannet::rdma::shm {

// Sets the node's phase to `phase` if its state word is still `node_word`, and wakes its server threads. False if the
// word has changed.
bool EndAttachment(Region* region, NodeId node, uint64_t node_word, NodePhase phase);

class ShmNode final : public Node {
 public:
  ShmNode(std::shared_ptr<Region> region, NodeId id, uint64_t node_word);
  ~ShmNode() override;

  NodeId id() const override { return id_; }
  std::span<std::byte> memory() override { return {region_->memory(id_), region_->bytes_per_node()}; }
  uint64_t heap_offset() const override { return kHeapOffset; }
  uint64_t writable_offset() const override { return region_->writable_offset(); }

  bool GiveBack(std::span<std::byte> pages) override { return region_->GiveBack(pages); }

  StatusOr<std::unique_ptr<Channel>> OpenChannel() override;
  void Handle(MethodId method, Handler handler) override;
  Status Serve(int threads) override;
  size_t ServePending(size_t limit) override { return server_.ServePending(limit, ServingMeter::By::kWorker); }
  ServedTime served_time() const override { return server_.served_time(); }
  // The state word: attached, for which time.
  uint64_t ConnectionTo(NodeId peer) const override;
  bool CutOff(NodeId peer, uint64_t connection) override { return ConnectionTo(peer) != connection; }
  void Shutdown() override;

 private:
  std::shared_ptr<Region> region_;
  std::shared_ptr<ChannelNumbers> numbers_ = std::make_shared<ChannelNumbers>();
  NodeId id_;
  uint64_t node_word_;
  CallServer server_;
};

}  // namespace gannet::rdma::shm
