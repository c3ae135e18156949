#include "cli/serve_command.h"

#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "cli/cluster/config.h"
#include "cli/cluster/metered_fabric.h"
#include "cli/cluster/metrics_endpoint.h"
#include "cli/cluster/server.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/parse.h"

namespace gannet::cli {
namespace {

struct ServeOptions {
  std::string cluster;
  std::string node;
  absl::Duration wait = absl::Minutes(5);
  std::string metrics;
};

int Serve(const ServeOptions& options) {
  const auto fail = [](const Status& status, int exit_code) {
    absl::FPrintF(stderr, "gannet serve: %s\n", status.message());
    return exit_code;
  };
  const StatusOr<ClusterConfig> config = ReadClusterConfig(options.cluster);
  if (!config.ok()) return fail(config.status(), kExitBadFlags);
  const StatusOr<int> id = config->FindServer(options.node);
  if (!id.ok()) return fail(id.status(), kExitBadFlags);

  const InterruptGuard interrupts(InterruptGuard::Second::kSigtermIsIgnored);
  const Patience patience = {
      .at_most = options.wait, .stop = &InterruptGuard::requested(), .note = [&](const std::string& what) {
        absl::FPrintF(stderr, "gannet serve: node %d: %s\n", *id, what);
      }};
  // The port comes first: a node that joined and cannot go on takes the others' data with it.
  StatusOr<std::unique_ptr<MetricsEndpoint>> metrics = std::unique_ptr<MetricsEndpoint>();
  CallMeter meter;
  if (!options.metrics.empty()) metrics = MetricsEndpoint::Listen(options.metrics);
  if (!metrics.ok()) return fail(metrics.status(), kExitFailed);
  auto server = ClusterServer::Start(*config, *id, patience, options.metrics.empty() ? nullptr : &meter);
  if (absl::IsCancelled(server.status())) {
    patience.note(std::string(server.status().message()));
    return kExitOk;
  }
  if (!server.ok()) return fail(server.status(), kExitFailed);
  if (*metrics != nullptr) {
    (*metrics)->Show(*config, **server, meter);
    patience.note(absl::StrFormat("metrics at port %d, /metrics", (*metrics)->port()));
  }
  absl::PrintF("ready: node %d of %d, %d of %d warehouses loaded in %.1f s, %s of %s memory taken\n", *id,
               config->num_servers(), (*server)->warehouses(), config->tpcc.warehouses, (*server)->load_seconds(),
               FormatBytes((*server)->database().memory_statistics().carved_bytes),
               FormatBytes((*server)->database().memory_statistics().capacity_bytes));
  std::fflush(stdout);
  const Status served = (*server)->ServeUntilStopped(patience);
  metrics->reset();  // it looks at the server
  if (!served.ok()) return fail(served, kExitFailed);
  patience.note("leaving");
  server->reset();
  patience.note("left");
  return kExitOk;
}

}  // namespace

void AddServeCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("serve", "One server process of a cluster: memory, data and server threads.");
  command->footer(
      "Prints one line that begins with `ready:` when it serves, and serves until SIGTERM or Ctrl-C; then it answers\n"
      "what waits, leaves, and exits with 0. It does not matter which process of a cluster is started first.\n"
      "Exit code: 1 it cannot serve; 2 a flag or the cluster file is wrong.\n\n"
      "Example: gannet serve --cluster cluster.toml --node 0\n"
      "then     gannet tpcc run --cluster cluster.toml --threads 2 --duration 10s");
  auto options = std::make_shared<ServeOptions>();
  AddPath(*command, "--cluster", &options->cluster, "FILE", "The cluster; see docs/cluster.md")->required();
  AddPath(*command, "--node", &options->node, "ID", "Which server this is: its id or name in the cluster file")
      ->required();
  AddDuration(*command, "--wait", &options->wait, absl::ZeroDuration(),
              "How long to wait for the other servers to come. Default: 5m");
  Add(*command, "--metrics", &options->metrics, ParseMetricsAddress, "ADDRESS",
      "Answer Prometheus at http://ADDRESS/metrics: host:port, or a port of the loopback interface.\n"
      "Default: not at all");
  command->callback([options, exit_code] { *exit_code = Serve(*options); });
}

}  // namespace gannet::cli
