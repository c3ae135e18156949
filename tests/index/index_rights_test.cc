// Indexes of shared leaves that only their owner may change (IndexRights::kOwnerOnly): a client can READ them and
// nothing else, and changes them by calls.
#include <array>
#include <memory>
#include <span>
#include <string>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/blink/blink_index.h"
#include "index/change_wire.h"
#include "index/key_wire.h"
#include "index/registry.h"
#include "index/rolex/rolex_index.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/change/change_calls.h"
#include "index/types.h"
#include "rdma/rpc.h"
#include "tests/index/kinds.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace index_rights_test {

constexpr IndexId kId = 1;
constexpr uint64_t kKeys = 400;

class IndexRightsTest : public testing::TestWithParam<IndexKind> {
 protected:
  // An index with the even keys below 2 * kKeys, and a client.
  void Start(IndexRights rights) {
    const IndexKindEntry& kind = EntryOf(GetParam());
    cluster_ = std::make_unique<IndexCluster>(IndexCluster::Options{});
    kind.register_methods(cluster_->owner().service.get());
    auto index = kind.create(cluster_->owner().service.get(), kId, {.rights = rights});
    ASSERT_TRUE(index.ok()) << index.status();
    index_ = *std::move(index);
    cluster_->Serve();
    owner_ = std::make_unique<OwnerThread>(cluster_.get());
    for (uint64_t key = 0; key < 2 * kKeys; key += 2) {
      const EpochGuard guard(owner_->epoch());
      ASSERT_TRUE(index_->Insert(owner_->context(), key, owner_->NewRecord(key), nullptr).ok());
    }
    client_ = std::make_unique<ClientThread>(cluster_.get());
    Connect(rights);
  }
  void Connect(IndexRights rights) {
    auto remote = EntryOf(GetParam()).connect(client_->channel(), /*owner=*/0, kId, {.rights = rights});
    ASSERT_TRUE(remote.ok()) << remote.status();
    remote_ = *std::move(remote);
  }
  void TearDown() override {
    if (cluster_ == nullptr) return;
    remote_.reset();
    client_.reset();
    cluster_->owner().node->Shutdown();
    owner_.reset();
    index_.reset();
    cluster_.reset();
  }

  rdma::GlobalAddress Found(uint64_t key) {
    const EpochGuard guard(client_->epoch());
    const StatusOr<FindResult> found = client_->Find(remote_.get(), key);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->record : rdma::GlobalAddress();
  }
  // The first word of the leaf that covers an absent key.
  rdma::GlobalAddress LeafOf(uint64_t key) {
    const EpochGuard guard(owner_->epoch());
    return index_->Find(key).witness.word;
  }
  Status Post(rdma::Operation operation) {
    return client_->Await([](rdma::Channel* channel, rdma::Operation one) -> coro::Task<Status> {
      co_return co_await channel->Post(std::span(&one, 1));
    }(client_->channel(), operation));
  }
  StatusOr<size_t> Call(rdma::MethodId method, std::span<const std::byte> request) {
    return client_->Await([](rdma::Channel* channel, rdma::MethodId id,
                             std::span<const std::byte> asked) -> coro::Task<StatusOr<size_t>> {
      std::array<std::byte, 4096> response;
      co_return co_await channel->Call(0, id, asked, response);
    }(client_->channel(), method, request));
  }
  void ExpectSound() {
    const EpochGuard guard(owner_->epoch());
    const Status structure = index_->CheckStructure();
    EXPECT_TRUE(structure.ok()) << structure;
  }

  std::unique_ptr<IndexCluster> cluster_;
  std::unique_ptr<LocalIndex> index_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<ClientThread> client_;
  std::unique_ptr<RemoteIndex> remote_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, IndexRightsTest, testing::ValuesIn(KindsThatClientsChange()),
                         [](const auto& instance) { return EntryOf(instance.param).name; });

