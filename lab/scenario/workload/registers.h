// Registers: transactions of random reads, updates, inserts, removals and scans of few keys, in a hash table and two
// ordered tables (integer and byte keys); and of rows in a fourth table that change their length twice in one
// transaction. Judged by the checker of strict serializability (judged_transaction.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/scenario/workload/judged_workload.h"
#include "lab/scenario/workload/row.h"

namespace gannet::scenario {

class Registers : public JudgedWorkload {
 public:
  using RegisterRow = Row<12>;  // two or three lines with the header and the key

  Registers(const ScenarioOptions& drawn, Control* control);

  std::vector<txn::TableOptions> Tables() const override;
  Status Load(txn::Session& session) override;
  std::unique_ptr<Client> NewClient(txn::Session& session, uint32_t number) override;
  Status ReadAll(txn::Session& session, bool whole) override;
  bool CanGoOn(const std::function<bool(int node)>& lives) const override;

 private:
  friend class RegisterClient;
  friend class RegisterTransaction;

  bool trickles() const { return seed_ % 2 == 0; }

  uint64_t keys_;
  uint64_t row_words_;
  txn::IndexKind ordered_;    // of ordered tables
  uint64_t quiet_until_ = 0;  // after a wave of removals: few transactions, or none
};

}  // namespace gannet::scenario
