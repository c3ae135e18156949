// Races in the tree, in simulations that preempt threads at every atomic step of a write: thousands of schedules, each
// of which a seed repeats. (Threads of the operating system rarely stop in the middle of a change.)
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/coro/worker.h"
#include "base/sometimes.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/catfish/catfish.h"
#include "index/service.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/index/spatial_history.h"

namespace gannet::index {
namespace catfish_race_test {

template <class T>
T Must(StatusOr<T> result) {
  GANNET_CHECK(result.ok(), "%s", result.status().ToString());
  return std::move(*result);
}

constexpr IndexId kId = 1;
constexpr uint64_t kKeys = 260;

// Keys whose number is a multiple of this exist from the start to the end.
constexpr uint64_t kStable = 10;

// Where transactions insert: the side of a square.
constexpr uint64_t kWidth = 2000;

// Rectangles at all distances from the origin, in one direction. So many inserts let boxes grow on several levels, and
// one that reaches far makes the boxes of some levels cover those of others that are in between.
Rectangle BoxOf(uint64_t n) {
  Random random(n + 1);
  const auto draw = [&random] { return static_cast<double>(random.Between(8, 15) << random.Below(12)); };
  const Rectangle at = Rectangle::Point(draw(), draw());
  return {at.min_x, at.min_y, at.min_x + static_cast<double>(random.Below(8)), at.min_y + 1};
}

std::vector<Rectangle> Boxes() {
  std::vector<Rectangle> boxes;
  for (uint64_t n = 0; n < kKeys; ++n) boxes.push_back(BoxOf(n));
  return boxes;
}

struct Seen {
  Rectangle window;
  std::set<uint64_t> ids;
  uint64_t begin;
  uint64_t end;
  bool at_one_moment;
};

// Two simulated nodes: 0 owns the tree, 1 is a client.
class Race {
 public:
  Race(uint64_t seed, CatfishVariant variant, double preempt = 0.15, uint64_t preempt_nanos = 6000,
       uint32_t node_entries = 4)
      : simulation_({.seed = seed,
                     .faults = {.scatter_lines = 0.3,
                                .scatter_nanos = 3000,
                                .preempt = preempt,
                                .preempt_nanos = preempt_nanos}}),
        fabric_(Must(rdma::sim::SimFabric::Create(&simulation_, {.num_nodes = 2, .bytes_per_node = 32 << 20}))),
        history_(Boxes()),
        seed_(seed) {
    for (rdma::NodeId id = 0; id < 2; ++id) {
      nodes_[id] = Must(fabric_->Attach(id));
      slabs_[id] = std::make_unique<rdma::SlabAllocator>(nodes_[id].get());
      epochs_[id] = Must(rdma::EpochManager::Create(fabric_.get(), nodes_[id].get(), slabs_[id].get()));
    }
    service_ = std::make_unique<IndexService>(nodes_[0].get(), slabs_[0].get(), epochs_[0].get());
    RegisterCatfishMethods(service_.get());
    // Small nodes, so that the tree has four or five levels.
    index_ = Must(CreateCatfish(service_.get(), kId, KeyKind::kBytes, RectangleKey::kBytes, kKeys,
                                {.variant = variant, .node_entries = node_entries}));
    for (auto& epochs : epochs_) GANNET_CHECK(epochs->Start().ok(), "no epochs");
    GANNET_CHECK(nodes_[0]->Serve(1).ok(), "no server");
  }
  ~Race() {
    for (auto& epochs : epochs_) epochs->Stop();
    for (auto& node : nodes_) node->Shutdown();
    index_.reset();
    service_.reset();
    for (auto& epochs : epochs_) epochs.reset();
  }

