// Witnesses and changes, in one thread: a miss or a scan stays valid as long as its witnesses, and a change describes
// itself.
#include <algorithm>
#include <vector>

#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_witness_test {

constexpr uint64_t kKeys = 2000;

TEST_P(IndexSuite, WitnessOfAMissChangesWithItsKey) {
  Start(kKeys);
  Random random(11);
  for (uint64_t n = 0; n < kKeys; n += 2) InsertBoth(KeyOf(n));
  for (int round = 0; round < 1000; ++round) {
    const OwnedKey key = KeyOf(2 * random.Below(kKeys / 2) + 1);
    if (model_.contains(key)) RemoveBoth(key);
    EpochGuard guard(main_->epoch());
    const FindResult miss = index_->Find(key.view());
    ASSERT_TRUE(miss.record.is_null());
    ASSERT_EQ(miss.witness.seen & rdma::kLockBit, 0u);
    ASSERT_TRUE(cluster_->Valid(miss.witness));
    // Lookups change no witness, nor does a failed insert of a present key or a failed removal.
    const OwnedKey& present = AnyKey(&random);
    index_->Find(present.view());
    const rdma::GlobalAddress record = main_->NewRecord(present.view());
    ASSERT_FALSE(index_->Insert(main_->context(), present.view(), record, nullptr).ok());
    ASSERT_FALSE(index_->Remove(main_->context(), present.view(), record).ok());
    main_->RetireRecord(record);
    ASSERT_TRUE(cluster_->Valid(miss.witness));

    InsertBoth(key);
    ASSERT_FALSE(cluster_->Valid(miss.witness));
    RemoveBoth(key);
    // The value never returns for another set of keys.
    ASSERT_FALSE(cluster_->Valid(miss.witness));
    const FindResult again = index_->Find(key.view());
    ASSERT_TRUE(again.record.is_null());
    if (random.OneIn(2)) InsertBoth(key);
  }
}

TEST_P(IndexSuite, ChangesDescribeThemselves) {
  Start(4 * kKeys);
  Random random(12);
  for (int round = 0; round < 4000; ++round) {
    const OwnedKey key = KeyOf(random.Below(kKeys));
    EpochGuard guard(main_->epoch());
    if (!model_.contains(key)) {
      const FindResult miss = index_->Find(key.view());
      const Change change = InsertBoth(key);
      ExpectSound(change);
      ASSERT_TRUE(Changes(change, miss.witness)) << key.view().ToString();
    } else {
      const Change change = RemoveBoth(key);
      ExpectSound(change);
      const FindResult miss = index_->Find(key.view());
      ASSERT_TRUE(miss.record.is_null());
      const auto& words = change.words();
      ASSERT_TRUE(std::ranges::any_of(words, [&](const WordChange& w) { return w.word == miss.witness.word; }));
    }
  }
}

TEST_P(IndexSuite, ReplaceMovesARecordAndNothingElse) {
  Start(kKeys);
  Random random(16);
  for (uint64_t n = 0; n < kKeys; n += 2) InsertBoth(KeyOf(n));
  for (int round = 0; round < 1000; ++round) {
    EpochGuard guard(main_->epoch());
    const OwnedKey key = AnyKey(&random);
    const OwnedKey absent = KeyOf(2 * random.Below(kKeys / 2) + 1);
    const FindResult miss = index_->Find(absent.view());
    ASSERT_TRUE(miss.record.is_null());
    const rdma::GlobalAddress from = model_.at(key);
    const rdma::GlobalAddress to = main_->NewRecord(key.view(), 1000);
    ASSERT_TRUE(index_->Replace(key.view(), from, to).ok());
    main_->RetireRecord(from);
    model_.at(key) = to;
    ASSERT_EQ(index_->Find(key.view()).record, to);
    ASSERT_TRUE(absl::IsNotFound(index_->Replace(key.view(), from, to)));
    ASSERT_TRUE(absl::IsNotFound(index_->Replace(absent.view(), from, to)));
    if (!GetParam().factory.replace_changes_word) {
      ASSERT_TRUE(cluster_->Valid(miss.witness));
    }
  }
  ExpectSameAsModel();
}

// A transaction that missed several keys inserts some of them itself. Its witnesses are updated, and a foreign insert
// of another one of the keys is still detected.
TEST_P(IndexSuite, MissesCarryOverOwnChanges) {
  Start(4 * kKeys);
  Random random(13);
  for (int round = 0; round < 300; ++round) {
    EpochGuard guard(main_->epoch());
    std::vector<OwnedKey> missing;
    while (missing.size() < 8) {
      const OwnedKey key = KeyOf(random.Below(2 * kKeys));
      if (!model_.contains(key) &&
          missing.end() == std::find_if(missing.begin(), missing.end(),
                                        [&](const auto& other) { return other.view() == key.view(); })) {
        missing.push_back(key);
      }
    }
    std::vector<Witness> witnesses;
    for (const OwnedKey& key : missing) witnesses.push_back(index_->Find(key.view()).witness);
    HeldWitnesses held(cluster_.get(), witnesses);
    for (int i = 0; i < 4; ++i) {
      held.Apply(InsertBoth(missing[i]));
      ASSERT_TRUE(held.Valid());
    }
    held.Apply(RemoveBoth(missing[0]));
    ASSERT_TRUE(held.Valid());
    InsertBoth(missing[4 + random.Below(4)]);
    ASSERT_FALSE(held.Valid());
  }
}

