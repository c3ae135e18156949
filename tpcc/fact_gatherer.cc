#include "tpcc/fact_gatherer.h"

#include <algorithm>
#include <atomic>
#include <span>

#include "tpcc/procedures/input.h"
#include "tpcc/repair_patience.h"
#include "tpcc/table_scan.h"

namespace gannet::tpcc {
namespace {

using txn::GetRequest;

coro::Task<Status> GetAll(txn::Transaction& transaction, std::span<GetRequest> requests) {
  Status status = co_await transaction.GetMany(requests);
  co_return status;
}

// Blocks until all rows are read. A missing row is an error: the population has it, and nothing removes it.
Status GetAllBlocking(txn::Session& session, std::span<GetRequest> requests) {
  GANNET_RETURN_IF_ERROR(
      RunPatiently(session, [&](txn::Transaction& transaction) { return GetAll(transaction, requests); }));
  return AllFound(requests);
}

// Upper bounds of the scanned keys of a district or warehouse.
uint64_t EndOfDistrict(uint32_t w, uint32_t d) {
  return DistrictKey(w, d + 1) - 1;
}
uint64_t EndOfWarehouse(uint32_t w) {
  return WarehouseKey(w) | (WarehouseKey(1) - 1);
}

}  // namespace

Status FactGatherer::Gather(uint32_t w) {
  GANNET_RETURN_IF_ERROR(ReadYtds(w));
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    GANNET_RETURN_IF_ERROR(ReadCustomers(w, d));
    GANNET_RETURN_IF_ERROR(ReadOrders(w, d));
  }
  return ReadHistory(w);
}

Status FactGatherer::ReadYtds(uint32_t w) {
  WarehouseYtd warehouse;
  std::array<District, kDistricts> districts;
  std::array<DistrictYtd, kDistricts> ytds;
  requests_.clear();
  requests_.push_back(GetRequest::Of(*tables_->warehouse_ytd, WarehouseKey(w), &warehouse));
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    requests_.push_back(GetRequest::Of(*tables_->district, DistrictKey(w, d), &districts[d - 1]));
    requests_.push_back(GetRequest::Of(*tables_->district_ytd, DistrictKey(w, d), &ytds[d - 1]));
  }
  GANNET_RETURN_IF_ERROR(GetAllBlocking(*session_, requests_));
  WarehouseFacts& facts = facts_->warehouses[w - 1];
  facts.ytd = warehouse.ytd;
  for (uint32_t d = 0; d < kDistricts; ++d) {
    facts.districts[d].ytd = ytds[d].ytd;
    facts.districts[d].next_o_id = districts[d].next_o_id;
  }
  return absl::OkStatus();
}

Status FactGatherer::ReadCustomers(uint32_t w, uint32_t d) {
  constexpr uint32_t kBatch = 256;
  DistrictFacts& district = facts_->warehouses[w - 1].districts[d - 1];
  const uint32_t count = static_cast<uint32_t>(district.customers.size());
  customers_.resize(kBatch);
  for (uint32_t first = 0; first < count; first += kBatch) {
    const uint32_t batch = std::min(kBatch, count - first);
    requests_.clear();
    for (uint32_t i = 0; i < batch; ++i) {
      requests_.push_back(GetRequest::Of(*tables_->customer, CustomerKey(w, d, first + i + 1), &customers_[i]));
    }
    GANNET_RETURN_IF_ERROR(GetAllBlocking(*session_, requests_));
    for (uint32_t i = 0; i < batch; ++i) {
      district.customers[first + i].balance = customers_[i].balance;
      district.customers[first + i].ytd_payment = customers_[i].ytd_payment;
      district.delivery_count += customers_[i].delivery_cnt;
    }
  }
  return absl::OkStatus();
}

Status FactGatherer::ReadHistory(uint32_t w) {
  WarehouseFacts& warehouse = facts_->warehouses[w - 1];
  auto add = [&](const txn::ScanRows& rows, size_t i) {
    const auto history = rows.As<History>(i);
    const uint32_t d = DistrictOf(rows.key(i).integer());
    if (d >= 1 && d <= kDistricts) warehouse.districts[d - 1].paid += history.amount;
    const uint32_t c_w = history.c_w_id, c_d = history.c_d_id, c = history.c_id;
    if (c_w < 1 || c_w > facts_->warehouses.size() || c_d < 1 || c_d > kDistricts) return;
    auto& customers = facts_->warehouses[c_w - 1].districts[c_d - 1].customers;
    if (c < 1 || c > customers.size()) return;
    std::atomic_ref<Cents>(customers[c - 1].paid).fetch_add(history.amount, std::memory_order_relaxed);
  };
  return ForEachRow(*session_, *tables_->history, WarehouseKey(w), EndOfWarehouse(w), &rows_, {}, add);
}

Status FactGatherer::ReadOrders(uint32_t w, uint32_t d) {
  const uint64_t from = DistrictKey(w, d);
  const uint64_t to = EndOfDistrict(w, d);
  orders_.clear();
  GANNET_RETURN_IF_ERROR(
      ForEachRow(*session_, *tables_->order, from, to, &rows_, {}, [&](const txn::ScanRows& rows, size_t i) {
        const auto order = rows.As<Order>(i);
        orders_.push_back({.o_id = OrderIdOf(rows.key(i).integer()),
                           .c_id = order.c_id,
                           .carrier_id = order.carrier_id,
                           .ol_cnt = order.ol_cnt});
      }));
  new_orders_.clear();
  GANNET_RETURN_IF_ERROR(ForEachRow(
      *session_, *tables_->new_order, from, to, &rows_, {.keys_only = true},
      [&](const txn::ScanRows& rows, size_t i) { new_orders_.push_back(OrderIdOf(rows.key(i).integer())); }));
  OrderMerger merger(&facts_->warehouses[w - 1].districts[d - 1], orders_, new_orders_);
  GANNET_RETURN_IF_ERROR(
      ForEachRow(*session_, *tables_->order_line, from, to, &rows_, {}, [&](const txn::ScanRows& rows, size_t i) {
        const uint64_t key = rows.key(i).integer();
        merger.AddLine(OrderIdOfLine(key), LineOf(key), rows.As<OrderLine>(i).delivery);
      }));
  merger.Finish();
  return absl::OkStatus();
}

}  // namespace gannet::tpcc
