#include "rdma/verbs/node_core.h"

#include <sys/mman.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "rdma/rpc.h"

namespace gannet::rdma::verbs {

std::vector<std::byte> RegionInfo::Encode() const {
  std::array<std::byte, 64> buffer;
  WireWriter writer(buffer);
  writer.PutU64(base);
  writer.PutU64(bytes);
  writer.PutU32(key);
  writer.PutU16(port);
  return {writer.written().begin(), writer.written().end()};
}

StatusOr<RegionInfo> RegionInfo::Decode(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  RegionInfo info;
  info.base = reader.GetU64();
  info.bytes = reader.GetU64();
  info.key = reader.GetU32();
  info.port = reader.GetU16();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  return info;
}

StatusOr<std::shared_ptr<NodeCore>> NodeCore::Make(const VerbsOptions& options,
                                                   const std::vector<control::Endpoint>& endpoints, NodeId id) {
  std::shared_ptr<NodeCore> core(new NodeCore);
  core->id_ = id;
  core->options_ = options;
  core->endpoints_ = endpoints;
  core->range_ = {.num_nodes = static_cast<int>(endpoints.size()),
                  .heap_offset = kHeapOffset,
                  .bytes_per_node = RoundUp(options.bytes_per_node, kHeapOffset)};
  GANNET_RETURN_IF_ERROR(core->OpenDevice());
  GANNET_RETURN_IF_ERROR(core->MapMemory());
  return core;
}

NodeCore::~NodeCore() {
  agent.reset();
  region_.reset();
  if (memory_ != nullptr) munmap(memory_, range_.bytes_per_node);
}

Status NodeCore::OpenDevice() {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) != 0) {
    return SystemError("this machine has no RDMA (are the kernel's modules rdma_ucm and ib_uverbs loaded?)");
  }
  anchor_.reset(id);
  sockaddr_in at = address();
  at.sin_port = 0;
  if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&at)) != 0 || id->verbs == nullptr) {
    return absl::NotFoundError(absl::StrCat("the address of node ", id_, ", ", endpoints_[id_].host(),
                                            ", is not that of an RDMA device of this machine"));
  }
  const std::string name = ibv_get_device_name(id->verbs->device);
  if (!options_.device.empty() && options_.device != name) {
    return absl::FailedPreconditionError(absl::StrCat("the address of node ", id_, ", ", endpoints_[id_].host(),
                                                      ", leads to device ", name, ", not ", options_.device));
  }
  const StatusOr<DeviceLimits> limits = LimitsOf(id->verbs);
  if (!limits.ok()) return limits.status();
  limits_ = *limits;
  const StatusOr<Capabilities> capabilities = CapabilitiesOf(id->verbs);
  if (!capabilities.ok()) return capabilities.status();
  capabilities_ = *capabilities;
  pd_.reset(ibv_alloc_pd(id->verbs));
  return pd_ != nullptr ? absl::OkStatus() : SystemError("cannot make a protection domain");
}

Status NodeCore::MapMemory() {
  const uint64_t bytes = range_.bytes_per_node;
  if (bytes - kHeapOffset > limits_.max_region_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the device registers at most ", limits_.max_region_bytes, " bytes at once, not ", bytes));
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return SystemError(absl::StrCat("cannot map ", bytes, " bytes"));
  memory_ = static_cast<std::byte*>(memory);
  // A wish: where the kernel has no huge pages it takes small ones.
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  // All rights on the heap: a transaction at another node locks and installs anywhere in it.
  StatusOr<MemoryRegion> region =
      Register(pd_.get(), memory_ + kHeapOffset, bytes - kHeapOffset,
               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  return absl::OkStatus();
}

RegionInfo NodeCore::region() const {
  return {.base = reinterpret_cast<uint64_t>(memory_), .bytes = range_.bytes_per_node, .key = region_->rkey};
}

uint32_t NodeCore::LocalKey(const void* at, uint64_t bytes) const {
  const auto* first = static_cast<const std::byte*>(at);
  const bool inside = first >= memory_ + kHeapOffset && first < memory_ + range_.bytes_per_node &&
                      bytes <= static_cast<uint64_t>(memory_ + range_.bytes_per_node - first);
  return inside ? region_->lkey : 0;
}

}  // namespace gannet::rdma::verbs
