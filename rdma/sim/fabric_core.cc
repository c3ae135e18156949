#include "rdma/sim/fabric_core.h"

#include <sys/mman.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rdma/sim/call_flight.h"
#include "rdma/sim/flight.h"
#include "rdma/sim/sim_channel.h"

namespace gannet::rdma::sim {

Mapping::Mapping(uint64_t bytes) : bytes_(bytes) {
  void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  data_ = map == MAP_FAILED ? nullptr : static_cast<std::byte*>(map);
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

FabricCore::FabricCore(Simulation* simulation, const SimFabricOptions& options)
    : Happening(3),
      simulation_(simulation),
      options_(options),
      range_{.num_nodes = options.num_nodes,
             .heap_offset = kSimHeapOffset,
             .writable_offset = WritableOffset(kSimHeapOffset, options.bytes_per_node, options.read_only_percent),
             .bytes_per_node = options.bytes_per_node},
      capabilities_{.line_consistent = true,
                    .cpu_coherent_atomics = options.nic.cpu_coherent_atomics,
                    .completes_at_once = false},
      current_(static_cast<size_t>(options.num_nodes)) {
  nics_.reserve(current_.size());
  for (size_t i = 0; i < current_.size(); ++i) nics_.emplace_back(options_.nic);
}

FabricCore::~FabricCore() = default;

StatusOr<Attachment*> FabricCore::Attach(NodeId node) {
  if (current_[node] != nullptr && current_[node]->there()) {
    return absl::FailedPreconditionError(absl::StrCat("node ", node, " is taken, and alive"));
  }
  static std::atomic<uint64_t> last_number{0};
  const uint64_t number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  auto made = std::make_unique<Attachment>(node, number, options_.bytes_per_node);
  if (made->memory.data() == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no address space for the ", options_.bytes_per_node,
                                                     " bytes of simulated node ", node,
                                                     "; raise the limit of this process (ulimit -v)"));
  }
  attachments_.push_back(std::move(made));
  current_[node] = attachments_.back().get();
  if (simulation_->tracing()) simulation_->Trace(absl::StrCat("node ", node, " attaches"));
  return current_[node];
}

void FabricCore::Kill(NodeId node) {
  Attachment* victim = current_[node];
  if (victim == nullptr || !victim->there()) return;
  victim->phase = Attachment::Phase::kDead;
  victim->gone_at = now();
  victim->known_at = now() + options_.detection_nanos;
  if (simulation_->tracing()) simulation_->Trace(absl::StrCat("node ", node, " dies"));
  simulation_->At(victim->known_at, [this, victim] { FailCallsTo(victim); });
  simulation_->KillFibersOf(node);  // does not return if the caller is one of them
}

void FabricCore::CountDeparture(Attachment* from, uint64_t departed) {
  if (from->verbs_to_live == 0 || --from->verbs_to_live > 0) return;
  simulation_->At(departed, [this, from] {
    if (current_[from->id] == from) Kill(from->id);
  });
}

void FabricCore::Leave(Attachment* attachment) {
  if (!attachment->there()) return;
  attachment->phase = Attachment::Phase::kLeft;
  attachment->gone_at = attachment->known_at = now();
  if (simulation_->tracing()) simulation_->Trace(absl::StrCat("node ", attachment->id, " leaves"));
  FailCallsTo(attachment);
  simulation_->Unpark(&attachment->requests, SIZE_MAX);
  for (const auto& queue : attachment->queues) simulation_->Unpark(queue.get(), SIZE_MAX);
}

void FabricCore::FailCallsTo(Attachment* gone) {
  for (const std::unique_ptr<Attachment>& attachment : attachments_) {
    for (SimChannel* channel : attachment->channels) {
      if (channel != nullptr) channel->FailCallsTo(gone);
    }
  }
}

uint64_t FabricCore::DrawDelay() {
  const Faults& faults = simulation_->faults();
  uint64_t delay = 0;
  if (simulation_->Chance(faults.slow_completion)) delay += simulation_->random().Below(faults.slow_nanos + 1);
  if (simulation_->Chance(faults.stuck_completion)) delay += simulation_->random().Below(faults.stuck_nanos + 1);
  return delay;
}

void FabricCore::ScheduleCut() {
  if (cut_is_scheduled_ || faults().cut_every == 0 || options_.num_nodes < 2) return;
  cut_is_scheduled_ = true;
  simulation_->Post(now() + simulation_->Exponential(faults().cut_every), this);
}

void FabricCore::FaultsChanged() {
  if (faults().cut_every == 0) MendAll();
  ScheduleCut();
}

void FabricCore::Happen() {
  cut_is_scheduled_ = false;
  if (faults().cut_every == 0) return;
  Random& random = simulation_->random();
  const auto nodes = static_cast<uint64_t>(options_.num_nodes);
  const auto from = static_cast<NodeId>(random.Below(nodes));
  const auto to = static_cast<NodeId>((from + 1 + random.Below(nodes - 1)) % nodes);
  Cut(from, to, true);
  simulation_->At(now() + 1 + random.Below(faults().cut_nanos), [this, from, to] { Cut(from, to, false); });
  ScheduleCut();
}

void FabricCore::Cut(NodeId from, NodeId to, bool cut) {
  if (cuts_[from][to] == cut) return;
  cuts_[from][to] = cut;
  if (simulation_->tracing()) {
    simulation_->Trace(absl::StrCat("link ", from, " -> ", to, cut ? " is cut" : " is whole again"));
  }
}

}  // namespace gannet::rdma::sim
