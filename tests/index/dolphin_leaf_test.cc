// Leaves of Dolphin (index/dolphin/leaf.h) in a simulation: clients of three nodes change them at once, on both sides
// of their lock, with postings that fail, and nodes that die at any verb. What they read is judged by the history of
// each key. A mutant of each rule shows that the tests would notice if it were missing. All of this with integer keys
// and with byte keys.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
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
#include "index/dolphin/keys.h"
#include "index/dolphin/leaf.h"
#include "index/dolphin/leaf_changer.h"
#include "index/dolphin/leaf_repair.h"
#include "index/dolphin/ternary_lock.h"
#include "index/record_header.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/change/leaf_keys.h"
#include "index/shared_leaf/leaf/leaf_scan.h"
#include "rdma/epoch.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/slab.h"
#include "tests/support/thorough.h"

namespace gannet::index {
namespace dolphin_leaf_test {

using dolphin::ByteKeys;
using dolphin::HolderBook;
using dolphin::IntegerKeys;
using dolphin::LeafBytes;
using dolphin::LeafChanger;
using dolphin::LeafImage;
using dolphin::LeafLook;
using dolphin::LeafRepair;
using dolphin::Part;
using dolphin::TernaryLock;
using shared_leaf::FreeBlock;
using shared_leaf::LeafBlocks;

constexpr rdma::NodeId kOwner = 0;
constexpr rdma::NodeId kNodes = 4;
constexpr uint64_t kKeys = 48;  // that are changed
constexpr uint64_t kMostFillers = 40;
constexpr uint64_t kNames = 2 * kKeys + kMostFillers;
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
  size_t lines = 1;  // of integer keys: key lines. Of byte keys: 1, or more for long ones
  // Byte keys that are always there, because leaves have many slots: with more, leaves are split more often.
  uint64_t fillers = 24;
  size_t leaves = 4;    // in the beginning
  bool merges = false;  // mostly removals and merges
  bool races = false;   // all inserts may be met by a second one
  bool brief = false;   // few changes, so that what a dead node left is seen at the end
  rdma::sim::Faults faults = {};
};

// The keys of a test, by number: first those in use, then as many for other purposes, then fillers. The second half of
// them is in no order.
template <class Keys>
class Names;

template <>
class Names<IntegerKeys> {
 public:
  static const Names& Of(size_t /*lines*/) {
    static const Names names;
    return names;
  }
  static IntegerKeys::Schema SchemaOf(size_t lines) { return {.key_lines = lines}; }
  uint64_t operator[](uint64_t n) const { return kFirst + n; }
  uint64_t NumberOf(uint64_t key) const { return key - kFirst; }
};

// Half of the names have one tag; each of these begins with the next one.
template <>
class Names<ByteKeys> {
 public:
  static const Names& Of(size_t lines) {
    static const Names kShort(1);
    static const Names kLong(2);
    return lines == 1 ? kShort : kLong;
  }
  static ByteKeys::Schema SchemaOf(size_t lines) { return {{1, 2, 3, 4}, lines == 1 ? size_t{17} : kShortKeyBytes}; }
  const shared_leaf::ByteKey& operator[](uint64_t n) const { return names_[n]; }
  uint64_t NumberOf(const shared_leaf::ByteKey& key) const {
    const auto found = numbers_.find(key.view());
    return found == numbers_.end() ? kNames : found->second;
  }

 private:
  explicit Names(size_t lines) {
    const ByteKeys::Schema schema = SchemaOf(lines);
    const std::string prefix(lines == 1 ? 0 : 52, 'p');
    for (uint64_t n = 0; n < kNames; ++n) {
      const uint64_t place = n < 2 * kKeys ? n / 2 * 2 : n;
      std::string name = absl::StrCat(prefix, absl::Dec(place * 61 % 256, absl::kZeroPad3));
      if (n < 2 * kKeys && n % 2 == 0) {
        for (uint64_t salt = 0;; ++salt) {
          const shared_leaf::ByteKey salted(absl::StrCat(name, absl::Hex(salt, absl::kZeroPad8)));
          if (schema.TagOf(salted) != 0xabcd) continue;
          name = salted.view();
          break;
        }
      }
      names_.emplace_back(name);
    }
    for (uint64_t n = 0; n < kNames; ++n) numbers_.emplace(names_[n].view(), n);
  }

  std::vector<shared_leaf::ByteKey> names_;
  std::map<std::string, uint64_t, std::less<>> numbers_;
};

// Node 0 owns leaves, which the others know by the chain alone.
template <class Keys>
class World {
 public:
  using Leaf = typename Keys::Leaf;
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;

