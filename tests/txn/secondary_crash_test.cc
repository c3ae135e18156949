// Secondary indexes after crashes: they are complete and right, or there are none.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/secondary_changes.h"
#include "tests/txn/secondary_helpers.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace secondary_crash_test {

// The disk breaks at every operation of what a program does with an index: it makes it over rows that there are, and
// changes rows. Afterwards the index is complete and right, or there is none, and it can be made.
TEST(SecondaryCrashTest, ABreakLeavesAnIndexThatIsRightOrNone) {
  const Disk first = NewDisk();
  {
    auto cluster = Open(first, {People()});
    for (uint64_t key = 0; key < 200; ++key) {
      ASSERT_TRUE(PutPerson((*cluster)->database(), key, MakePerson(absl::StrCat("p", key), 1)).ok());
    }
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  const DiskImage image = ImageOf(*first);
  std::map<std::string, int> seen;
  for (const bool power_cut : {true, false}) {
    for (uint64_t at = 1;; ++at) {
      SCOPED_TRACE(testing::Message() << (power_cut ? "power cut" : "error") << " at operation " << at);
      const Disk disk = DiskOf(image, at);
      bool created = false;
      uint64_t put = 0;
      bool removed = false;
      std::atomic<uint64_t> operations{0};
      {
        auto cluster = DurableCluster::Open(disk, {}, {.database = {.durable_within = absl::Milliseconds(20)}});
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        Database& database = (*cluster)->database();
        disk->SetOptions({.before = [&](log::DiskOperation operation, const std::string& path) {
          if (operations.fetch_add(1) + 1 != at) return;
          if (power_cut) disk->PowerOff();
          if (!power_cut) disk->Schedule({.operation = operation, .path_contains = path});
        }});
        created = database.CreateIndex(ByMail()).ok();
        EXPECT_TRUE(!created || database.FindIndex("by_mail")->is_complete());
        for (uint64_t key = 200; key < 203; ++key) {
          if (PutPerson(database, key, MakePerson(absl::StrCat("p", key), 2)).ok()) put = key;
        }
        removed = database.Run([&](auto& t) { return t.Remove(*database.FindTable("people"), 3); }).ok();
        disk->SetOptions({});
      }
      if (operations.load() < at) break;
      disk->Heal();
      auto cluster = Open(power_cut ? disk->CrashedCopy(at) : disk);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      Database& database = (*cluster)->database();
      const SecondaryIndex* const index = database.FindIndex("by_mail");
      const bool complete = index != nullptr && index->is_complete();
      EXPECT_TRUE(complete || !created);
      ++seen[complete ? "complete" : index != nullptr ? "incomplete" : "none"];
      if (index != nullptr && !complete) {
        const Status refused = database.Run([&](auto& t) { return t.GetBy(*index, Key::Tuple("p1")).status(); });
        EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
      }
      PeopleRows rows;
      Status same = ComparePeople(database, &rows);
      EXPECT_TRUE(same.ok()) << same;
      EXPECT_TRUE(put == 0 || rows.contains(put));
      EXPECT_TRUE(!removed || !rows.contains(3));
      ASSERT_TRUE(PutPerson(database, 1, MakePerson("new", 3)).ok());
      if (!complete) {
        const Status made = database.CreateIndex(ByMail()).status();
        ASSERT_TRUE(made.ok()) << made;
      }
      same = ComparePeople(database);
      EXPECT_TRUE(same.ok()) << same;
    }
  }
  EXPECT_GT(seen["complete"], 0);
  EXPECT_GT(seen["incomplete"] + seen["none"], 0);
}

// Random commits, with checkpoints and a power cut at a random moment: after recovery the indexes are those of the
// rows.
TEST(SecondaryCrashTest, CommitsAreWholeAfterAPowerCut) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(seed);
    const Disk disk = NewDisk(seed);
    Random random(seed);
    {
      auto cluster = DurableCluster::Open(
          disk, {People()},
          {.database = {.durability = seed % 3 == 0 ? DurabilityMode::kAsync : DurabilityMode::kSync,
                        .durable_within = absl::Milliseconds(20)}});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      Database& database = (*cluster)->database();
      ASSERT_TRUE(database.CreateIndex(ByCity()).ok());
      ASSERT_TRUE(database.CreateIndex(ByMail()).ok());
      const uint64_t changes = random.Below(150);
      for (uint64_t i = 0; i < changes; ++i) {
        const Status changed = ChangePeople(database, random, 20);
        ASSERT_TRUE(changed.ok()) << changed;
        if (random.OneIn(60)) {
          ASSERT_TRUE(database.Checkpoint().ok());
        }
      }
      std::thread cut([&] { disk->PowerOff(); });
      for (int i = 0; i < 3; ++i) ChangePeople(database, random, 20).IgnoreError();
      cut.join();
    }
    auto cluster = Open(disk->CrashedCopy(seed));
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const Status same = ComparePeople((*cluster)->database());
    EXPECT_TRUE(same.ok()) << same;
  }
}

}  // namespace secondary_crash_test
}  // namespace gannet::txn
