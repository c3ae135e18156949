// The RDMA devices of this machine and their capabilities.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "rdma/fabric.h"

namespace gannet::rdma::verbs {

// Limits of a device that matter to Gannet.
struct DeviceLimits {
  int max_completions = 0;         // per completion queue
  int max_work_requests = 0;       // per queue pair
  int max_reads_as_initiator = 0;  // READs and atomics in flight, per queue pair
  int max_reads_as_responder = 0;
  uint64_t max_region_bytes = 0;
};

struct DeviceReport {
  std::string name;  // "mlx5_0"
  std::string firmware;
  bool in_software = false;  // SoftRoCE, SoftiWARP
  DeviceLimits limits;
  Capabilities capabilities;
  std::vector<std::string> ports;      // one line each: state, speed, link layer
  std::vector<std::string> addresses;  // of this machine that lead to it
  bool chosen = false;                 // would be used for the given address, or, without one, first
  std::string why_not;                 // if it was not chosen
};

// All devices of this machine; none is not an error. `address`: one of this machine, or empty.
StatusOr<std::vector<DeviceReport>> ListDevices(const std::string& address = "");

}  // namespace gannet::rdma::verbs

struct ibv_context;

namespace gannet::rdma::verbs {

StatusOr<DeviceLimits> LimitsOf(ibv_context* context);
StatusOr<Capabilities> CapabilitiesOf(ibv_context* context);

}  // namespace gannet::rdma::verbs
