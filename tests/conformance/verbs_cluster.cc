#include "tests/conformance/verbs_cluster.h"

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rdma/verbs/devices.h"

namespace gannet::rdma::conformance {
namespace {

constexpr int kFirstPort = 21000;  // below the ports that the system assigns itself
constexpr int kPorts = 10000;

std::string Address() {
  const auto devices = verbs::ListDevices();
  GANNET_CHECK(devices.ok(), "%s", devices.status().ToString());
  std::string seen;
  for (const verbs::DeviceReport& device : *devices) {
    if (device.chosen) return device.addresses.front();
    absl::StrAppend(&seen, device.name, ": ", device.why_not, "; ");
  }
  GANNET_CHECK(false, "this machine has no RDMA device that can be used: %s", seen);
  return "";
}

}  // namespace

VerbsOptions LocalVerbsCluster(int num_nodes, uint64_t bytes_per_node) {
  static const std::string address = Address();
  static std::atomic<int> next_port = 0;
  VerbsOptions options;
  for (int i = 0; i < num_nodes; ++i) {
    options.nodes.push_back(absl::StrCat(address, ":", kFirstPort + next_port++ % kPorts));
  }
  options.bytes_per_node = bytes_per_node;
  options.secret = "the secret of a test";
  options.silence_limit = absl::Seconds(30);
  options.connect_limit = absl::Seconds(30);
  return options;
}

}  // namespace gannet::rdma::conformance
