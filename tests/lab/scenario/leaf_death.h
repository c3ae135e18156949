// A client of an index that clients change dies at one of the verbs of a change, in virtual time. Within 50 ms the
// owner has repaired what it left. It dies alone, or while a client of another node works in the same leaves
// (busy_neighbour.h).
//
//   for (uint64_t verbs = 1;; ++verbs) {
//     LeafDeath death({.kind = kind, .change = LeafChange::kSplit});
//     const bool died = death.DieAfter(verbs);
//     EXPECT_EQ(death.WhatIsWrong(), "");
//     if (!died) break;                       // the change took fewer verbs
//   }
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "index/dolphin/byte_leaf.h"
#include "index/dolphin/leaf.h"
#include "index/index.h"
#include "index/record_header.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/blocks/block_stock.h"
#include "index/shared_leaf/claim/claim.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "index/shared_leaf/leaf/tagged_leaf.h"
#include "lab/scenario/memory_check.h"
#include "tests/lab/scenario/busy_neighbour.h"
#include "tests/txn/hasty_kinds.h"
#include "tests/txn/simulated_cluster.h"
#include "txn/record/record.h"
#include "txn/run/database_state.h"
#include "txn/session/session_state.h"

namespace gannet::scenario {

using index::shared_leaf::LeafLook;

enum class LeafChange : uint8_t {
  kInsert,              // into a leaf with room
  kSplit,               // an insert into a full leaf
  kSplitRoot,           // of blink: an insert into a root that is full and a leaf
  kRemove,              // from a full leaf
  kAbsorb,              // a removal that leaves so few entries that the leaf is merged with its left neighbour
  kReplace,             // an entry leads to another record of its key
  kInsertByTransaction  // three keys of one leaf, by a transaction
};

struct LeafDeathCase {
  txn::IndexKind kind = txn::HastyBlink();
  index::KeyKind keys = index::KeyKind::kInteger;
  LeafChange change = LeafChange::kInsert;
  std::optional<BusyNeighbour::By> neighbour = {};  // nullopt: there is none
  uint64_t seed = 1;                                // of what the neighbour does, and when
};

// Nodes: 0 is the owner, 1 dies, 2 is another client.
class LeafDeath {
 public:
  explicit LeafDeath(const LeafDeathCase& test)
      : case_(test),
        cluster_(3, SimulationOf(test),
                 {.read_path = txn::ReadPathPolicy::kOneSided, .call_timeout = absl::Milliseconds(10)}, {Rows(test)}) {
    On(0, [&](txn::Session& session) {
      at_first_ = UnaccountedBytes(cluster_.database(0)).value();
      Fill(session);
    });
    // The victim is known to the owner, and its caches lead to leaves.
    On(1, [&](txn::Session& session) {
      Introduce(session, 1);
      MakeRecords();
      const StatusOr<index::RemoteIndex*> remote = session.state().RemoteIndexOf(rows(1), 0);
      ASSERT_TRUE(remote.ok()) << remote.status();
      for (const uint64_t n : touched_) {
        const index::OwnedKey touched = KeyOf(n);
        ASSERT_TRUE(session.worker().BlockOn(Find(*remote, touched.view())).ok());
      }
    });
    if (!case_.neighbour.has_value()) return;
    On(2, [this](txn::Session& session) { Introduce(session, 2); });
    On(0, [this](txn::Session&) { MakeNeighbour(); });
  }
  ~LeafDeath() {
    if (dead_) cluster_.Abandon(1);
    if (neighbour_died_) cluster_.Abandon(2);
  }

  // Makes the change. The client dies when this many of its verbs have left its NIC. False: there were fewer.
  bool DieAfter(uint64_t verbs) {
    bool done = false;
    if (neighbour_.has_value()) {
      neighbour_thread_ = cluster_.Start(2, [this](txn::Session& session) { neighbour_->Work(session); });
    }
    On(1, [&](txn::Session& session) {
      const StatusOr<index::RemoteIndex*> remote = session.state().RemoteIndexOf(rows(1), 0);
      cluster_.fabric().KillAfterVerbs(1, verbs);
      session.state().participant->Enter();
      changed_ = Change(session, *remote);
      session.state().participant->Leave();
      cluster_.fabric().KillAfterVerbs(1, UINT64_MAX);
      done = true;
    });
    dead_ = !done;
    return dead_;
  }

  // Number of changes that the other client has made, after WhatIsWrong.
  int changes_of_neighbour() const { return neighbour_->changes(); }

