// Append: transactions that append unique numbers to lists and read whole lists. Lists are rows of variable length, so
// they outgrow their blocks and move. Judged by CheckListAppend, and exported for Elle if a file is named. A torn list
// seen by a valid transaction ends the run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/scenario/check/list_append.h"
#include "lab/scenario/workload/append_transaction.h"
#include "lab/scenario/workload/workload.h"

namespace gannet::scenario {

class Append : public Workload {
 public:
  Append(const ScenarioOptions& drawn, Control* control);

  std::vector<txn::TableOptions> Tables() const override;
  Status Load(txn::Session&) override { return absl::OkStatus(); }
  std::unique_ptr<Client> NewClient(txn::Session& session, uint32_t number) override;
  Status ReadAll(txn::Session& session, bool whole) override;
  Judgement Judge() override;
  // Lists become long even if they are unavailable, and other lists take their places.
  bool CanGoOn(const std::function<bool(int node)>&) const override { return true; }

 private:
  friend class AppendClient;

  AppendPlanner planner_;
  uint64_t seed_;
  txn::Placement placement_;
  txn::IndexKind ordered_;
  std::string elle_file_;
  Control* control_;
  AppendHistory history_;
};

}  // namespace gannet::scenario