  // `writers` threads change keys of their own, `operations` each, while two others search. `removes`: so do writers.
  void Run(int writers, int operations, bool removes) {
    for (uint64_t n = 0; n < kKeys; ++n) {
      if (IsThereAtFirst(n)) Change(n, true, nullptr);
    }
    std::vector<Thread> threads;
    int writing = writers;
    for (int self = 0; self < writers; ++self) {
      threads.emplace_back("writer", [&, self] {
        Write(self, writers, operations, removes);
        --writing;
      });
    }
    threads.emplace_back("owner", [&] { SearchAtOwner(&writing); });
    threads.emplace_back("client", [&] { SearchAtClient(&writing); });
    for (Thread& thread : threads) thread.join();
  }

  void Judge() {
    const Status structure = index_->CheckStructure();
    ASSERT_TRUE(structure.ok()) << "seed " << seed_ << ": " << structure;
    for (const Seen& seen : seen_) {
      const bool existed = seen.at_one_moment ? history_.WasBetween(seen.window, seen.ids, seen.begin, seen.end)
                                              : history_.WasAt(seen.window, seen.ids, seen.end);
      ASSERT_TRUE(existed) << "seed " << seed_ << ": " << seen.window.ToString() << " in " << seen.begin << " to "
                           << seen.end << (seen.at_one_moment ? ", at one moment" : "");
    }
  }
  size_t searches() const { return seen_.size(); }

  // After a first tree, `threads` threads insert what meets nothing that is there, as transactions do: each searches,
  // inserts, carries what it has seen over its own change, as a transaction does (index.h), and takes its key out again
  // if another word has changed. So no two rectangles that stay meet. In each round all go to the same place.
  void RunExclusive(uint64_t first, int threads, int rounds) {
    Random random(seed_);
    uint64_t next = 0;
    while (next < first) InsertAlone({BoxAt(random.Below(kWidth), random.Below(kWidth), &random), next++});
    std::vector<std::pair<uint64_t, uint64_t>> places;
    for (int i = 0; i < rounds; ++i) places.emplace_back(random.Below(kWidth), random.Below(kWidth));
    std::vector<Thread> all;
    for (int self = 0; self < threads; ++self) {
      all.emplace_back("transactions", [&, self] {
        Random own(seed_ * 16 + static_cast<uint64_t>(self));
        uint64_t id = next + static_cast<uint64_t>(self);
        for (const auto& [x, y] : places) {
          InsertAlone({BoxAt(x + own.Below(100), y + own.Below(100), &own), id});
          id += static_cast<uint64_t>(threads);
        }
      });
    }
    for (Thread& thread : all) thread.join();
  }
  void JudgeExclusive() const {
    const Status structure = index_->CheckStructure();
    ASSERT_TRUE(structure.ok()) << "seed " << seed_ << ": " << structure;
    for (const RectangleKey& one : kept_) {
      for (const RectangleKey& other : kept_) {
        ASSERT_TRUE(one.id == other.id || !one.box.Meets(other.box))
            << "seed " << seed_ << ": " << one.box.ToString() << " and " << other.box.ToString();
      }
    }
  }
  size_t kept() const { return kept_.size(); }
  // Inserts so far that wrote the same nodes as another one in turn.
  static uint64_t written_in_turn() { return Mark::Reached("catfish: two inserts wrote the same nodes in turn"); }

 private:
  static bool IsThereAtFirst(uint64_t n) { return n % kStable == 0 || n % 3 == 0; }
  // A small window, around a rectangle or somewhere.
  static Rectangle AnyWindow(Random* random) {
    if (random->OneIn(4)) return RandomWindow(random);
    const Rectangle box = BoxOf(random->Below(kKeys));
    return random->OneIn(2) ? box : box.Union(Rectangle::Point(0, 0));
  }
  // No test looks at the record.
  rdma::GlobalAddress RecordOf(uint64_t n) const { return {0, nodes_[0]->writable_offset() + n * kLineBytes}; }

