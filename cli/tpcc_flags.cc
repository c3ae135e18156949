#include "cli/tpcc_flags.h"

#include <functional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "cli/parse.h"
#include "rdma/shm/shm_fabric.h"
#include "tpcc/keys.h"

namespace gannet::cli {
namespace {

constexpr int kMaxThreads = 256;  // the key of HISTORY numbers them in a byte
constexpr int kMaxCoroutines = 1024;

// An option whose text `parse` turns into *target. The last of several counts.
template <class Parse, class T>
CLI::Option* Add(CLI::App& command, const std::string& flag, T* target, Parse parse, const std::string& type,
                 const std::string& description) {
  const auto set = [flag, target, parse](const std::string& text) {
    auto value = parse(text);
    if (!value.ok()) throw CLI::ValidationError(flag + " " + text, std::string(value.status().message()));
    *target = static_cast<T>(*std::move(value));
  };
  CLI::Option* option = command.add_option_function<std::string>(flag, set, description);
  return option->type_name(type)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

template <class T>
CLI::Option* AddInteger(CLI::App& command, const std::string& flag, T* target, int64_t low, int64_t high,
                        const std::string& description) {
  return Add(
      command, flag, target, [low, high](const std::string& text) { return ParseInteger(text, low, high); }, "N",
      description);
}

CLI::Option* AddDuration(CLI::App& command, const std::string& flag, absl::Duration* target, absl::Duration low,
                         const std::string& description) {
  return Add(
      command, flag, target, [low](const std::string& text) { return ParseDuration(text, low); }, "TIME", description);
}

void AddStoreFlags(CLI::App& command, TpccOptions* o) {
  const std::string group = "What is loaded";
  AddInteger(command, "--warehouses", &o->warehouses, 1, tpcc::kMaxWarehouses,
             "Warehouses, about 100 MB each; dealt to the nodes in turn. Default: one per node")
      ->group(group);
  AddInteger(command, "--nodes", &o->nodes, 1, rdma::kMaxShmNodes,
             "Nodes, as threads of this process that reach each other's memory only through the fabric. Default: 1")
      ->group(group);
  Add(command, "--memory-per-node", &o->memory_per_node, ParseSize, "SIZE",
      "Most memory that a node may use, such as 8G. Default: an equal share of three quarters of the machine's")
      ->group(group);
  AddInteger(command, "--seed", &o->seed, 0, INT64_MAX, "Of the population and of the run. Default: 1")->group(group);
  command
      .add_option("--store", o->store,
                  "Keep the nodes' memory in this file (on /dev/shm) for other processes to map. It must not exist,\n"
                  "and is removed at the end. Default: anonymous memory")
      ->type_name("PATH")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group(group);
  command
      .add_flag("--adversarial", o->adversarial,
                "Access lines in random order and yield in between, as the fabric's contract allows. Slow; for testing")
      ->group(group);
}

void AddRunFlags(CLI::App& command, TpccOptions* o) {
  const std::string group = "What is run";
  AddInteger(command, "--threads", &o->threads, 1, kMaxThreads,
             "Worker threads, dealt to the nodes in turn. Default: one per node")
      ->group(group);
  AddInteger(command, "--coroutines", &o->coroutines, 1, kMaxCoroutines,
             "Transactions that each thread interleaves. Default: 1 on one node, 4 on several")
      ->group(group);
  AddDuration(command, "--duration", &o->duration, absl::Milliseconds(10),
              "How long to measure, such as 500ms, 30s or 2m. Default: 30s")
      ->group(group);
  AddDuration(command, "--warmup", &o->warmup, absl::ZeroDuration(), "How long to run before measuring. Default: 2s")
      ->group(group);
  Add(command, "--mix", &o->mix, ParseMix, "N,N,N,N,N",
      "Percent of NewOrder, Payment, OrderStatus, Delivery, StockLevel. Default: 45,43,4,4,4")
      ->group(group);
  command
      .add_flag(
          "--think-time", o->think_time,
          "Ten terminals per warehouse that key in and think as clause 5.2.5 says (about 12.86 tpmC per warehouse)")
      ->group(group);
  Add(command, "--read-path", &o->read_path, ParseReadPath, "PATH",
      "How a single record of another node is read: adaptive (whichever was cheaper lately), one-sided, or call.\n"
      "Several at once are always read one-sided. Default: adaptive")
      ->group(group);
  AddDuration(command, "--interval", &o->interval, absl::Milliseconds(10),
              "Between two lines of live progress (on a terminal only). Default: 1s")
      ->group(group);
}

}  // namespace

void AddTpccFlags(CLI::App& command, TpccOptions* options) {
  AddStoreFlags(command, options);
  if (options->verb == TpccVerb::kRun) AddRunFlags(command, options);
  command.add_option("--json", options->json, "Write the report as JSON to this file too")
      ->type_name("FILE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group("Report");
}

}  // namespace gannet::cli
