#include "rdma/verbs/devices.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rdma/control/endpoint.h"
#include "rdma/verbs/resources.h"

namespace gannet::rdma::verbs {
namespace {

// The vendor ids of the kernel's software devices: rxe (RXE_VENDOR_ID) and siw (SIW_VENDOR_ID).
constexpr uint32_t kVendorOfRxe = 0xffffff;
constexpr uint32_t kVendorOfSiw = 0x626d74;

using DeviceList = std::unique_ptr<ibv_device*, Destroyer<ibv_free_device_list>>;
using OpenDevice = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;

StatusOr<ibv_device_attr> AttributesOf(ibv_context* context) {
  ibv_device_attr attributes{};
  if (const int error = ibv_query_device(context, &attributes); error != 0) {
    return absl::ErrnoToStatus(error, absl::StrCat("cannot ask device ", ibv_get_device_name(context->device)));
  }
  return attributes;
}

bool InSoftware(const ibv_device_attr& attributes) {
  return attributes.vendor_id == kVendorOfRxe || attributes.vendor_id == kVendorOfSiw;
}

std::string DescribePort(ibv_context* context, int number) {
  ibv_port_attr port{};
  if (ibv_query_port(context, static_cast<uint8_t>(number), &port) != 0)
    return absl::StrCat("port ", number, ": unknown");
  const char* layer = port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
  return absl::StrCat("port ", number, ": ", ibv_port_state_str(port.state), ", ", layer, ", MTU ",
                      128 << port.active_mtu, ", ", port.gid_tbl_len, " GIDs");
}

// Addresses of interfaces that are up, except those that are valid only together with an interface's name (IPv6
// link-local).
std::vector<control::Endpoint> LocalAddresses() {
  std::vector<control::Endpoint> addresses;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    control::Endpoint endpoint;
    endpoint.address.ss_family = static_cast<sa_family_t>(family);
    std::memcpy(&endpoint.address, each->ifa_addr, endpoint.size());
    const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(endpoint.get());
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ipv6->sin6_addr)) continue;
    addresses.push_back(endpoint.WithPort(0));
  }
  freeifaddrs(first);
  return addresses;
}

// The name of the device that rdma_cm finds for an address; empty if there is none.
std::string DeviceBehind(control::Endpoint at) {
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(nullptr, &raw, nullptr, RDMA_PS_TCP) != 0) return "";
  const CmId id(raw);
  if (rdma_bind_addr(id.get(), at.get()) != 0 || id->verbs == nullptr) return "";
  return ibv_get_device_name(id->verbs->device);
}

StatusOr<DeviceReport> Describe(ibv_device* device) {
  const OpenDevice context(ibv_open_device(device));
  if (context == nullptr) return SystemError(absl::StrCat("cannot open device ", ibv_get_device_name(device)));
  const StatusOr<ibv_device_attr> attributes = AttributesOf(context.get());
  if (!attributes.ok()) return attributes.status();
  DeviceReport report;
  report.name = ibv_get_device_name(device);
  report.firmware = attributes->fw_ver;
  report.in_software = InSoftware(*attributes);
  const StatusOr<DeviceLimits> limits = LimitsOf(context.get());
  const StatusOr<Capabilities> capabilities = CapabilitiesOf(context.get());
  if (limits.ok()) report.limits = *limits;
  if (capabilities.ok()) {
    report.capabilities = *capabilities;
  } else {
    report.why_not = std::string(capabilities.status().message());
  }
  for (int port = 1; port <= attributes->phys_port_cnt; ++port)
    report.ports.push_back(DescribePort(context.get(), port));
  return report;
}

void Choose(const std::string& address, std::vector<DeviceReport>* reports) {
  bool found = false;
  for (DeviceReport& report : *reports) {
    if (!report.why_not.empty()) continue;
    if (report.addresses.empty()) {
      report.why_not = "no address of this machine leads to it: give its network interface one";
    } else if (!address.empty() && std::count(report.addresses.begin(), report.addresses.end(), address) == 0) {
      report.why_not = absl::StrCat(address, " does not lead to it, but ", absl::StrJoin(report.addresses, ", "));
    } else if (found) {
      report.why_not = "another one was found before it: name an address of this one to use it";
    } else {
      report.chosen = found = true;
    }
  }
}

}  // namespace

StatusOr<DeviceLimits> LimitsOf(ibv_context* context) {
  const StatusOr<ibv_device_attr> attributes = AttributesOf(context);
  if (!attributes.ok()) return attributes.status();
  return DeviceLimits{.max_completions = attributes->max_cqe,
                      .max_work_requests = attributes->max_qp_wr,
                      .max_reads_as_initiator = attributes->max_qp_init_rd_atom,
                      .max_reads_as_responder = attributes->max_qp_rd_atom,
                      .max_region_bytes = attributes->max_mr_size};
}

StatusOr<Capabilities> CapabilitiesOf(ibv_context* context) {
  const StatusOr<ibv_device_attr> attributes = AttributesOf(context);
  if (!attributes.ok()) return attributes.status();
  if (attributes->atomic_cap == IBV_ATOMIC_NONE) {
    return absl::FailedPreconditionError("the device has no atomics (CAS, FAA), which Gannet needs");
  }
  return Capabilities{.line_consistent = !InSoftware(*attributes),
                      .cpu_coherent_atomics = attributes->atomic_cap == IBV_ATOMIC_GLOB,
                      .completes_at_once = false};
}

StatusOr<std::vector<DeviceReport>> ListDevices(const std::string& address) {
  std::vector<DeviceReport> reports;
  int count = 0;
  const DeviceList devices(ibv_get_device_list(&count));
  if (devices == nullptr) {
    if (errno == ENOSYS || errno == ENOENT) return reports;  // the kernel's RDMA modules are not loaded
    return SystemError("cannot list the RDMA devices");
  }
  for (int i = 0; i < count; ++i) {
    StatusOr<DeviceReport> report = Describe(devices.get()[i]);
    if (report.ok()) {
      reports.push_back(*std::move(report));
    } else {
      reports.emplace_back().name = ibv_get_device_name(devices.get()[i]);
      reports.back().why_not = std::string(report.status().message());
    }
  }
  if (reports.empty()) return reports;
  for (const control::Endpoint& local : LocalAddresses()) {
    const std::string name = DeviceBehind(local);
    for (DeviceReport& report : reports) {
      if (report.name == name) report.addresses.push_back(local.host());
    }
  }
  Choose(address, &reports);
  return reports;
}

}  // namespace gannet::rdma::verbs