  World(uint64_t seed, const Options& options)
      : options_(options),
        names_(Names<Keys>::Of(options.lines)),
        schema_(Names<Keys>::SchemaOf(options.lines)),
        simulation_({.seed = seed, .faults = options.faults}),
        fabric_(Must(rdma::sim::SimFabric::Create(
            &simulation_, {.num_nodes = kNodes, .bytes_per_node = 16 << 20, .detection_nanos = 500'000}))) {
    for (rdma::NodeId id = 0; id < kNodes; ++id) nodes_[id] = Must(fabric_->Attach(id));
    slab_ = std::make_unique<rdma::SlabAllocator>(nodes_[kOwner].get());
    cache_ = std::make_unique<rdma::SlabCache>(slab_.get());
    context_ = {.slab = cache_.get(), .epoch = nullptr};
    blocks_ = std::make_unique<LeafBlocks>(
        fabric_.get(), nodes_[kOwner].get(),
        shared_leaf::LeafFormat{
            .bytes = schema_.leaf_bytes(), .begin = dolphin::BeginBlock, .fence_lines = schema_.fence_lines()},
        IndexRights::kClients);
    if constexpr (Keys::kKeysElsewhere) {
      for (std::byte*& record : records_) record = Must(cache_->Allocate(kRecordBytes));
    }
    std::vector<FreeBlock> firsts(options.leaves);
    for (FreeBlock& block : firsts) block = Must(blocks_->Take(context_));
    for (size_t i = 0; i < firsts.size(); ++i) {
      Leaf image{};
      image.SetShape(schema_.shape_lines());
      if constexpr (Keys::kKeysElsewhere) {
        std::vector<uint64_t> fillers(options.fillers);
        std::iota(fillers.begin(), fillers.end(), 2 * kKeys);
        std::ranges::sort(fillers, {}, [&](uint64_t n) { return names_[n]; });
        const size_t begin = i * fillers.size() / firsts.size();
        const size_t end = (i + 1) * fillers.size() / firsts.size();
        const bool is_last = end == fillers.size();
        Keys::SetLow(&image, i == 0 ? Keys::kLeast : names_[fillers[begin]]);
        Keys::SetNextLow(&image, is_last ? std::optional<typename Keys::Key>() : names_[fillers[end]]);
        for (size_t at = begin; at < end; ++at) {
          const auto to = rdma::GlobalAddress::FromBits(NewTarget(fillers[at], 1));
          image.Put(image.FreeSlot(), Keys::EntryOf(Keys::RecordEntry(schema_, names_[fillers[at]], to)));
        }
      } else {
        image.head.low = i * dolphin::kMostRange;
        image.head.high = image.head.low + dolphin::kMostRange - 1;
      }
      image.head.right = i + 1 < firsts.size() ? firsts[i + 1].address.bits() : 0;
      dolphin::StoreLeaf(image, At(firsts[i].address));
      StoreWord(At(firsts[i].address), dolphin::NextLife(LoadWord(At(firsts[i].address))));
    }
    first_ = firsts[0].address;
    ExchangeBlocks();
  }
  ~World() {
    for (auto& node : nodes_) node->Shutdown();
    blocks_->Close(*cache_);
  }

  std::byte* At(rdma::GlobalAddress leaf) const { return nodes_[kOwner]->memory().data() + leaf.offset(); }
  // The target of key n that stands for this value: the value itself, or the address of a record that nobody else has.
  uint64_t NewTarget(uint64_t n, uint64_t value) {
    if constexpr (!Keys::kKeysElsewhere) return value;
    GANNET_CHECK(records_used_ < records_.size(), "all %d records are used", records_used_);
    std::byte* const record = records_[records_used_++];
    if constexpr (Keys::kKeysElsewhere) {
      const Key key(names_[n].view());
      const RecordMeta meta{.key_bytes = static_cast<uint16_t>(key.size()), .payload_bytes = 8};
      StoreHeader(record, meta, key);
    }
    const uint64_t target = nodes_[kOwner]->AddressOf(record).bits();
    values_[target] = value;
    return target;
  }
  // 0: no target has this word.
  uint64_t ValueOf(uint64_t target) const {
    if constexpr (!Keys::kKeysElsewhere) return target;
    const auto found = values_.find(target);
    return found == values_.end() ? 0 : found->second;
  }

  // Calls visit(address, leaf) for each leaf of the chain, by the owner's CPU. False: it has no end.
  template <class Visit>
  bool ForEach(const Visit& visit) const {
    rdma::GlobalAddress at = first_;
    for (int steps = 0; !at.is_null(); ++steps) {
      if (steps > 1000) return false;
      Leaf image;
      for (size_t word = 0; word < schema_.leaf_bytes() / kWordBytes; ++word) {
        reinterpret_cast<uint64_t*>(&image)[word] = LoadWord(At(at) + word * kWordBytes);
      }
      image.SetShape(schema_.shape_lines());
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

  static constexpr size_t kRecordBytes = RecordBytes(kShortKeyBytes, 8);

  const Options options_;
  const Names<Keys>& names_;
  const typename Keys::Schema schema_;
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
  // Of byte keys. They are there from the beginning, for the same reason as blocks.
  std::array<std::byte*, Keys::kKeysElsewhere ? 800 : 0> records_;
  size_t records_used_ = 0;
  absl::flat_hash_map<uint64_t, uint64_t> values_;  // by target
};

// The blocks of a node's clients. The owner's thread lends them and takes them back (World::ExchangeBlocks), because a
// thread that dies here must not hold a lock of the owner.
template <class Keys>
class Blocks final : public shared_leaf::BlockSource {
 public:
  Blocks(World<Keys>* world, rdma::NodeId node) : world_(world), stock_(world->lent_[node]) {}
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
  World<Keys>* world_;
  std::vector<FreeBlock>& stock_;
};

template <class Keys>
class Client {
 public:
  using Key = typename Keys::Key;
  using Leaf = typename Keys::Leaf;
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;
  using Lock = TernaryLock<Keys>;
  using Changer = LeafChanger<Keys>;
  using Result = typename Changer::Result;
  using Outcome = typename Changer::Outcome;
  using For = typename Lock::For;

  Client(World<Keys>* world, rdma::NodeId node, uint64_t seed)
      : world_(world),
        random_(seed),
        channel_(Must(world->nodes_[node]->OpenChannel())),
        leaves_(channel_.get(), world->nodes_[node].get(), kOwner, absl::Nanoseconds(kPatienceNanos),
                world->schema_.fence_lines(), nullptr, shared_leaf::LeafChannel::As::kClient),
        lock_(&leaves_, world->schema_.shape_lines(), &world->books_[node]),
        blocks_(world, node),
        changer_(&lock_, &world->schema_, &blocks_) {
    worker_.AddPoller([this] { return channel_->Poll(); });
  }

  struct Found {
    uint64_t value = 0;
    uint64_t target = 0;
    LeafCopy leaf;  // for a witness: with all keys
  };
  StatusOr<Found> Find(const Key& key, For use) { return worker_.BlockOn(FindTask(key, use)); }
  Status Insert(const Key& key, uint64_t target, Change* change) {
    return worker_.BlockOn(ChangeTask(Outcome::kDone, key, 0, target, change));
  }
  // These are known by what of the outcome differs.
  Status Update(const Key& key, uint64_t value) {
    return worker_.BlockOn(ChangeTask(Outcome::kBusy, key, 0, value, nullptr));
  }
  Status Replace(const Key& key, uint64_t from, uint64_t to) {
    return worker_.BlockOn(ChangeTask(Outcome::kExists, key, from, to, nullptr));
  }
  Status Remove(const Key& key, uint64_t target, Change* change) {
    return worker_.BlockOn(ChangeTask(Outcome::kAbsent, key, target, 0, change));
  }
  // Makes several changes in one stay in the leaf of the first key. Those that are not made there are made alone. The
  // result has a status for each.
  using Together = typename Changer::Together;
  std::vector<Status> ChangeTogether(std::vector<Together> changes) {
    return worker_.BlockOn(ChangeTogetherTask(std::move(changes)));
  }
  // One try to merge the leaf of a key with its right sibling.
  StatusOr<bool> Absorb(const Key& key) { return worker_.BlockOn(AbsorbTask(key)); }
  StatusOr<uint64_t> WordAt(rdma::GlobalAddress at) { return worker_.BlockOn(leaves_.ReadWord(at, 0)); }
  // What one task takes.
  template <class T>
  rdma::VerbCounters VerbsOf(coro::Task<StatusOr<T>> task, StatusOr<T>* result) {
    const rdma::VerbCounters before = channel_->counters();
    *result = worker_.BlockOn(std::move(task));
    return channel_->counters() - before;
  }
  Changer& changer() { return changer_; }
  Lock& lock() { return lock_; }

 private:
  coro::Task<Status> Locate(Key key, For use, LeafCopy* copy) {
    Patience patience(kPatienceNanos);
    Leaf leaf;
    for (;;) {
      copy->address = world_->seen_.empty() || random_.OneIn(4) ? world_->first_
                                                                : world_->seen_[random_.Below(world_->seen_.size())];
      for (int steps = 0; steps < 100; ++steps) {
        const StatusOr<LeafLook> look = co_await lock_.Read(copy->address, use, &leaf);
        if (!look.ok()) co_return look.status();
        if (*look != LeafLook::kWhole) break;
        copy->image = Keys::View(leaf);
        if (Keys::BeginsBehind(copy->image, Keys::At(key))) break;
        if (Keys::CoversKey(copy->image, key)) {
          world_->seen_.push_back(copy->address);
          co_return absl::OkStatus();
        }
        copy->address = leaf.right();
        if (copy->address.is_null()) break;
      }
      if (!patience.Pause()) co_return absl::UnavailableError("there is no way to the key");
    }
  }
  coro::Task<StatusOr<Found>> FindTask(Key key, For use) {
    Found found;
    const Status located = co_await Locate(key, use, &found.leaf);
    GANNET_CO_RETURN_IF_ERROR(located);
    const StatusOr<int> slot = co_await shared_leaf::FindKey<Keys>(&leaves_, world_->schema_, key, &found.leaf);
    if (!slot.ok()) co_return slot.status();
    if (*slot >= 0) {
      const auto entry = found.leaf.image.template entry<typename Keys::Entry>(*slot);
      found.target = Keys::TargetOf(entry, kOwner).bits();
      found.value = world_->ValueOf(found.target);
    }
    if (use == For::kWitness) {
      const Status read = co_await shared_leaf::ReadAllKeys<Keys>(&leaves_, world_->schema_, &found.leaf);
      GANNET_CO_RETURN_IF_ERROR(read);
    }
    co_return found;
  }
  coro::Task<Status> ChangeTask(Outcome what, Key key, uint64_t from, uint64_t to, Change* change) {
    Patience patience(kPatienceNanos);
    for (;;) {
      rdma::GlobalAddress at;
      // Often by a stale address: what is found there may be anything.
      if (!world_->seen_.empty() && random_.OneIn(3)) {
        at = world_->seen_[random_.Below(world_->seen_.size())];
      } else {
        LeafCopy copy;
        const Status located = co_await Locate(key, For::kEntry, &copy);
        GANNET_CO_RETURN_IF_ERROR(located);
        at = copy.address;
      }
      StatusOr<Result> result = Result{};
      switch (what) {
        case Outcome::kDone:
          result = co_await changer_.Insert(at, key, to, change);
          if (result.ok() && result->outcome == Outcome::kFull) {
            result = co_await changer_.InsertAlone(at, *result, key, to, change);
          }
          break;
        case Outcome::kBusy:
          if constexpr (!Keys::kKeysElsewhere) result = co_await changer_.Update(at, key, to);
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
      if (result->outcome == Outcome::kUncertain) co_return absl::UnavailableError("it is not known");
      if (!patience.Pause()) {
        co_return absl::UnavailableError(absl::StrCat("the leaf at ", at.ToString(), " stays in use: state ",
                                                      absl::Hex(LoadWord(world_->At(at))), ", holders ",
                                                      LoadWord(world_->At(at) + dolphin::kHoldersOffset)));
      }
    }
  }
  coro::Task<std::vector<Status>> ChangeTogetherTask(std::vector<Together> changes) {
    LeafCopy copy;
    Status status = co_await Locate(changes[0].key, For::kEntry, &copy);
    typename Lock::Stay stay;
    StatusOr<LeafLook> look(LeafLook::kTorn);
    if (status.ok()) look = co_await lock_.Enter(copy.address, Part::kKeys, &stay);
    if (status.ok()) status = look.status();
    if (status.ok() && *look == LeafLook::kWhole) status = co_await changer_.ChangeTogether(stay, changes);
    std::vector<Status> made(changes.size(), status);
    if (!status.ok()) co_return made;
    for (size_t i = 0; i < changes.size(); ++i) {
      const Together& one = changes[i];
      if (one.result.outcome == Outcome::kDone) continue;
      const Outcome what = one.is_update ? Outcome::kBusy : Outcome::kDone;
      const Status alone = co_await ChangeTask(what, one.key, 0, one.word, nullptr);
      made[i] = alone;
    }
    co_return made;
  }
  coro::Task<StatusOr<bool>> AbsorbTask(Key key) {
    LeafCopy copy;
    const Status located = co_await Locate(key, For::kEntry, &copy);
    GANNET_CO_RETURN_IF_ERROR(located);
    const StatusOr<Result> result = co_await changer_.Absorb(copy.address, copy.image.state(), nullptr);
    if (!result.ok()) co_return result.status();
    co_return result->outcome == Outcome::kDone;
  }

  World<Keys>* world_;
  Random random_;
  std::unique_ptr<rdma::Channel> channel_;
  coro::Worker worker_;
  shared_leaf::LeafChannel leaves_;
  Lock lock_;
  Blocks<Keys> blocks_;
  Changer changer_;
};

// What runs have met.
// What a scan of all keys takes of a leaf.
template <class Keys>
ScanResult Scanned(const shared_leaf::LeafCopyOf<Keys>& leaf) {
  const typename Keys::Key low = Keys::LowOf(leaf.image);
  typename Keys::Key greatest = low;
  for (uint64_t used = leaf.image.template used<typename Keys::Entry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    if (Keys::Knows(leaf.keys, slot)) greatest = std::max(greatest, Keys::KeyAt(leaf.image, leaf.keys, slot));
  }
  ScanResult result;
  typename Keys::Cut next = Keys::Start(low, greatest, /*reverse=*/false);
  shared_leaf::TakeLeaf<Keys>(leaf, low, greatest, /*reverse=*/false, SIZE_MAX, &result, &next);
  return result;
}
bool IsInOrder(const ScanResult& result) {
  const auto is_not_before = [](const auto& a, const auto& b) { return !(a.key.view() < b.key.view()); };
  return std::ranges::adjacent_find(result.entries, is_not_before) == result.entries.end();
}

struct Tally {
  void CountMarks() {
    for (const Mark* mark : Mark::All()) {
      if (mark->name().starts_with("dolphin: ")) marks[mark->name()] += mark->reached();
    }
  }
  // `of_others`: of changes of other keys.
  void ExpectAllMarks(const absl::flat_hash_set<std::string_view>& of_others) const {
    EXPECT_GE(marks.size(), 10u);
    for (const auto& [name, reached] : marks) {
      if (!of_others.contains(name)) {
        EXPECT_GT(reached, 0u) << name;
      }
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

template <class Keys>
class Trial {
 public:
  using For = typename TernaryLock<Keys>::For;

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
  typename Keys::Key KeyOf(uint64_t n) const { return world_.names_[n]; }

  void Work(rdma::NodeId node, uint64_t number) {
    Client<Keys> client(&world_, node, seed_ * 8 + number);
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
      } else if (!Keys::kKeysElsewhere && what == 7 && !world_.options_.merges) {
        WriteTogether(&client, key, &random);
      } else {
        // The last of several inserts of one stay mostly has a rival.
        const bool rivals = awaits_.has_value() && races_[*awaits_].is_open && !random.OneIn(4);
        Write(&client, rivals ? *awaits_ : key, &random, world_.options_.merges && i > 20);
      }
    }
  }

  void Write(Client<Keys>* client, uint64_t key, Random* random, bool removes_more) {
    if (std::exchange(taken_[key], true)) {
      if (races_[key].is_open) Rival(client, key, random);
      return;
    }
    const bool was_there = history_.is_there(key);
    const bool removes = was_there && (removes_more || random->OneIn(3));
    if (!was_there && removes_more) {
      taken_[key] = false;
      return;
    }
    const uint64_t number = history_.Begin(key, !removes);
    uint64_t to = removes ? 0 : world_.NewTarget(key, number);
    Status status;
    if (!was_there) {
      Race& race = races_[key] = {.is_open = world_.options_.races || random->OneIn(2), .number = number};
      status = EndRace(&race, client->Insert(KeyOf(key), to, nullptr), &to);
    } else if (removes) {
      status = client->Remove(KeyOf(key), targets_[key], nullptr);
    } else if (!Keys::kKeysElsewhere && random->OneIn(2)) {
      status = client->Update(KeyOf(key), to);
    } else {
      status = client->Replace(KeyOf(key), targets_[key], to);
    }
    EndWrite(key, number, status, to);
  }
  void EndWrite(uint64_t key, uint64_t number, const Status& status, uint64_t target) {
    if (status.ok()) {
      ++tally_->changes;
      history_.End(key, number);
      targets_[key] = target;
      taken_[key] = false;
      return;
    }
    if (absl::IsAlreadyExists(status) || absl::IsNotFound(status)) {
      Note(absl::StrCat("key ", key, ", write ", number, ": ", status.ToString()));
    }
    // Nobody writes the key again, because it is not known what became of it.
    ++tally_->unknown;
  }

  // Inserts those of the keys from `first` on that are absent, and updates the others, in one stay if they are in one
  // leaf. A rival may insert the last one meanwhile.
  void WriteTogether(Client<Keys>* client, uint64_t first, Random* random) {
    if constexpr (!Keys::kKeysElsewhere) {
      std::vector<uint64_t> keys;
      std::vector<uint64_t> numbers;
      std::vector<typename Client<Keys>::Together> changes;
      for (uint64_t key = first; key < std::min(kKeys, first + 6) && keys.size() < 3; ++key) {
        if (std::exchange(taken_[key], true)) continue;
        keys.push_back(key);
        const bool is_update = history_.is_there(key);
        numbers.push_back(history_.Begin(key, true));
        changes.push_back({.key = KeyOf(key), .word = numbers.back(), .is_update = is_update});
      }
      if (keys.empty()) return;
      const size_t last = keys.size() - 1;
      Race& race = races_[keys[last]];
      if (!changes[last].is_update) {
        race = {.is_open = random->OneIn(2), .number = numbers[last]};
        awaits_ = keys[last];
      }
      const std::vector<Status> made = client->ChangeTogether(changes);
      for (size_t i = 0; i < keys.size(); ++i) {
        uint64_t target = numbers[i];
        const bool races = i == last && !changes[i].is_update;
        EndWrite(keys[i], numbers[i], races ? EndRace(&race, made[i], &target) : made[i], target);
      }
    }
  }

  // Two inserts of one key and value: one of them makes it. If that was the other one, the second may remove the key,
  // also before the first one knows that it is there.
  struct Race {
    bool is_open = false;
    uint64_t number = 0;
    bool is_met = false;  // by the rival
    bool is_over = false;
    Status status{};  // of the rival
    uint64_t target = 0;
  };
  // *target: of the own insert, or then of the one that has made it.
  Status EndRace(Race* race, const Status& own, uint64_t* target) {
    race->is_open = false;
    Patience patience(4 * kPatienceNanos);
    while (race->is_met && !race->is_over && patience.Pause()) SleepForNanos(1000);
    if (!race->is_met) return own;
    if (!race->is_over) return absl::UnavailableError("the rival has died");
    ++tally_->races;
    if (absl::IsUnavailable(own) || absl::IsUnavailable(race->status)) return absl::UnavailableError("a race");
    if (own.ok() == race->status.ok()) return absl::NotFoundError(absl::StrCat("a race: ", own.ToString(), " twice"));
    if (!own.ok()) *target = race->target;
    return own.ok() ? own : race->status;
  }
  void Rival(Client<Keys>* client, uint64_t key, Random* random) {
    Race& race = races_[key];
    race.is_open = false;
    race.is_met = true;
    race.target = world_.NewTarget(key, race.number);
    race.status = client->Insert(KeyOf(key), race.target, nullptr);
    if (absl::IsAlreadyExists(race.status)) {
      const auto found = client->Find(KeyOf(key), For::kEntry);
      if (found.ok() && found->value != race.number) Note(absl::StrCat("key ", key, " exists, and is not there"));
      if (found.ok() && (world_.options_.races || random->OneIn(2))) {
        const uint64_t number = history_.Begin(key, false);
        const Status removed = client->Remove(KeyOf(key), found->target, nullptr);
        if (removed.ok()) history_.End(key, number);
        if (absl::IsNotFound(removed)) Note(absl::StrCat("key ", key, " exists, and cannot be removed"));
        if (absl::IsUnavailable(removed)) race.status = removed;
      }
    }
    race.is_over = true;
  }
  void Read(Client<Keys>* client, uint64_t key) {
    const uint64_t begin = history_.Tick();
    const auto found = client->Find(KeyOf(key), For::kEntry);
    if (!found.ok()) return;
    ++tally_->reads;
    Note(history_.Judge(key, found->value, begin, history_.Tick()));
  }
  // A witness: as long as the leaf has the word, it has the keys that were seen, and no others.
  void Validate(Client<Keys>* client, uint64_t key, Random* random) {
    const auto found = client->Find(KeyOf(key), For::kWitness);
    if (!found.ok()) return;
    const ScanResult scanned = Scanned<Keys>(found->leaf);
    if (!IsInOrder(scanned)) Note(absl::StrCat("a scan of leaf ", found->leaf.address.ToString(), " is not in order"));
    SleepForNanos(random->Below(20'000));
    const uint64_t begin = history_.Tick();
    const Witness witness = found->leaf.witness();
    const StatusOr<uint64_t> word = client->WordAt(witness.word);
    if (!word.ok() || IsLocked(*word) || !IsSameSet(*word, witness.seen)) return;
    ++tally_->witnesses;
    const uint64_t end = history_.Tick();
    if (!shared_leaf::KnowsAll<Keys>(found->leaf)) Note("an entry has no key");
    const std::map<uint64_t, uint64_t> values = ValuesIn(found->leaf);
    for (uint64_t other = 0; other < kKeys; ++other) {
      if (!Keys::CoversKey(found->leaf.image, KeyOf(other)) || values.contains(other)) continue;
      Note(history_.Judge(other, 0, begin, end));
    }
  }
  // The values of the keys of a leaf, by number.
  std::map<uint64_t, uint64_t> ValuesIn(const shared_leaf::LeafCopyOf<Keys>& leaf) {
    using Entry = typename Keys::Entry;
    std::map<uint64_t, uint64_t> values;
    for (uint64_t used = leaf.image.template used<Entry>(); used != 0; used &= used - 1) {
      const int slot = std::countr_zero(used);
      if (!Keys::Knows(leaf.keys, slot)) {
        Note(absl::StrCat("slot ", slot, " of leaf ", leaf.address.ToString(), " has no key"));
        continue;
      }
      const uint64_t n = world_.names_.NumberOf(Keys::KeyAt(leaf.image, leaf.keys, slot));
      const uint64_t value = world_.ValueOf(Keys::TargetOf(leaf.image.template entry<Entry>(slot), kOwner).bits());
      if (n >= kNames || value == 0) Note(absl::StrCat("key ", n, " has value ", value));
      if (!values.emplace(n, value).second) Note(absl::StrCat("key ", n, " is twice in a leaf"));
    }
    return values;
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
    LeafRepair<Keys> repair(world_.fabric_.get(), channel.get(), &worker, world_.blocks_.get(), &world_.schema_,
                            kPatienceNanos);
    while (!is_over_) {
      world_.ExchangeBlocks();
      const bool has_died = death_.node != 0 && !world_.fabric_->Runs(death_.node);
      if (has_died && !is_repaired_ && world_.nodes_[kOwner]->ConnectionTo(death_.node) == 0) {
        const Status repaired = repair.RepairAfter(death_.node, [this](const auto& visit) {
          const bool ends = world_.ForEach([&](rdma::GlobalAddress at, const auto&) { visit(at); });
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
      Client<Keys> client(&world_, survivor, seed_);
      std::array<uint64_t, kKeys> extras{};
      for (uint64_t key = 0; key < kKeys; ++key) {
        const uint64_t begin = history_.Tick();
        const auto found = client.Find(KeyOf(key), For::kWitness);
        if (!found.ok()) return Note(found.status().ToString());
        Note(history_.Judge(key, found->value, begin, history_.Tick()));
        // Those that are inserted and removed are in most leaves.
        if (key % 6 != 0) continue;
        extras[key] = world_.NewTarget(kKeys + key, 1);
        const Status inserted = client.Insert(KeyOf(kKeys + key), extras[key], nullptr);
        if (!inserted.ok()) return Note(inserted.ToString());
      }
      for (uint64_t key = 0; key < kKeys; key += 6) {
        const Status removed = client.Remove(KeyOf(kKeys + key), extras[key], nullptr);
        if (!removed.ok()) return Note(removed.ToString());
      }
    });
    world_.simulation_.Join(thread);
  }

  void Check() {
    absl::flat_hash_set<uint64_t> linked;
    std::array<uint64_t, kNames> values{};
    std::optional<typename Keys::Key> low(Keys::kLeast);
    const bool ends = world_.ForEach([&](rdma::GlobalAddress at, const typename Keys::Leaf& leaf) {
      const std::string name = at.ToString();
      linked.insert(at.offset());
      typename Keys::Leaf judged = leaf;
      if (dolphin::LookAtLeaf(&judged, world_.schema_.shape_lines(), Part::kWhole) != LeafLook::kWhole) {
        Note(absl::StrCat("leaf ", name, " is not whole: state ", absl::Hex(leaf.lock.state)));
      }
      if (leaf.lock.holders != 0) Note(absl::StrCat("leaf ", name, " has holders ", leaf.lock.holders));
      shared_leaf::LeafCopyOf<Keys> copy{.address = at, .image = Keys::View(leaf)};
      shared_leaf::LoadAllKeys<Keys>(*world_.blocks_, world_.schema_, &copy);
      const typename Keys::Key begins = Keys::LowOf(copy.image);
      if (begins != low) Note(absl::StrCat("leaf ", name, " begins at ", Keys::ToString(begins)));
      low = shared_leaf::NextLowOf<Keys>(copy.image);
      for (int slot = 0; slot < leaf.slots(); ++slot) {
        // A slot that a node that lives has reserved, perhaps, stays until somebody comes alone.
        if (leaf.IsReserved(slot) && world_.options_.faults.disconnect == 0) {
          Note(absl::StrCat("leaf ", name, " has a reserved slot"));
        }
        if (leaf.HasEntryWord(slot) && (leaf.used() >> slot & 1) == 0) {
          Note(absl::StrCat("slot ", slot, " of leaf ", name, " has a key and no value"));
        }
      }
      for (const auto& [key, value] : ValuesIn(copy)) {
        if (key >= kKeys && key < 2 * kKeys) Note(absl::StrCat("leaf ", name, " has the key ", key));
        if (std::exchange(values[key], value) != 0) Note(absl::StrCat("key ", key, " is there twice"));
      }
    });
    if (!ends || low.has_value()) Note("the chain has no end");
    for (uint64_t key = 0; key < kKeys; ++key) {
      Note(history_.Judge(key, values[key], history_.Tick(), history_.Tick()));
    }
    for (uint64_t key = 2 * kKeys; key < kNames && Keys::kKeysElsewhere; ++key) {
      if (values[key] != (key < 2 * kKeys + world_.options_.fillers ? 1 : 0))
        Note(absl::StrCat("filler ", key, " has value ", values[key]));
    }
    const Status blocks =
        world_.blocks_->Check([&linked](rdma::GlobalAddress at) { return linked.contains(at.offset()); });
    if (!blocks.ok()) Note(blocks.ToString());
  }

  const uint64_t seed_;
  const Death death_;
  World<Keys> world_;
  History history_;
  std::array<uint64_t, kKeys> targets_{};
  std::array<bool, kKeys> taken_{};
  std::array<Race, kKeys> races_{};
  std::optional<uint64_t> awaits_;  // the key of the last insert of several that a rival may make
  bool is_over_ = false;
  bool is_repaired_ = false;
  Tally* tally_ = nullptr;
  std::string wrong_;
};

rdma::sim::Faults RaceFaults(double scatter = 0.3) {
  return {.scatter_lines = scatter,
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

template <class Keys>
class DolphinLeaf : public ::testing::Test {};
struct NameOfKeys {
  template <class Keys>
  static std::string GetName(int) {
    return Keys::kKeysElsewhere ? "Bytes" : "Integers";
  }
};
using BothKeys = ::testing::Types<IntegerKeys, ByteKeys>;
TYPED_TEST_SUITE(DolphinLeaf, BothKeys, NameOfKeys);

TYPED_TEST(DolphinLeaf, ChangesOfThreeNodesAreOnesOfTheirHistories) {
  Tally tally;
  for (uint64_t seed = 1; seed <= Seeds(150); ++seed) {
    // Leaves of byte keys have many slots, so most pairs of neighbours fit into one only when keys are removed.
    const bool merges = TypeParam::kKeysElsewhere && seed % 3 == 0;
    const Options options{.lines = 1 + seed % 2, .merges = merges, .faults = RaceFaults()};
    ASSERT_EQ(Trial<TypeParam>(seed, options).Go(&tally), "");
  }
  EXPECT_GT(tally.witnesses, tally.reads / 20);
  EXPECT_GT(tally.absorbed, 20u);
  EXPECT_GT(tally.races, 100u);
  EXPECT_LT(tally.unknown, tally.changes / 50);
}

TYPED_TEST(DolphinLeaf, PostingsThatFailAreRepeatedWithoutHarm) {
  Tally tally;
  for (uint64_t seed = 1; seed <= Seeds(150); ++seed) {
    ASSERT_EQ(Trial<TypeParam>(seed, {.lines = 1 + seed % 2, .faults = FailingFaults(0.01)}).Go(&tally), "");
  }
  EXPECT_GT(tally.unknown, 20u);
  EXPECT_GT(tally.changes, 5 * tally.unknown);
  if (TypeParam::kKeysElsewhere) {
    tally.ExpectAllMarks({"dolphin: an insert meets a reserved slot of its key",
                          "dolphin: an insert finds another key in its slot",
                          "dolphin: an insert of several is void, because an earlier one has met its key"});
  } else {
    tally.ExpectAllMarks(
        {"dolphin: an insert finds its slot in use", "dolphin: an insert whose posting has failed finds its entry"});
  }
}

// A node dies when any of its verbs has left it: of inserts, updates, removals, splits and merges.
TYPED_TEST(DolphinLeaf, DeathsAtAnyVerbLeaveNothingLockedLostOrLeaked) {
  Tally tally;
  for (uint64_t seed = 1; seed <= Seeds(300); ++seed) {
    const Death death{.node = static_cast<rdma::NodeId>(1 + seed % 3), .verbs = 1 + seed % 300};
    const Options options{.lines = TypeParam::kKeysElsewhere ? 1 + seed % 2 : 1, .faults = RaceFaults()};
    ASSERT_EQ(Trial<TypeParam>(seed, options, death).Go(&tally), "") << "death at verb " << death.verbs;
  }
  EXPECT_GT(tally.deaths, Seeds(300) / 2);
}

// A removal must not take out the record that has replaced the one of its image.
TEST(DolphinIntegerLeaf, ImagesFromBeforeARecordWasReplacedAreTorn) {
  using Keys = IntegerKeys;
  World<Keys> world(1, {.leaves = 1});
  Runtime::Thread* const thread = world.simulation_.StartOn(1, "replace", [&] {
    Client<Keys> client(&world, 1, /*seed=*/1);
    const auto leaf = [&world] {
      std::optional<Keys::Leaf> found;
      world.ForEach([&](rdma::GlobalAddress /*at*/, const Keys::Leaf& image) { found = image; });
      return *found;
    };
    const uint64_t from = world.NewTarget(0, 1);
    ASSERT_TRUE(client.Insert(world.names_[0], from, nullptr).ok());
    const Keys::Leaf before = leaf();
    ASSERT_TRUE(client.Replace(world.names_[0], from, world.NewTarget(0, 2)).ok());
    Keys::Leaf mixed = leaf();
    EXPECT_EQ(dolphin::LookAtLeaf(&mixed, world.schema_.shape_lines(), Part::kWhole), LeafLook::kWhole);
    mixed.lines = before.lines;
    EXPECT_EQ(dolphin::LookAtLeaf(&mixed, world.schema_.shape_lines(), Part::kWhole), LeafLook::kTorn);
    mixed.head = before.head;
    EXPECT_EQ(dolphin::LookAtLeaf(&mixed, world.schema_.shape_lines(), Part::kWhole), LeafLook::kTorn);
  });
  world.simulation_.Join(thread);
}

// A READ may last so long that a key is removed behind it, and inserted again before it.
TYPED_TEST(DolphinLeaf, AScanTakesAKeyOnceThatAnImageHasTwice) {
  using Keys = TypeParam;
  World<Keys> world(1, {.leaves = 1});
  Runtime::Thread* const thread = world.simulation_.StartOn(1, "scan", [&] {
    Client<Keys> client(&world, 1, /*seed=*/1);
    for (uint64_t n = 0; n < 5; ++n) {
      ASSERT_TRUE(client.Insert(world.names_[n], world.NewTarget(n, n + 1), nullptr).ok());
    }
    const auto before = client.Find(world.names_[3], TernaryLock<Keys>::For::kWitness);
    ASSERT_TRUE(before.ok()) << before.status();
    const rdma::GlobalAddress address = before->leaf.address;
    const size_t entries = Scanned<Keys>(before->leaf).entries.size();
    ASSERT_GT(entries, 0u);
    world.ForEach([&](rdma::GlobalAddress at, const typename Keys::Leaf& leaf) {
      if (at != address) return;
      int from = 0;
      int to = 0;
      while (leaf.key_word(from) == 0) ++from;
      while (leaf.key_word(to) != 0) ++to;
      if constexpr (!Keys::kKeysElsewhere) StoreWord(world.At(at) + leaf.target_offset(to), leaf.target(from));
      StoreWord(world.At(at) + leaf.key_offset(to), leaf.key_word(from));
    });
    const auto after = client.Find(world.names_[3], TernaryLock<Keys>::For::kWitness);
    ASSERT_TRUE(after.ok()) << after.status();
    const auto used = static_cast<size_t>(std::popcount(after->leaf.image.template used<typename Keys::Entry>()));
    EXPECT_EQ(used, entries + 1);
    const ScanResult scanned = Scanned<Keys>(after->leaf);
    EXPECT_EQ(scanned.entries.size(), entries);
    EXPECT_TRUE(IsInOrder(scanned));
  });
  world.simulation_.Join(thread);
}

// The old content of a block with the state word of its next leaf: with byte keys, too few READs meet both.
TYPED_TEST(DolphinLeaf, ImagesOfTwoGenerationsOrNumbersAreTorn) {
  World<TypeParam> world(1, {});
  const auto look = [&](typename TypeParam::Leaf leaf) {
    return dolphin::LookAtLeaf(&leaf, world.schema_.shape_lines(), Part::kWhole);
  };
  world.ForEach([&](rdma::GlobalAddress /*at*/, typename TypeParam::Leaf leaf) {
    EXPECT_EQ(look(leaf), LeafLook::kWhole);
    leaf.lock.state ^= dolphin::GenerationOf(1);
    EXPECT_EQ(look(leaf), LeafLook::kTorn);
    leaf.lock.state ^= dolphin::GenerationOf(1);
    for (size_t line = 0; line < leaf.LinesIn(Part::kWhole); ++line) {
      ++leaf.lines[line].number;
      EXPECT_EQ(look(leaf), LeafLook::kTorn);
      --leaf.lines[line].number;
    }
  });
}

// III-B: a read takes one round trip, an update two, an insert three; inserts and updates READ no targets.
TEST(DolphinRoundTrips, OfIntegerKeys) {
  using Changer = LeafChanger<IntegerKeys>;
  using Outcome = Changer::Outcome;
  using For = TernaryLock<IntegerKeys>::For;
  constexpr size_t kLines = dolphin::kDefaultKeyLines;
  World<IntegerKeys> world(1, {.lines = kLines});
  Runtime::Thread* const thread = world.simulation_.StartOn(1, "count", [&world] {
    Client<IntegerKeys> client(&world, 1, 1);
    const rdma::GlobalAddress leaf = world.first_;
    const auto slots = static_cast<uint64_t>(kLines) * dolphin::kSlotsPerLine;
    StatusOr<Changer::Result> result = Changer::Result{};
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
    const auto read = client.VerbsOf(client.lock().Read(leaf, For::kEntry, &image), &look);
    EXPECT_EQ(read.round_trips, 1u);
    EXPECT_EQ(read.fetch_and_adds, 0u);
    EXPECT_EQ(read.bytes_in, LeafBytes(kLines));
    EXPECT_EQ(image.target(image.Find(3)), 99u);
    EXPECT_EQ(image.count(), static_cast<int>(slots));
    const auto witness = client.VerbsOf(client.lock().Read(leaf, For::kWitness, &image), &look);
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

// An entry of byte keys is one word, so an insert takes two round trips, and one more if the leaf has its tag.
TEST(DolphinRoundTrips, OfByteKeys) {
  using Changer = LeafChanger<ByteKeys>;
  using Outcome = Changer::Outcome;
  World<ByteKeys> world(1, {.leaves = 1});
  Runtime::Thread* const thread = world.simulation_.StartOn(1, "count", [&world] {
    Client<ByteKeys> client(&world, 1, 1);
    const rdma::GlobalAddress leaf = world.first_;
    const auto& key = world.names_;
    StatusOr<Changer::Result> result = Changer::Result{};
    std::map<uint64_t, uint64_t> targets;
    // Those with even numbers have one tag.
    for (const uint64_t n : {1, 3, 5, 0, 2, 4, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29}) {
      targets[n] = world.NewTarget(n, n + 1);
      const auto insert = client.VerbsOf(client.changer().Insert(leaf, key[n], targets[n], nullptr), &result);
      ASSERT_TRUE(result.ok() && result->outcome == Outcome::kDone);
      const uint64_t same = n % 2 == 0 ? n / 2 : 0;
      EXPECT_EQ(insert.round_trips, same > 0 ? 3u : 2u);
      EXPECT_EQ(insert.reads, 1 + same);
      EXPECT_EQ(insert.compare_and_swaps, 1u);
      EXPECT_EQ(insert.fetch_and_adds, 3u);
      EXPECT_EQ(insert.writes, 0u);
      EXPECT_EQ(insert.bytes_in, world.schema_.leaf_bytes() + same * HeaderReadBytes(17) + 4 * kWordBytes);
    }
    client.VerbsOf(client.changer().Insert(leaf, key[2], world.NewTarget(2, 9), nullptr), &result);
    EXPECT_EQ(result->outcome, Outcome::kExists);
    EXPECT_EQ(result->existing, targets[2]);
    const auto replace =
        client.VerbsOf(client.changer().Replace(leaf, key[2], targets[2], world.NewTarget(2, 9), nullptr), &result);
    EXPECT_EQ(replace.round_trips, 2u);
    EXPECT_EQ(result->outcome, Outcome::kDone);
    EXPECT_EQ(client.Find(key[2], TernaryLock<ByteKeys>::For::kEntry)->value, 9u);

    // Into a full leaf: two for the look, two for the split, and one for the keys of the leaf.
    targets[31] = world.NewTarget(31, 32);
    const auto full = client.VerbsOf(client.changer().Insert(leaf, key[31], targets[31], nullptr), &result);
    EXPECT_EQ(full.round_trips, 2u);
    ASSERT_EQ(result->outcome, Outcome::kFull);
    ASSERT_TRUE(result->splits);
    const auto split =
        client.VerbsOf(client.changer().InsertAlone(leaf, *result, key[31], targets[31], nullptr), &result);
    EXPECT_EQ(split.round_trips, 3u);
    ASSERT_EQ(result->outcome, Outcome::kDone);
    EXPECT_LE(result->border.size(), 4u) << "names of eleven bytes differ in their first three or four";

    const rdma::GlobalAddress now = key[1] < result->border ? leaf : result->right;
    const auto remove = client.VerbsOf(client.changer().Remove(now, key[1], targets[1], nullptr), &result);
    EXPECT_EQ(remove.round_trips, 2u);
    EXPECT_EQ(result->outcome, Outcome::kDone);
  });
  world.simulation_.Join(thread);
}

// A client that does not keep the rules can write anything into a leaf. Others get errors or wrong answers; they do not
// stop, and wait for no longer than their patience.
TYPED_TEST(DolphinLeaf, LeavesWithAnyContentStopNobody) {
  using Keys = TypeParam;
  uint64_t errors = 0;
  uint64_t changes = 0;
  const uint64_t seeds = Seeds(IsThorough() ? 60 : 15);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    World<Keys> world(seed, Keys::kKeysElsewhere ? Options{.lines = 1 + seed % 2, .leaves = 1} : Options{});
    Runtime::Thread* const thread = world.simulation_.StartOn(1, "suffer", [&] {
      Client<Keys> client(&world, 1, seed);
      Random random(seed);
      const size_t words = world.schema_.leaf_bytes() / kWordBytes;
      for (uint64_t n = 0; n < 7; ++n) {
        ASSERT_TRUE(client.Insert(world.names_[n], world.NewTarget(n, n + 1), nullptr).ok());
      }
      for (int round = 0; round < 6; ++round) {
        for (uint64_t n = 1 + random.Below(6); n > 0; --n) {
          // Seldom a lock word or a number, without which most leaves would only look busy.
          const size_t first = random.OneIn(6) ? 0 : 2;
          const size_t word = first + random.Below(words - first);
          if (word % 8 == 0 && !random.OneIn(6)) continue;
          const std::array<uint64_t, 9> values = {0,
                                                  1,
                                                  kFirst + random.Below(20),
                                                  ~uint64_t{0},
                                                  dolphin::kReservedBit | random.Below(9),
                                                  uint64_t{1} << 62,
                                                  world.first_.bits(),
                                                  LoadWord(world.At(world.first_) + random.Below(words) * kWordBytes),
                                                  random()};
          StoreWord(world.At(world.first_) + word * kWordBytes, values[random.Below(values.size())]);
        }
        const uint64_t n = random.Below(12);
        const typename Keys::Key key = world.names_[n];
        const auto found = client.Find(key, TernaryLock<Keys>::For::kWitness);
        const uint64_t target = found.ok() ? found->target : 1;
        const uint64_t to = world.NewTarget(n, 6);
        const std::array<Status, 4> done = {
            client.Insert(key, world.NewTarget(n, 5), nullptr), client.Remove(key, target, nullptr),
            Keys::kKeysElsewhere ? client.Replace(key, target, to) : client.Update(key, to),
            client.Absorb(key).status()};
        for (const Status& status : done) ++(status.ok() ? changes : errors);
      }
    });
    world.simulation_.Join(thread);
  }
  EXPECT_GT(errors, 2 * seeds);
  EXPECT_GT(changes, 2 * seeds);
}

struct Mistake {
  Mutant mutant;
  const char* name;
  // The first seeds that are tried, with integer and with byte keys: those before them have found nothing.
  std::array<uint64_t, 2> first = {1, 1};
  bool dies = false;
  bool fails = false;
  bool merges = false;
  bool brief = false;
  bool races = false;
  bool splits = false;  // more of them
  double scatter = 0.3;
};

template <class Keys>
void Find(const Mistake& mistake) {
  std::string wrong;
  const uint64_t first = mistake.first[Keys::kKeysElsewhere ? 1 : 0];
  uint64_t seed = first - 1;
  while (wrong.empty() && ++seed < first + Seeds(10'000)) {
    active_mutant = mistake.mutant;
    Tally tally;
    const Death death{.node = static_cast<rdma::NodeId>(mistake.dies ? 1 + seed % 3 : 0),
                      .verbs = 1 + seed % (mistake.brief ? 40 : 200)};
    const Options options{.lines = mistake.brief ? size_t{3} : size_t{1},
                          .fillers = mistake.splits ? 38u : 24u,
                          .leaves = Keys::kKeysElsewhere && mistake.splits ? 1u : 4u,
                          .merges = mistake.merges,
                          .races = mistake.fails || mistake.races,
                          .brief = mistake.brief,
                          .faults = mistake.fails ? FailingFaults(0.05) : RaceFaults(mistake.scatter)};
    wrong = Trial<Keys>(seed, options, death).Go(&tally);
    active_mutant = Mutant::kNone;
  }
  EXPECT_NE(wrong, "") << mistake.name << " was not found";
  std::printf("%s: seed %lu: %s\n", mistake.name, static_cast<unsigned long>(seed), wrong.c_str());
}

class MistakeWithIntegers : public ::testing::TestWithParam<Mistake> {};
TEST_P(MistakeWithIntegers, IsFound) {
  Find<IntegerKeys>(GetParam());
}
class MistakeWithBytes : public ::testing::TestWithParam<Mistake> {};
TEST_P(MistakeWithBytes, IsFound) {
  Find<ByteKeys>(GetParam());
}

const auto kMistakes = ::testing::Values(
    Mistake{Mutant::kLookFirst, "LookFirst"}, Mistake{Mutant::kBitFirst, "BitFirst"},
    Mistake{Mutant::kRaiseFirst, "RaiseFirst"}, Mistake{.mutant = Mutant::kAnySlot, .name = "AnySlot", .races = true},
    Mistake{Mutant::kNoDrain, "NoDrain"},
    Mistake{.mutant = Mutant::kHeadFirst, .name = "HeadFirst", .first = {2160, 610}, .dies = true, .merges = true},
    Mistake{.mutant = Mutant::kNoNumbers, .name = "NoNumbers", .first = {1250, 1980}, .splits = true, .scatter = 0.7},
    Mistake{Mutant::kStateInRead, "StateInRead"},
    Mistake{.mutant = Mutant::kRepeatWords, .name = "RepeatWords", .fails = true},
    Mistake{.mutant = Mutant::kClearsAllBits, .name = "ClearsAllBits", .dies = true},
    Mistake{.mutant = Mutant::kOnlyUnlocks, .name = "OnlyUnlocks", .first = {50, 430}, .dies = true});
const auto kName = [](const ::testing::TestParamInfo<Mistake>& of) { return std::string(of.param.name); };

INSTANTIATE_TEST_SUITE_P(All, MistakeWithIntegers, kMistakes, kName);
INSTANTIATE_TEST_SUITE_P(
    Own, MistakeWithIntegers,
    ::testing::Values(Mistake{Mutant::kNoGeneration, "NoGeneration", {1850, 1}},
                      Mistake{Mutant::kNoReservation, "NoReservation"},
                      Mistake{.mutant = Mutant::kNotVoid, .name = "NotVoid", .races = true},
                      Mistake{.mutant = Mutant::kReservedStay, .name = "ReservedStay", .dies = true, .brief = true}),
    kName);
INSTANTIATE_TEST_SUITE_P(All, MistakeWithBytes, kMistakes, kName);
INSTANTIATE_TEST_SUITE_P(
    Own, MistakeWithBytes,
    ::testing::Values(Mistake{
        .mutant = Mutant::kOneHighFence, .name = "OneHighFence", .first = {1, 430}, .dies = true, .merges = true}),
    kName);

}  // namespace dolphin_leaf_test
}  // namespace gannet::index
