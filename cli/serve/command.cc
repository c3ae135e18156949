#include "cli/serve/command.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "cli/common/exit_codes.h"
#include "cli/common/flags.h"
#include "cli/common/interrupt.h"
#include "cli/common/parse.h"
#include "cli/serve/cluster_file.h"
#include "cli/serve/served.h"
#include "cluster/call_meter.h"
#include "cluster/config/config.h"
#include "cluster/metrics_endpoint.h"

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
  const StatusOr<ClusterFile> file = ReadClusterFile(options.cluster);
  if (!file.ok()) return fail(file.status(), kExitBadFlags);
  const StatusOr<int> id = file->config.FindServer(options.node);
  if (!id.ok()) return fail(id.status(), kExitBadFlags);

  const InterruptGuard interrupts(InterruptGuard::Second::kSigtermIsIgnored);
  const cluster::Patience patience = {
      .at_most = options.wait,
      .advice = kWaitAdvice,
      .stop = &InterruptGuard::requested(),
      .note = [&](const std::string& what) { absl::FPrintF(stderr, "gannet serve: node %d: %s\n", *id, what); }};
  // Opens the port first: a node that joined and cannot continue takes its data away from the others.
  StatusOr<std::unique_ptr<cluster::MetricsEndpoint>> metrics = std::unique_ptr<cluster::MetricsEndpoint>();
  cluster::CallMeter meter;
  if (!options.metrics.empty()) metrics = cluster::MetricsEndpoint::Listen(options.metrics);
  if (!metrics.ok()) {
    return fail(absl::UnavailableError(absl::StrFormat("--metrics %s", metrics.status().message())), kExitFailed);
  }
  const auto serve = file->tpcc.has_value() ? ServeTpcc : ServeYcsb;
  auto served = serve(*file, *id, patience, options.metrics.empty() ? nullptr : &meter);
  if (absl::IsCancelled(served.status())) {
    patience.Note(std::string(served.status().message()));
    return kExitOk;
  }
  if (!served.ok()) return fail(served.status(), kExitFailed);
  if (*metrics != nullptr) {
    std::function<txn::TransactionStatistics()> transactions;
    if ((*served)->transactions().has_value()) transactions = [&served] { return *(*served)->transactions(); };
    (*metrics)->Show((*served)->server(),
                     {.memory = [&served] { return (*served)->memory(); },
                      .load = [&served] { return (*served)->load(); },
                      .paths = [&served] { return (*served)->paths(); },
                      .transactions = std::move(transactions),
                      .program_method = [&served](rdma::MethodId method) { return (*served)->MethodName(method); }},
                     meter);
    patience.Note(absl::StrFormat("metrics at port %d, /metrics", (*metrics)->port()));
  }
  const rdma::SlabStatistics memory = (*served)->memory();
  absl::PrintF("ready: node %d of %d, %s, %s of %s memory taken\n", *id, file->config.num_servers(),
               (*served)->loaded(), FormatBytes(memory.carved_bytes), FormatBytes(memory.capacity_bytes));
  std::fflush(stdout);
  const Status done = (*served)->ServeUntilStopped();
  metrics->reset();  // it uses the server
  if (!done.ok()) return fail(done, kExitFailed);
  patience.Note("leaving");
  served->reset();
  patience.Note("left");
  return kExitOk;
}

}  // namespace

void AddServeCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("serve", "One server process of a cluster: memory, data and server threads.");
  command->footer(
      "Prints one line that begins with `ready:` when it serves, and serves until SIGTERM or Ctrl-C; then it answers\n"
      "the waiting calls, leaves, and exits with 0. The processes of a cluster may be started in any order.\n"
      "Exit code: 1 it cannot serve; 2 a flag or the cluster file is wrong.\n\n"
      "Example: gannet serve --cluster cluster.toml --node 0\n"
      "then     gannet tpcc run --cluster cluster.toml --threads 2 --duration 10s\n"
      "or, if the file has the table [ycsb]:\n"
      "         gannet ycsb --cluster cluster.toml --clients 1x2 --duration 10s");
  auto options = std::make_shared<ServeOptions>();
  AddPath(*command, "--cluster", &options->cluster, "FILE", "The cluster; see docs/cluster.md")->required();
  AddPath(*command, "--node", &options->node, "ID", "The server's id or name in the cluster file")->required();
  Add(*command, "--wait", &options->wait, form::Time(absl::ZeroDuration()).parse, "TIME",
      "How long to wait for the other servers to come. Default: 5m");
  Add(*command, "--metrics", &options->metrics, cluster::ParseMetricsAddress, "ADDRESS",
      "Answer Prometheus at http://ADDRESS/metrics: host:port, or a port of the loopback interface.\n"
      "Default: not at all");
  command->callback([options, exit_code] { *exit_code = Serve(*options); });
}

}  // namespace gannet::cli
