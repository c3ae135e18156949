#include "rdma/shm/shm_channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma/base/cache_line.h"
#include "rdma/shm/line_copy.h"

namespace gannet::rdma::shm {
namespace {

constexpr uint32_t kLinesPrefetched = 8;  // of each READ in a batch; the CPU's own prefetcher finds the rest

const char* NameOf(Verb verb) {
  switch (verb) {
    case Verb::kRead:
      return "READ";
    case Verb::kWrite:
      return "WRITE";
    case Verb::kCompareAndSwap:
      return "CAS";
    case Verb::kFetchAndAdd:
      return "FAA";
  }
  return "unknown verb";
}

void PrefetchLines(const std::byte* at, uint32_t bytes) {
  const uint32_t end = std::min<uint32_t>(bytes, kLinesPrefetched * kLineBytes);
  for (uint32_t i = 0; i < end; i += kLineBytes) Prefetch(at + i);
}

void Count(const Operation& operation, VerbCounters* counters) {
  switch (operation.verb) {
    case Verb::kRead:
      ++counters->reads;
      counters->bytes_in += operation.size;
      break;
    case Verb::kWrite:
      ++counters->writes;
      counters->bytes_out += operation.size;
      break;
    case Verb::kCompareAndSwap:
      ++counters->compare_and_swaps;
      counters->bytes_out += 2 * kWordBytes;
      counters->bytes_in += kWordBytes;
      break;
    case Verb::kFetchAndAdd:
      ++counters->fetch_and_adds;
      counters->bytes_out += kWordBytes;
      counters->bytes_in += kWordBytes;
      break;
  }
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
      bytes_per_node_(region_->bytes_per_node()),
      num_nodes_(region_->num_nodes()),
      calls_(region_, node, index, &counters_) {
  if (region_->header().adversarial != 0) {
    adversary_.emplace(region_->header().seed * kMaxChannels + node * kMaxShmChannelsPerNode + index);
  }
}

ShmChannel::~ShmChannel() {
  numbers_->Return(index());
}

bool ShmChannel::Submit(std::span<Operation> operations, Completion* completion) {
  if (operations.empty()) return true;
  for (const Operation& operation : operations) {
    if (!Admits(operation)) [[unlikely]] {
      completion->status = Explain(operation);
      return true;
    }
    Count(operation, &counters_);
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
  const GlobalAddress at = operation.remote;
  return at.node() < num_nodes_ && ((at.offset() | operation.size) & (kWordBytes - 1)) == 0 &&
         at.offset() >= kHeapOffset && at.offset() + operation.size <= bytes_per_node_ && OwnNodeIsThere() &&
         PhaseOf(region_->control(at.node()).word.load(std::memory_order_acquire)) == NodePhase::kAttached;
}

Status ShmChannel::Explain(const Operation& operation) const {
  const GlobalAddress at = operation.remote;
  const std::string what = absl::StrCat(NameOf(operation.verb), " of ", operation.size, " bytes at ", at.ToString());
  if (at.node() >= num_nodes_) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": the cluster has ", num_nodes_, " nodes"));
  }
  if (((at.offset() | operation.size) & (kWordBytes - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": address and size must be multiples of 8"));
  }
  if (at.offset() < kHeapOffset || at.offset() + operation.size > bytes_per_node_) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": outside the node's memory, which is ", kHeapOffset, " to ", bytes_per_node_));
  }
  if (!OwnNodeIsThere()) return absl::UnavailableError(absl::StrCat(what, ": node ", node(), ", its issuer, is dead"));
  return absl::UnavailableError(absl::StrCat(what, ": node ", at.node(), " is not there"));
}

void ShmChannel::Run(Operation& operation) {
  std::byte* at = At(operation.remote);
  switch (operation.verb) {
    case Verb::kRead:
      return ReadLines(at, static_cast<std::byte*>(operation.local), operation.size);
    case Verb::kWrite:
      return WriteLines(at, static_cast<const std::byte*>(operation.local), operation.size);
    case Verb::kCompareAndSwap:
      operation.result = CompareAndSwapWord(at, operation.expected, operation.operand);
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
      adversary_->Write(At(operation.remote), static_cast<const std::byte*>(operation.local), operation.size);
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
