// Counts the words of its input in a directory, over all its runs, and prints those that begin with a prefix:
//
//   echo "gannet gull gannet tern" | word_counts /tmp/words g     # gannet 2, gull 1
//   echo "gull" | word_counts /tmp/words g                        # gannet 2, gull 2
//
// usage: word_counts DIRECTORY PREFIX
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "txn/database.h"

using gannet::Status;
using gannet::StatusOr;
using gannet::txn::BlockingTransaction;
using gannet::txn::Cursor;
using gannet::txn::Database;
using gannet::txn::KeyRange;
using gannet::txn::Table;

Status Count(BlockingTransaction& t, const Table& counts, const std::string& word) {
  const Status added = t.Add(counts, word, uint64_t{1});
  return absl::IsNotFound(added) ? t.Insert(counts, word, uint64_t{1}) : added;
}

Status CountInput(const std::string& directory, const std::string& prefix) {
  auto database = Database::Open(directory, {.create_if_missing = true, .application = "word_counts"});
  if (!database.ok()) return database.status();
  // Makes the table, or finds it in the directory.
  auto counts = (*database)->CreateTable({.name = "counts",
                                          .key_kind = gannet::index::KeyKind::kBytes,
                                          .max_key_bytes = 64,
                                          .index = gannet::txn::IndexKind::kXStore,
                                          .payload_bytes = sizeof(uint64_t)});
  if (!counts.ok()) return counts.status();
  GANNET_RETURN_IF_ERROR((*database)->Start());

  for (std::string word; std::cin >> word;) {
    GANNET_RETURN_IF_ERROR((*database)->Run([&](auto& t) { return Count(t, **counts, word); }));
  }

  // A body may run several times, so it prints nothing itself.
  std::vector<std::pair<std::string, uint64_t>> found;
  GANNET_RETURN_IF_ERROR((*database)->Run([&](auto& t) {
    found.clear();
    for (const Cursor& row : t.Rows(**counts, KeyRange::Prefix(prefix))) {
      found.emplace_back(row.key().bytes(), row.template As<uint64_t>());
    }
    return absl::OkStatus();
  }));
  for (const auto& [word, count] : found) std::cout << word << ' ' << count << '\n';
  return (*database)->Close();
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: word_counts DIRECTORY PREFIX\n";
    return 2;
  }
  const Status status = CountInput(argv[1], argv[2]);
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
