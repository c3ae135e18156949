// A load in parts (index/parted_load.h) makes the index that BulkLoad makes, for any number of parts. If it
// fails, the index is empty.
#include <algorithm>
#include <span>
#include <thread>
#include <vector>

#include "index/parted_load.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_load_test {

std::vector<LoadEntry> EntriesOf(const Model& model) {
  std::vector<LoadEntry> entries;
  for (const auto& [key, record] : model) entries.push_back({key.view(), record});
  return entries;
}

// Cuts the entries into at most `most` arrays, some of them empty.
LoadRuns Cut(std::span<const LoadEntry> entries, size_t most, Random* random) {
  std::vector<size_t> borders = {0, entries.size()};
  while (borders.size() <= most) borders.push_back(random->Below(entries.size() + 1));
  std::sort(borders.begin(), borders.end());
  std::vector<std::span<const LoadEntry>> runs;
  for (size_t i = 1; i < borders.size(); ++i)
    runs.push_back(entries.subspan(borders[i - 1], borders[i] - borders[i - 1]));
  return LoadRuns(runs);
}

// Builds all parts, each by a thread of its own.
std::vector<Status> BuildAll(IndexCluster* cluster, PartedLoad* load) {
  std::vector<Status> built(load->parts());
  std::vector<std::thread> threads;
  for (size_t part = 0; part < built.size(); ++part) {
    threads.emplace_back([cluster, load, part, status = &built[part]] {
      OwnerThread owner(cluster);
      EpochGuard guard(owner.epoch());
      *status = load->Build(owner.context(), part);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return built;
}

TEST_P(IndexSuite, ALoadInPartsIsABulkLoad) {
  Random random(11);
  // The loads are around one and two leaves of every kind, then many.
  std::vector<uint64_t> sizes = {0, 1, 2, 3, 300, 2000};
  for (uint64_t size = 7; size <= 90; ++size) sizes.push_back(size);
  for (const uint64_t size : sizes) {
    TearDown();
    model_.clear();
    Start(size + 1);
    if (PartedLoader::Of(index_.get()) == nullptr) GTEST_SKIP() << "has only BulkLoad";
    const double fill = random.OneIn(2) ? 1.0 : 0.5 + random.Unit() / 2;
    Statistics serial;
    {
      EpochGuard guard(main_->epoch());
      while (model_.size() < size) {
        const OwnedKey key = KeyOf(random.Below(4 * size));
        if (!model_.contains(key)) model_.emplace(key, main_->NewRecord(key.view()));
      }
      const std::vector<LoadEntry> entries = EntriesOf(model_);
      auto other = GetParam().factory.create(cluster_->owner().service.get(),
                                             {kId + 1, shape_.key_kind, shape_.max_key_bytes, size + 1});
      ASSERT_TRUE(other.ok()) << other.status();
      ASSERT_TRUE((*other)->BulkLoad(main_->context(), entries, fill).ok());
      serial = (*other)->statistics();
    }
    const std::vector<LoadEntry> entries = EntriesOf(model_);
    const size_t most_parts = random.OneIn(4) ? size : 1 + random.Below(8);  // as many as keys, too
    {
      EpochGuard guard(main_->epoch());
      auto load = PartedLoader::Of(index_.get())
                      ->BeginLoad(main_->context(), Cut(entries, 1 + random.Below(6), &random), fill, most_parts);
      ASSERT_TRUE(load.ok()) << load.status();
      EXPECT_LE((*load)->parts(), std::max<size_t>(most_parts, 1));
      EXPECT_EQ((*load)->parts() == 0, size == 0);
      for (const Status& status : BuildAll(cluster_.get(), load->get())) ASSERT_TRUE(status.ok()) << status;
      const Status finished = (*load)->Finish(main_->context());
      ASSERT_TRUE(finished.ok()) << finished;
    }
    ExpectSameAsModel();
    const Statistics parted = index_->statistics();
    EXPECT_EQ(parted.keys, serial.keys);
    EXPECT_EQ(parted.nodes, serial.nodes) << size << " keys in " << most_parts << " parts";
    EXPECT_EQ(parted.height, serial.height);
    EXPECT_EQ(parted.registered_bytes, serial.registered_bytes);
    for (uint64_t i = 0; i < 50; ++i) {
      const OwnedKey key = KeyOf(random.Below(4 * size + 10));
      if (model_.contains(key)) {
        RemoveBoth(key);
      } else {
        InsertBoth(key);
      }
    }
    ExpectSameAsModel();
    if (HasFailure()) return;
  }
}

TEST_P(IndexSuite, ALoadInPartsNeedsOrderedEntriesAndAnEmptyIndex) {
  Start(1000);
  PartedLoader* const loader = PartedLoader::Of(index_.get());
  if (loader == nullptr) GTEST_SKIP() << "has only BulkLoad";
  Model model;
  EpochGuard guard(main_->epoch());
  for (uint64_t n = 0; n < 1000; ++n) {
    const OwnedKey key = KeyOf(n);
    model.emplace(key, main_->NewRecord(key.view()));
  }
  const std::vector<LoadEntry> entries = EntriesOf(model);
  // The wrong entry comes at every place, also between two parts, and also twice the same key.
  for (size_t wrong = 1; wrong < entries.size(); wrong += 37) {
    std::vector<LoadEntry> bad = entries;
    if (wrong % 2 == 0) {
      std::swap(bad[wrong - 1], bad[wrong]);
    } else {
      bad[wrong] = bad[wrong - 1];
    }
    auto load = loader->BeginLoad(main_->context(), LoadRuns(bad), 0.9, 5);
    ASSERT_TRUE(load.ok()) << load.status();
    size_t refused = 0;
    for (const Status& status : BuildAll(cluster_.get(), load->get())) {
      EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
      refused += status.ok() ? 0 : 1;
    }
    ASSERT_GE(refused, 1u) << wrong;
  }
  ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
  EXPECT_EQ(index_->statistics().keys, 0u);
  EXPECT_TRUE(absl::IsInvalidArgument(loader->BeginLoad(main_->context(), LoadRuns(entries), 0, 5).status()));
  for (const bool empty : {true, false}) {
    auto load = loader->BeginLoad(main_->context(), LoadRuns(entries), 0.9, 5);
    if (!empty) {
      EXPECT_TRUE(absl::IsFailedPrecondition(load.status())) << load.status();
      continue;
    }
    ASSERT_TRUE(load.ok()) << load.status();
    const Status loaded = (*load)->Run(main_->context());
    ASSERT_TRUE(loaded.ok()) << loaded;
  }
}

TEST_P(IndexSuite, ALoadInPartsThatFindsNoMemoryLeavesNothing) {
  constexpr uint64_t kKeys = 20000;
  Start(100, {.bytes_per_node = uint64_t{64} << 20});
  PartedLoader* const loader = PartedLoader::Of(index_.get());
  if (loader == nullptr) GTEST_SKIP() << "has only BulkLoad";
  Model all;
  EpochGuard guard(main_->epoch());
  for (uint64_t n = 0; n < kKeys; ++n) {
    const OwnedKey key = KeyOf(n);
    all.emplace(key, main_->NewRecord(key.view()));
  }
  const std::vector<LoadEntry> entries = EntriesOf(all);
  // Takes the memory, but leaves some for the leaves of each part.
  constexpr uint64_t kLeft = 96 << 10;
  rdma::SlabCache slab(cluster_->owner().slab.get());
  const auto left = [this](bool read_only) {
    const rdma::SlabStatistics now = cluster_->owner().slab->statistics();
    const uint64_t of_read_only = now.read_only_capacity_bytes - now.read_only_carved_bytes;
    return read_only ? of_read_only : now.capacity_bytes - now.carved_bytes - of_read_only;
  };
  constexpr size_t kTaken = 6144;
  std::vector<std::byte*> taken;
  for (const bool read_only : {true, false}) {
    while (left(read_only) > kLeft) {
      const auto block = read_only ? slab.AllocateReadOnly(kTaken) : slab.Allocate(kTaken);
      if (!block.ok()) break;
      taken.push_back(*block);
    }
  }
  uint64_t bytes = 0;
  for (int round = 0; round < 5; ++round) {
    auto load = loader->BeginLoad(main_->context(), LoadRuns(entries), 1.0, 4);
    Status status = load.status();
    if (load.ok()) {
      for (const Status& built : BuildAll(cluster_.get(), load->get())) status.Update(built);
      if (status.ok()) status = (*load)->Finish(main_->context());
    }
    ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
    load = absl::CancelledError();  // ends it
    ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
    ASSERT_EQ(index_->statistics().keys, 0u);
    // What was given back serves the next round.
    if (round == 0) bytes = index_->statistics().registered_bytes;
    ASSERT_LE(index_->statistics().registered_bytes, bytes + (32 << 10)) << round;
  }
  for (std::byte* block : taken) slab.Free(block, kTaken);  // models need some, too
  const std::span<const LoadEntry> few = std::span(entries).first(200);
  auto load = loader->BeginLoad(main_->context(), LoadRuns(few), 1.0, 4);
  ASSERT_TRUE(load.ok()) << load.status();
  const Status loaded = (*load)->Run(main_->context());
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(index_->statistics().keys, few.size());
  ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
  for (const LoadEntry& entry : few) ASSERT_EQ(index_->Find(entry.key).record, entry.record);
}

}  // namespace index_load_test
}  // namespace gannet::index