// What the index does by itself, e.g. with leaves that have become empty, is no conflict for a transaction that read
// before. A foreign insert still is one, wherever the key's place is now, and own ones are carried over.
TEST_P(IndexSuite, HousekeepingChangesNoWitness) {
  Start(4 * kKeys);
  Random random(17);
  for (int round = 0; round < 30; ++round) {
    // Some stay, so that there are leaves on both sides of the emptied ones; in every third round none does.
    const uint64_t first = round % 3 == 0 ? 0 : random.Below(kKeys / 2);
    const uint64_t end = round % 3 == 0 ? kKeys : first + 1 + random.Below(kKeys / 2);
    for (uint64_t n = 0; n < kKeys; ++n) {
      if (!model_.contains(KeyOf(n))) InsertBoth(KeyOf(n));
    }
    for (uint64_t n = first; n < end; ++n) RemoveBoth(KeyOf(n));
    if (round % 2 == 0) cluster_->PassGracePeriod();  // some of it happens before, some after the reads
    std::vector<Witness> witnesses;
    const auto miss = [&](uint64_t n) { witnesses.push_back(index_->Find(KeyOf(n).view()).witness); };
    EpochGuard guard(main_->epoch());
    for (uint64_t n = first; n < end; ++n) miss(n);
    HeldWitnesses held(cluster_.get(), witnesses);
    HeldWitnesses foreign(cluster_.get(), witnesses);
    for (int i = 0; i < 3; ++i) cluster_->PassGracePeriod();
    ASSERT_TRUE(held.Valid());
    for (int i = 0; i < 20; ++i) {
      const OwnedKey key = KeyOf(first + random.Below(end - first));
      held.Apply(model_.contains(key) ? RemoveBoth(key) : InsertBoth(key));
      ASSERT_TRUE(held.Valid()) << "after " << i << " own changes";
      ASSERT_FALSE(foreign.Valid());
      cluster_->PassGracePeriod();
      ASSERT_TRUE(held.Valid());
    }
    const OwnedKey key = KeyOf(first + random.Below(end - first));
    if (model_.contains(key)) {
      RemoveBoth(key);
    } else {
      InsertBoth(key);
    }
    ASSERT_FALSE(held.Valid());
  }
  ExpectSameAsModel();
}

TEST_P(IndexSuite, ForeignInsertsInvalidateAScan) {
  if (!ordered()) GTEST_SKIP() << "not an ordered kind";
  Start(kKeys);
  Random random(14);
  for (uint64_t n = 0; n < kKeys; n += 3) InsertBoth(KeyOf(n));
  for (int round = 0; round < 1500; ++round) {
    const RandomRange ends(GetParam(), kKeys, &random);
    ScanRange range = ends.range();
    range.reverse = random.OneIn(2);
    if (random.OneIn(2)) range.limit = 1 + random.Below(20);
    EpochGuard guard(main_->epoch());
    ScanResult result;
    ASSERT_TRUE(index_->Scan(range, &result).ok());
    const HeldWitnesses held(cluster_.get(), result.witnesses);
    ASSERT_TRUE(held.Valid());
    // A scan that ended at its limit covers the range up to its last entry.
    if (result.entries.size() == range.limit) {
      (range.reverse ? range.from : range.to) = result.entries.back().key.view();
    }
    const OwnedKey key = random.OneIn(20)   ? OwnedKey(range.from)
                         : random.OneIn(20) ? OwnedKey(range.to)
                                            : KeyOf(random.Below(kKeys));
    const bool inside = !(key.view() < range.from) && !(range.to < key.view());
    if (model_.contains(key)) {
      RemoveBoth(key);
    } else {
      InsertBoth(key);
    }
    ASSERT_FALSE(inside && held.Valid()) << key.view().ToString();
  }
}

TEST_P(IndexSuite, ScansCarryOverOwnChanges) {
  if (!ordered()) GTEST_SKIP() << "not an ordered kind";
  Start(kKeys);
  Random random(15);
  for (uint64_t n = 0; n < kKeys; n += 3) InsertBoth(KeyOf(n));
  for (int round = 0; round < 200; ++round) {
    const RandomRange ends(GetParam(), kKeys, &random);
    const ScanRange range = ends.range();
    EpochGuard guard(main_->epoch());
    ScanResult result;
    ASSERT_TRUE(index_->Scan(range, &result).ok());
    HeldWitnesses held(cluster_.get(), result.witnesses);
    for (int i = 0; i < 40; ++i) {
      const OwnedKey key = KeyOf(random.Below(kKeys));
      held.Apply(model_.contains(key) ? RemoveBoth(key) : InsertBoth(key));
      ASSERT_TRUE(held.Valid()) << "after " << i << " own changes";
    }
    // The whole range is still covered, also across splits.
    OwnedKey foreign = KeyOf(random.Below(kKeys));
    if (foreign.view() < range.from || range.to < foreign.view()) foreign = OwnedKey(range.from);
    if (model_.contains(foreign)) {
      RemoveBoth(foreign);
    } else {
      InsertBoth(foreign);
    }
    ASSERT_FALSE(held.Valid());
  }
}

}  // namespace index_witness_test
}  // namespace gannet::index
