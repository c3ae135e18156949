// FactGatherer: reads one warehouse's rows into Facts, for consistency.cc.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "tpcc/facts.h"
#include "tpcc/schema/schema.h"
#include "txn/run/session.h"

namespace gannet::tpcc {

// Gatherers of different warehouses, in any threads, may share `facts`: a payment's customer may belong to another
// warehouse, whose sum is incremented atomically.
class FactGatherer {
 public:
  // All must outlive this. `facts` has an element for every warehouse, district and customer.
  FactGatherer(txn::Session* session, const Tables* tables, Facts* facts)
      : session_(session), tables_(tables), facts_(facts) {}

  Status Gather(uint32_t w);

 private:
  Status ReadYtds(uint32_t w);
  Status ReadCustomers(uint32_t w, uint32_t d);
  Status ReadHistory(uint32_t w);
  Status ReadOrders(uint32_t w, uint32_t d);

  txn::Session* session_;
  const Tables* tables_;
  Facts* facts_;

  // Buffers.
  txn::ScanRows rows_;
  std::vector<OrderFacts> orders_;
  std::vector<uint32_t> new_orders_;
  std::vector<Customer> customers_;
  std::vector<txn::GetRequest> requests_;
};

}  // namespace gannet::tpcc
