#include "rdma/shm/torn_lines.h"

#include "rdma/shm/line_copy.h"

namespace gannet::rdma::shm {
namespace {

std::byte* NotedLine(const Region& region, uint64_t place) {
  return region.memory(0) + (place - place % kLineBytes);
}

// Whether the channel was within a store.
bool IsTorn(const Region& region, NodeId node, uint16_t channel) {
  const uint64_t place = region.control(node).stores[channel].place;
  const uint64_t offset = place - place % kLineBytes;
  return place != 0 && offset <= region.memory_stride() * static_cast<uint64_t>(region.num_nodes()) - kLineBytes &&
         LoadWord(NotedLine(region, place)) == BusyMarker(node, channel);
}

}  // namespace

bool HasTornLines(const Region& region, NodeId node) {
  for (uint16_t i = 0; i < kShmChannelSlots; ++i) {
    if (IsTorn(region, node, i)) return true;
  }
  return false;
}

void FinishTornLines(Region* region, NodeId node) {
  for (uint16_t i = 0; i < kShmChannelSlots; ++i) {
    if (!IsTorn(*region, node, i)) continue;
    const StoreNote& note = region->control(node).stores[i];
    std::byte* line = NotedLine(*region, note.place);
    const size_t words = note.place % kLineBytes;
    WriteWords(line + kWordBytes, note.image + kWordBytes, words - 1);
    WriteWords(line, note.image, 1);
  }
}

}  // namespace gannet::rdma::shm
