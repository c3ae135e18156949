// A client that does not keep the rules writes into the leaves of an index that clients may change (docs/security.md).
// Transactions then get errors, or wrong rows of that table: no process stops, nothing goes on without end, and tables
// of other kinds stay as they are.
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/dolphin/byte_leaf.h"
#include "index/dolphin/leaf.h"
#include "index/hash/hash_rpc.h"
#include "index/key_wire.h"
#include "index/record_header.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/xstore/rpc/messages.h"
#include "log/file/simulated/faulty_file_system.h"
#include "tests/index/kinds.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/hasty_kinds.h"
#include "tests/txn/simulated_cluster.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"

namespace gannet::txn {
namespace index_damage_test {

// A kind of index, and of its keys.
using Kind = std::pair<IndexKind, index::KeyKind>;

bool HasByteKeys(Kind kind) {
  return kind.second == index::KeyKind::kBytes;
}

std::vector<Kind> AllKinds() {
  std::vector<Kind> all;
  for (const IndexKind kind : index::KindsThatClientsChange()) {
    all.insert(all.end(), {{kind, index::KeyKind::kInteger}, {kind, index::KeyKind::kBytes}});
  }
  return all;
}

TableOptions HurtTable(Kind kind) {
  const bool bytes = HasByteKeys(kind);
  return {.name = "hurt",
          .key_kind = kind.second,
          .max_key_bytes = bytes ? size_t{24} : index::kIntegerKeyBytes,
          .index = HastyKind(kind.first),
          .payload_bytes = 400,
          .variable_length = true,
          .placement = Placement::OnFirstNode()};
}

// Keys of the table by number.
class Keys {
 public:
  explicit Keys(Kind kind) : bytes_(HasByteKeys(kind)) {}
  index::OwnedKey operator()(uint64_t n) const {
    if (!bytes_) return index::OwnedKey(Key(n));
    const std::string digits = std::to_string(n);
    return index::OwnedKey(Key(std::string_view("key " + std::string(6 - digits.size(), '0') + digits)));
  }

 private:
  bool bytes_;
};

index::shared_leaf::LeafBlocks& BlocksOf(const Table& table) {
  return dynamic_cast<index::shared_leaf::BlockLender&>(table.local_index()).blocks();
}
std::vector<rdma::GlobalAddress> LeavesOf(const Table& table) {
  std::vector<rdma::GlobalAddress> leaves;
  BlocksOf(table).ForEach([&leaves](rdma::GlobalAddress leaf) { leaves.push_back(leaf); });
  return leaves;
}
// Places in a leaf of the words that say which slots have entries: with 0 in all of them, none has.
std::vector<size_t> SlotWordsOf(const Table& table, Kind kind) {
  if (kind.first != IndexKind::kDolphin) return {kWordBytes};
  const bool bytes = HasByteKeys(kind);
  const size_t fence_lines = BlocksOf(table).fence_lines();
  const int slots = bytes ? index::dolphin::ByteLeafImage::slots()
                          : static_cast<int>(index::dolphin::kDefaultKeyLines) * index::dolphin::kSlotsPerLine;
  std::vector<size_t> places;
  for (int slot = 0; slot < slots; ++slot) places.push_back(index::dolphin::KeyOffset(slot) + fence_lines * kLineBytes);
  return places;
}

// ---------------------------------------------------------------------------------------------------------------------
// Damage at a chosen moment.

class IndexDamageTest : public testing::TestWithParam<std::tuple<Kind, int>> {
 protected:
  static Kind kind() { return std::get<0>(GetParam()); }
  static int worker_node() { return std::get<1>(GetParam()); }  // 0 is the owner

  IndexDamageTest()
      : cluster_(2, {}, {.read_path = ReadPathPolicy::kOneSided, .call_timeout = absl::Milliseconds(5)},
                 {HurtTable(kind())}) {
    cluster_.On(0, [&](Session& session) {
      const Status loaded = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        for (uint64_t n = 0; n < 5; ++n) GANNET_RETURN_IF_ERROR(t.Insert(hurt(0), keys_(n).view(), Payload(8)));
        return absl::OkStatus();
      });
      ASSERT_TRUE(loaded.ok()) << loaded;
    });
  }

