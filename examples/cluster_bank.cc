// A bank on a cluster of processes. Servers own the accounts; clients transfer money between them.
//
//   cluster_bank cluster_bank.toml serve 0      one process per server of the file; it serves until Ctrl-C
//   cluster_bank cluster_bank.toml run 1000     a client: 1000 transfers, then the sum of all accounts
//
// The file's table [bank] belongs to this program. docs/cluster.md explains the rest of the file.
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "cluster/client.h"
#include "cluster/config/config.h"
#include "cluster/server.h"
#include "txn/bulk_loader.h"
#include "txn/database.h"

using gannet::Status;
using gannet::StatusOr;
using gannet::txn::BlockingTransaction;
using gannet::txn::Database;
using gannet::txn::Table;
namespace cluster = gannet::cluster;

struct Bank {  // the table [bank]
  int64_t accounts = 0;
  int64_t cents = 0;  // in each account at first
};

struct Account {
  int64_t cents;
};

std::atomic<bool> stop{false};

Status ReadBank(cluster::Section& section, Bank* bank) {
  GANNET_RETURN_IF_ERROR(section.NeedInteger("accounts", 2, 1'000'000, "1000", &bank->accounts));
  return section.NeedInteger("cents", 0, 1'000'000, "100", &bank->cents);
}

// Every process creates the same tables in the same order. A hash of the key says which server owns an account.
StatusOr<const Table*> CreateAccounts(Database& database, const Bank& bank) {
  return database.CreateTable({.name = "accounts",
                               .payload_bytes = sizeof(Account),
                               .expected_rows = static_cast<uint64_t>(bank.accounts),
                               .placement = gannet::txn::Placement::ByHash()});
}

Status LoadOwnAccounts(Database& database, const Table& accounts, const Bank& bank) {
  auto session = database.OpenSession();
  if (!session.ok()) return session.status();
  gannet::txn::BulkLoader loader(session->get(), &accounts);
  for (uint64_t id = 0; id < static_cast<uint64_t>(bank.accounts); ++id) {
    if (accounts.OwnerOf(id, database.node_id()) != database.node_id()) continue;
    GANNET_RETURN_IF_ERROR(loader.Add(id, Account{bank.cents}));
  }
  return loader.Finish();
}

Status Serve(const cluster::Config& config, const Bank& bank, const std::string& id,
             const cluster::Patience& patience) {
  const StatusOr<int> number = config.FindServer(id);
  if (!number.ok()) return number.status();
  auto server = cluster::Server::Open(config, *number, patience);
  if (!server.ok()) return server.status();
  auto accounts = CreateAccounts((*server)->database(), bank);
  if (!accounts.ok()) return accounts.status();
  GANNET_RETURN_IF_ERROR((*server)->Start());  // waits for the other servers
  GANNET_RETURN_IF_ERROR(LoadOwnAccounts((*server)->database(), **accounts, bank));
  (*server)->SetReady();  // clients are let in
  std::cout << "ready" << std::endl;
  return (*server)->ServeUntilStopped();
}

Status Transfer(BlockingTransaction& t, const Table& accounts, uint64_t from, uint64_t to, int64_t cents) {
  Account a, b;
  GANNET_RETURN_IF_ERROR(t.Get(accounts, from, &a));
  GANNET_RETURN_IF_ERROR(t.Get(accounts, to, &b));
  if (a.cents < cents) return absl::OutOfRangeError("not enough money");  // an error rolls everything back
  GANNET_RETURN_IF_ERROR(t.Update(accounts, from, Account{a.cents - cents}));
  return t.Update(accounts, to, Account{b.cents + cents});
}

Status Sum(BlockingTransaction& t, const Table& accounts, const Bank& bank, int64_t* sum) {
  *sum = 0;
  for (uint64_t id = 0; id < static_cast<uint64_t>(bank.accounts); ++id) {
    Account account;
    GANNET_RETURN_IF_ERROR(t.Get(accounts, id, &account));
    *sum += account.cents;
  }
  return absl::OkStatus();
}

Status TransferAndSum(Database& database, const Table& accounts, const Bank& bank, int64_t transfers) {
  std::mt19937_64 random(std::random_device{}());
  std::uniform_int_distribution<uint64_t> any_account(0, static_cast<uint64_t>(bank.accounts) - 1);
  int64_t done = 0;
  for (int64_t i = 0; i < transfers && !stop; ++i) {
    const uint64_t from = any_account(random);
    const uint64_t to = any_account(random);
    if (from == to) continue;
    Status status = database.Run([&](auto& t) { return Transfer(t, accounts, from, to, 10); });
    if (!status.ok() && !absl::IsOutOfRange(status)) return status;
    done += status.ok() ? 1 : 0;
  }
  int64_t sum = 0;
  GANNET_RETURN_IF_ERROR(database.Run([&](auto& t) { return Sum(t, accounts, bank, &sum); }));
  std::cout << done << " transfers; " << bank.accounts << " accounts hold " << sum << " cents" << std::endl;
  return absl::OkStatus();
}

Status RunClient(const cluster::Config& config, const Bank& bank, int64_t transfers,
                 const cluster::Patience& patience) {
  auto client = cluster::Client::Attach(config, patience);  // waits for the servers, takes a client slot
  if (!client.ok()) return client.status();
  auto accounts = CreateAccounts((*client)->database(), bank);
  if (!accounts.ok()) return accounts.status();
  GANNET_RETURN_IF_ERROR((*client)->Start());  // waits until the servers have loaded
  std::cout << "client in slot " << (*client)->slot() << std::endl;
  return (*client)->Explain(TransferAndSum((*client)->database(), **accounts, bank, transfers));
}

Status Main(const std::string& file, const std::string& verb, const std::string& what) {
  Bank bank;
  const auto config = cluster::ReadConfig(
      file, {{.name = "bank", .purpose = "it says which accounts there are", .read = [&](auto& section, const auto&) {
                return ReadBank(section, &bank);
              }}});
  if (!config.ok()) return config.status();
  const cluster::Patience patience = {.at_most = absl::Minutes(1), .stop = &stop, .note = [](const std::string& line) {
                                        std::cerr << line << std::endl;
                                      }};
  return verb == "serve" ? Serve(*config, bank, what, patience)
                         : RunClient(*config, bank, std::atoll(what.c_str()), patience);
}

int main(int argc, char** argv) {
  const std::string verb = argc == 4 ? argv[2] : "";
  if (verb != "serve" && verb != "run") {
    std::cerr << "usage: cluster_bank FILE serve SERVER | cluster_bank FILE run TRANSFERS\n";
    return 2;
  }
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { stop = true; });
  const Status status = Main(argv[1], verb, argv[3]);
  if (!status.ok()) std::cerr << "cluster_bank: " << status.message() << '\n';
  return status.ok() ? 0 : 1;
}
