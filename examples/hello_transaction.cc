// A transfer between two accounts, on one node whose memory is this process's own: no hardware, no set-up.
#include <cstdint>
#include <iostream>

#include "txn/database.h"

using gannet::Status;
using gannet::txn::BlockingTransaction;
using gannet::txn::Database;
using gannet::txn::Table;

struct Account {
  int64_t cents;
};

Status OpenAccounts(BlockingTransaction& t, const Table& accounts) {
  GANNET_RETURN_IF_ERROR(t.Insert(accounts, 1, Account{100'00}));
  return t.Insert(accounts, 2, Account{0});
}

Status Transfer(BlockingTransaction& t, const Table& accounts, uint64_t from, uint64_t to, int64_t cents) {
  Account a, b;
  GANNET_RETURN_IF_ERROR(t.Get(accounts, from, &a));
  GANNET_RETURN_IF_ERROR(t.Get(accounts, to, &b));
  if (a.cents < cents) return absl::FailedPreconditionError("not enough money");  // an error rolls everything back
  GANNET_RETURN_IF_ERROR(t.Update(accounts, from, Account{a.cents - cents}));
  return t.Update(accounts, to, Account{b.cents + cents});
}

Status Hello() {
  auto database = Database::OpenInMemory({});  // Open("/var/lib/bank", {.create_if_missing = true}) keeps it on disk
  if (!database.ok()) return database.status();
  auto accounts = (*database)->CreateTable({.name = "accounts", .payload_bytes = sizeof(Account)});
  if (!accounts.ok()) return accounts.status();
  GANNET_RETURN_IF_ERROR((*database)->Start());

  // Run commits everything that the function did or nothing, and calls it again if another transaction conflicted.
  GANNET_RETURN_IF_ERROR((*database)->Run([&](auto& t) { return OpenAccounts(t, **accounts); }));
  GANNET_RETURN_IF_ERROR((*database)->Run([&](auto& t) { return Transfer(t, **accounts, 1, 2, 25'00); }));

  Account balances[2];
  GANNET_RETURN_IF_ERROR((*database)->Run([&](auto& t) {
    const Status status = t.Get(**accounts, 1, &balances[0]);
    return status.ok() ? t.Get(**accounts, 2, &balances[1]) : status;
  }));
  std::cout << balances[0].cents << " and " << balances[1].cents << " cents\n";
  return absl::OkStatus();
}

int main() {
  const Status status = Hello();
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
