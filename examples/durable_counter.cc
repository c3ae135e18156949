// A counter that survives kill -9: every number that this program has printed is in its directory. Try it:
//
//   durable_counter /tmp/counter 1000000 & sleep 1; kill -9 $!
//   durable_counter /tmp/counter 10          # continues where the first one was
//
// usage: durable_counter DIRECTORY INCREMENTS
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "txn/database.h"

using gannet::Status;
using gannet::txn::BlockingTransaction;
using gannet::txn::Database;
using gannet::txn::Table;

constexpr uint64_t kKey = 1;

Status Increment(BlockingTransaction& t, const Table& counters, uint64_t* value) {
  const Status found = t.Get(counters, kKey, value);
  if (absl::IsNotFound(found)) return t.Insert(counters, kKey, *value = 1);
  GANNET_RETURN_IF_ERROR(found);
  return t.Update(counters, kKey, ++*value);
}

Status Count(const std::string& directory, uint64_t increments) {
  auto database = Database::Open(directory, {.create_if_missing = true, .application = "durable_counter"});
  if (!database.ok()) return database.status();
  // Makes the table, or finds it in the directory; Start recovers its rows.
  auto counters = (*database)->CreateTable({.name = "counters", .payload_bytes = sizeof(uint64_t)});
  if (!counters.ok()) return counters.status();
  GANNET_RETURN_IF_ERROR((*database)->Start());

  uint64_t value = 0;
  Status found = (*database)->Run([&](auto& t) { return t.Get(**counters, kKey, &value); });
  if (!found.ok() && !absl::IsNotFound(found)) return found;
  std::cout << "found " << value << std::endl;

  for (uint64_t i = 0; i < increments; ++i) {
    // Ok means that the increment is on disk.
    GANNET_RETURN_IF_ERROR((*database)->Run([&](auto& t) { return Increment(t, **counters, &value); }));
    std::cout << "reached " << value << std::endl;
  }
  return (*database)->Close();
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: durable_counter DIRECTORY INCREMENTS\n";
    return 2;
  }
  const Status status = Count(argv[1], std::strtoull(argv[2], nullptr, 10));
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