// The fabric refuses verbs of a client that does not keep the rules.
TEST_P(IndexRightsTest, AClientCannotWriteIntoALeaf) {
  Start(IndexRights::kOwnerOnly);
  const rdma::GlobalAddress leaf = LeafOf(101);
  ASSERT_LT(leaf.offset(), cluster_->owner().node->writable_offset());
  std::array<uint64_t, 8> line;
  line.fill(7);
  const uint64_t state = LoadWord(cluster_->At(leaf));
  for (const rdma::Operation& operation :
       {rdma::Operation::Write(line.data(), leaf, kLineBytes), rdma::Operation::Write(line.data(), leaf + 8, 8),
        rdma::Operation::CompareAndSwap(leaf, state, state + 1), rdma::Operation::FetchAndAdd(leaf, 1)}) {
    const Status status = Post(operation);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  }
  EXPECT_EQ(LoadWord(cluster_->At(leaf)), state);
  EXPECT_TRUE(Post(rdma::Operation::Read(leaf, line.data(), kLineBytes)).ok());
  ExpectSound();
}

// The writable part has neither leaves nor, with ROLEX, models, their tables and the queues.
TEST_P(IndexRightsTest, NothingOfTheIndexLiesInTheWritablePart) {
  Start(IndexRights::kOwnerOnly);
  const uint64_t writable = cluster_->owner().node->writable_offset();
  auto* const lender = dynamic_cast<shared_leaf::BlockLender*>(index_.get());
  lender->blocks().ForEach([&](rdma::GlobalAddress block) { EXPECT_LT(block.offset(), writable); });
  auto* const rolex = dynamic_cast<rolex::RolexIndex*>(index_.get());
  if (rolex == nullptr) return;
  rolex->TrainNow();
  EXPECT_LT(rolex->queue_offset(), writable);
  for (const std::byte* const table : rolex->synonym_tables()) {
    EXPECT_LT(static_cast<uint64_t>(table - cluster_->owner().node->memory().data()), writable);
  }
}

TEST_P(IndexRightsTest, TheOwnerLendsNoBlocks) {
  Start(IndexRights::kOwnerOnly);
  std::array<std::byte, 10> request;
  rdma::WireWriter writer(request);
  writer.PutU16(kId);
  writer.PutU16(0);  // the leaves
  writer.PutU16(4);
  writer.PutU16(0);
  writer.PutU16(0);
  const StatusOr<size_t> lent = Call(shared_leaf::kExchange, writer.written());
  EXPECT_TRUE(absl::IsPermissionDenied(lent.status())) << lent.status();
  EXPECT_EQ(remote_->NewInsertBatch(), nullptr);
}

TEST_P(IndexRightsTest, AClientChangesByCallsOnly) {
  Start(IndexRights::kOwnerOnly);
  ASSERT_FALSE(Found(0).is_null());
  const rdma::VerbCounters before = client_->channel()->counters();
  Random random(5);
  for (uint64_t key = 1; key < 2 * kKeys; key += 2) {
    const rdma::GlobalAddress record = owner_->NewRecord(key);
    const Witness gap{LeafOf(key), LoadWord(cluster_->At(LeafOf(key)))};
    const StatusOr<Change> inserted = client_->Await(remote_->Insert(key, record));
    ASSERT_TRUE(inserted.ok()) << inserted.status();
    ASSERT_FALSE(inserted->empty());
    EXPECT_EQ(inserted->words()[0].word, gap.word);
    EXPECT_EQ(inserted->words()[0].before, gap.seen);
    EXPECT_TRUE(absl::IsAlreadyExists(client_->Await(remote_->Insert(key, record)).status()));
    if (random.OneIn(2)) continue;
    const rdma::GlobalAddress other = owner_->NewRecord(key);
    ASSERT_TRUE(client_->Await(remote_->Replace(key, random.OneIn(2) ? record : rdma::GlobalAddress(), other)).ok());
    EXPECT_EQ(Found(key), other);
    EXPECT_TRUE(absl::IsNotFound(client_->Await(remote_->Replace(key, record, other))));
    EXPECT_TRUE(absl::IsNotFound(client_->Await(remote_->Remove(key, record)).status()));
    ASSERT_TRUE(client_->Await(remote_->Remove(key, other)).ok());
    EXPECT_TRUE(absl::IsNotFound(client_->Await(remote_->Replace(key, rdma::GlobalAddress(), record))));
    EXPECT_TRUE(Found(key).is_null());
  }
  const rdma::VerbCounters used = client_->channel()->counters() - before;
  EXPECT_EQ(used.writes + used.compare_and_swaps + used.fetch_and_adds, 0u);
  EXPECT_GE(used.calls, 2 * kKeys);
  ExpectSound();
}

