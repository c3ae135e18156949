// Leaves of Dolphin (index/dolphin/leaf.h) in a simulation: clients of three nodes change them at once, on both sides
// of their lock, with postings that fail, and nodes that die at any verb. What they read is judged by the history of
// each key. A mutant of each rule shows that the tests would notice if it were missing.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/coro/worker.h"
#include "base/mutant.h"
#include "base/random.h"
#include "base/sometimes.h"
#include "gtest/gtest.h"
#include "index/backoff.h"
#include "index/dolphin/holder_book.h"
#include "index/dolphin/leaf.h"
#include "index/dolphin/leaf_changer.h"
#include "index/dolphin/leaf_repair.h"
#include "index/dolphin/ternary_lock.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "rdma/epoch.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/slab.h"

namespace gannet::index {
namespace dolphin_leaf_test {

using dolphin::HolderBook;
using dolphin::LeafBytes;
using dolphin::LeafChanger;
using dolphin::LeafImage;
using dolphin::LeafLook;
using dolphin::LeafRepair;
using dolphin::Part;
using dolphin::TernaryLock;
using shared_leaf::FreeBlock;
using shared_leaf::LeafBlocks;
using Outcome = LeafChanger::Outcome;

constexpr rdma::NodeId kOwner = 0;
constexpr rdma::NodeId kNodes = 4;
constexpr uint64_t kKeys = 48;  // in use, from kFirst on
constexpr uint64_t kFirst = 1000;
constexpr uint64_t kPatienceNanos = 50'000'000;

template <class T>
T Must(StatusOr<T> result) {
  GANNET_CHECK(result.ok(), "%s", result.status().ToString());
  return std::move(*result);
}

// The values that each key had. It has one writer at a time; each write has a number of its own, from 1 on, which is
// the value, if the key is there. What was read must be so at a moment between the beginning and the end of the read.
class History {
 public:
  History() : writes_(kKeys) {
    for (std::vector<Write>& of : writes_) of.push_back({.is_there = false, .begin = 0, .end = 0});
  }
  uint64_t Tick() { return ++clock_; }
  uint64_t Begin(uint64_t key, bool is_there) {
    writes_[key].push_back({.is_there = is_there, .begin = Tick()});
    return writes_[key].size() - 1;
  }
  void End(uint64_t key, uint64_t number) { writes_[key][number].end = Tick(); }
  bool is_there(uint64_t key) const { return writes_[key].back().is_there; }
  uint64_t last(uint64_t key) const { return writes_[key].size() - 1; }
  // Empty: right. `value` 0: the key was absent.
  std::string Judge(uint64_t key, uint64_t value, uint64_t begin, uint64_t end) const {
    const std::vector<Write>& writes = writes_[key];
    for (size_t i = 0; i < writes.size(); ++i) {
      if (value == 0 ? writes[i].is_there : i != value || !writes[i].is_there) continue;
      if (writes[i].begin > end) continue;
      const bool is_over = std::any_of(writes.begin() + static_cast<ptrdiff_t>(i) + 1, writes.end(),
                                       [&](const Write& later) { return later.end < begin; });
      if (!is_over) return "";
    }
    return absl::StrCat("key ", key, " has value ", value, ", after ", writes.size() - 1, " writes");
  }