  // Makes the key present or absent, with resources of a server thread. `present_now` null: it was the other.
  void Change(uint64_t n, bool insert, std::vector<bool>* present_now) {
    IndexService::Guard guard(service_.get());
    const RectangleKeyBytes key({BoxOf(n), n});
    const uint64_t begin = history_.Tick();
    const auto change = insert ? index_->Insert(guard.context(), key.view(), RecordOf(n), nullptr)
                               : index_->Remove(guard.context(), key.view(), RecordOf(n));
    ASSERT_TRUE(change.ok()) << "seed " << seed_ << ": " << change.status();
    history_.Note(n, insert, begin, history_.Tick());
    // Nobody else changes it.
    ASSERT_EQ(index_->Find(key.view()).record, insert ? RecordOf(n) : rdma::GlobalAddress()) << "seed " << seed_;
    if (present_now != nullptr) (*present_now)[n] = insert;
  }

  void Write(int self, int writers, int operations, bool removes) {
    Random random(seed_ * 16 + static_cast<uint64_t>(self));
    std::vector<bool> present(kKeys);
    for (uint64_t n = 0; n < kKeys; ++n) present[n] = IsThereAtFirst(n);
    for (int i = 0; i < operations; ++i) {
      const auto all = static_cast<uint64_t>(writers);
      const uint64_t n = random.Below(kKeys / all) * all + static_cast<uint64_t>(self);
      if (n % kStable == 0 || (present[n] && !removes)) continue;
      Change(n, !present[n], &present);
    }
  }

  static Rectangle BoxAt(uint64_t at_x, uint64_t at_y, Random* random) {
    const auto x = static_cast<double>(at_x);
    const auto y = static_cast<double>(at_y);
    return {x, y, x + static_cast<double>(random->Below(150)), y + static_cast<double>(random->Below(150))};
  }

  void InsertAlone(const RectangleKey& rectangle) {
    IndexService::Guard guard(service_.get());
    const RectangleKeyBytes key(rectangle);
    ScanResult seen;
    ASSERT_TRUE(index_->Search({.window = rectangle.box, .at_one_moment = false}, &seen).ok());
    if (!seen.entries.empty()) return;
    const auto change = index_->Insert(guard.context(), key.view(), RecordOf(rectangle.id), nullptr);
    ASSERT_TRUE(change.ok()) << "seed " << seed_ << ": " << change.status();
    Carry(*change, &seen.witnesses);
    if (Valid(seen.witnesses)) {
      kept_.push_back(rectangle);
    } else {
      const auto removed = index_->Remove(guard.context(), key.view(), RecordOf(rectangle.id));
      ASSERT_TRUE(removed.ok()) << "seed " << seed_ << ": " << removed.status();
    }
  }
  static void Carry(const index::Change& change, std::vector<Witness>* held) {
    size_t known = 0;
    for (const WordChange& word : change.words()) {
      const auto has_before = [&](const Witness& each) { return each.word == word.word && each.seen == word.before; };
      if (std::ranges::none_of(*held, has_before)) continue;
      ++known;
      for (Witness& each : *held) {
        if (has_before(each)) each.seen = word.after;
      }
    }
    if (known == 0) return;
    for (const WordChange& word : change.words()) {
      const auto is_word = [&](const Witness& each) { return each.word == word.word; };
      if (std::ranges::none_of(*held, is_word)) held->push_back({word.word, word.after});
    }
  }

  bool Valid(const std::vector<Witness>& witnesses) const {
    return std::ranges::all_of(witnesses, [this](const Witness& witness) {
      return LoadWord(nodes_[0]->memory().data() + witness.word.offset()) == witness.seen;
    });
  }

  void SearchAtOwner(const int* writing) {
    Random random(seed_ * 16 + 14);
    while (*writing > 0) {
      IndexService::Guard guard(service_.get());
      const WindowQuery query{.window = AnyWindow(&random), .at_one_moment = random.OneIn(3)};
      const uint64_t stable = random.Below(kKeys / kStable) * kStable;
      ASSERT_EQ(index_->Find(RectangleKeyBytes({BoxOf(stable), stable}).view()).record, RecordOf(stable))
          << "seed " << seed_;
      const uint64_t begin = history_.Tick();
      ScanResult result;
      ASSERT_TRUE(index_->Search(query, &result).ok());
      const uint64_t end = history_.Tick();
      if (!query.at_one_moment && !Valid(result.witnesses)) continue;
      seen_.push_back({query.window, IdsOf(result.entries), begin, end, query.at_one_moment});
    }
  }

