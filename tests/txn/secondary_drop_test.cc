// Secondary indexes are dropped, and their tables change, while transactions run and after crashes.
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/secondary_helpers.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status PutPerson(Database& database, uint64_t key, const Person& person) {
  return database.Run([&](auto& t) { return t.Upsert(*database.FindTable("people"), key, person); });
}

TEST(SecondaryDropTest, AnIndexIsDroppedBeforeItsTable) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {People()});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    for (uint64_t key = 0; key < 100; ++key) {
      ASSERT_TRUE(PutPerson(database, key, MakePerson(absl::StrCat("p", key), key % 7)).ok());
    }
    const SecondaryIndex& by_city = **database.CreateIndex(ByCity());
    const SecondaryIndex& by_mail = **database.CreateIndex(ByMail());
    const Status refused = database.DropTable("people");
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("table 'people' has the secondary index 'by_city': drop that first"));
    ASSERT_TRUE(database.DropTable("by_mail").ok());
    EXPECT_EQ(database.FindIndex("by_mail"), nullptr);
    const Status gone = database.Run([&](auto& t) { return t.GetBy(by_mail, Key::Tuple("p1")).status(); });
    EXPECT_TRUE(absl::IsFailedPrecondition(gone)) << gone;
    // Nobody keeps it: rows may have one mail.
    ASSERT_TRUE(PutPerson(database, 1, MakePerson("p2", 3)).ok());
    EXPECT_TRUE(ComparePeople(database).ok()) << ComparePeople(database);
    EXPECT_TRUE(absl::IsAlreadyExists(database.CreateIndex(ByMail()).status()));
    ASSERT_TRUE(PutPerson(database, 1, MakePerson("p1", 3)).ok());
    ASSERT_TRUE(database.CreateIndex(ByMail()).ok());
    EXPECT_TRUE(by_city.is_complete());
    EXPECT_TRUE(ComparePeople(database).ok()) << ComparePeople(database);
    ASSERT_TRUE(database.Checkpoint().ok());
    ASSERT_TRUE(database.DropTable("by_city").ok());
    ASSERT_TRUE(PutPerson(database, 2, MakePerson("p2", 1000)).ok());
  }
  auto cluster = Open(disk->CrashedCopy(1));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  EXPECT_THAT(Names(database), ElementsAre("people", "by_mail"));
  EXPECT_TRUE(ComparePeople(database).ok()) << ComparePeople(database);
  ASSERT_TRUE(database.DropTable("by_mail").ok());
  ASSERT_TRUE(database.DropTable("people").ok());
  EXPECT_TRUE(database.tables().empty());
}

TEST(SecondaryDropTest, ATableWithAnIndexIsWidenedIfItsKeysStay) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{128} << 20});
  ASSERT_TRUE((*database)->Start().ok());
  ASSERT_TRUE((*database)->CreateTable(People()).ok());
  for (uint64_t key = 0; key < 100; ++key) {
    ASSERT_TRUE(PutPerson(**database, key, MakePerson(absl::StrCat("p", key), key % 7)).ok());
  }
  ASSERT_TRUE((*database)->CreateIndex(ByMail()).ok());
  ASSERT_TRUE((*database)->CreateIndex({.name = "whole", .table = "people", .fields = {IndexField::Bytes(8, 0)}}).ok());
  const size_t wider = sizeof(Person) + 8;
  const Status refused = (*database)->WidenTable("people", wider);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("index 'whole' of table 'people' has keys from whole payloads"));
  EXPECT_TRUE(absl::IsFailedPrecondition((*database)->WidenTable("by_mail", 100)));
  ASSERT_TRUE((*database)->DropTable("whole").ok());
  const Status widened = (*database)->WidenTable("people", wider);
  ASSERT_TRUE(widened.ok()) << widened;
  EXPECT_TRUE(ComparePeople(**database).ok()) << ComparePeople(**database);
  const SecondaryIndex& by_mail = *(*database)->FindIndex("by_mail");
  for (uint64_t key = 0; key < 100; ++key) {
    const Status found = (*database)->Run([&](auto& t) -> Status {
      const StatusOr<RowBy> row = t.GetBy(by_mail, Key::Tuple(absl::StrCat("p", key)));
      if (!row.ok()) return row.status();
      return row->key.integer() == key && row->payload.size() == wider ? absl::OkStatus()
                                                                       : absl::InternalError("another row");
    });
    EXPECT_TRUE(found.ok()) << found;
  }
}