  const Table& hurt(int node) { return cluster_.table(node, "hurt"); }
  static std::span<const std::byte> Payload(size_t bytes) {
    static const std::array<std::byte, 400> all{};
    return std::span(all).first(bytes);
  }
  std::byte* At(rdma::GlobalAddress address) { return cluster_.database(0).node().memory().data() + address.offset(); }
  std::vector<std::byte*> SlotWords() {
    std::vector<std::byte*> words;
    for (const rdma::GlobalAddress leaf : LeavesOf(hurt(0))) {
      for (const size_t place : SlotWordsOf(hurt(0), kind())) words.push_back(At(leaf) + place);
    }
    return words;
  }
  // All leaves forget what is in their slots, and look whole.
  void Forget() {
    for (std::byte* const word : SlotWords()) StoreWord(word, 0);
  }
  // All that leads to `from` leads to `to`.
  void Redirect(rdma::GlobalAddress from, rdma::GlobalAddress to) {
    int redirected = 0;
    for (const rdma::GlobalAddress leaf : LeavesOf(hurt(0))) {
      for (size_t at = kLineBytes; at < BlocksOf(hurt(0)).leaf_bytes(); at += kWordBytes) {
        const uint64_t word = LoadWord(At(leaf) + at);
        if (at % kLineBytes == 0) continue;
        const bool tagged = HasByteKeys(kind());
        if (tagged ? (word & rdma::GlobalAddress::kOffsetMask) != from.offset() : word != from.bits()) continue;
        StoreWord(At(leaf) + at, tagged ? (word & ~rdma::GlobalAddress::kOffsetMask) | to.offset() : to.bits());
        ++redirected;
      }
    }
    EXPECT_GT(redirected, 0);
  }
  rdma::GlobalAddress RecordOf(uint64_t n) { return hurt(0).local_index().Find(keys_(n).view()).record; }
  uint64_t damages() { return cluster_.database(0).table_statistics()[0].index_damages; }

  template <class Body>
  void OnWorker(Body body) {
    cluster_.On(worker_node(), [&](Session& session) {
      for (uint64_t warm = 0; warm < 2; ++warm) {  // the caches lead to leaves
        const Status read = RunBlockingBody(session, [&](BlockingTransaction& t) {
          return t.Get(hurt(worker_node()), keys_(0).view(), std::span<std::byte>(), 0);
        });
        ASSERT_TRUE(read.ok()) << read;
      }
      body(session);
    });
  }

  const Keys keys_{kind()};
  SimulatedCluster cluster_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, IndexDamageTest,
                         testing::Combine(testing::ValuesIn(AllKinds()), testing::Values(0, 1)));

TEST_P(IndexDamageTest, ARemovalOfALostKeyIsCounted) {
  OnWorker([&](Session& session) {
    Step step(session);
    ASSERT_TRUE(step->Remove(hurt(worker_node()), keys_(3).view()).ok());
    Forget();
    EXPECT_TRUE(step.Commit().ok());
  });
  EXPECT_EQ(damages(), 1u);
}

TEST_P(IndexDamageTest, AMoveOfALostKeyIsCounted) {
  OnWorker([&](Session& session) {
    Step step(session);
    uint64_t row = 0;
    const StatusOr<RecordHandle> handle = step->GetForUpdate(hurt(worker_node()), keys_(3).view(), &row);
    ASSERT_TRUE(handle.ok()) << handle.status();
    ASSERT_TRUE(step->transaction().Update(*handle, Payload(400)).ok());
    Forget();
    EXPECT_TRUE(step.Commit().ok());
  });
  EXPECT_EQ(damages(), 1u);
}

