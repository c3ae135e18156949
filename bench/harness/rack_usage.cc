#include "bench/harness/rack_usage.h"

#include <algorithm>

namespace gannet::bench {

RackUsage::Snapshot RackUsage::Look() const {
  Snapshot snapshot;
  snapshot.now = simulation_->now();
  for (int node = 0; node < fabric_->num_nodes(); ++node) {
    const auto id = static_cast<rdma::NodeId>(node);
    snapshot.nodes.push_back({simulation_->busy_nanos(id), fabric_->nic_statistics(id)});
  }
  return snapshot;
}

Usage RackUsage::Of(int first, int end, int cores) const {
  Usage usage;
  const double span = static_cast<double>(std::max<uint64_t>(1, end_.now - begin_.now)) * (end - first);
  const auto share = [span](uint64_t later, uint64_t earlier) { return static_cast<double>(later - earlier) / span; };
  for (int node = first; node < end; ++node) {
    const Busy& a = begin_.nodes[static_cast<size_t>(node)];
    const Busy& b = end_.nodes[static_cast<size_t>(node)];
    usage.cpu += share(b.cpu, a.cpu) / cores;
    usage.nic_send += share(b.nic.busy_send_nanos, a.nic.busy_send_nanos);
    usage.nic_serve += std::max(share(b.nic.busy_serve_nanos, a.nic.busy_serve_nanos),
                                share(b.nic.busy_atomic_nanos, a.nic.busy_atomic_nanos));
    usage.link_out += share(b.nic.busy_out_nanos, a.nic.busy_out_nanos);
    usage.link_in += share(b.nic.busy_in_nanos, a.nic.busy_in_nanos);
  }
  return usage;
}

}  // namespace gannet::bench
