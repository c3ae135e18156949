// Secondary indexes are dropped, and their tables change, on one node and on several. What all changes of tables have
// in common is in schema_change_test.cc.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/schema_helpers.h"
#include "tests/txn/secondary_changes.h"
#include "tests/txn/secondary_helpers.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace secondary_drop_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SecondaryDropTest : public NodesTest {
 protected:
  static Database& NodeOf(DurableCluster& cluster, uint64_t key) {
    return *cluster.nodes()[key % cluster.nodes().size()];
  }
  static void PutPeople(DurableCluster& cluster) {
    for (uint64_t key = 0; key < 100; ++key) {
      const Status put = PutPerson(NodeOf(cluster, key), key, MakePerson(absl::StrCat("p", key), key % 7));
      ASSERT_TRUE(put.ok()) << put;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, SecondaryDropTest, testing::Values(1, kNodes), NameOfNodes);

TEST_P(SecondaryDropTest, AnIndexIsDroppedBeforeItsTable) {
  const Disk disk = NewDisk();
  {
    const auto cluster = OpenNodes(disk, nodes(), {SpreadPeople()});
    PutPeople(*cluster);
    ASSERT_TRUE(CreateIndex(cluster->nodes(), ByCity()).ok());
    ASSERT_TRUE(CreateIndex(cluster->nodes(), ByMail()).ok());
    Database& database = cluster->database(last());
    const SecondaryIndex& by_city = *database.FindIndex("by_city");
    const SecondaryIndex& by_mail = *database.FindIndex("by_mail");
    const Status refused = Drop(cluster->nodes(), "people");
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("table 'people' has the secondary index 'by_city': drop that first"));
    ASSERT_TRUE(Drop(cluster->nodes(), "by_mail").ok());
    for (Database* const node : cluster->nodes()) EXPECT_EQ(node->FindIndex("by_mail"), nullptr);
    const Status gone = database.Run([&](auto& t) { return t.GetBy(by_mail, Key::Tuple("p1")).status(); });
    EXPECT_TRUE(absl::IsFailedPrecondition(gone)) << gone;
    // Nobody keeps it: rows may have one mail.
    ASSERT_TRUE(PutPerson(database, 1, MakePerson("p2", 3)).ok());
    ExpectSameOnAll(*cluster);
    EXPECT_TRUE(absl::IsAlreadyExists(CreateIndex(cluster->nodes(), ByMail())));
    ASSERT_TRUE(PutPerson(database, 1, MakePerson("p1", 3)).ok());
    ASSERT_TRUE(CreateIndex(cluster->nodes(), ByMail()).ok());
    EXPECT_TRUE(by_city.is_complete());
    ExpectSameOnAll(*cluster);
    ASSERT_TRUE(database.Checkpoint().ok());
    ASSERT_TRUE(Drop(cluster->nodes(), "by_city").ok());
    ASSERT_TRUE(PutPerson(database, 2, MakePerson("p2", 1000)).ok());
  }
  const auto cluster = OpenAfterCrash(disk, nodes());
  EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("people", "by_mail"));
  ExpectSameOnAll(*cluster);
  ASSERT_TRUE(Drop(cluster->nodes(), "by_mail").ok());
  for (Database* const node : cluster->nodes()) EXPECT_EQ(node->FindTable("people")->secondary_indexes(), nullptr);
  ASSERT_TRUE(Drop(cluster->nodes(), "people").ok());
  EXPECT_THAT(NamesOnAll(*cluster), ElementsAre());
}

TEST_P(SecondaryDropTest, ATableWithAnIndexIsWidenedIfItsKeysStay) {
  const auto cluster = OpenNodes(nullptr, nodes(), {SpreadPeople()});
  PutPeople(*cluster);
  ASSERT_TRUE(CreateIndex(cluster->nodes(), ByMail()).ok());
  ASSERT_TRUE(
      CreateIndex(cluster->nodes(), {.name = "whole", .table = "people", .fields = {IndexField::Bytes(8, 0)}}).ok());
  const size_t wider = sizeof(Person) + 8;
  const Status refused = Widen(cluster->nodes(), "people", wider);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("index 'whole' of table 'people' has keys from whole payloads"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Widen(cluster->nodes(), "by_mail", 100)));
  ASSERT_TRUE(Drop(cluster->nodes(), "whole").ok());
  const Status widened = Widen(cluster->nodes(), "people", wider);
  ASSERT_TRUE(widened.ok()) << widened;
  ExpectSameOnAll(*cluster);
  Database& database = cluster->database(last());
  const SecondaryIndex& by_mail = *database.FindIndex("by_mail");
  for (uint64_t key = 0; key < 100; ++key) {
    const Status found = database.Run([&](auto& t) -> Status {
      const StatusOr<RowBy> row = t.GetBy(by_mail, Key::Tuple(absl::StrCat("p", key)));
      if (!row.ok()) return row.status();
      return row->key.integer() == key && row->payload.size() == wider ? absl::OkStatus()
                                                                       : absl::InternalError("another row");
    });
    EXPECT_TRUE(found.ok()) << found;
  }
}

// An index comes and goes while nodes change rows. Each time that it is complete, it is right.
TEST_P(SecondaryDropTest, TransactionsRunMeanwhile) {
  constexpr uint64_t kKeys = 60;
  const int rounds = nodes() == 1 ? 15 : 10;
  const Disk disk = NewDisk();
  {
    const auto cluster = OpenNodes(disk, nodes(), {SpreadPeople()});
    ASSERT_TRUE(CreateIndex(cluster->nodes(), ByCity()).ok());
    std::atomic<bool> stop{false};
    std::vector<std::jthread> threads;
    const absl::Cleanup end = [&] { stop.store(true); };
    for (uint64_t i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        Random random(i + 1);
        Database& database = NodeOf(*cluster, i);
        const Table& people = *database.FindTable("people");
        while (!stop.load()) {
          const uint64_t key = random.Below(kKeys);
          // Mails are unique by themselves, so only a wrong index can refuse one.
          const Person person = MakePerson(absl::StrCat("p", key, "-", random.Below(3)), random.Below(5));
          const Status done = database.Run([&](auto& t) -> Status {
            if (!random.OneIn(4)) return t.Upsert(people, key, person);
            const Status removed = t.Remove(people, key);
            return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
          });
          ASSERT_TRUE(done.ok()) << done;
        }
      });
    }
    for (int round = 0; round < rounds; ++round) {
      const Status made = CreateIndex(cluster->nodes(), ByMail());
      ASSERT_TRUE(made.ok()) << made;
      const Status right = ComparePeople(cluster->database(round % nodes()));
      ASSERT_TRUE(right.ok()) << right;
      const Status dropped = Drop(cluster->nodes(), "by_mail");
      ASSERT_TRUE(dropped.ok()) << dropped;
      if (round % 5 == 0) {
        ASSERT_TRUE(cluster->database(last()).Checkpoint().ok());
      }
    }
    stop.store(true);
    for (std::jthread& thread : threads) thread.join();
    ExpectSameOnAll(*cluster);
  }
  const auto cluster = OpenAfterCrash(disk, nodes());
  EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("people", "by_city"));
  ExpectSameOnAll(*cluster);
}

}  // namespace secondary_drop_test
}  // namespace gannet::txn
