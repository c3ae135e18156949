#include "rdma/shm/torn_lines.h"

#include "rdma/shm/line_copy.h"

namespace gannet::rdma::shm {
namespace {

// Null if that channel was not within a store.
std::byte* TornLine(const Region& region, NodeId node, uint16_t channel) {
  const uint64_t place = region.control(node).stores[channel].place;
  const uint64_t offset = place - place % kLineBytes;
  if (place == 0 || offset > region.memory_stride() * static_cast<uint64_t>(region.num_nodes()) - kLineBytes) {
    return nullptr;
  }
  std::byte* line = region.memory(0) + offset;
  return LoadWord(line) == BusyMarker(node, channel) ? line : nullptr;
}

}  // namespace

bool HasTornLines(const Region& region, NodeId node) {
  for (uint16_t i = 0; i < kMaxShmChannelsPerNode; ++i) {
    if (TornLine(region, node, i) != nullptr) return true;
  }
  return false;
}

void FinishTornLines(Region* region, NodeId node) {
  for (uint16_t i = 0; i < kMaxShmChannelsPerNode; ++i) {
    std::byte* line = TornLine(*region, node, i);
    if (line == nullptr) continue;
    const StoreNote& note = region->control(node).stores[i];
    const size_t words = note.place % kLineBytes;
    WriteWords(line + kWordBytes, note.image + kWordBytes, words - 1);
    WriteWords(line, note.image, 1);
  }
}

}  // namespace gannet::rdma::shm
