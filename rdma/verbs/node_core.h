// What the parts of an attached node share: its card, its memory, its place in the cluster. Its channels keep it alive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rdma/base/status.h"
#include "rdma/control/agent.h"
#include "rdma/verb_check.h"
#include "rdma/verbs/devices.h"
#include "rdma/verbs/resources.h"
#include "rdma/verbs/verbs_fabric.h"

namespace gannet::rdma::verbs {

// The first page of a node's memory is nobody's, so that offset 0 names no object. It is not registered.
inline constexpr uint64_t kHeapOffset = 4096;

// What a peer must know to reach a node; it travels, encrypted, in the control handshake.
struct RegionInfo {
  uint64_t base = 0;  // virtual address, at the owner, of offset 0
  uint64_t bytes = 0;
  uint32_t key = 0;   // never printed
  uint16_t port = 0;  // where rdma_cm listens

  std::vector<std::byte> Encode() const;
  static StatusOr<RegionInfo> Decode(std::span<const std::byte> bytes);
};

class NodeCore {
 public:
  // Finds the card of the node's address, and registers its memory (all zero).
  static StatusOr<std::shared_ptr<NodeCore>> Make(const VerbsOptions& options,
                                                  const std::vector<control::Endpoint>& endpoints, NodeId id);
  ~NodeCore();
  NodeCore(const NodeCore&) = delete;
  NodeCore& operator=(const NodeCore&) = delete;

  NodeId id() const { return id_; }
  const VerbsOptions& options() const { return options_; }
  const std::vector<control::Endpoint>& endpoints() const { return endpoints_; }
  const sockaddr_in& address() const { return endpoints_[id_].address; }
  const VerbRange& range() const { return range_; }
  const DeviceLimits& limits() const { return limits_; }
  const Capabilities& capabilities() const { return capabilities_; }
  ibv_context* context() const { return anchor_->verbs; }
  ibv_pd* pd() const { return pd_.get(); }
  std::span<std::byte> memory() const { return {memory_, range_.bytes_per_node}; }
  RegionInfo region() const;
  // The local key if all of [at, at + bytes) lies in the registered heap, else 0.
  uint32_t LocalKey(const void* at, uint64_t bytes) const;

  // Set once, before any other part is made; stopped when the node leaves.
  std::unique_ptr<control::Agent> agent;
  bool attached() const { return agent->generation(id_) != 0; }

 private:
  NodeCore() = default;
  Status OpenDevice();
  Status MapMemory();

  NodeId id_ = 0;
  VerbsOptions options_;
  std::vector<control::Endpoint> endpoints_;
  VerbRange range_;
  CmId anchor_;  // keeps the device open
  DeviceLimits limits_;
  Capabilities capabilities_;
  ProtectionDomain pd_;
  std::byte* memory_ = nullptr;
  MemoryRegion region_;
};

}  // namespace gannet::rdma::verbs
