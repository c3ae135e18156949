#include "tpcc/procedures/customer_lookup.h"

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace gannet::tpcc {

coro::Task<StatusOr<uint32_t>> FindCustomerByName(txn::Transaction& transaction, const Tables& tables, uint32_t w,
                                                  uint32_t d, const Text<16>& last, txn::ScanRows* rows) {
  const CustomerNameKey from = CustomerNameKey::First(w, d, last);
  const CustomerNameKey to = CustomerNameKey::Last(w, d, last);
  const index::ScanRange range{.from = from.key(), .to = to.key()};
  const txn::ScanOptions options{.keys_only = true};
  Status status = co_await transaction.Scan(*tables.customer_by_name, range, rows, options);
  if (!status.ok()) co_return status;
  if (rows->empty()) {
    const absl::string_view name(last.view().data(), last.view().size());
    co_return absl::NotFoundError(absl::StrFormat("no customer of district (%d, %d) is called %s", w, d, name));
  }
  const size_t median = (rows->size() + 1) / 2 - 1;
  co_return CustomerNameKey::CustomerOf(rows->key(median).bytes());
}

}  // namespace gannet::tpcc