// An index comes and goes while rows change. Each time that it is complete, it is right.
TEST(SecondaryDropTest, TransactionsRunMeanwhile) {
  constexpr uint64_t kKeys = 60;
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {People()});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    ASSERT_TRUE(database.CreateIndex(ByCity()).ok());
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        Random random(i + 1);
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
    for (int round = 0; round < 40; ++round) {
      const auto made = database.CreateIndex(ByMail());
      ASSERT_TRUE(made.ok()) << made.status();
      const Status right = ComparePeople(database);
      ASSERT_TRUE(right.ok()) << right;
      const Status dropped = database.DropTable("by_mail");
      ASSERT_TRUE(dropped.ok()) << dropped;
      if (round % 10 == 0) {
        ASSERT_TRUE(database.Checkpoint().ok());
      }
    }
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(ComparePeople(database).ok());
  }
  auto cluster = Open(disk->CrashedCopy(1));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(Names((*cluster)->database()), ElementsAre("people", "by_city"));
  EXPECT_TRUE(ComparePeople((*cluster)->database()).ok());
}

// The disk breaks at every operation on the manifest while an index is dropped. It is then complete and right, or
// incomplete, or not there; and rows that were changed after an error do not make it wrong.
TEST(SecondaryDropTest, ACrashLeavesNoWrongIndex) {
  const Disk first = NewDisk();
  {
    auto cluster = Open(first, {People()});
    for (uint64_t key = 0; key < 50; ++key) {
      ASSERT_TRUE(PutPerson((*cluster)->database(), key, MakePerson(absl::StrCat("p", key), 1)).ok());
    }
    ASSERT_TRUE((*cluster)->database().CreateIndex(ByMail()).ok());
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  const DiskImage image = ImageOf(*first);
  std::set<std::string> seen;
  for (const bool power_cut : {true, false}) {
    for (uint64_t at = 1;; ++at) {
      SCOPED_TRACE(testing::Message() << (power_cut ? "power cut" : "error") << " at operation " << at);
      const Disk disk = DiskOf(image, at);
      bool dropped = false;
      std::atomic<uint64_t> operations{0};
      {
        auto cluster = DurableCluster::Open(disk, {}, {.database = {.durable_within = absl::Milliseconds(100)}});
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        Database& database = (*cluster)->database();
        BreakAtManifest(disk, at, power_cut, &operations);
        dropped = database.DropTable("by_mail").ok();
        disk->SetOptions({});
        if (!power_cut) {
          ASSERT_TRUE(PutPerson(database, 7, MakePerson("seven", 1)).ok());
          ASSERT_TRUE(PutPerson(database, 60, MakePerson("p7", 1)).ok());
          EXPECT_TRUE(ComparePeople(database).ok()) << ComparePeople(database);
        }
      }
      if (operations.load() < at) {
        EXPECT_GT(at, 6u) << "two replacements of a file have more operations than that";
        break;
      }
      disk->Heal();
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        auto cluster = Open(power_cut ? disk->CrashedCopy(at * 10 + seed) : disk);
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        Database& database = (*cluster)->database();
        const SecondaryIndex* const index = database.FindIndex("by_mail");
        const bool complete = index != nullptr && index->is_complete();
        if (dropped) {
          EXPECT_EQ(index, nullptr);
        }
        seen.insert(complete ? "complete" : index != nullptr ? "incomplete" : "none");
        EXPECT_TRUE(ComparePeople(database).ok()) << ComparePeople(database);
        if (!complete) {
          const auto made = database.CreateIndex(ByMail());
          ASSERT_TRUE(made.ok()) << made.status();
        }
        EXPECT_TRUE(ComparePeople(database).ok()) << ComparePeople(database);
        ASSERT_TRUE(database.DropTable("by_mail").ok());
        ASSERT_TRUE(database.DropTable("people").ok());
        ASSERT_TRUE((*cluster)->Close().ok());
        if (!power_cut) break;
      }
    }
  }
  EXPECT_THAT(seen, ElementsAre("complete", "incomplete", "none"));
}

}  // namespace
}  // namespace gannet::txn
