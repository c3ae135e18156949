#include "tpcc/conditions.h"

#include <array>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"

namespace gannet::tpcc {
namespace {

// A description of what is wrong with a warehouse, district or customer; nullopt: nothing.
using Failure = std::optional<std::string>;

// Returns "left is 1, right is 2" if values that must be equal differ.
template <class T>
Failure Differ(const char* left_name, T left, const char* right_name, T right) {
  if (left == right) return std::nullopt;
  return absl::StrFormat("%s is %d, %s is %d", left_name, left, right_name, right);
}

Failure Condition1(const WarehouseFacts& warehouse) {
  Cents sum = 0;
  for (const DistrictFacts& district : warehouse.districts) sum += district.ytd;
  return Differ("W_YTD", warehouse.ytd, "sum(D_YTD)", sum);
}

Failure Condition2(const DistrictFacts& district, const Scale&) {
  const int64_t last = int64_t{district.next_o_id} - 1;
  if (Failure failure = Differ<int64_t>("D_NEXT_O_ID - 1", last, "max(O_ID)", district.max_order)) return failure;
  if (district.new_orders == 0) return std::nullopt;  // as the clause says
  return Differ<int64_t>("D_NEXT_O_ID - 1", last, "max(NO_O_ID)", district.max_new_order);
}

Failure Condition3(const DistrictFacts& district, const Scale&) {
  if (district.new_orders == 0) return std::nullopt;
  const uint64_t span = uint64_t{district.max_new_order} - district.min_new_order + 1;
  return Differ("max(NO_O_ID) - min(NO_O_ID) + 1", span, "count(NEW_ORDER)", district.new_orders);
}

Failure Condition4(const DistrictFacts& district, const Scale&) {
  return Differ("sum(O_OL_CNT)", district.lines_promised, "count(ORDER_LINE)", district.order_lines);
}

Failure Single(const std::optional<Offender>& offender, const char* left_name, const char* right_name) {
  if (!offender) return std::nullopt;
  const std::string line = offender->line == 0 ? "" : absl::StrFormat(" line %d", offender->line);
  return absl::StrFormat("order %d%s: %s is %d, %s is %d", offender->o_id, line, left_name, offender->left, right_name,
                         offender->right);
}

Failure Condition5(const DistrictFacts& district, const Scale&) {
  return Single(district.condition_5, "O_CARRIER_ID (0 = null)", "its number of rows in NEW_ORDER");
}

Failure Condition6(const DistrictFacts& district, const Scale&) {
  return Single(district.condition_6, "O_OL_CNT", "its number of rows in ORDER_LINE");
}

Failure Condition7(const DistrictFacts& district, const Scale&) {
  return Single(district.condition_7, "OL_DELIVERY_D (0 = null)", "O_CARRIER_ID (0 = null)");
}

Failure Condition8(const WarehouseFacts& warehouse) {
  Cents sum = 0;
  for (const DistrictFacts& district : warehouse.districts) sum += district.paid;
  return Differ("W_YTD", warehouse.ytd, "sum(H_AMOUNT)", sum);
}

Failure Condition9(const DistrictFacts& district, const Scale&) {
  return Differ("D_YTD", district.ytd, "sum(H_AMOUNT)", district.paid);
}

template <class Check>
Failure OfCustomers(const DistrictFacts& district, Check check) {
  for (size_t c = 0; c < district.customers.size(); ++c) {
    if (Failure failure = check(district.customers[c])) return absl::StrFormat("customer %d: %s", c + 1, *failure);
  }
  return std::nullopt;
}

Failure Condition10(const DistrictFacts& district, const Scale&) {
  return OfCustomers(district, [](const CustomerFacts& customer) {
    return Differ("C_BALANCE", customer.balance, "sum(delivered OL_AMOUNT) - sum(H_AMOUNT)",
                  customer.delivered - customer.paid);
  });
}

Failure Condition11(const DistrictFacts& district, const Scale& scale) {
  return Differ<int64_t>("count(ORDER) - count(NEW_ORDER)",
                         static_cast<int64_t>(district.orders) - static_cast<int64_t>(district.new_orders),
                         "the orders delivered at first + sum(C_DELIVERY_CNT)",
                         static_cast<int64_t>(scale.delivered_orders() + district.delivery_count));
}

Failure Condition12(const DistrictFacts& district, const Scale&) {
  return OfCustomers(district, [](const CustomerFacts& customer) {
    return Differ("C_BALANCE + C_YTD_PAYMENT", customer.balance + customer.ytd_payment, "sum(delivered OL_AMOUNT)",
                  customer.delivered);
  });
}

// A condition applies to each warehouse or to each district.
struct Condition {
  Failure (*of_warehouse)(const WarehouseFacts&);
  Failure (*of_district)(const DistrictFacts&, const Scale&);
  const char* statement;
};
constexpr std::array<Condition, kConditions> kAll = {{
    {Condition1, nullptr, "W_YTD = sum(D_YTD)"},
    {nullptr, Condition2, "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)"},
    {nullptr, Condition3, "max(NO_O_ID) - min(NO_O_ID) + 1 = count(NEW_ORDER)"},
    {nullptr, Condition4, "sum(O_OL_CNT) = count(ORDER_LINE)"},
    {nullptr, Condition5, "O_CARRIER_ID is null if and only if the order is in NEW_ORDER"},
    {nullptr, Condition6, "O_OL_CNT = the order's number of rows in ORDER_LINE"},
    {nullptr, Condition7, "OL_DELIVERY_D is null if and only if O_CARRIER_ID is null"},
    {Condition8, nullptr, "W_YTD = sum(H_AMOUNT)"},
    {nullptr, Condition9, "D_YTD = sum(H_AMOUNT)"},
    {nullptr, Condition10, "C_BALANCE = sum(delivered OL_AMOUNT) - sum(H_AMOUNT)"},
    {nullptr, Condition11, "count(ORDER) - count(NEW_ORDER) = the orders delivered at first + sum(C_DELIVERY_CNT)"},
    {nullptr, Condition12, "C_BALANCE + C_YTD_PAYMENT = sum(delivered OL_AMOUNT)"},
}};

// The first failure of a condition, with its place.
Failure FirstFailure(const Condition& condition, const Facts& facts) {
  for (size_t w = 0; w < facts.warehouses.size(); ++w) {
    const WarehouseFacts& warehouse = facts.warehouses[w];
    if (condition.of_warehouse != nullptr) {
      if (Failure failure = condition.of_warehouse(warehouse)) {
        return absl::StrFormat("warehouse %d: %s", w + 1, *failure);
      }
      continue;
    }
    for (size_t d = 0; d < kDistricts; ++d) {
      if (Failure failure = condition.of_district(warehouse.districts[d], facts.scale)) {
        return absl::StrFormat("district (%d, %d): %s", w + 1, d + 1, *failure);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<ConditionResult> EvaluateConditions(const Facts& facts) {
  std::vector<ConditionResult> results;
  for (size_t i = 0; i < kAll.size(); ++i) {
    const Failure failure = FirstFailure(kAll[i], facts);
    results.push_back({.condition = static_cast<int>(i) + 1,
                       .holds = !failure,
                       .detail = failure ? *failure : std::string(kAll[i].statement)});
  }
  return results;
}

}  // namespace gannet::tpcc
