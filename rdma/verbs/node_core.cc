#include "rdma/verbs/node_core.h"

#include <sys/mman.h>

#include <array>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "rdma/rpc.h"

namespace gannet::rdma::verbs {

std::vector<std::byte> RegionInfo::Encode() const {
  std::array<std::byte, 128> buffer;
  WireWriter writer(buffer);
  writer.PutU64(base);
  writer.PutU64(bytes);
  writer.PutU64(writable_offset);
  writer.PutU32(read_only_key);
  writer.PutU32(writable_key);
  writer.PutString(listens_at.ToString());
  return {writer.written().begin(), writer.written().end()};
}

StatusOr<RegionInfo> RegionInfo::Decode(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  RegionInfo info;
  info.base = reader.GetU64();
  info.bytes = reader.GetU64();
  info.writable_offset = reader.GetU64();
  info.read_only_key = reader.GetU32();
  info.writable_key = reader.GetU32();
  const std::string listens_at(reader.GetString());
  GANNET_RETURN_IF_ERROR(reader.Finish());
  const StatusOr<control::Endpoint> endpoint = control::ParseNumericEndpoint(listens_at);
  if (!endpoint.ok()) return endpoint.status();
  info.listens_at = *endpoint;
  return info;
}

StatusOr<std::shared_ptr<NodeCore>> NodeCore::Make(const VerbsOptions& options, const ClusterMap& map, NodeId id) {
  std::shared_ptr<NodeCore> core(new NodeCore);
  core->id_ = id;
  core->options_ = options;
  core->map_ = map;
  for (uint64_t& bytes : core->options_.bytes_of_node) bytes = RoundUp(bytes, kHeapOffset);
  core->range_ = {.num_nodes = static_cast<int>(map.nodes.size()),
                  .heap_offset = kHeapOffset,
                  .bytes_per_node = RoundUp(options.bytes_per_node, kHeapOffset)};
  GANNET_RETURN_IF_ERROR(core->OpenDevice());
  GANNET_RETURN_IF_ERROR(core->MapMemory());
  return core;
}

NodeCore::~NodeCore() {
  agent.reset();
  read_only_.reset();
  writable_.reset();
  if (memory_ != nullptr) munmap(memory_, bytes());
}

Status NodeCore::OpenDevice() {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) != 0) {
    return SystemError("this machine has no RDMA (are the kernel's modules rdma_ucm and ib_uverbs loaded?)");
  }
  anchor_.reset(id);
  control::Endpoint at = address().WithPort(0);
  if (rdma_bind_addr(id, at.get()) != 0 || id->verbs == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the address of node ", id_, ", ", at.host(), ", is not that of an RDMA device of this machine"));
  }
  const std::string name = ibv_get_device_name(id->verbs->device);
  if (!options_.device.empty() && options_.device != name) {
    return absl::FailedPreconditionError(absl::StrCat("the address of node ", id_, ", ", at.host(),
                                                      ", leads to device ", name, ", not ", options_.device));
  }
  GANNET_RETURN_IF_ERROR(CheckPort());
  const StatusOr<DeviceLimits> limits = LimitsOf(id->verbs);
  if (!limits.ok()) return limits.status();
  limits_ = *limits;
  const StatusOr<Capabilities> capabilities = CapabilitiesOf(id->verbs);
  if (!capabilities.ok()) return capabilities.status();
  capabilities_ = *capabilities;
  pd_.reset(ibv_alloc_pd(id->verbs));
  return pd_ != nullptr ? absl::OkStatus() : SystemError("cannot make a protection domain");
}

// True if `gid` is that of the address: for RoCE a GID contains the address.
bool IsGidOf(const control::Endpoint& at, const ibv_gid& gid) {
  if (at.address.ss_family == AF_INET6) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(at.get())->sin6_addr, gid.raw, sizeof gid.raw) == 0;
  }
  constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kMapped.data(), kMapped.size()) == 0 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in*>(at.get())->sin_addr, gid.raw + kMapped.size(), 4) == 0;
}

Status NodeCore::CheckPort() const {
  if (options_.port != 0 && options_.port != anchor_->port_num) {
    return absl::FailedPreconditionError(absl::StrCat("the address of node ", id_, ", ", address().host(),
                                                      ", leads to port ", anchor_->port_num, ", not ", options_.port));
  }
  if (options_.gid < 0) return absl::OkStatus();
  ibv_gid gid{};
  if (ibv_query_gid(anchor_->verbs, anchor_->port_num, options_.gid, &gid) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("the device has no GID ", options_.gid));
  }
  if (IsGidOf(address(), gid)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "GID ", options_.gid, " of the device is not that of the address of ", "node ", id_, ", ", address().host()));
}

Status NodeCore::MapMemory() {
  const uint64_t bytes = this->bytes();
  if (bytes - kHeapOffset > limits_.max_region_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the device registers at most ", limits_.max_region_bytes, " bytes at once, not ", bytes));
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return SystemError(absl::StrCat("cannot map ", bytes, " bytes"));
  memory_ = static_cast<std::byte*>(memory);
  // This is only advice: a kernel without huge pages uses small ones.
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  const uint64_t writable = range(id_).writable_offset;
  if (writable > kHeapOffset) {
    StatusOr<MemoryRegion> region =
        Register(pd_.get(), memory_ + kHeapOffset, writable - kHeapOffset, IBV_ACCESS_REMOTE_READ);
    if (!region.ok()) return region.status();
    read_only_ = *std::move(region);
  }
  // All rights on the rest: transactions at other nodes lock and install records there.
  StatusOr<MemoryRegion> region =
      Register(pd_.get(), memory_ + writable, bytes - writable,
               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  if (!region.ok()) return region.status();
  writable_ = *std::move(region);
  return absl::OkStatus();
}

RegionInfo NodeCore::region(const control::Endpoint& listens_at) const {
  return {.base = reinterpret_cast<uint64_t>(memory_),
          .bytes = bytes(),
          .writable_offset = range(id_).writable_offset,
          .read_only_key = read_only_ != nullptr ? read_only_->rkey : 0,
          .writable_key = writable_->rkey,
          .listens_at = listens_at};
}

uint32_t NodeCore::LocalKey(const void* at, uint64_t bytes) const {
  const auto* first = static_cast<const std::byte*>(at);
  const bool inside = first >= memory_ + range(id_).writable_offset && first < memory_ + this->bytes() &&
                      bytes <= static_cast<uint64_t>(memory_ + this->bytes() - first);
  return inside ? writable_->lkey : 0;
}

}  // namespace gannet::rdma::verbs
