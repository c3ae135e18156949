// Append: transactions that append unique numbers to lists and read whole lists. Lists are rows of variable length, so
// they grow out of their blocks and move. Judged by CheckListAppend, and by Elle if its file is asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scenario/check/list_append.h"
#include "scenario/workload/workload.h"

namespace gannet::scenario {

class Append : public Workload {
 public:
  Append(const ScenarioOptions& drawn, Control* control);

  std::vector<txn::TableOptions> Tables() const override;
  Status Load(txn::Session&) override { return absl::OkStatus(); }
  std::unique_ptr<Client> NewClient(txn::Session& session, uint32_t number) override;
  Status ReadAll(txn::Session& session, bool whole) override;
  Judgement Judge() override;
  // Lists become long, whether they are there or not, and others take their places.
  bool CanGoOn(const std::function<bool(int node)>&) const override { return true; }

 private:
  friend class AppendClient;

  // Where lists are appended to now: a list that is long gives way to a new one.
  uint64_t KeyOf(uint64_t slot) const { return generations_[slot] * generations_.size() + slot; }

  std::vector<uint64_t> generations_;  // by slot
  std::vector<uint64_t> appended_;     // to the slot's list of now, or tried
  uint64_t last_value_ = 0;
  uint64_t seed_;
  txn::Placement placement_;
  std::string elle_file_;
  Control* control_;
  AppendHistory history_;
};

}  // namespace gannet::scenario
