// State shared by the parts of an attached node: its NIC, its memory, its place in the cluster. The node's channels
// keep it alive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "rdma/control/agent.h"
#include "rdma/heap_parts.h"
#include "rdma/verb_check.h"
#include "rdma/verbs/devices.h"
#include "rdma/verbs/resources.h"
#include "rdma/verbs/verbs_fabric.h"

namespace gannet::rdma::verbs {

// The first page of a node's memory is unused, so that offset 0 names no object. It is not registered.
inline constexpr uint64_t kHeapOffset = 4096;

// Addresses of the nodes.
struct ClusterMap {
  std::vector<control::Place> nodes;  // by id
  control::Place guest;               // where a guest of this process is, with port 0

  control::Endpoint Of(NodeId id) const { return nodes[id].has_value() ? *nodes[id] : *guest; }
};

// Data that a peer needs to reach a node. The control handshake carries it encrypted.
struct RegionInfo {
  uint64_t base = 0;  // virtual address, at the owner, of offset 0
  uint64_t bytes = 0;
  uint64_t writable_offset = 0;
  // Keys of the heap's two parts; never printed. The NIC accepts only READs with the first.
  uint32_t read_only_key = 0;
  uint32_t writable_key = 0;
  control::Endpoint listens_at;  // where rdma_cm does

  uint32_t KeyAt(uint64_t offset) const { return offset < writable_offset ? read_only_key : writable_key; }
  std::vector<std::byte> Encode() const;
  static StatusOr<RegionInfo> Decode(std::span<const std::byte> bytes);
};

class NodeCore {
 public:
  // Finds the NIC of the node's address, and registers its memory (all zero).
  static StatusOr<std::shared_ptr<NodeCore>> Make(const VerbsOptions& options, const ClusterMap& map, NodeId id);
  ~NodeCore();
  NodeCore(const NodeCore&) = delete;
  NodeCore& operator=(const NodeCore&) = delete;

  NodeId id() const { return id_; }
  const VerbsOptions& options() const { return options_; }
  const ClusterMap& map() const { return map_; }
  control::Endpoint address() const { return map_.Of(id_); }  // of this node
  int num_nodes() const { return range_.num_nodes; }
  // Range of verbs on memory of `node`.
  VerbRange range(NodeId node) const {
    VerbRange range = range_;
    if (node < options_.bytes_of_node.size()) range.bytes_per_node = options_.bytes_of_node[node];
    range.writable_offset = WritableOffset(kHeapOffset, range.bytes_per_node, options_.read_only_percent);
    return range;
  }
  const DeviceLimits& limits() const { return limits_; }
  const Capabilities& capabilities() const { return capabilities_; }
  ibv_context* context() const { return anchor_->verbs; }
  ibv_pd* pd() const { return pd_.get(); }
  std::span<std::byte> memory() const { return {memory_, bytes()}; }
  RegionInfo region(const control::Endpoint& listens_at) const;
  // The local key if all of [at, at + bytes) lies in the heap's writable part, else 0.
  uint32_t LocalKey(const void* at, uint64_t bytes) const;

  // Set once, before any other part is made; stopped when the node leaves.
  std::unique_ptr<control::Agent> agent;
  bool attached() const { return agent->generation(id_) != 0; }

 private:
  NodeCore() = default;
  uint64_t bytes() const { return range(id_).bytes_per_node; }
  Status OpenDevice();
  Status CheckPort() const;
  Status MapMemory();

  NodeId id_ = 0;
  VerbsOptions options_;
  ClusterMap map_;
  VerbRange range_;
  CmId anchor_;  // keeps the device open
  DeviceLimits limits_;
  Capabilities capabilities_;
  ProtectionDomain pd_;
  std::byte* memory_ = nullptr;
  MemoryRegion read_only_;
  MemoryRegion writable_;
};

}  // namespace gannet::rdma::verbs
