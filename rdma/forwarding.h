// A Fabric and a Node that forward every call to another one. A derived class overrides what is to differ: which
// capabilities the fabric claims, how its nodes count calls, what their channels lose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/status.h"
#include "rdma/fabric.h"

namespace gannet::rdma {

// Thread-safe as the inner node is.
class ForwardingNode : public Node {
 public:
  explicit ForwardingNode(std::unique_ptr<Node> inner) : inner_(std::move(inner)) {}

  NodeId id() const override { return inner_->id(); }
  std::span<std::byte> memory() override { return inner_->memory(); }
  uint64_t heap_offset() const override { return inner_->heap_offset(); }
  uint64_t writable_offset() const override { return inner_->writable_offset(); }
  StatusOr<std::unique_ptr<Channel>> OpenChannel() override { return inner_->OpenChannel(); }
  void Handle(MethodId method, Handler handler) override { inner_->Handle(method, std::move(handler)); }
  Status Serve(int threads) override { return inner_->Serve(threads); }
  size_t ServePending(size_t limit) override { return inner_->ServePending(limit); }
  ServedTime served_time() const override { return inner_->served_time(); }
  uint64_t ConnectionTo(NodeId peer) const override { return inner_->ConnectionTo(peer); }
  bool CutOff(NodeId peer, uint64_t connection) override { return inner_->CutOff(peer, connection); }
  void Shutdown() override { inner_->Shutdown(); }

 protected:
  Node& inner() { return *inner_; }

 private:
  std::unique_ptr<Node> inner_;
};

class ForwardingFabric : public Fabric {
 public:
  // `inner` must outlive this.
  explicit ForwardingFabric(Fabric* inner) : inner_(inner) {}

  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  int num_nodes() const override { return inner_->num_nodes(); }
  StatusOr<std::unique_ptr<Node>> Attach(NodeId id) override { return inner_->Attach(id); }
  bool Alive(NodeId id) const override { return inner_->Alive(id); }
  Status WaitForAll(absl::Duration timeout) override { return inner_->WaitForAll(timeout); }

 protected:
  Fabric& inner() { return *inner_; }

 private:
  Fabric* inner_;
};

}  // namespace gannet::rdma
