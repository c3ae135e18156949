#include "rdma/shm/shm_channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"

namespace gannet::rdma::shm {
namespace {

constexpr uint32_t kLinesPrefetched = 8;  // of each READ in a batch; the CPU's own prefetcher finds the rest

void PrefetchLines(const std::byte* at, uint32_t bytes) {
  const uint32_t end = std::min<uint32_t>(bytes, kLinesPrefetched * kLineBytes);
  for (uint32_t i = 0; i < end; i += kLineBytes) Prefetch(at + i);
}

}  // namespace

ShmChannel::ShmChannel(std::shared_ptr<Region> region, std::shared_ptr<ChannelNumbers> numbers, NodeId node,
                       uint16_t index, uint64_t node_word)
    : Channel(node, index, region->memory(node),
              {.line_consistent = true, .cpu_coherent_atomics = true, .completes_at_once = true}),
      region_(std::move(region)),
      numbers_(std::move(numbers)),
      own_word_(&region_->control(node).word),
      node_word_(node_word),
      memory_(region_->memory(0)),
      memory_stride_(region_->memory_stride()),
      range_{.num_nodes = region_->num_nodes(),
             .heap_offset = kHeapOffset,
             .writable_offset = region_->writable_offset(),
             .bytes_per_node = region_->bytes_per_node()},
      writer_(BusyMarker(node, index), region_->in_file() ? &region_->control(node).stores[index] : nullptr, memory_),
      calls_(region_, node, index, &counters_) {
  if (region_->header().adversarial != 0) {
    adversary_.emplace(region_->header().seed * kMaxChannels + node * kShmChannelSlots + index);
  }
}

ShmChannel::~ShmChannel() {
  numbers_->Return(index());
}

bool ShmChannel::Submit(std::span<Operation> operations, Completion* completion) {
  if (operations.empty()) return true;
  for (const Operation& operation : operations) {
    if (!Admits(operation)) [[unlikely]] {
      completion->status = ExplainRefusal(operation, range_, node(), OwnNodeIsThere());
      return true;
    }
    if (!IsConnected(operation.remote.node(), operation.connection)) [[unlikely]] {
      completion->status = ConnectionChanged(operation.remote.node());
      return true;
    }
    CountVerb(operation, &counters_);
  }
  ++counters_.round_trips;
  if (adversary_.has_value()) [[unlikely]] {
    RunAdversarially(operations);
    return true;
  }
  if (operations.size() > 1) {
    for (const Operation& operation : operations) PrefetchLines(At(operation.remote), operation.size);
  }
  for (Operation& operation : operations) Run(operation);
  return true;
}

bool ShmChannel::Admits(const Operation& operation) const {
  return IsAllowed(operation, range_) && OwnNodeIsThere() &&
         PhaseOf(region_->control(operation.remote.node()).word.load(std::memory_order_acquire)) ==
             NodePhase::kAttached;
}

void ShmChannel::Run(Operation& operation) {
  std::byte* at = At(operation.remote);
  switch (operation.verb) {
    case Verb::kRead:
      return ReadLines(at, static_cast<std::byte*>(operation.local), operation.size);
    case Verb::kWrite:
      return writer_.WriteLines(at, static_cast<const std::byte*>(operation.local), operation.size);
    case Verb::kCompareAndSwap:
      operation.result = CompareAndSwapWord(at, operation.expected, operation.operand);
      if (IsLineBusy(operation.result)) operation.result = kLineBusy;
      return;
    case Verb::kFetchAndAdd:
      operation.result = FetchAndAddWord(at, operation.operand);
      return;
  }
}

void ShmChannel::RunAdversarially(std::span<Operation> operations) {
  for (const uint32_t i : adversary_->Order(operations)) {
    Operation& operation = operations[i];
    if (operation.verb == Verb::kRead) {
      adversary_->Read(At(operation.remote), static_cast<std::byte*>(operation.local), operation.size);
    } else if (operation.verb == Verb::kWrite) {
      adversary_->Write(writer_, At(operation.remote), static_cast<const std::byte*>(operation.local), operation.size);
    } else {
      Run(operation);
    }
  }
}

bool ShmChannel::SubmitCall(const CallRequest& call, Completion* completion) {
  if (!OwnNodeIsThere()) {
    completion->status = absl::UnavailableError(absl::StrCat("CALL by node ", node(), ", which is dead"));
    return true;
  }
  return calls_.Submit(call, completion);
}

}  // namespace gannet::rdma::shm
