#include "rdma/verbs/staging.h"

#include <memory>

namespace gannet::rdma::verbs {

Status Staging::Open(ibv_pd* pd) {
  constexpr size_t kAlignment = 64;
  size_t total = kAlignment;
  for (const Class& each : kClasses) total += size_t{each.bytes} * each.count;
  memory_.resize(total);
  StatusOr<MemoryRegion> region = Register(pd, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  void* aligned = memory_.data();
  size_t room = total;
  auto* next = static_cast<std::byte*>(std::align(kAlignment, total - kAlignment, aligned, room));
  for (size_t i = 0; i < kClasses.size(); ++i) {
    for (uint32_t n = 0; n < kClasses[i].count; ++n, next += kClasses[i].bytes) free_[i].push_back(next);
  }
  return absl::OkStatus();
}

Staging::Buffer Staging::Take(uint32_t bytes) {
  for (size_t i = 0; i < kClasses.size(); ++i) {
    if (kClasses[i].bytes < bytes || free_[i].empty()) continue;
    std::byte* at = free_[i].back();
    free_[i].pop_back();
    return {at, static_cast<uint8_t>(i)};
  }
  return {};
}

void Staging::Give(Buffer buffer) {
  free_[buffer.size_class].push_back(buffer.at);
}

}  // namespace gannet::rdma::verbs