// The leaf is whole, and leads elsewhere: to another key's record, out of the heap, into the middle of a record, or to
// memory that is free. Every access to the key is an error, and none is tried again without end.
TEST_P(IndexDamageTest, AWrongAddressIsAnError) {
  const rdma::GlobalAddress right = RecordOf(3);
  const uint64_t end = cluster_.database(0).node().memory().size();
  rdma::GlobalAddress at = right;
  for (const rdma::GlobalAddress wrong :
       {RecordOf(4), rdma::GlobalAddress(0, end), rdma::GlobalAddress(0, end - kLineBytes),
        rdma::GlobalAddress(0, 0xffff'ffff'ffc0), rdma::GlobalAddress(0, right.offset() + 8), LeavesOf(hurt(0))[0],
        rdma::GlobalAddress(0, 0)}) {
    Redirect(at, wrong);
    at = wrong;
    OnWorker([&](Session& session) {
      const Table& table = hurt(worker_node());
      const index::OwnedKey key = keys_(3);
      const auto expect = [&](const char* what, auto body) {
        const Status status = RunBlockingBody(session, body);
        // With byte keys, an entry whose record has another key is one of another key. An entry of a dolphin that leads
        // nowhere is none.
        const bool may_be_absent = HasByteKeys(kind()) || (kind().first == IndexKind::kDolphin && wrong.is_null());
        const bool is_absent = may_be_absent && (status.ok() || absl::IsNotFound(status));
        EXPECT_TRUE(is_absent || absl::IsDataLoss(status) || absl::IsInvalidArgument(status) ||
                    absl::IsPermissionDenied(status) || absl::IsAlreadyExists(status))
            << what << " with " << wrong.ToString() << ": " << status;
      };
      uint64_t row = 0;
      expect("get", [&](BlockingTransaction& t) { return t.Get(table, key.view(), &row); });
      expect("get many", [&](BlockingTransaction& t) {
        const index::OwnedKey whole = keys_(1);
        std::array<GetRequest, 2> requests{GetRequest{.table = &table, .key = key.view(), .out = {}},
                                           GetRequest{.table = &table, .key = whole.view(), .out = {}}};
        const Status got = t.GetMany(requests);
        return got.ok() ? requests[0].status : got;
      });
      expect("scan", [&](BlockingTransaction& t) {
        ScanRows rows;
        const index::OwnedKey from = keys_(2);
        const index::OwnedKey to = keys_(3);
        return t.Scan(table, {.from = from.view(), .to = to.view()}, &rows);
      });
      expect("update", [&](BlockingTransaction& t) { return t.Update(table, key.view(), Payload(8)); });
      if (!HasByteKeys(kind())) {
        expect("insert", [&](BlockingTransaction& t) { return t.Insert(table, key.view(), Payload(8)); });
      }
      expect("remove", [&](BlockingTransaction& t) { return t.Remove(table, key.view()); });
      const Status other =
          RunBlockingBody(session, [&](BlockingTransaction& t) { return t.Get(table, keys_(1).view(), &row); });
      EXPECT_TRUE(other.ok()) << other;
    });
    if (HasFailure()) return;
  }
}