 private:
  struct Write {
    bool is_there;
    uint64_t begin;
    uint64_t end = UINT64_MAX;
  };
  uint64_t clock_ = 0;
  std::vector<std::vector<Write>> writes_;
};

struct Options {
  size_t key_lines = 1;
  bool merges = false;  // mostly removals and merges
  bool races = false;   // all inserts may be met by a second one
  bool brief = false;   // few changes, so that what a dead node left is seen at the end
  rdma::sim::Faults faults = {};
};

// Node 0 owns leaves of integers, which the others know by the chain alone.
class World {
 public:
  World(uint64_t seed, const Options& options)
      : options_(options),
        simulation_({.seed = seed, .faults = options.faults}),
        fabric_(Must(rdma::sim::SimFabric::Create(
            &simulation_, {.num_nodes = kNodes, .bytes_per_node = 16 << 20, .detection_nanos = 500'000}))) {
    for (rdma::NodeId id = 0; id < kNodes; ++id) nodes_[id] = Must(fabric_->Attach(id));
    slab_ = std::make_unique<rdma::SlabAllocator>(nodes_[kOwner].get());
    cache_ = std::make_unique<rdma::SlabCache>(slab_.get());
    context_ = {.slab = cache_.get(), .epoch = nullptr};
    blocks_ = std::make_unique<LeafBlocks>(
        fabric_.get(), nodes_[kOwner].get(),
        shared_leaf::LeafFormat{.bytes = LeafBytes(options.key_lines), .begin = dolphin::BeginBlock},
        IndexRights::kClients);
    std::array<FreeBlock, 4> firsts;
    for (FreeBlock& block : firsts) block = Must(blocks_->Take(context_));
    for (size_t i = 0; i < firsts.size(); ++i) {
      LeafImage image{};
      image.head.shape = options.key_lines;
      image.head.low = i * dolphin::kMostRange;
      image.head.high = image.head.low + dolphin::kMostRange - 1;
      image.head.right = i + 1 < firsts.size() ? firsts[i + 1].address.bits() : 0;
      dolphin::StoreLeaf(image, At(firsts[i].address));
    }
    first_ = firsts[0].address;
    ExchangeBlocks();
  }
  ~World() {
    for (auto& node : nodes_) node->Shutdown();
    blocks_->Close(*cache_);
  }

  std::byte* At(rdma::GlobalAddress leaf) const { return nodes_[kOwner]->memory().data() + leaf.offset(); }
  // Calls visit(address, image) for each leaf of the chain, by the owner's CPU. False: it has no end.
  template <class Visit>
  bool ForEach(const Visit& visit) const {
    rdma::GlobalAddress at = first_;
    for (int steps = 0; !at.is_null(); ++steps) {
      if (steps > 1000) return false;
      LeafImage image;
      for (size_t word = 0; word < LeafBytes(options_.key_lines) / kWordBytes; ++word) {
        reinterpret_cast<uint64_t*>(&image)[word] = LoadWord(At(at) + word * kWordBytes);
      }
      image.head.shape = options_.key_lines;
      visit(at, image);
      at = image.right();
    }
    return true;
  }

  void ExchangeBlocks() {
    for (const FreeBlock& block : std::exchange(returned_, {})) blocks_->Return(block);
    for (rdma::NodeId node = 1; node < kNodes; ++node) {
      while (lent_[node].size() < 4 && fabric_->Runs(node)) lent_[node].push_back(blocks_->Lend(context_, node, 1)[0]);
    }
  }

  const Options options_;
  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::array<std::unique_ptr<rdma::Node>, kNodes> nodes_;
  std::unique_ptr<rdma::SlabAllocator> slab_;
  std::unique_ptr<rdma::SlabCache> cache_;
  Context context_;
  std::unique_ptr<LeafBlocks> blocks_;
  rdma::GlobalAddress first_;
  std::array<HolderBook, kNodes> books_;
  std::array<std::vector<FreeBlock>, kNodes> lent_;
  std::vector<FreeBlock> returned_;
  // Leaves that clients have seen, dead or alive: where a search begins.
  std::vector<rdma::GlobalAddress> seen_;
};

// The blocks of a node's clients. The owner's thread lends them and takes them back (World::ExchangeBlocks), because a
// thread that dies here must not hold a lock of the owner.
class Blocks final : public shared_leaf::BlockSource {
 public:
  Blocks(World* world, rdma::NodeId node) : world_(world), stock_(world->lent_[node]) {}
  coro::Task<StatusOr<FreeBlock>> Take(uint64_t /*connection*/) override {
    Patience patience(kPatienceNanos);
    while (stock_.empty()) {
      if (!patience.Pause()) co_return absl::ResourceExhaustedError("no block");
      SleepForNanos(10'000);
    }
    const FreeBlock block = stock_.back();
    stock_.pop_back();
    co_return block;
  }
  void PutBack(const FreeBlock& block) override { stock_.push_back(block); }
  coro::Task<void> Return(FreeBlock block) override {
    world_->returned_.push_back(block);
    co_return;
  }

 private:
  World* world_;
  std::vector<FreeBlock>& stock_;
};

class Client {
 public:
  Client(World* world, rdma::NodeId node, uint64_t seed)
      : world_(world),
        random_(seed),
        channel_(Must(world->nodes_[node]->OpenChannel())),
        leaves_(channel_.get(), world->nodes_[node].get(), kOwner, absl::Nanoseconds(kPatienceNanos), 0, nullptr,
                shared_leaf::LeafChannel::As::kClient),
        lock_(&leaves_, world->options_.key_lines, &world->books_[node]),
        blocks_(world, node),
        changer_(&lock_, &blocks_) {
    worker_.AddPoller([this] { return channel_->Poll(); });
  }

  struct Found {
    uint64_t value = 0;
    Witness witness{};
    LeafImage image;
  };
  StatusOr<Found> Find(uint64_t key, TernaryLock::For use) { return worker_.BlockOn(FindTask(key, use)); }
  Status Insert(uint64_t key, uint64_t value, Change* change) {
    return worker_.BlockOn(ChangeTask(Outcome::kDone, key, 0, value, change));
  }
  // These are known by what of the outcome differs.
  Status Update(uint64_t key, uint64_t value) {
    return worker_.BlockOn(ChangeTask(Outcome::kBusy, key, 0, value, nullptr));
  }
  Status Replace(uint64_t key, uint64_t from, uint64_t to) {
    return worker_.BlockOn(ChangeTask(Outcome::kExists, key, from, to, nullptr));
  }
  Status Remove(uint64_t key, uint64_t value, Change* change) {
    return worker_.BlockOn(ChangeTask(Outcome::kAbsent, key, value, 0, change));
  }
  // One try to merge the leaf of a key with its right sibling.
  StatusOr<bool> Absorb(uint64_t key) { return worker_.BlockOn(AbsorbTask(key)); }
  StatusOr<uint64_t> WordAt(rdma::GlobalAddress at) { return worker_.BlockOn(leaves_.ReadWord(at, 0)); }
  // What one task takes.
  template <class T>
  rdma::VerbCounters VerbsOf(coro::Task<StatusOr<T>> task, StatusOr<T>* result) {
    const rdma::VerbCounters before = channel_->counters();
    *result = worker_.BlockOn(std::move(task));
    return channel_->counters() - before;
  }
  LeafChanger& changer() { return changer_; }
  TernaryLock& lock() { return lock_; }

 private:
  coro::Task<Status> Locate(uint64_t key, TernaryLock::For use, rdma::GlobalAddress* at, LeafImage* image) {
    Patience patience(kPatienceNanos);
    for (;;) {
      *at = world_->seen_.empty() || random_.OneIn(4) ? world_->first_
                                                      : world_->seen_[random_.Below(world_->seen_.size())];
      for (int steps = 0; steps < 100; ++steps) {
        const StatusOr<LeafLook> look = co_await lock_.Read(*at, use, image);
        if (!look.ok()) co_return look.status();
        if (*look != LeafLook::kWhole || key < image->head.low) break;
        if (image->Covers(key)) {
          world_->seen_.push_back(*at);
          co_return absl::OkStatus();
        }
        *at = image->right();
        if (at->is_null()) break;
      }
      if (!patience.Pause()) co_return absl::UnavailableError("there is no way to the key");
    }
  }
  coro::Task<StatusOr<Found>> FindTask(uint64_t key, TernaryLock::For use) {
    Found found;
    const Status located = co_await Locate(key, use, &found.witness.word, &found.image);
    GANNET_CO_RETURN_IF_ERROR(located);
    const int slot = found.image.Find(key);
    if (slot >= 0) found.value = found.image.target(slot);
    found.witness.seen = found.image.lock.state;
    co_return found;
  }
  coro::Task<Status> ChangeTask(Outcome what, uint64_t key, uint64_t from, uint64_t to, Change* change) {
    Patience patience(kPatienceNanos);
    for (;;) {
      rdma::GlobalAddress at;
      LeafImage image;
      // Often by a stale address: what is found there may be anything.
      if (!world_->seen_.empty() && random_.OneIn(3)) {
        at = world_->seen_[random_.Below(world_->seen_.size())];
      } else {
        const Status located = co_await Locate(key, TernaryLock::For::kEntry, &at, &image);
        GANNET_CO_RETURN_IF_ERROR(located);
      }
      StatusOr<LeafChanger::Result> result = LeafChanger::Result{};
      switch (what) {
        case Outcome::kDone:
          result = co_await changer_.Insert(at, key, to, change);
          if (result.ok() && result->outcome == Outcome::kFull) {
            result = co_await changer_.InsertAlone(at, *result, key, to, change);
          }
          break;
        case Outcome::kBusy:
          result = co_await changer_.Update(at, key, to);
          break;
        case Outcome::kExists:
          result = co_await changer_.Replace(at, key, from, to, change);
          break;
        default:
          result = co_await changer_.Remove(at, key, from, change);
      }
      if (!result.ok()) co_return result.status();
      if (result->outcome == Outcome::kDone) {
        if (!result->right.is_null()) world_->seen_.push_back(result->right);
        co_return absl::OkStatus();
      }
      if (result->outcome == Outcome::kExists) co_return absl::AlreadyExistsError("");
      if (result->outcome == Outcome::kAbsent) co_return absl::NotFoundError("");
      if (!patience.Pause()) {
        co_return absl::UnavailableError(absl::StrCat("the leaf at ", at.ToString(), " stays in use: state ",
                                                      absl::Hex(LoadWord(world_->At(at))), ", holders ",
                                                      LoadWord(world_->At(at) + dolphin::kHoldersOffset)));
      }
    }
  }
  coro::Task<StatusOr<bool>> AbsorbTask(uint64_t key) {
    rdma::GlobalAddress at;
    LeafImage image;
    const Status located = co_await Locate(key, TernaryLock::For::kEntry, &at, &image);
    GANNET_CO_RETURN_IF_ERROR(located);
    const StatusOr<LeafChanger::Result> result = co_await changer_.Absorb(at, image.lock.state, nullptr);
    if (!result.ok()) co_return result.status();
    co_return result->outcome == Outcome::kDone;
  }

  World* world_;
  Random random_;
  std::unique_ptr<rdma::Channel> channel_;
  coro::Worker worker_;
  shared_leaf::LeafChannel leaves_;
  TernaryLock lock_;
  Blocks blocks_;
  LeafChanger changer_;
};

// What runs have met.
struct Tally {
  void CountMarks() {
    for (const Mark* mark : Mark::All()) {
      if (mark->name().starts_with("dolphin: ")) marks[mark->name()] += mark->reached();
    }
  }
  void ExpectAllMarks() const {
    EXPECT_GE(marks.size(), 10u);
    for (const auto& [name, reached] : marks) {
      EXPECT_GT(reached, 0u) << name;
    }
  }

  std::map<std::string_view, uint64_t> marks;

  uint64_t reads = 0;
  uint64_t witnesses = 0;  // that were still valid
  uint64_t changes = 0;
  uint64_t unknown = 0;
  uint64_t absorbed = 0;
  uint64_t races = 0;
  uint64_t deaths = 0;
};

struct Death {
  rdma::NodeId node = 0;  // 0: none
  uint64_t verbs = 0;
};

class Trial {
 public:
  Trial(uint64_t seed, const Options& options, const Death& death = {})
      : seed_(seed), death_(death), world_(seed, options) {}

  // What is wrong, or nothing.
  std::string Go(Tally* tally) {
    tally_ = tally;
    if (death_.node != 0) world_.fabric_->KillAfterVerbs(death_.node, death_.verbs);
    std::vector<Runtime::Thread*> threads;
    for (uint64_t i = 0; i < 5; ++i) {
      const auto node = static_cast<rdma::NodeId>(1 + i % 3);
      threads.push_back(world_.simulation_.StartOn(node, "work", [this, node, i] { Work(node, i); }));
    }
    Runtime::Thread* const repair = world_.simulation_.StartOn(kOwner, "repair", [this] { Repair(); });
    for (Runtime::Thread* const thread : threads) world_.simulation_.Join(thread);
    const bool has_died = death_.node != 0 && !world_.fabric_->Runs(death_.node);
    if (has_died) ++tally_->deaths;
    if (has_died && !world_.options_.brief) Serve();
    if (has_died && world_.options_.brief) SleepUntilRepaired();
    is_over_ = true;
    world_.simulation_.Join(repair);
    Check();
    tally_->CountMarks();
    return wrong_;
  }

 private:
  void Note(const std::string& what) {
    if (wrong_.empty() && !what.empty()) wrong_ = absl::StrCat("seed ", seed_, ": ", what);
  }
  static uint64_t KeyOf(uint64_t n) { return kFirst + n; }

  void Work(rdma::NodeId node, uint64_t number) {
    Client client(&world_, node, seed_ * 8 + number);
    Random random(seed_ * 16 + number);
    for (int i = 0; i < (world_.options_.brief ? 12 : 60) && wrong_.empty(); ++i) {
      const uint64_t key = random.Below(kKeys);
      const uint64_t what = random.Below(8);
      if (what < 2) {
        Read(&client, key);
      } else if (what < 3) {
        Validate(&client, key, &random);
      } else if (what < (world_.options_.merges && i > 20 ? 6 : 4)) {
        const StatusOr<bool> absorbed = client.Absorb(KeyOf(key));
        if (absorbed.ok() && *absorbed) ++tally_->absorbed;
      } else {
        Write(&client, key, &random, world_.options_.merges && i > 20);
      }
    }
  }

  void Write(Client* client, uint64_t key, Random* random, bool removes_more) {
    if (std::exchange(taken_[key], true)) {
      if (races_[key].is_open) Rival(client, key, random);
      return;
    }
    const bool was_there = history_.is_there(key);
    const uint64_t before = history_.last(key);
    const bool removes = was_there && (removes_more || random->OneIn(3));
    if (!was_there && removes_more) {
      taken_[key] = false;
      return;
    }
    const uint64_t number = history_.Begin(key, !removes);
    Status status;
    if (!was_there) {
      Race& race = races_[key] = {.is_open = world_.options_.races || random->OneIn(2), .number = number};
      status = client->Insert(KeyOf(key), number, nullptr);
      status = EndRace(&race, status);
    } else if (removes) {
      status = client->Remove(KeyOf(key), before, nullptr);
    } else if (random->OneIn(2)) {
      status = client->Update(KeyOf(key), number);
    } else {
      status = client->Replace(KeyOf(key), before, number);
    }
    if (status.ok()) {
      ++tally_->changes;
      history_.End(key, number);
      taken_[key] = false;
      return;
    }
    if (absl::IsAlreadyExists(status) || absl::IsNotFound(status)) {
      Note(absl::StrCat("key ", key, ", write ", number, ": ", status.ToString()));
    }
    // Nobody writes the key again, because it is not known what became of it.
    ++tally_->unknown;
  }

  // Two inserts of one key and value: one of them makes it. If that was the other one, the second may remove the key,
  // also before the first one knows that it is there.
  struct Race {
    bool is_open = false;
    uint64_t number = 0;
    bool is_met = false;  // by the rival
    bool is_over = false;
    Status status{};  // of the rival
  };
  Status EndRace(Race* race, const Status& own) {
    race->is_open = false;
    Patience patience(4 * kPatienceNanos);
    while (race->is_met && !race->is_over && patience.Pause()) SleepForNanos(1000);
    if (!race->is_met) return own;
    if (!race->is_over) return absl::UnavailableError("the rival has died");
    ++tally_->races;
    if (absl::IsUnavailable(own) || absl::IsUnavailable(race->status)) return absl::UnavailableError("a race");
    if (own.ok() == race->status.ok()) return absl::NotFoundError(absl::StrCat("a race: ", own.ToString(), " twice"));
    return own.ok() ? own : race->status;
  }
  void Rival(Client* client, uint64_t key, Random* random) {
    Race& race = races_[key];
    race.is_open = false;
    race.is_met = true;
    race.status = client->Insert(KeyOf(key), race.number, nullptr);
    if (absl::IsAlreadyExists(race.status)) {
      const auto found = client->Find(KeyOf(key), TernaryLock::For::kEntry);
      if (found.ok() && found->value != race.number) Note(absl::StrCat("key ", key, " exists, and is not there"));
      if (found.ok() && (world_.options_.races || random->OneIn(2))) {
        const uint64_t number = history_.Begin(key, false);
        const Status removed = client->Remove(KeyOf(key), race.number, nullptr);
        if (removed.ok()) history_.End(key, number);
        if (absl::IsNotFound(removed)) Note(absl::StrCat("key ", key, " exists, and cannot be removed"));
        if (absl::IsUnavailable(removed)) race.status = removed;
      }
    }
    race.is_over = true;
  }
  void Read(Client* client, uint64_t key) {
    const uint64_t begin = history_.Tick();
    const auto found = client->Find(KeyOf(key), TernaryLock::For::kEntry);
    if (!found.ok()) return;
    ++tally_->reads;
    Note(history_.Judge(key, found->value, begin, history_.Tick()));
  }
  // A witness: as long as the leaf has the word, it has the keys that were seen, and no others.
  void Validate(Client* client, uint64_t key, Random* random) {
    const auto found = client->Find(KeyOf(key), TernaryLock::For::kWitness);
    if (!found.ok()) return;
    SleepForNanos(random->Below(20'000));
    const uint64_t begin = history_.Tick();
    const StatusOr<uint64_t> word = client->WordAt(found->witness.word);
    if (!word.ok() || IsLocked(*word) || !IsSameSet(*word, found->witness.seen)) return;
    ++tally_->witnesses;
    const uint64_t end = history_.Tick();
    for (uint64_t other = 0; other < kKeys; ++other) {
      if (!found->image.Covers(KeyOf(other))) continue;
      if (found->image.Find(KeyOf(other)) >= 0) continue;
      Note(history_.Judge(other, 0, begin, end));
    }
  }

  // Nobody else takes the time for it.
  void SleepUntilRepaired() {
    world_.simulation_.Join(world_.simulation_.StartOn(kOwner, "wait", [this] {
      while (!is_repaired_) SleepForNanos(100'000);
    }));
  }
  void Repair() {
    const std::unique_ptr<rdma::Channel> channel = Must(world_.nodes_[kOwner]->OpenChannel());
    coro::Worker worker;
    worker.AddPoller([&channel] { return channel->Poll(); });
    LeafRepair repair(world_.fabric_.get(), channel.get(), &worker, world_.blocks_.get(), world_.options_.key_lines,
                      kPatienceNanos);
    while (!is_over_) {
      world_.ExchangeBlocks();
      const bool has_died = death_.node != 0 && !world_.fabric_->Runs(death_.node);
      if (has_died && !is_repaired_ && world_.nodes_[kOwner]->ConnectionTo(death_.node) == 0) {
        const Status repaired = repair.RepairAfter(death_.node, [this](const auto& visit) {
          const bool ends = world_.ForEach([&](rdma::GlobalAddress at, const LeafImage&) { visit(at); });
          return ends ? absl::OkStatus() : absl::DataLossError("no end");
        });
        if (!repaired.ok()) Note(repaired.ToString());
        is_repaired_ = true;
      }
      SleepForNanos(100'000);
    }
  }

  // A node that lives reads all keys, and changes those that can be changed, within the patience.
  void Serve() {
    const rdma::NodeId survivor = death_.node == 1 ? 2 : 1;
    Runtime::Thread* const thread = world_.simulation_.StartOn(survivor, "serve", [this, survivor] {
      Client client(&world_, survivor, seed_);
      for (uint64_t key = 0; key < kKeys; ++key) {
        const uint64_t begin = history_.Tick();
        const auto found = client.Find(KeyOf(key), TernaryLock::For::kWitness);
        if (!found.ok()) return Note(found.status().ToString());
        Note(history_.Judge(key, found->value, begin, history_.Tick()));
        // Those that are inserted and removed are in most leaves.
        if (key % 6 != 0) continue;
        const Status inserted = client.Insert(KeyOf(kKeys + key), 1, nullptr);
        if (!inserted.ok()) return Note(inserted.ToString());
      }
      for (uint64_t key = 0; key < kKeys; key += 6) {
        const Status removed = client.Remove(KeyOf(kKeys + key), 1, nullptr);
        if (!removed.ok()) return Note(removed.ToString());
      }
    });
    world_.simulation_.Join(thread);
  }

  void Check() {
    absl::flat_hash_set<uint64_t> linked;
    std::array<uint64_t, kKeys> values{};
    std::optional<uint64_t> low = 0;
    const bool ends = world_.ForEach([&](rdma::GlobalAddress at, const LeafImage& leaf) {
      const std::string name = at.ToString();
      linked.insert(at.offset());
      LeafImage judged = leaf;
      if (dolphin::LookAtLeaf(&judged, world_.options_.key_lines, Part::kWhole) != LeafLook::kWhole) {
        Note(absl::StrCat("leaf ", name, " is not whole: state ", absl::Hex(leaf.lock.state)));
      }
      if (leaf.lock.holders != 0) Note(absl::StrCat("leaf ", name, " has holders ", leaf.lock.holders));
      if (leaf.head.low != low) Note(absl::StrCat("leaf ", name, " begins at ", leaf.head.low));
      low = leaf.is_last() ? std::optional<uint64_t>() : leaf.head.high + 1;
      for (int slot = 0; slot < leaf.slots(); ++slot) {
        const uint64_t word = leaf.key_word(slot);
        // A slot that a node that lives has reserved, perhaps, stays until somebody comes alone.
        if (dolphin::IsReservedWord(word) && world_.options_.faults.disconnect == 0) {
          Note(absl::StrCat("leaf ", name, " has a reserved slot"));
        }
        if (!dolphin::IsKeyWord(word)) continue;
        const uint64_t key = leaf.KeyOf(word) - kFirst;
        if (key >= kKeys) {
          Note(absl::StrCat("leaf ", name, " has the key ", key));
          continue;
        }
        if (std::exchange(values[key], leaf.target(slot)) != 0) Note(absl::StrCat("key ", key, " is there twice"));
        if (leaf.target(slot) == 0) Note(absl::StrCat("key ", key, " has no value"));
      }
    });
    if (!ends || low.has_value()) Note("the chain has no end");
    for (uint64_t key = 0; key < kKeys; ++key) {
      Note(history_.Judge(key, values[key], history_.Tick(), history_.Tick()));
    }
    const Status blocks =
        world_.blocks_->Check([&linked](rdma::GlobalAddress at) { return linked.contains(at.offset()); });
    if (!blocks.ok()) Note(blocks.ToString());
  }

  const uint64_t seed_;
  const Death death_;
  World world_;
  History history_;
  std::array<bool, kKeys> taken_{};
  std::array<Race, kKeys> races_{};
  bool is_over_ = false;
  bool is_repaired_ = false;
  Tally* tally_ = nullptr;
  std::string wrong_;
};

rdma::sim::Faults RaceFaults() {
  return {.scatter_lines = 0.3,
          .scatter_nanos = 3000,
          .preempt = 0.02,
          .preempt_nanos = 8000,
          .slow_completion = 0.05,
          .slow_nanos = 20'000};
}
rdma::sim::Faults FailingFaults(double disconnect) {
  rdma::sim::Faults faults = RaceFaults();
  faults.disconnect = disconnect;
  faults.pause_every = 200'000;
  faults.pause_nanos = 300'000;
  return faults;
}

// More by hand: GANNET_DOLPHIN_SEEDS.
uint64_t Seeds(uint64_t seeds) {
  const char* const asked = std::getenv("GANNET_DOLPHIN_SEEDS");
  return asked == nullptr ? seeds : std::strtoull(asked, nullptr, 10);
}

TEST(DolphinLeaf, ChangesOfThreeNodesAreOnesOfTheirHistories) {
  Tally tally;
  for (uint64_t seed = 1; seed <= Seeds(150); ++seed) {
    ASSERT_EQ(Trial(seed, {.key_lines = 1 + seed % 2, .faults = RaceFaults()}).Go(&tally), "");
  }
  EXPECT_GT(tally.witnesses, tally.reads / 20);
  EXPECT_GT(tally.absorbed, 20u);
  EXPECT_GT(tally.races, 100u);
  EXPECT_LT(tally.unknown, tally.changes / 50);
}

TEST(DolphinLeaf, PostingsThatFailAreRepeatedWithoutHarm) {
  Tally tally;
  for (uint64_t seed = 1; seed <= Seeds(150); ++seed) {
    ASSERT_EQ(Trial(seed, {.key_lines = 1 + seed % 2, .faults = FailingFaults(0.01)}).Go(&tally), "");
  }
  EXPECT_GT(tally.unknown, 20u);
  EXPECT_GT(tally.changes, 5 * tally.unknown);
  tally.ExpectAllMarks();
}

// A node dies when any of its verbs has left it: of inserts, updates, removals, splits and merges.
TEST(DolphinLeaf, DeathsAtAnyVerbLeaveNothingLockedLostOrLeaked) {
  Tally tally;
  for (uint64_t seed = 1; seed <= Seeds(300); ++seed) {
    const Death death{.node = static_cast<rdma::NodeId>(1 + seed % 3), .verbs = 1 + seed % 300};
    ASSERT_EQ(Trial(seed, {.faults = RaceFaults()}, death).Go(&tally), "") << "death at verb " << death.verbs;
  }
  EXPECT_GT(tally.deaths, Seeds(300) / 2);
}

// III-B: a read takes one round trip, an update two, an insert three; inserts and updates READ no targets.
TEST(DolphinLeaf, RoundTripsOfReadsAndChanges) {
  constexpr size_t kLines = dolphin::kDefaultKeyLines;
  World world(1, {.key_lines = kLines});
  Runtime::Thread* const thread = world.simulation_.StartOn(1, "count", [&world] {
    Client client(&world, 1, 1);
    const rdma::GlobalAddress leaf = world.first_;
    const auto slots = static_cast<uint64_t>(kLines) * dolphin::kSlotsPerLine;
    StatusOr<LeafChanger::Result> result = LeafChanger::Result{};
    for (uint64_t key = 0; key < slots; ++key) {
      const auto insert = client.VerbsOf(client.changer().Insert(leaf, key, key + 1, nullptr), &result);
      ASSERT_TRUE(result.ok() && result->outcome == Outcome::kDone);
      EXPECT_EQ(insert.round_trips, 3u);
      EXPECT_EQ(insert.reads + insert.compare_and_swaps, 2u);
      EXPECT_EQ(insert.fetch_and_adds, 3u);
      EXPECT_EQ(insert.writes, 2u);
      EXPECT_EQ(insert.bytes_in, dolphin::KeyPartBytes(kLines) + 4 * kWordBytes);
    }
    const auto update = client.VerbsOf(client.changer().Update(leaf, 3, 99), &result);
    EXPECT_EQ(update.round_trips, 2u);
    EXPECT_EQ(update.fetch_and_adds, 2u);
    EXPECT_EQ(update.bytes_in, dolphin::KeyPartBytes(kLines) + 2 * kWordBytes);

    LeafImage image;
    StatusOr<LeafLook> look = LeafLook::kDead;
    const auto read = client.VerbsOf(client.lock().Read(leaf, TernaryLock::For::kEntry, &image), &look);
    EXPECT_EQ(read.round_trips, 1u);
    EXPECT_EQ(read.fetch_and_adds, 0u);
    EXPECT_EQ(read.bytes_in, LeafBytes(kLines));
    EXPECT_EQ(image.target(image.Find(3)), 99u);
    EXPECT_EQ(image.count(), static_cast<int>(slots));
    const auto witness = client.VerbsOf(client.lock().Read(leaf, TernaryLock::For::kWitness, &image), &look);
    EXPECT_EQ(witness.round_trips, 1u);
    EXPECT_EQ(witness.fetch_and_adds, 1u);

    // Into a full leaf: two for the look, and two for the split.
    const auto full = client.VerbsOf(client.changer().Insert(leaf, slots, 1, nullptr), &result);
    EXPECT_EQ(full.round_trips, 2u);
    ASSERT_EQ(result->outcome, Outcome::kFull);
    ASSERT_TRUE(result->splits);
    const auto split = client.VerbsOf(client.changer().InsertAlone(leaf, *result, slots, 1, nullptr), &result);
    EXPECT_EQ(split.round_trips, 2u);
    ASSERT_EQ(result->outcome, Outcome::kDone);
    EXPECT_EQ(result->border, slots) << "keys are being appended: all stay in the left leaf";

    const auto remove = client.VerbsOf(client.changer().Remove(leaf, 3, 99, nullptr), &result);
    EXPECT_EQ(remove.round_trips, 2u);
    ASSERT_EQ(result->outcome, Outcome::kDone);
    // A removed slot is free after an exclusive change.
    client.VerbsOf(client.changer().Insert(leaf, 3, 100, nullptr), &result);
    ASSERT_EQ(result->outcome, Outcome::kFull);
    EXPECT_FALSE(result->splits);
    const auto tidy = client.VerbsOf(client.changer().InsertAlone(leaf, *result, 3, 100, nullptr), &result);
    EXPECT_EQ(tidy.round_trips, 2u);
    ASSERT_EQ(result->outcome, Outcome::kDone);
    EXPECT_TRUE(result->right.is_null());
  });
  world.simulation_.Join(thread);
}

// A client that does not keep the rules can write anything into a leaf. Others get errors or wrong answers; they do not
// stop, and wait for no longer than their patience.
TEST(DolphinLeaf, LeavesWithAnyContentStopNobody) {
  uint64_t errors = 0;
  uint64_t changes = 0;
  for (uint64_t seed = 1; seed <= Seeds(60); ++seed) {
    World world(seed, {});
    Runtime::Thread* const thread = world.simulation_.StartOn(1, "suffer", [&] {
      Client client(&world, 1, seed);
      Random random(seed);
      for (uint64_t key = 0; key < 7; ++key) ASSERT_TRUE(client.Insert(key, key + 1, nullptr).ok());
      for (int round = 0; round < 6; ++round) {
        for (uint64_t n = 1 + random.Below(6); n > 0; --n) {
          // Seldom a lock word or a number, without which most leaves would only look busy.
          const size_t first = random.OneIn(6) ? 0 : 2;
          const size_t word = first + random.Below(LeafBytes(1) / kWordBytes - first);
          if (word % 8 == 0 && !random.OneIn(6)) continue;
          const std::array<uint64_t, 8> values = {0,
                                                  1,
                                                  random.Below(20),
                                                  ~uint64_t{0},
                                                  dolphin::kReservedBit | random.Below(9),
                                                  uint64_t{1} << 62,
                                                  world.first_.bits(),
                                                  random()};
          StoreWord(world.At(world.first_) + word * kWordBytes, values[random.Below(values.size())]);
        }
        const uint64_t key = random.Below(12);
        const std::array<Status, 4> done = {client.Insert(key, 5, nullptr), client.Remove(key, 5, nullptr),
                                            client.Update(key, 6), client.Absorb(key).status()};
        for (const Status& status : done) ++(status.ok() ? changes : errors);
        static_cast<void>(client.Find(key, TernaryLock::For::kWitness));
      }
    });
    world.simulation_.Join(thread);
  }
  EXPECT_GT(errors, 100u);
  EXPECT_GT(changes, 100u);
}

struct Mistake {
  Mutant mutant;
  const char* name;
  bool dies = false;
  bool fails = false;
  bool merges = false;
  bool brief = false;
};

class DolphinMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(DolphinMistake, IsFound) {
  const Mistake& mistake = GetParam();
  std::string wrong;
  uint64_t seed = 0;
  while (wrong.empty() && ++seed <= Seeds(6000)) {
    active_mutant = mistake.mutant;
    Tally tally;
    const Death death{.node = static_cast<rdma::NodeId>(mistake.dies ? 1 + seed % 3 : 0),
                      .verbs = 1 + seed % (mistake.brief ? 40 : 200)};
    const Options options{.key_lines = mistake.brief ? size_t{3} : size_t{1},
                          .merges = mistake.merges,
                          .races = mistake.fails,
                          .brief = mistake.brief,
                          .faults = mistake.fails ? FailingFaults(0.05) : RaceFaults()};
    wrong = Trial(seed, options, death).Go(&tally);
    active_mutant = Mutant::kNone;
  }
  EXPECT_NE(wrong, "") << mistake.name << " was not found";
  std::printf("%s: seed %lu: %s\n", mistake.name, static_cast<unsigned long>(seed), wrong.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    All, DolphinMistake,
    ::testing::Values(Mistake{Mutant::kLookFirst, "LookFirst"}, Mistake{Mutant::kBitFirst, "BitFirst"},
                      Mistake{Mutant::kRaiseFirst, "RaiseFirst"}, Mistake{Mutant::kNoReservation, "NoReservation"},
                      Mistake{Mutant::kAnySlot, "AnySlot"}, Mistake{Mutant::kNoDrain, "NoDrain"},
                      Mistake{Mutant::kHeadFirst, "HeadFirst", true, false, true},
                      Mistake{Mutant::kNoNumbers, "NoNumbers"}, Mistake{Mutant::kNoGeneration, "NoGeneration"},
                      Mistake{Mutant::kStateInRead, "StateInRead"},
                      Mistake{Mutant::kRepeatWords, "RepeatWords", false, true},
                      Mistake{Mutant::kClearsAllBits, "ClearsAllBits", true},
                      Mistake{Mutant::kOnlyUnlocks, "OnlyUnlocks", true},
                      Mistake{Mutant::kReservedStay, "ReservedStay", true, false, false, true}),
    [](const ::testing::TestParamInfo<Mistake>& of) { return of.param.name; });

}  // namespace dolphin_leaf_test
}  // namespace gannet::index
