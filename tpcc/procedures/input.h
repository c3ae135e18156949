// Shared by the procedures: the source of their inputs, and their results when they do not commit.
#pragma once

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "base/random.h"
#include "base/status.h"
#include "tpcc/schema/random.h"
#include "tpcc/schema/rows.h"
#include "tpcc/schema/schema.h"
#include "txn/run/transaction.h"

namespace gannet::tpcc {

inline constexpr uint32_t kMaxLines = 15;  // per order

// One per coroutine. The functions that make inputs (Make...Input) draw from `random` and set dates from `now`.
struct InputSource {
  Random random;
  NonUniform non_uniform;
  Scale scale = {};
  uint32_t warehouses = 1;
  Date now = 0;
  uint32_t terminal_district = 0;  // the district of a StockLevel (clause 2.8.1.1); 0: any

  uint32_t RandomDistrict() { return static_cast<uint32_t>(random.Between(1, kDistricts)); }
  uint32_t RandomCustomer() { return non_uniform.Customer(random, scale.customers_per_district); }
  Text<16> RandomLastName() { return LastName(non_uniform.LastName(random, scale.last_names())); }
  // A warehouse uniform among all but `w`; there must be another.
  uint32_t OtherWarehouse(uint32_t w) {
    const uint32_t other = static_cast<uint32_t>(random.Between(1, warehouses - 1));
    return other < w ? other : other + 1;
  }
  // True for `percent` percent of the calls.
  bool Percent(uint32_t percent) { return random.Below(100) < percent; }
};

// How a Payment or an OrderStatus names its customer: 60% by last name (clauses 2.5.1.2, 2.6.1.2).
struct CustomerChoice {
  bool by_name = false;
  Text<16> last;   // if by_name
  uint32_t c = 0;  // otherwise

  static CustomerChoice Draw(InputSource& source) {
    CustomerChoice choice{.by_name = source.Percent(60), .last = {}, .c = 0};
    if (choice.by_name) {
      choice.last = source.RandomLastName();
    } else {
      choice.c = source.RandomCustomer();
    }
    return choice;
  }
};

// Returned by a procedure that must roll back at the user's request (clause 2.4.2.3). Not a failure.
inline Status RolledBack() {
  return absl::CancelledError("rolled back: unused item number");
}
inline bool IsRolledBack(const Status& status) {
  return absl::IsCancelled(status);
}

// Reports that a row which the schema promises is missing.
Status MissingRow(absl::string_view table, uint64_t key);
// Ok if all integer keys were found; otherwise MissingRow of the first one that was not.
Status AllFound(std::span<const txn::GetRequest> answers);

}  // namespace gannet::tpcc
