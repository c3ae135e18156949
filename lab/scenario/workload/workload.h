// Workload: what the clients of a scenario do, and how the run is judged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "lab/scenario/check/anomaly.h"
#include "lab/scenario/options/options.h"
#include "lab/scenario/workload/client.h"
#include "txn/run/session.h"

namespace gannet::scenario {

// The result of the checkers.
struct Judgement {
  bool passed = true;
  bool undecided = false;
  std::string verdict;  // one line
  std::string details;
  uint64_t edges = 0;
};

Judgement JudgementOf(const Report& report);

class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::vector<txn::TableOptions> Tables() const = 0;  // on every node
  // Runs in one session on node 0, before any client starts.
  virtual Status Load(txn::Session& session) = 0;
  // `number` is unique in the run, also across power cuts.
  virtual std::unique_ptr<Client> NewClient(txn::Session& session, uint32_t number) = 0;
  // Reads all rows after the last client, as part of the history. If not `whole`: one key at a time, without the rows
  // of dead nodes.
  virtual Status ReadAll(txn::Session& session, bool whole) = 0;
  virtual Judgement Judge() = 0;
  // True if transactions can still commit when only the data on nodes with lives(node) is available.
  virtual bool CanGoOn(const std::function<bool(int node)>& lives) const = 0;
};

// InvalidArgument lists the names.
StatusOr<std::unique_ptr<Workload>> MakeWorkload(const ScenarioOptions& drawn, Control* control);

}  // namespace gannet::scenario