  // Looks after 50 ms. Empty: nothing is wrong. If the client lives, memory is not looked at, because it holds some.
  std::string WhatIsWrong() {
    SleepForNanos(50'000'000);
    std::string wrong;
    if (neighbour_.has_value()) {
      if (!neighbour_->is_over()) wrong = "the other client has to wait";
      cluster_.simulation().Join(neighbour_thread_);
      if (wrong.empty()) wrong = neighbour_->wrong();
      if (!wrong.empty()) return wrong;
    }
    if (!dead_ && !changed_.ok() && !(absl::IsAlreadyExists(changed_) && may_rival_have_won()))
      return changed_.ToString();
    On(0, [&](txn::Session& session) { wrong = Look(session); });
    if (!wrong.empty() || !dead_) return wrong;
    if (neighbour_.has_value()) {
      // The other client dies, too, so that what it holds becomes free.
      cluster_.fabric().Kill(2);
      neighbour_died_ = true;
      SleepForNanos(50'000'000);
    }
    On(0, [&](txn::Session&) { wrong = LookAtMemory(); });
    return wrong;
  }

 private:
  static constexpr uint64_t kSpare = 100'000;

  static rdma::sim::SimulationOptions SimulationOf(const LeafDeathCase& test) {
    if (!test.neighbour.has_value()) return {};
    return {.seed = test.seed,
            .faults = {.scatter_lines = 0.3, .preempt = 0.02, .slow_completion = 0.05, .slow_nanos = 20'000}};
  }

  static txn::TableOptions Rows(const LeafDeathCase& test) {
    const bool bytes = test.keys == index::KeyKind::kBytes;
    return {.name = "rows",
            .key_kind = test.keys,
            .max_key_bytes = bytes ? size_t{40} : index::kIntegerKeyBytes,
            .index = test.neighbour.has_value() ? txn::LessHasty(test.kind) : test.kind,
            .payload_bytes = sizeof(uint64_t),
            .placement = txn::Placement::OnFirstNode()};
  }
  bool is_dolphin() const { return case_.kind == txn::HastyDolphin(); }
  const txn::Table& rows(int node) { return cluster_.table(node, "rows"); }
  index::LocalIndex& index() { return rows(0).local_index(); }
  index::shared_leaf::BlockLender& lender() { return dynamic_cast<index::shared_leaf::BlockLender&>(index()); }
  std::byte* At(rdma::GlobalAddress address) { return cluster_.database(0).node().memory().data() + address.offset(); }

  index::OwnedKey KeyOf(uint64_t n) const {
    if (case_.keys == index::KeyKind::kInteger) return index::OwnedKey(index::Key(n));
    const std::string digits = std::to_string(n);
    return index::OwnedKey(
        index::Key(std::string_view("a key of the table " + std::string(8 - digits.size(), '0') + digits)));
  }

  template <class Work>
  void On(int node, Work work) {
    cluster_.On(node, work);
  }
  template <class Body>
  static void Run(txn::Session& session, Body body) {
    const Status status = txn::RunBlockingBody(session, body);
    ASSERT_TRUE(status.ok()) << status;
  }
  static coro::Task<StatusOr<index::FindResult>> Find(index::RemoteIndex* remote, index::Key key) {
    co_return co_await remote->Find(key);
  }

  // Makes a client known to the owner, so that what it leaves is repaired when it dies.
  void Introduce(txn::Session& session, int node) {
    const index::OwnedKey key = KeyOf(kSpare);
    Run(session, [&](txn::BlockingTransaction& t) { return t.Insert(rows(node), key.view(), uint64_t{0}); });
    Run(session, [&](txn::BlockingTransaction& t) { return t.Remove(rows(node), key.view()); });
  }

  // Ascending keys fill most leaves. The changes are made in leaves that suit them.
  void Fill(txn::Session& session) {
    const bool bytes = case_.keys == index::KeyKind::kBytes;
    const size_t slots = bytes ? 42 : is_dolphin() ? 21 : 18;
    const uint64_t keys = case_.change == LeafChange::kSplitRoot ? slots - 2 : bytes ? 110 : 60;
    for (uint64_t n = 0; n < keys; ++n) {
      const index::OwnedKey key = KeyOf(10 * n);
      Run(session, [&](txn::BlockingTransaction& t) { return t.Insert(rows(0), key.view(), n); });
      model_.insert(10 * n);
    }
    const std::vector<std::vector<uint64_t>> leaves = Leaves();
    const auto full = std::ranges::find(leaves, slots, &std::vector<uint64_t>::size);
    const auto roomy = std::ranges::find_if(
        leaves, [slots](const std::vector<uint64_t>& leaf) { return leaf.size() >= 2 && leaf.size() + 3 <= slots; });
    if (case_.change != LeafChange::kSplitRoot) {
      ASSERT_TRUE(full != leaves.end() && full + 1 != leaves.end() && (full + 1)->size() >= slots / 3);
      ASSERT_TRUE(roomy != leaves.end());
    }
    switch (case_.change) {
      case LeafChange::kInsert:
        added_ = {(*roomy)[0] + 5};
        break;
      case LeafChange::kSplit:
        added_ = {(*full)[slots / 2] + 5};
        break;
      case LeafChange::kSplitRoot:
        added_ = {5};
        break;
      case LeafChange::kInsertByTransaction:
        added_ = {(*roomy)[0] + 1, (*roomy)[0] + 5, (*roomy)[0] + 7};
        break;
      case LeafChange::kRemove:
        removed_ = {(*full)[slots / 2]};
        break;
      case LeafChange::kReplace:
        replaced_ = {(*full)[slots / 2]};
        break;
      case LeafChange::kAbsorb:
        // A leaf with one entry more than those that are merged, right of one that has room.
        Thin(session, *full, !bytes ? 10 : is_dolphin() ? 15 : 25);
        Thin(session, *(full + 1), bytes ? 11 : 5);
        removed_ = {(full + 1)->front()};
        break;
    }
    touched_ = added_;
    touched_.insert(touched_.end(), removed_.begin(), removed_.end());
    touched_.insert(touched_.end(), replaced_.begin(), replaced_.end());
  }
  // The keys of each leaf, in order.
  std::vector<std::vector<uint64_t>> Leaves() {
    const index::OwnedKey least = KeyOf(0);
    const index::OwnedKey greatest = KeyOf(kSpare);
    std::optional<index::ScanPosition> position;
    std::vector<std::vector<uint64_t>> leaves;
    auto next = model_.begin();
    do {
      index::ScanResult leaf;
      const Status scanned = index().ScanStep({.from = least.view(), .to = greatest.view()}, 1, &position, &leaf);
      EXPECT_TRUE(scanned.ok()) << scanned;
      leaves.emplace_back();
      for (size_t i = 0; i < leaf.entries.size(); ++i) leaves.back().push_back(*next++);
    } while (position.has_value());
    return leaves;
  }
  // Leaves the first `left` keys of a leaf.
  void Thin(txn::Session& session, const std::vector<uint64_t>& leaf, size_t left) {
    for (size_t i = left; i < leaf.size(); ++i) {
      const index::OwnedKey key = KeyOf(leaf[i]);
      Run(session, [&](txn::BlockingTransaction& t) { return t.Remove(rows(0), key.view()); });
      model_.erase(leaf[i]);
    }
  }

  // Records for the victim's change, made at the owner.
  void MakeRecords() {
    if (case_.change == LeafChange::kInsertByTransaction) return;
    for (const uint64_t n : touched_) {
      old_[n] = index().Find(KeyOf(n).view()).record;
      if (!old_[n].is_null()) records_.push_back(old_[n]);
      if (std::ranges::count(removed_, n) == 0) new_[n] = MakeRecord(n);
    }
  }
  rdma::GlobalAddress MakeRecord(uint64_t n) {
    const index::OwnedKey key = KeyOf(n);
    rdma::SlabCache slab(cluster_.database(0).state().slab.get());
    const uint64_t payload = n;
    const auto made = txn::MakeLockedRecord(slab, rows(0).id(), key.view(), std::as_bytes(std::span(&payload, 1)), 0);
    EXPECT_TRUE(made.ok()) << made.status();
    StoreWord(made->block, index::NextState(made->state, false));
    records_.push_back(cluster_.database(0).node().AddressOf(made->block));
    return records_.back();
  }

  // Its keys are in the leaves that the change touches, and in those to the right of them.
  void MakeNeighbour() {
    std::vector<BusyNeighbour::Key> keys;
    const bool by_verbs = case_.neighbour == BusyNeighbour::By::kVerbs;
    const auto add = [&](uint64_t n) {
      BusyNeighbour::Key key{.number = n, .key = KeyOf(n), .is_there = model_.contains(n)};
      if (by_verbs && !key.is_there) key.record = MakeRecord(n);
      if (by_verbs && key.is_there) records_.push_back(key.record = index().Find(key.key.view()).record);
      keys.push_back(std::move(key));
    };
    bool is_near = false;
    for (const std::vector<uint64_t>& leaf : Leaves()) {
      if (leaf.empty()) continue;
      const bool was_near = is_near;
      is_near =
          std::ranges::any_of(touched_, [&leaf](uint64_t n) { return leaf.front() <= n && n < leaf.back() + 10; });
      if (!was_near && !is_near) continue;
      // A leaf that is to be merged must not grow before.
      const bool takes_more = !is_near || case_.change != LeafChange::kAbsorb;
      for (size_t i = 0; i < leaf.size(); ++i) {
        // A removal may leave the leaf so empty that it is merged; not all are removed, so that it is there for long.
        if (i % 2 == 0 && std::ranges::count(touched_, leaf[i]) == 0) add(leaf[i]);
        if (takes_more && (i % 2 == 1 || is_near)) add(leaf[i] + 2);
      }
    }
    std::optional<BusyNeighbour::Key> rival;
    const bool by_transaction = case_.change == LeafChange::kInsertByTransaction;
    // A client of the index may find an entry of a transaction that is then undone.
    if (!added_.empty() && case_.seed % 2 == 0 && !(by_transaction && by_verbs)) {
      const uint64_t n = added_.front();
      rival = {.number = n, .key = KeyOf(n)};
      if (by_verbs) rival->record = MakeRecord(n);
    }
    neighbour_.emplace(*case_.neighbour, case_.seed, &rows(2), std::move(keys), std::move(rival));
  }
  // The rival has inserted its key, or may have.
  bool may_rival_have_won() const {
    return neighbour_.has_value() && neighbour_->rival().has_value() && neighbour_->rival()->is_there &&
           neighbour_->has_won() != false;
  }

  Status Change(txn::Session& session, index::RemoteIndex* remote) {
    if (case_.change == LeafChange::kInsertByTransaction) {
      return txn::RunBlockingBody(session, [&](txn::BlockingTransaction& t) -> Status {
        for (const uint64_t n : added_) {
          const index::OwnedKey key = KeyOf(n);
          GANNET_RETURN_IF_ERROR(t.Insert(rows(1), key.view(), n));
        }
        return absl::OkStatus();
      });
    }
    for (const uint64_t n : added_) {
      const index::OwnedKey key = KeyOf(n);
      GANNET_RETURN_IF_ERROR(session.worker().BlockOn(remote->Insert(key.view(), new_.at(n))).status());
    }
    for (const uint64_t n : removed_) {
      const index::OwnedKey key = KeyOf(n);
      GANNET_RETURN_IF_ERROR(session.worker().BlockOn(remote->Remove(key.view(), old_.at(n))).status());
    }
    for (const uint64_t n : replaced_) {
      const index::OwnedKey key = KeyOf(n);
      GANNET_RETURN_IF_ERROR(session.worker().BlockOn(remote->Replace(key.view(), old_.at(n), new_.at(n))));
    }
    return absl::OkStatus();
  }

  // A node of the index that is locked, or a leaf that a reader would have to read again and again.
  std::string LookAtNodes() {
    std::string wrong;
    ForEachNode([&](rdma::GlobalAddress at) {
      const uint64_t state = LoadWord(At(at));
      if (index::IsLocked(state)) wrong = absl::StrCat("a node is locked: ", absl::Hex(state));
      if (dead_ && case_.kind == txn::HastyDex() && index::shared_leaf::IsClaimedBy(1, state)) {
        wrong = absl::StrCat("a dead client has a claim: ", absl::Hex(state));
      }
    });
    const auto look = [&](const auto& read) {
      lender().blocks().ForEach([&](rdma::GlobalAddress at) {
        const LeafLook judged = read(At(at));
        if (wrong.empty() && judged != LeafLook::kWhole && judged != LeafLook::kDead) wrong = "a leaf stays torn";
      });
    };
    const size_t fence_lines = lender().blocks().fence_lines();
    const auto look_at_shared = [&](auto image) {
      look([&](const std::byte* leaf) { return index::shared_leaf::ReadOwnLeaf(leaf, &image, fence_lines); });
    };
    const auto look_at_dolphin = [&](auto image, size_t shape_lines) {
      look([&](const std::byte* leaf) {
        const LeafLook judged = index::dolphin::ReadOwnLeaf(leaf, &image, shape_lines, /*locked_too=*/false);
        if (judged == LeafLook::kWhole && image.lock.holders != 0) wrong = "somebody stays inside a leaf";
        for (int slot = 0; judged == LeafLook::kWhole && slot < image.slots(); ++slot) {
          if (IsReserved(image, slot)) wrong = "a slot stays reserved";
        }
        return judged;
      });
    };
    if (case_.keys == index::KeyKind::kInteger) {
      if (is_dolphin()) look_at_dolphin(index::dolphin::LeafImage{}, index::dolphin::kDefaultKeyLines);
      if (!is_dolphin()) look_at_shared(index::shared_leaf::LeafImage{});
    } else {
      if (is_dolphin()) look_at_dolphin(index::dolphin::ByteLeafImage{}, fence_lines);
      if (!is_dolphin()) look_at_shared(index::shared_leaf::TaggedImage{});
    }
    return wrong;
  }
  static bool IsReserved(const index::dolphin::LeafImage& leaf, int slot) { return leaf.IsReserved(slot); }
  static bool IsReserved(const index::dolphin::ByteLeafImage& /*leaf*/, int /*slot*/) { return false; }
  // All blocks of the index: leaves and inner nodes, alive or not.
  void ForEachNode(const std::function<void(rdma::GlobalAddress)>& visit) {
    for (size_t n = 0; n < index::shared_leaf::kMostPools; ++n) {
      if (const index::shared_leaf::LeafBlocks* pool = lender().pool(n)) pool->ForEach(visit);
    }
  }

  std::string Look(txn::Session& session) {
    std::string wrong = LookAtNodes();
    if (!wrong.empty()) return wrong;
    const Status structure = index().CheckStructure();
    if (!structure.ok()) return structure.ToString();
    // A lookup by the owner may mend an inner node, for which it borrows blocks.
    if (dead_ && !neighbour_.has_value()) wrong = LookAtBlocks();
    return wrong.empty() ? LookAtKeys(session) : wrong;
  }
  // All clients are dead.
  std::string LookAtMemory() {
    std::string wrong = LookAtNodes();
    if (wrong.empty() && neighbour_.has_value()) wrong = LookAtBlocks();
    if (!wrong.empty()) return wrong;
    int lent = 0;
    cluster_.database(0).state().lent_records->ForEach([&lent](rdma::GlobalAddress, size_t) { ++lent; });
    if (lent > 0) return absl::StrCat(lent, " blocks for records are lent to a dead client");
    const Status memory = CheckMemory(cluster_.database(0), at_first_ + unindexed_);
    return memory.ok() ? "" : memory.ToString();
  }

  // Every block of the index is one of its nodes, or free, or the owner has borrowed it; and none is lent to a dead
  // client. Alone, the owner has not borrowed any yet. Otherwise another repair must find nothing to take back.
  std::string LookAtBlocks() {
    for (size_t n = 0; n < index::shared_leaf::kMostPools; ++n) {
      const index::shared_leaf::LeafBlocks* const pool = lender().pool(n);
      if (pool == nullptr) continue;
      size_t nodes = 0;
      pool->ForEach([&](rdma::GlobalAddress at) { nodes += index::IsAbsent(LoadWord(At(at))) ? 0 : 1; });
      const index::shared_leaf::LeafBlocks::Counts counts = pool->counts();
      const size_t used = counts.lent + counts.in_use;
      if (used == nodes || (neighbour_died_ && used > nodes && !IsLentToTheDead(*pool))) continue;
      return absl::StrCat(counts.lent, " blocks of pool ", n, " are lent and ", counts.in_use, " in use, for ", nodes,
                          " nodes");
    }
    return "";
  }
  bool IsLentToTheDead(const index::shared_leaf::LeafBlocks& pool) {
    const size_t free = pool.counts().free;
    index().RepairAfter(1);
    index().RepairAfter(2);
    return pool.counts().free != free;
  }

  // The change took place as a whole, or not at all. Everything else is as it was.
  std::string LookAtKeys(txn::Session& session) {
    index::ScanResult found;
    const bool bytes = case_.keys == index::KeyKind::kBytes;
    const index::OwnedKey greatest = bytes ? index::OwnedKey(index::Key("b")) : index::OwnedKey(index::Key(UINT64_MAX));
    const index::OwnedKey least = KeyOf(0);
    const Status scanned = index().Scan({.from = least.view(), .to = greatest.view()}, &found);
    if (!scanned.ok()) return scanned.ToString();
    std::map<index::OwnedKey, rdma::GlobalAddress, Less> there;
    for (const index::Entry& entry : found.entries) there.emplace(entry.key, entry.record);
    if (there.size() != found.entries.size()) return "a scan finds a key twice";
    std::set<bool> made;
    const bool may_be_of_rival = may_rival_have_won();
    for (const uint64_t n : added_) {
      if (!may_be_of_rival || n != neighbour_->rival()->number) made.insert(there.contains(KeyOf(n)));
    }
    for (const uint64_t n : removed_) made.insert(!there.contains(KeyOf(n)));
    for (const uint64_t n : replaced_) {
      const auto at = there.find(KeyOf(n));
      if (at == there.end()) return absl::StrCat("the key ", n, " is lost");
      made.insert(at->second != old_.at(n));
    }
    if (made.size() > 1) return "a transaction inserted some of its keys";
    const bool is_made = !made.empty() && *made.begin();
    if (is_made && neighbour_.has_value() && neighbour_->has_won() == true) return "two clients inserted one key";
    if (!is_made && !dead_ && !may_be_of_rival) return "the change was not made";
    if (!is_made && neighbour_.has_value() && neighbour_->has_won() == false) {
      return "the other client met a key that is not there";
    }
    std::set<uint64_t> expected = model_;
    if (is_made) {
      for (const uint64_t n : removed_) expected.erase(n);
      expected.insert(added_.begin(), added_.end());
    }
    if (neighbour_.has_value()) {
      for (const BusyNeighbour::Key& key : neighbour_->keys()) {
        if (key.is_there) expected.insert(key.number);
        if (!key.is_there) expected.erase(key.number);
      }
      if (may_be_of_rival) expected.insert(neighbour_->rival()->number);
    }
    // The records made for this test, or taken out of the index by its clients, that are in no index.
    std::set<uint64_t> in_index;
    for (const auto& [key, record] : there) in_index.insert(record.bits());
    unindexed_ = 0;
    for (const rdma::GlobalAddress record : records_) {
      if (!in_index.contains(record.bits())) unindexed_ += txn::BlockBytesOf(KeyOf(0).view(), sizeof(uint64_t));
    }
    for (const uint64_t n : expected) {
      const index::OwnedKey key = KeyOf(n);
      const auto at = there.find(key);
      if (at == there.end()) return absl::StrCat("the key ", n, " is lost");
      if (!index::RecordHoldsKey(At(at->second), key.view())) return absl::StrCat("another record for the key ", n);
      uint64_t row = 0;
      const Status read =
          txn::RunBlockingBody(session, [&](txn::BlockingTransaction& t) { return t.Get(rows(0), key.view(), &row); });
      if (!read.ok()) return read.ToString();
    }
    if (there.size() != expected.size()) return absl::StrCat(there.size(), " keys, expected ", expected.size());
    return "";
  }

  struct Less {
    bool operator()(const index::OwnedKey& a, const index::OwnedKey& b) const { return a.view() < b.view(); }
  };

  const LeafDeathCase case_;
  txn::SimulatedCluster cluster_;
  std::set<uint64_t> model_;
  std::vector<uint64_t> added_;
  std::vector<uint64_t> removed_;
  std::vector<uint64_t> replaced_;
  std::vector<uint64_t> touched_;
  std::map<uint64_t, rdma::GlobalAddress> old_;
  std::map<uint64_t, rdma::GlobalAddress> new_;
  // The records that clients of the index insert or remove without a transaction.
  std::vector<rdma::GlobalAddress> records_;
  std::optional<BusyNeighbour> neighbour_;
  Runtime::Thread* neighbour_thread_ = nullptr;
  bool neighbour_died_ = false;
  Status changed_;
  int64_t at_first_ = 0;
  int64_t unindexed_ = 0;
  bool dead_ = false;
};

inline const char* NameOf(LeafChange change) {
  switch (change) {
    case LeafChange::kInsert:
      return "Insert";
    case LeafChange::kSplit:
      return "Split";
    case LeafChange::kSplitRoot:
      return "SplitRoot";
    case LeafChange::kRemove:
      return "Remove";
    case LeafChange::kAbsorb:
      return "Absorb";
    case LeafChange::kReplace:
      return "Replace";
    case LeafChange::kInsertByTransaction:
      return "InsertByTransaction";
  }
  return "";
}

}  // namespace gannet::scenario