  void SearchAtClient(const int* writing) {
    const auto channel = Must(nodes_[1]->OpenChannel());
    const auto epoch = Must(rdma::EpochManager::Participant::Join(epochs_[1].get()));
    coro::Worker worker;
    worker.AddPoller([&] { return channel->Poll(); });
    const auto remote = Must(ConnectCatfish(channel.get(), 0, kId, {}));
    Random random(seed_ * 16 + 15);
    while (*writing > 0) {
      const uint64_t entered = epoch->Enter();
      const WindowQuery query{.window = AnyWindow(&random), .at_one_moment = random.OneIn(2)};
      const uint64_t begin = history_.Tick();
      ScanResult result;
      const Status status = worker.BlockOn(remote->Search(query, &result));
      ASSERT_TRUE(status.ok()) << "seed " << seed_ << ": " << status;
      const uint64_t end = history_.Tick();
      if (query.at_one_moment || Valid(result.witnesses)) {
        seen_.push_back({query.window, IdsOf(result.entries), begin, end, query.at_one_moment});
      }
      epoch->Leave(entered);
    }
  }

  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::unique_ptr<rdma::Node> nodes_[2];
  std::unique_ptr<rdma::SlabAllocator> slabs_[2];
  std::unique_ptr<rdma::EpochManager> epochs_[2];
  std::unique_ptr<IndexService> service_;
  std::unique_ptr<LocalIndex> index_;
  SpatialHistory history_;
  uint64_t seed_;
  std::vector<Seen> seen_;
  std::vector<RectangleKey> kept_;  // by transactions that may commit
};

class CatfishRaceTest : public testing::TestWithParam<CatfishVariant> {};
INSTANTIATE_TEST_SUITE_P(
    Variants, CatfishRaceTest,
    testing::Values(CatfishVariant::kGuttman, CatfishVariant::kRStar, CatfishVariant::kHilbert), [](const auto& test) {
      return std::string(std::array{"guttman", "rstar", "hilbert"}[static_cast<size_t>(test.param)]);
    });

void RunSeeds(CatfishVariant variant, uint64_t first, uint64_t seeds, bool removes) {
  size_t searches = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    Race race(seed, variant);
    race.Run(/*writers=*/4, /*operations=*/60, removes);
    race.Judge();
    if (testing::Test::HasFatalFailure()) return;
    searches += race.searches();
  }
  EXPECT_GT(searches, seeds);
}

// Most changes are plain inserts, which share the structure lock.
TEST_P(CatfishRaceTest, Inserts) {
  RunSeeds(GetParam(), 1, 100, /*removes=*/false);
}

TEST_P(CatfishRaceTest, TransactionsThatInsertSeeEachOther) {
  size_t kept = 0;
  const uint64_t in_turn = Race::written_in_turn();
  // Seed 2993 with Guttman's splits is one of few that failed while inserts listed such nodes.
  for (uint64_t seed = 2900; seed < 3100; ++seed) {
    // A thread stops rarely, but for as long as others take to commit.
    Race race(seed, GetParam(), /*preempt=*/0.005, /*preempt_nanos=*/100'000, /*node_entries=*/6);
    race.RunExclusive(/*first=*/60, /*threads=*/4, /*rounds=*/40);
    race.JudgeExclusive();
    if (testing::Test::HasFatalFailure()) return;
    kept += race.kept();
  }
  EXPECT_GT(kept, 200u * 60);
  EXPECT_GT(Race::written_in_turn(), in_turn + 50);
}

TEST_P(CatfishRaceTest, InsertsAndRemovals) {
  RunSeeds(GetParam(), 1000, 100, /*removes=*/true);
}

}  // namespace catfish_race_test
}  // namespace gannet::index
