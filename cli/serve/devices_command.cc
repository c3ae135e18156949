#include "cli/serve/devices_command.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/common/exit_codes.h"
#include "cli/common/flags.h"
#include "cli/common/output_file.h"
#include "nlohmann/json.hpp"
#include "rdma/verbs/devices.h"

namespace gannet::cli {
namespace {

using rdma::verbs::DeviceReport;

struct DevicesOptions {
  std::string address;
  std::string json_file;
};

nlohmann::ordered_json ToJson(const DeviceReport& device) {
  return {{"name", device.name},
          {"chosen", device.chosen},
          {"why_not", device.why_not},
          {"firmware", device.firmware},
          {"in_software", device.in_software},
          {"line_consistent", device.capabilities.line_consistent},
          {"cpu_coherent_atomics", device.capabilities.cpu_coherent_atomics},
          {"addresses", device.addresses},
          {"ports", device.ports},
          {"max_work_requests", device.limits.max_work_requests},
          {"max_completions", device.limits.max_completions},
          {"max_reads_as_initiator", device.limits.max_reads_as_initiator},
          {"max_reads_as_responder", device.limits.max_reads_as_responder},
          {"max_region_bytes", device.limits.max_region_bytes}};
}

void Print(const DeviceReport& device, std::FILE* to) {
  absl::FPrintF(to, "%s: %s\n", device.name,
                device.chosen ? "would be chosen" : "would not be chosen: " + device.why_not);
  if (device.ports.empty()) return;  // it could not be opened
  absl::FPrintF(to, "  %s, firmware %s\n", device.in_software ? "made of software" : "a card",
                device.firmware.empty() ? "unknown" : device.firmware);
  for (const std::string& port : device.ports) absl::FPrintF(to, "  %s\n", port);
  absl::FPrintF(to, "  addresses: %s\n", device.addresses.empty() ? "none" : absl::StrJoin(device.addresses, ", "));
  absl::FPrintF(to, "  atomics: %s\n",
                device.capabilities.cpu_coherent_atomics
                    ? "atomic with the processor's, too"
                    : "atomic only with each other, so local locks go through it, too");
  absl::FPrintF(
      to, "  lines: %s\n",
      device.capabilities.line_consistent ? "read whole" : "may be read torn, so readers look at the first word again");
  absl::FPrintF(to, "  at once, per queue pair: %d work requests; READs and atomics: %d out, %d in\n",
                device.limits.max_work_requests, device.limits.max_reads_as_initiator,
                device.limits.max_reads_as_responder);
}

int Execute(const DevicesOptions& options) {
  const auto fail = [](const Status& status, int exit_code) {
    absl::FPrintF(stderr, "gannet devices: %s\n", status.message());
    return exit_code;
  };
  StatusOr<std::optional<OutputFile>> json = OpenOutput("--json", options.json_file);
  if (!json.ok()) return fail(json.status(), kExitBadFlags);
  const StatusOr<std::vector<DeviceReport>> devices = rdma::verbs::ListDevices(options.address);
  if (!devices.ok()) return fail(devices.status(), kExitFailed);
  std::FILE* const to = TextStream(*json);
  if (devices->empty()) {
    absl::FPrintF(
        to,
        "no RDMA device: this machine has none, or its driver is not loaded (docs/running-on-rdma.md); the shm fabric "
        "needs none\n");
  }
  auto list = nlohmann::ordered_json::array();
  for (const DeviceReport& device : *devices) {
    Print(device, to);
    list.push_back(ToJson(device));
  }
  if (json->has_value()) {
    if (const Status written = (*json)->Write(list.dump(2) + "\n"); !written.ok()) return fail(written, kExitFailed);
  }
  return kExitOk;
}

}  // namespace

void AddDevicesCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<DevicesOptions>();
  CLI::App* command = app.add_subcommand("devices", "The RDMA devices of this machine, and which would be chosen.");
  AddPath(*command, "--address", &options->address, "ADDRESS",
          "As if a node had this address of this machine. Default: any; the first device that has one");
  AddPath(*command, "--json", &options->json_file, "FILE",
          "Write the list as JSON to this file; -: to standard output");
  command->footer("Exit code 0, also if there is none; 1 if they cannot be listed.\n\nExample: gannet devices");
  command->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace gannet::cli
