// Rows and indexes for the tests of secondary indexes, and the comparison of an index with its table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/txn/durable_cluster.h"
#include "txn/database.h"
#include "txn/run/index_cursor.h"

namespace gannet::txn {

struct Person {
  char mail[16] = {};
  uint32_t city = 0;
  int16_t height = 0;
  uint16_t unused = 0;
  uint64_t other = 0;
};

inline Person MakePerson(const std::string& mail, uint32_t city, int16_t height = 0) {
  Person person{.city = city, .height = height};
  std::memcpy(person.mail, mail.data(), std::min(mail.size(), sizeof person.mail));
  return person;
}
// The table may have been widened.
inline Person PersonOf(std::span<const std::byte> payload) {
  return RowOf<Person>(payload.first(sizeof(Person)));
}
inline std::string MailOf(const Person& person) {
  return {person.mail, strnlen(person.mail, sizeof person.mail)};
}

inline TableOptions People(IndexKind kind = IndexKind::kXStore) {
  return {.name = "people", .index = kind, .payload_bytes = sizeof(Person), .expected_rows = 1000};
}
// A table of people whose rows are spread over the nodes.
inline TableOptions SpreadPeople(IndexKind kind = IndexKind::kXStore) {
  TableOptions people = People(kind);
  people.placement = Placement::ByHash();
  return people;
}
inline SecondaryIndexOptions ByCity() {
  return {.name = "by_city",
          .table = "people",
          .fields = {IndexField::Of<&Person::city>(), IndexField::Of<&Person::height>()}};
}
inline SecondaryIndexOptions ByMail() {
  return {.name = "by_mail", .table = "people", .unique = true, .fields = {IndexField::Of<&Person::mail>()}};
}

using PeopleRows = std::map<uint64_t, Person>;

// Compares both indexes with the rows of the ordered table, in one transaction. Ok: they agree.
inline Status ComparePeople(Database& database, PeopleRows* rows = nullptr) {
  const Table* const people = database.FindTable("people");
  std::string difference;
  const Status compared = database.Run([&](BlockingTransaction& t) -> Status {
    difference.clear();
    PeopleRows all;
    BlockingCursor by_key = t.OpenCursor(*people);
    for (const Cursor& row : by_key) all[row.key().integer()] = PersonOf(row.payload());
    GANNET_RETURN_IF_ERROR(by_key.status());
    for (const char* name : {"by_city", "by_mail"}) {
      const SecondaryIndex* const index = database.FindIndex(name);
      if (index == nullptr || !index->is_complete()) continue;
      using Order = std::tuple<uint64_t, int64_t, std::string, uint64_t>;
      std::vector<Order> expected;
      std::vector<Order> found;
      const auto order = [&](uint64_t key, const Person& person) {
        return index->unique() ? Order{0, 0, MailOf(person), key} : Order{person.city, person.height, "", key};
      };
      for (const auto& [key, person] : all) expected.push_back(order(key, person));
      std::ranges::sort(expected);
      BlockingIndexCursor by_index = t.RowsBy(*index);
      for (const IndexCursor& row : by_index) {
        found.push_back(order(row.key().integer(), PersonOf(row.payload())));
        const auto is = all.find(row.key().integer());
        if (is == all.end() || std::memcmp(&is->second, row.payload().data(), sizeof(Person)) != 0) {
          difference = absl::StrCat(name, " leads to another row ", row.key().integer());
        }
      }
      GANNET_RETURN_IF_ERROR(by_index.status());
      if (found != expected) {
        absl::StrAppend(&difference, "; ", name, " has ", found.size(), " rows, the table ", expected.size());
      }
      size_t entries = 0;
      BlockingCursor raw = t.OpenCursor(index->entries(), {.keys_only = true});
      for ([[maybe_unused]] const Cursor& entry : raw) ++entries;
      GANNET_RETURN_IF_ERROR(raw.status());
      if (entries != all.size()) absl::StrAppend(&difference, "; ", name, " has ", entries, " entries");
    }
    if (rows != nullptr) *rows = std::move(all);
    return absl::OkStatus();
  });
  if (!compared.ok()) return compared;
  return difference.empty() ? absl::OkStatus() : absl::InternalError(difference);
}
// Expects that ComparePeople succeeds on every node.
inline void ExpectSameOnAll(DurableCluster& cluster, PeopleRows* rows = nullptr) {
  for (Database* const node : cluster.nodes()) {
    const Status same = ComparePeople(*node, rows);
    EXPECT_TRUE(same.ok()) << "node " << node->node_id() << ": " << same;
  }
}

}  // namespace gannet::txn
