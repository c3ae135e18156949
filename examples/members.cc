// Members of a club, found by their number, by their mail address, and by the year of their birth: secondary indexes.
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "txn/database.h"

using gannet::Status;
using gannet::StatusOr;
using gannet::index::Key;
using gannet::txn::BlockingTransaction;
using gannet::txn::Database;
using gannet::txn::IndexCursor;
using gannet::txn::IndexField;
using gannet::txn::KeyRange;
using gannet::txn::RowBy;
using gannet::txn::SecondaryIndex;
using gannet::txn::Table;

struct Member {
  char mail[32] = {};
  uint16_t born = 0;
};

Status Join(Database& database, const Table& members, uint64_t number, std::string_view mail, uint16_t born) {
  Member member{.born = born};
  std::memcpy(member.mail, mail.data(), mail.size());
  return database.Run([&](BlockingTransaction& t) { return t.Insert(members, number, member); });
}

Status Main() {
  auto database = Database::OpenInMemory({});
  if (!database.ok()) return database.status();
  auto members = (*database)->CreateTable({.name = "members", .payload_bytes = sizeof(Member)});
  if (!members.ok()) return members.status();
  GANNET_RETURN_IF_ERROR((*database)->Start());
  GANNET_RETURN_IF_ERROR(Join(**database, **members, 1, "ann", 1955));
  GANNET_RETURN_IF_ERROR(Join(**database, **members, 2, "bob", 1950));
  GANNET_RETURN_IF_ERROR(Join(**database, **members, 3, "cy", 1948));

  // Indexes may be made later than rows, and while transactions run.
  const auto by_mail = (*database)->CreateIndex(
      {.name = "by_mail", .table = "members", .unique = true, .fields = {IndexField::Of<&Member::mail>()}});
  if (!by_mail.ok()) return by_mail.status();
  const auto by_year =
      (*database)->CreateIndex({.name = "by_year", .table = "members", .fields = {IndexField::Of<&Member::born>()}});
  if (!by_year.ok()) return by_year.status();

  uint64_t number = 0;
  GANNET_RETURN_IF_ERROR((*database)->Run([&](BlockingTransaction& t) -> Status {
    const StatusOr<RowBy> ann = t.GetBy(**by_mail, Key::Tuple("ann"));
    if (ann.ok()) number = ann->key.integer();
    return ann.status();
  }));
  std::cout << "ann is member " << number << '\n';
  std::cout << Join(**database, **members, 4, "ann", 1990) << '\n';

  std::vector<uint64_t> old;
  GANNET_RETURN_IF_ERROR((*database)->Run([&](BlockingTransaction& t) {
    old.clear();
    for (const IndexCursor& row : t.RowsBy(**by_year, KeyRange::Closed(1900, 1950))) old.push_back(row.key().integer());
    return absl::OkStatus();
  }));
  std::cout << "from 1900 to 1950:";
  for (const uint64_t each : old) std::cout << ' ' << each;
  std::cout << '\n';
  return (*database)->Close();
}

int main() {
  const Status status = Main();
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
