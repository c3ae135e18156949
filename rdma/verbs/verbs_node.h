// A node of the verbs fabric, in the process that lends it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rdma/fabric.h"
#include "rdma/verbs/node_parts.h"

namespace gannet::rdma::verbs {

// Makes the parts of node `id` and announces it to the cluster.
StatusOr<std::shared_ptr<NodeParts>> StartNode(const VerbsOptions& options, const ClusterMap& map, NodeId id);

class VerbsNode final : public Node {
 public:
  explicit VerbsNode(std::shared_ptr<NodeParts> parts) : parts_(std::move(parts)) {}
  ~VerbsNode() override { Shutdown(); }

  NodeId id() const override { return parts_->core->id(); }
  std::span<std::byte> memory() override { return parts_->core->memory(); }
  uint64_t heap_offset() const override { return kHeapOffset; }
  uint64_t writable_offset() const override { return parts_->core->range(id()).writable_offset; }

  StatusOr<std::unique_ptr<Channel>> OpenChannel() override;
  void Handle(MethodId method, Handler handler) override { parts_->server->Handle(method, std::move(handler)); }
  Status Serve(int threads) override;
  size_t ServePending(size_t limit) override { return parts_->server->ServePending(limit); }
  ServedTime served_time() const override { return parts_->server->served_time(); }
  uint64_t ConnectionTo(NodeId peer) const override {
    return peer < parts_->core->num_nodes() ? parts_->core->agent->generation(peer) : 0;
  }
  bool CutOff(NodeId peer, uint64_t connection) override {
    return peer >= parts_->core->num_nodes() || parts_->core->agent->CutOff(peer, connection);
  }
  void Shutdown() override;

 private:
  std::shared_ptr<NodeParts> parts_;
};

}  // namespace gannet::rdma::verbs