// An entry that was removed comes back. Its record is absent for good.
TEST_P(IndexDamageTest, AnEntryOfARemovedRecordIsAnError) {
  const rdma::GlobalAddress record = RecordOf(3);
  OnWorker([&](Session& session) {
    const Table& table = hurt(worker_node());
    std::vector<std::pair<std::byte*, uint64_t>> before;
    for (std::byte* const word : SlotWords()) before.emplace_back(word, LoadWord(word));
    const index::OwnedKey key = keys_(3);
    // Nothing is reclaimed before the last look: this transaction is inside the epoch.
    Step step(session);
    uint64_t row = 0;
    ASSERT_TRUE(step->Get(table, keys_(1).view(), &row).ok());
    const Status removed =
        RunBlockingBody(session, [&](BlockingTransaction& t) { return t.Remove(table, key.view()); });
    ASSERT_TRUE(removed.ok()) << removed;
    for (const auto& [word, value] : before) StoreWord(word, value);
    ASSERT_EQ(RecordOf(3), record);
    const auto expect_loss = [&](auto body) {
      const Status status = RunBlockingBody(session, body);
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    };
    expect_loss([&](BlockingTransaction& t) { return t.Get(table, key.view(), &row); });
    expect_loss([&](BlockingTransaction& t) { return t.Insert(table, key.view(), Payload(8)); });
    expect_loss([&](BlockingTransaction& t) {
      ScanRows rows;
      const index::OwnedKey from = keys_(2);
      return t.Scan(table, {.from = from.view(), .to = key.view()}, &rows);
    });
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Damage at any moment.

class HostileClientTest : public testing::TestWithParam<std::tuple<Kind, ReadPathPolicy, uint64_t>> {};

TEST_P(HostileClientTest, HurtsOnlyItsTable) {
  const auto [kind, read_path, seed] = GetParam();
  constexpr uint64_t kRows = 200;
  constexpr uint64_t kCounters = 16;
  const Keys keys(kind);
  // Node 2 is the one that dies, with locks in leaves.
  SimulatedCluster cluster(3, {.seed = seed}, {.read_path = read_path, .call_timeout = absl::Milliseconds(1)},
                           {HurtTable(kind), HashTable("hash"), OrderedTable("ordered")});
  cluster.On(0, [&](Session& session) {
    for (uint64_t n = 0; n < kRows; n += 10) {
      const Status loaded = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        for (uint64_t i = n; i < n + 10; ++i) {
          GANNET_RETURN_IF_ERROR(t.Insert(cluster.table(0, "hurt"), keys(i).view(), i));
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(loaded.ok()) << loaded;
    }
    const Status loaded = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      for (const char* name : {"hash", "ordered"}) {
        for (uint64_t i = 0; i < kCounters; ++i)
          GANNET_RETURN_IF_ERROR(t.Insert(cluster.table(0, name), i, uint64_t{0}));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(loaded.ok()) << loaded;
  });

  bool done = false;
  int scribbles = 0;
  Runtime::Thread* const hostile = cluster.simulation().StartOn(1, "hostile", [&] {
    Random random(seed);
    std::byte* const memory = cluster.database(0).node().memory().data();
    const uint64_t end = cluster.database(0).node().memory().size();
    while (!done) {
      const std::vector<rdma::GlobalAddress> leaves = LeavesOf(cluster.table(0, "hurt"));
      const auto any_leaf = [&] { return leaves[random.Below(leaves.size())]; };
      std::byte* const leaf = memory + any_leaf().offset();
      // Values that make sense somewhere do more harm than random ones.
      const std::array<uint64_t, 8> values = {
          random(),
          0,
          UINT64_MAX,
          any_leaf().bits(),
          random.Below(kRows),
          rdma::GlobalAddress(0, random.Below(end / kLineBytes + 9) * kLineBytes).bits(),
          LoadWord(leaf) + 1,
          LoadWord(leaf + random.Below(8) * kWordBytes)};
      const size_t words = BlocksOf(cluster.table(0, "hurt")).leaf_bytes() / kWordBytes;
      const uint64_t word = random.OneIn(2) ? random.Below(8) : random.Below(words);
      StoreWord(leaf + word * kWordBytes, values[random.Below(values.size())]);
      ++scribbles;
      SleepForNanos(random.OneIn(4) ? 0 : random.Below(20'000));
    }
  });

  // Each transaction counts in a table of another kind. Its fate decides about both tables.
  std::array<uint64_t, 2> least{};
  std::array<uint64_t, 2> most{};
  std::array<uint64_t, 2> errors{};
  const auto work = [&](int node, uint64_t number, int transactions, Session& session) {
    const Table& hurt = cluster.table(node, "hurt");
    Random random(seed * 10 + number);
    for (int i = 0; i < transactions; ++i) {
      const size_t other = random.Below(2);
      const Table& counters = cluster.table(node, other == 0 ? "hash" : "ordered");
      const uint64_t counter = random.Below(kCounters);
      const uint64_t what = random.Below(8);
      const uint64_t n = random.Below(kRows * 3 / 2);
      std::array<std::byte, 400> bytes{};
      const size_t size = 8 + random.Below(392);
      const auto touch = [&](BlockingTransaction& t) -> Status {
        const index::OwnedKey key = keys(n);
        const index::OwnedKey to = keys(n + 20);
        uint64_t row = 0;
        switch (what) {
          case 0:
            return t.Get(hurt, key.view(), &row);
          case 1: {
            const index::OwnedKey second = keys(n / 2);
            std::array<GetRequest, 2> requests{GetRequest{.table = &hurt, .key = key.view(), .out = {}},
                                               GetRequest{.table = &hurt, .key = second.view(), .out = {}}};
            return t.GetMany(requests);
          }
          case 2:
          case 3: {
            ScanRows rows;
            return t.Scan(hurt, {.from = key.view(), .to = to.view(), .reverse = what == 3, .limit = 30}, &rows);
          }
          case 4:
            return t.Remove(hurt, key.view());
          case 5: {
            const StatusOr<RecordHandle> handle = t.GetForUpdate(hurt, key.view(), &row);
            if (!handle.ok()) return handle.status();
            return t.transaction().Update(*handle, std::span(bytes).first(size));
          }
          default:
            return t.Insert(hurt, key.view(), std::span(bytes).first(size));
        }
      };
      // A few attempts: a lock that nobody holds, and nobody gives back, is a conflict as long as it is there.
      Status status = absl::AbortedError("");
      for (int attempt = 0; attempt < 4 && absl::IsAborted(status); ++attempt) {
        Step step(session);
        BlockingTransaction& t = *step.operator->();
        status = touch(t);
        const bool failed = !status.ok() && !absl::IsNotFound(status) && !absl::IsAlreadyExists(status);
        if (failed) continue;
        uint64_t value = 0;
        const StatusOr<RecordHandle> handle = t.GetForUpdate(counters, counter, &value);
        if (!handle.ok()) {
          status = handle.status();
          ASSERT_FALSE(absl::IsNotFound(status) || absl::IsDataLoss(status)) << status;
          continue;
        }
        ASSERT_TRUE(t.Update(*handle, value + 1).ok());
        status = step.Commit();
        if (status.ok() || absl::IsUnknown(status)) ++most[other];
        if (status.ok()) ++least[other];
      }
      errors[0] += status.ok() || absl::IsAborted(status) ? 0 : 1;
      errors[1] += absl::IsDataLoss(status) ? 1 : 0;
    }
  };
  std::vector<Runtime::Thread*> workers;
  for (uint64_t w = 0; w < 4; ++w) {
    const int node = w < 2 ? 0 : 1;
    workers.push_back(cluster.Start(node, [&, node, w](Session& session) { work(node, w, 150, session); }));
  }
  cluster.Start(2, [&](Session& session) { work(2, 5, 1'000'000, session); });
  cluster.On(0, [&](Session&) {
    SleepForNanos(1'000'000);
    cluster.fabric().Kill(2);
  });
  for (Runtime::Thread* const worker : workers) cluster.simulation().Join(worker);
  done = true;
  cluster.simulation().Join(hostile);
  EXPECT_GT(scribbles, 50);
  EXPECT_GT(errors[0], 0u);

  cluster.On(0, [&](Session& session) {
    SleepForNanos(50'000'000);  // the locks of the dead node are repaired
    (void)cluster.database(0).table_statistics();
    (void)cluster.table(0, "hurt").local_index().CheckStructure();
    for (size_t other = 0; other < 2; ++other) {
      const Table& counters = cluster.table(0, other == 0 ? "hash" : "ordered");
      const Status structure = counters.local_index().CheckStructure();
      EXPECT_TRUE(structure.ok()) << structure;
      uint64_t sum = 0;
      for (uint64_t i = 0; i < kCounters; ++i) {
        uint64_t value = 0;
        const Status read =
            RunBlockingBody(session, [&](BlockingTransaction& t) { return t.Get(counters, i, &value); });
        ASSERT_TRUE(read.ok()) << read;
        sum += value;
      }
      EXPECT_GE(sum, least[other]);
      EXPECT_LE(sum, most[other] + 1) << "at most one of the dead node is not known here";
    }
  });
  cluster.Abandon(2);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileClientTest,
                         testing::Combine(testing::ValuesIn(AllKinds()),
                                          testing::Values(ReadPathPolicy::kOneSided, ReadPathPolicy::kCall),
                                          testing::Range(uint64_t{1}, uint64_t{4})));

// ---------------------------------------------------------------------------------------------------------------------
// An index that only its owner changes: a client can make calls, and write into records.

coro::Task<StatusOr<size_t>> AskOwner(Session* session, rdma::MethodId method, std::span<const std::byte> request) {
  std::vector<std::byte> response(rdma::kMaxMessageBytes);
  co_return co_await session->channel().Call(0, method, request, response);
}

class OwnersIndexTest : public testing::TestWithParam<IndexKind> {
 protected:
  static constexpr uint64_t kRows = 5;

  OwnersIndexTest()
      : cluster_({.nodes = 2}, {{.name = "rows",
                                 .index = GetParam(),
                                 .payload_bytes = sizeof(uint64_t),
                                 .placement = Placement::OnFirstNode()}}),
        client_(cluster_.NewSession(1)) {
    const Status loaded = RunBlockingBody(client_, [&](BlockingTransaction& t) -> Status {
      for (uint64_t n = 0; n < kRows; ++n) GANNET_RETURN_IF_ERROR(t.Insert(rows(1), n, n));
      return absl::OkStatus();
    });
    EXPECT_TRUE(loaded.ok()) << loaded;
  }

  const Table& rows(int node) { return cluster_.table(node, "rows"); }
  uint64_t damages() { return cluster_.databases[0]->table_statistics()[0].index_damages; }
  rdma::GlobalAddress RecordOf(uint64_t key) { return rows(0).local_index().Find(Key(key)).record; }
  std::byte* At(rdma::GlobalAddress address) {
    return cluster_.databases[0]->node().memory().data() + address.offset();
  }
  Status Ask(rdma::MethodId method, absl::FunctionRef<void(rdma::WireWriter&)> put) {
    std::array<std::byte, 256> request;
    rdma::WireWriter writer(request);
    put(writer);
    return client_.worker().BlockOn(AskOwner(&client_, method, writer.written())).status();
  }
  // Takes a key out of the index by a call.
  Status RemoveFromIndex(uint64_t key, rdma::GlobalAddress record) {
    const bool is_hash = GetParam() == IndexKind::kHash;
    return Ask(is_hash ? index::hash::kRemove : index::xstore::kRemove, [&](rdma::WireWriter& writer) {
      writer.PutU16(rows(0).id());  // index and table have one number
      if (is_hash) {
        index::PutKey(writer, Key(key));
      } else {
        index::xstore::PositionHint().Put(writer);
        writer.PutU64(key);
      }
      writer.PutAddress(record);
    });
  }
  void ExpectRow(uint64_t key) {
    uint64_t value = 0;
    const Status read = RunBlockingBody(client_, [&](BlockingTransaction& t) { return t.Get(rows(1), key, &value); });
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_EQ(value, key);
  }

  Cluster cluster_;
  Session& client_;
};

TEST_P(OwnersIndexTest, AKeyThatWasTakenOutOfItBeforeItsRowIsRemovedIsCounted) {
  Step removal(cluster_.NewSession(0));
  ASSERT_TRUE(removal->Remove(rows(0), uint64_t{3}).ok());
  ASSERT_TRUE(RemoveFromIndex(3, RecordOf(3)).ok());
  EXPECT_TRUE(removal.Commit().ok());
  EXPECT_EQ(damages(), 1u);
  ExpectRow(4);
}

TEST_P(OwnersIndexTest, ARemovalOfARecordWhoseKeyWasOverwrittenEnds) {
  for (const uint64_t key : {uint64_t{2}, uint64_t{3}}) {
    Step removal(key == 2 ? cluster_.NewSession(0) : client_);
    ASSERT_TRUE(removal->Remove(rows(key == 2 ? 0 : 1), key).ok());
    StoreWord(At(RecordOf(key)) + rdma::PlaceOf(index::kKeyDataOffset), 99);
    const Status removed = removal.Commit();
    EXPECT_EQ(removed.code(), key == 2 ? absl::StatusCode::kOk : absl::StatusCode::kUnknown) << removed;
  }
  // Only a hash index reads integer keys from the records.
  EXPECT_EQ(damages(), GetParam() == IndexKind::kHash ? 1u : 0u);
  ExpectRow(4);
}

// The record is one that the caller has locked, but not that of the key.
TEST_P(OwnersIndexTest, AFinishThatNamesAnotherKeyIsRefused) {
  const rdma::GlobalAddress record = RecordOf(3);
  const uint64_t state = LoadWord(At(record));
  const uint64_t owner_bits = OwnerBits(1, 9);
  uint64_t number = uint64_t{1} << 62;
  StoreWord(At(record), Locked(state, owner_bits));
  for (const FinishKind kind : {FinishKind::kRemove, FinishKind::kUnmake}) {
    for (const uint64_t key : {uint64_t{4}, uint64_t{1000}}) {
      const Status refused = Ask(kTxnFinish, [&](rdma::WireWriter& writer) {
        Put(writer, Caller{Caller::NameOf(owner_bits, 99), ++number});
        writer.PutU16(1);
        Put(writer, FinishItem{.kind = kind, .table = rows(0).id(), .key = key, .record = record, .state = state});
      });
      EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    }
  }
  EXPECT_EQ(LoadWord(At(record)), Locked(state, owner_bits));
  StoreWord(At(record), state);
  EXPECT_EQ(damages(), 0u);
  ExpectRow(3);
  ExpectRow(4);
}

INSTANTIATE_TEST_SUITE_P(Kinds, OwnersIndexTest, testing::Values(IndexKind::kHash, IndexKind::kXStore));

// ---------------------------------------------------------------------------------------------------------------------
// A checkpoint of a damaged index would lack rows that the log has.

TEST(DamagedCheckpointTest, IsNotTakenAndARestartHasAllRows) {
  for (const IndexKind kind : index::KindsThatClientsChange()) {
    const auto disk = std::make_shared<log::FaultyFileSystem>(1);
    TableOptions rows = OrderedTable("rows");
    rows.index = kind;
    {
      auto cluster = DurableCluster::Open(disk, {rows});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      auto session = (*cluster)->database().OpenSession();
      ASSERT_TRUE(session.ok());
      const Table& table = (*cluster)->table("rows");
      const Status loaded = RunBlockingBody(**session, [&](BlockingTransaction& t) -> Status {
        for (uint64_t n = 0; n < 50; ++n) GANNET_RETURN_IF_ERROR(t.Insert(table, n, n));
        return absl::OkStatus();
      });
      ASSERT_TRUE(loaded.ok()) << loaded;
      ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
      std::byte* const memory = (*cluster)->database().node().memory().data();
      const uint64_t record = table.local_index().Find(Key(uint64_t{7})).record.bits();
      for (const rdma::GlobalAddress leaf : LeavesOf(table)) {
        for (size_t at = kLineBytes; at < BlocksOf(table).leaf_bytes(); at += kWordBytes) {
          std::byte* const word = memory + leaf.offset() + at;
          if (LoadWord(word) == record) StoreWord(word, rdma::GlobalAddress(0, 0x123456789ac0).bits());
        }
      }
      const Status taken = (*cluster)->database().Checkpoint();
      EXPECT_TRUE(absl::IsDataLoss(taken)) << taken;
      EXPECT_EQ((*cluster)->database().table_statistics()[0].index_damages, 1u);
      session->reset();
    }
    auto cluster = DurableCluster::Open(disk, {rows});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ((*cluster)->table("rows").local_index().statistics().keys, 50u);
    EXPECT_TRUE((*cluster)->table("rows").local_index().CheckStructure().ok());
  }
}

}  // namespace index_damage_test
}  // namespace gannet::txn