// The owner changes nothing after the death of a client that could lock nothing.
TEST_P(IndexRightsTest, ChangesWithoutLocksOfClientsNeedNoRepair) {
  Start(IndexRights::kOwnerOnly);
  ASSERT_TRUE(client_->Await(remote_->Insert(uint64_t{1}, owner_->NewRecord(1))).ok());
  const rdma::GlobalAddress leaf = LeafOf(3);
  const uint64_t state = LoadWord(cluster_->At(leaf));
  index_->RepairAfter(1);
  EXPECT_EQ(LoadWord(cluster_->At(leaf)), state);
  ExpectSound();
}

// A client may leave its changes to the owner (it has to, if another node has claimed the leaf).
TEST_P(IndexRightsTest, AnIndexOfClientsIsChangedByCalls) {
  Start(IndexRights::kClients);
  Connect(IndexRights::kOwnerOnly);
  const rdma::GlobalAddress record = owner_->NewRecord(1);
  EXPECT_TRUE(client_->Await(remote_->Insert(uint64_t{1}, record)).ok());
  EXPECT_EQ(Found(1), record);
}

// The owner checks the calls of its peers.
TEST_P(IndexRightsTest, MalformedCallsAreRefused) {
  Start(IndexRights::kOwnerOnly);
  const rdma::GlobalAddress record = owner_->NewRecord(1);
  std::array<std::byte, 256> request;
  const auto call = [&](rdma::MethodId method, IndexId id, const Key& key, int addresses, bool extra) {
    rdma::WireWriter writer(request);
    writer.PutU16(id);
    PutKey(writer, key);
    for (int i = 0; i < addresses; ++i) writer.PutAddress(record);
    if (extra) writer.PutU8(0);
    return Call(method, writer.written()).status();
  };
  const std::string long_key(100, 'x');
  for (const auto& [method, addresses] :
       {std::pair(shared_leaf::kCallInsert, 1), {shared_leaf::kCallRemove, 1}, {shared_leaf::kCallReplace, 2}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(call(method, kId, Key(1), addresses - 1, false)));
    EXPECT_TRUE(absl::IsInvalidArgument(call(method, kId, Key(1), addresses, true)));
    EXPECT_TRUE(absl::IsInvalidArgument(call(method, kId, Key(std::string_view("a name")), addresses, false)));
    EXPECT_TRUE(absl::IsInvalidArgument(call(method, kId, Key(std::string_view(long_key)), addresses, false)));
    EXPECT_TRUE(absl::IsNotFound(call(method, kId + 1, Key(1), addresses, false)));
    EXPECT_TRUE(absl::IsInvalidArgument(Call(method, std::span(request).first(3)).status()));
  }
  EXPECT_TRUE(Found(1).is_null());
  ExpectSound();
}

TEST(IndexRights, KindsThatOnlyTheOwnerChangesHaveNoOthers) {
  for (const IndexKind kind : {IndexKind::kHash, IndexKind::kXStore, IndexKind::kCatfish}) {
    const IndexKindEntry& entry = EntryOf(kind);
    EXPECT_EQ(*RightsFor(entry, {}), IndexRights::kOwnerOnly);
    EXPECT_EQ(*RightsFor(entry, IndexRights::kOwnerOnly), IndexRights::kOwnerOnly);
    const Status refused = RightsFor(entry, IndexRights::kClients).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_NE(refused.message().find(entry.name), std::string::npos) << refused;
  }
  for (const IndexKind kind : KindsThatClientsChange()) {
    const IndexKindEntry& entry = EntryOf(kind);
    EXPECT_EQ(*RightsFor(entry, {}), IndexRights::kClients);
    EXPECT_EQ(*RightsFor(entry, IndexRights::kOwnerOnly), IndexRights::kOwnerOnly);
    EXPECT_TRUE(TraitsOf(entry, IndexRights::kClients).client_writes);
    EXPECT_FALSE(TraitsOf(entry, IndexRights::kOwnerOnly).client_writes);
    EXPECT_TRUE(TraitsOf(entry, IndexRights::kOwnerOnly).ordered);
  }
  for (const IndexRights rights : {IndexRights::kOwnerOnly, IndexRights::kClients}) {
    EXPECT_EQ(*IndexRightsOf(NameOf(rights)), rights);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(IndexRightsOf("anybody").status()));
}

}  // namespace index_rights_test
}  // namespace gannet::index
