#include "rdma/sim/sim_fabric.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "rdma/sim/fabric_core.h"
#include "rdma/sim/sim_node.h"

namespace gannet::rdma::sim {
namespace {

constexpr uint64_t kLookForNodesEvery = 1'000'000;

class CoreFabric final : public SimFabric {
 public:
  explicit CoreFabric(std::shared_ptr<FabricCore> core) : core_(std::move(core)) {}

  const Capabilities& capabilities() const override { return core_->capabilities(); }
  int num_nodes() const override { return core_->options().num_nodes; }
  StatusOr<std::unique_ptr<Node>> Attach(NodeId id) override;
  bool Alive(NodeId id) const override { return core_->Alive(id); }
  Status WaitForAll(absl::Duration timeout) override;

  void Kill(NodeId id) override { core_->Kill(id); }
  void KillAfterVerbs(NodeId id, uint64_t n) override {
    if (Runs(id)) core_->current(id)->verbs_to_live = n;
  }
  bool Runs(NodeId id) const override { return core_->current(id) != nullptr && core_->current(id)->there(); }
  void Cut(NodeId from, NodeId to) override { core_->Cut(from, to, true); }
  void Mend(NodeId from, NodeId to) override { core_->Cut(from, to, false); }
  void MendAll() override { core_->MendAll(); }
  NicStatistics nic_statistics(NodeId id) const override { return core_->nic(id).statistics(); }

 private:
  std::string MissingNodes() const;

  std::shared_ptr<FabricCore> core_;
};

StatusOr<std::unique_ptr<Node>> CoreFabric::Attach(NodeId id) {
  if (id >= num_nodes()) {
    return absl::InvalidArgumentError(absl::StrCat("node ", id, ": the cluster has ", num_nodes(), " nodes"));
  }
  const StatusOr<Attachment*> attachment = core_->Attach(id);
  if (!attachment.ok()) return attachment.status();
  return std::make_unique<SimNode>(core_.get(), *attachment);
}

Status CoreFabric::WaitForAll(absl::Duration timeout) {
  const uint64_t deadline = NowNanos() + static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(timeout)));
  for (std::string missing = MissingNodes(); !missing.empty(); missing = MissingNodes()) {
    if (NowNanos() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("after ", absl::FormatDuration(timeout), " these nodes have not attached:", missing));
    }
    SleepUntilNanos(std::min(deadline, NowNanos() + kLookForNodesEvery));
  }
  return absl::OkStatus();
}

std::string CoreFabric::MissingNodes() const {
  std::string missing;
  for (int i = 0; i < num_nodes(); ++i) {
    if (!Alive(static_cast<NodeId>(i))) absl::StrAppend(&missing, " ", i);
  }
  return missing;
}

}  // namespace

StatusOr<std::unique_ptr<SimFabric>> SimFabric::Create(Simulation* simulation, const SimFabricOptions& options) {
  if (options.num_nodes < 1 || options.num_nodes > kMaxSimNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a simulated cluster has 1 to ", kMaxSimNodes, " nodes, not ", options.num_nodes));
  }
  GANNET_RETURN_IF_ERROR(CheckReadOnlyPercent(options.read_only_percent));
  if (options.bytes_per_node <= kSimHeapOffset || options.bytes_per_node % kLineBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a node's memory of ", options.bytes_per_node,
                                                   " bytes: must be a multiple of 64 above ", kSimHeapOffset));
  }
  auto core = std::make_shared<FabricCore>(simulation, options);
  simulation->Keep(core);
  simulation->OnFaults([core = core.get()] { core->FaultsChanged(); });
  return std::make_unique<CoreFabric>(std::move(core));
}

}  // namespace gannet::rdma::sim
