// A client's change of an index of shared leaves, with changes by the owner between any two of its verbs. Afterwards
// the index has what the changes left, and its structure is whole: in a B-link tree every separator leads to its child.
#include <algorithm>
#include <cstdint>
#include <tuple>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/index/interrupted_channel.h"
#include "tests/index/shared_leaf_world.h"

namespace gannet::index {
namespace interrupted_change_test {

constexpr uint64_t kKeys = 500;

class InterruptedChangeTest : public ::testing::TestWithParam<std::tuple<SharedLeafCase, uint64_t>>,
                              protected SharedLeafWorld {
 protected:
  // The owner does not wait long for what the client has locked, since the client is waiting for the owner.
  InterruptedChangeTest()
      : SharedLeafWorld(std::get<0>(GetParam()), std::get<1>(GetParam()), absl::Microseconds(30)),
        channel_(thread_->channel()) {
    Connect(&channel_);
  }
  ~InterruptedChangeTest() override { Disconnect(); }

  // The owner inserts or removes a key. What the client has locked stays as it is.
  void Change(uint64_t key, bool inserts) {
    if (inserts == model_.contains(key)) return;
    EpochGuard guard(owner_->epoch());
    const Status status = inserts
                              ? index_->Insert(owner_->context(), KeyOf(key).view(), RecordOf(key), nullptr).status()
                              : index_->Remove(owner_->context(), KeyOf(key).view(), model_.at(key)).status();
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      ++refused_;
      return;
    }
    Note(key, inserts);
  }
  void Note(uint64_t key, bool is_there) {
    if (is_there) {
      model_[key] = RecordOf(key);
    } else {
      model_.erase(key);
    }
  }

  // The owner changes what is near a key, but not the key: so that leaves there split, merge, or do both.
  void ChangeNear(uint64_t key, uint64_t radius) {
    const uint64_t first = key < radius ? 0 : key - radius;
    const uint64_t end = std::min(key + radius, kKeys);
    const auto change_all = [&](bool inserts) {
      const size_t most_refused = refused_ + 3;
      for (uint64_t n = first; n < end && refused_ < most_refused; ++n) {
        if (n != key) Change(n, inserts);
      }
    };
    const uint64_t how = random_.Below(4);
    if (how < 2) change_all(/*inserts=*/how == 0);
    if (how == 2) {
      change_all(false);
      change_all(true);
    }
    for (uint64_t i = 0; how == 3 && i < radius; ++i) {
      const uint64_t n = first + random_.Below(end - first);
      if (n != key) Change(n, random_.OneIn(2));
    }
    if (random_.OneIn(4)) kind_.tidy(index_.get());
    ExpectFound(first, end, key);
  }

  // The owner finds what there is, but for the key that the client changes, although the client may hold locks.
  void ExpectFound(uint64_t first, uint64_t end, uint64_t key) {
    EpochGuard guard(owner_->epoch());
    for (uint64_t n = first; n < end; ++n) {
      const FindResult found = index_->Find(KeyOf(n).view());
      const bool is_lost = found.record.is_null() && found.witness.word.is_null();
      if (n == key || is_lost) continue;
      ++found_;
      EXPECT_EQ(!found.record.is_null(), model_.contains(n)) << "key " << n;
    }
  }

  InterruptedChannel channel_;
  Model model_;
  size_t refused_ = 0;
  size_t found_ = 0;  // by the owner, while the client was changing something
};

TEST_P(InterruptedChangeTest, TheStructureStaysWhole) {
  int interrupted = 0;
  for (int round = 0; round < 2500; ++round) {
    // Waves, so that the tree grows and shrinks at all levels.
    const bool grows = round / 200 % 2 == 0;
    for (int i = 0; i < 4; ++i) Change(random_.Below(kKeys), grows);
    const uint64_t key = random_.Below(kKeys);
    const bool inserts = !model_.contains(key);
    channel_.InterruptAfter(random_.Below(16), [this, key] { ChangeNear(key, 5 + random_.Below(40)); });
    const Status status = inserts ? thread_->Await(remote_->Insert(KeyOf(key).view(), RecordOf(key))).status()
                                  : thread_->Await(remote_->Remove(KeyOf(key).view(), model_.at(key))).status();
    ASSERT_TRUE(status.ok()) << status;
    Note(key, inserts);
    interrupted += channel_.is_over() ? 1 : 0;
    channel_.InterruptAfter(0, nullptr);
    ExpectContent(model_);
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(interrupted, 500);
  EXPECT_GT(found_, 500u);
}

INSTANTIATE_TEST_SUITE_P(Cases, InterruptedChangeTest,
                         ::testing::Combine(AllSharedLeafCases(), ::testing::Range(uint64_t{1}, uint64_t{4})),
                         [](const auto& test) { return NameOfSeed(test); });

}  // namespace interrupted_change_test
}  // namespace gannet::index
