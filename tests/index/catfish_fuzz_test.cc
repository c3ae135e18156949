// Arbitrary bytes from fixed seeds in place of nodes, requests and responses of a catfish index: each gives an error or
// a result that is well formed, never a crash or an access out of bounds (under AddressSanitizer).
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/catfish/catfish.h"
#include "index/catfish/client/image.h"
#include "index/catfish/node.h"
#include "index/catfish/rpc/messages.h"
#include "index/key_wire.h"
#include "rdma/rpc.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace catfish_fuzz_test {

constexpr IndexId kId = 4;
constexpr uint64_t kKeys = 60;
constexpr std::array kMethods = {catfish::kDescribe, catfish::kFind,   catfish::kInsert,
                                 catfish::kRemove,   catfish::kSearch, catfish::kNearest};

using Bytes = std::vector<std::byte>;

// Numbers at the edges of what is allowed, where mistakes are likely.
void Mutate(Random* random, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  constexpr std::array<uint8_t, 8> kEdges = {0, 1, 0x7f, 0x80, 0xff, 0xf0, 24, 64};
  for (uint64_t times = 1 + random->Below(4); times > 0; --times) {
    const size_t at = random->Below(bytes.size());
    switch (random->Below(3)) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1 << random->Below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(kEdges[random->Below(kEdges.size())]);
        break;
      default:
        for (size_t i = at; i < std::min(at + 8, bytes.size()); ++i) bytes[i] = static_cast<std::byte>((*random)());
        break;
    }
  }
}

RectangleKeyBytes KeyOf(uint64_t n) {
  const auto x = static_cast<double>(n % 8);
  const auto y = static_cast<double>(n / 8);
  return RectangleKeyBytes({{x, y, x + 1, y + 1}, n});
}

// An image lies in memory of exactly its size.
TEST(CatfishFuzzTest, Images) {
  struct Free {
    void operator()(std::byte* image) const { ::operator delete[](image, std::align_val_t{kLineBytes}); }
  };
  Random random(1);
  std::array<int, 3> verdicts{};
  for (const uint32_t entries : {kMinCatfishNodeEntries, 5u, 30u, kMaxCatfishNodeEntries}) {
    const catfish::NodeLayout layout(entries);
    const std::unique_ptr<std::byte[], Free> image(new (std::align_val_t{kLineBytes}) std::byte[layout.bytes]);
    for (int round = 0; round < 4000; ++round) {
      const bool any = round % 4 == 0;
      for (size_t i = 0; i < layout.bytes; ++i) image[i] = any ? static_cast<std::byte>(random()) : std::byte{0};
      if (!any) {
        const catfish::Node node(image.get(), &layout);
        StoreWord(image.get(), rdma::kLockBit);
        node.Begin();
        node.Set({.level = static_cast<uint8_t>(random.Below(3)),
                  .count = static_cast<uint16_t>(random.Below(entries + 1))});
        for (uint32_t i = 0; i < entries; ++i) node.Set(i, {.box = {0, 0, 1, 1}, .id = i, .target = random()});
        node.Publish(1 + random.Below(1000));
        // Where lines have their versions, a mutation shows only as a torn image.
        Mutate(&random, {image.get() + (random.OneIn(2) ? catfish::NodeLayout::kHeadPlace : 0), size_t{16}});
        Mutate(&random, {image.get(), layout.bytes});
      }
      catfish::NodeCopy copy;
      const int level = static_cast<int>(random.Below(4)) - 1;
      const catfish::Verdict verdict = catfish::JudgeImage(image.get(), layout, level, &copy);
      ++verdicts[static_cast<size_t>(verdict)];
      if (verdict != catfish::Verdict::kNode) continue;
      EXPECT_LE(copy.head.count, entries);
      EXPECT_TRUE(level < 0 || copy.head.level == level);
      for (const catfish::Entry& entry : copy.entries()) {
        const uint64_t end = entry.target + layout.bytes;
        EXPECT_TRUE(!catfish::IsNodeOffset(entry.target, layout) || end <= rdma::GlobalAddress::kOffsetMask);
        if (!catfish::IsLeafEntry(entry, 0)) continue;
        EXPECT_EQ(rdma::GlobalAddress::FromBits(entry.target).node(), 0);
        EXPECT_TRUE(CheckRectangle(entry.box).ok());
      }
    }
  }
  for (const int times : verdicts) EXPECT_GT(times, 100);
}

// An index with a few keys, and a client.
class CatfishMessagesTest : public testing::Test {
 protected:
  void SetUp() override {
    RegisterCatfishMethods(cluster_.owner().service.get());
    auto index = CreateCatfish(cluster_.owner().service.get(), kId, KeyKind::kBytes, 40, 100, {.node_entries = 5});
    ASSERT_TRUE(index.ok()) << index.status();
    index_ = std::move(*index);
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    for (uint64_t n = 0; n < kKeys; ++n) {
      EpochGuard guard(owner_->epoch());
      const auto key = KeyOf(n);
      ASSERT_TRUE(index_->Insert(owner_->context(), key.view(), owner_->NewRecord(key.view()), nullptr).ok());
    }
    client_ = std::make_unique<ClientThread>(&cluster_);
  }
  void TearDown() override {
    client_.reset();
    cluster_.owner().node->Shutdown();
    owner_.reset();
    index_.reset();
  }

  StatusOr<Bytes> Call(rdma::MethodId method, const Bytes& request) {
    Bytes response(rdma::kMaxMessageBytes);
    const StatusOr<size_t> bytes =
        client_->Await([](rdma::Channel* channel, rdma::MethodId m, std::span<const std::byte> in,
                          std::span<std::byte> out) -> coro::Task<StatusOr<size_t>> {
          co_return co_await channel->Call(0, m, in, out);
        }(client_->channel(), method, request, response));
    if (!bytes.ok()) return bytes.status();
    response.resize(*bytes);
    return response;
  }

  // A valid request: of key `n`, and for changes with its record or one for an absent key.
  Bytes RequestOf(rdma::MethodId method, uint64_t n, rdma::GlobalAddress record) {
    std::array<std::byte, 256> buffer;
    rdma::WireWriter writer(buffer);
    writer.PutU16(kId);
    const auto key = KeyOf(n);
    if (method == catfish::kFind || method == catfish::kInsert || method == catfish::kRemove)
      PutKey(writer, key.view());
    if (method == catfish::kInsert || method == catfish::kRemove) writer.PutAddress(record);
    if (method == catfish::kSearch) {
      catfish::PutRectangle(writer, {0, 0, static_cast<double>(n % 9), 3});
      writer.PutU8(n % 2);
      catfish::PutPosition(writer,
                           n % 3 == 0 ? std::optional(index_->PositionBehind(key.view(), false)) : std::nullopt);
    }
    if (method == catfish::kNearest) {
      catfish::PutNumber(writer, 3);
      catfish::PutNumber(writer, static_cast<double>(n));
      writer.PutU64(1 + n % 7);
    }
    const auto written = writer.written();
    return {written.begin(), written.end()};
  }

  IndexCluster cluster_{{}};
  std::unique_ptr<LocalIndex> index_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<ClientThread> client_;
};

TEST_F(CatfishMessagesTest, Requests) {
  Random random(2);
  const auto key = KeyOf(1);
  const rdma::GlobalAddress record = index_->Find(key.view()).record;
  for (const rdma::MethodId method : kMethods) {
    EXPECT_FALSE(Call(method, {}).ok());
    ASSERT_TRUE(method == catfish::kRemove || method == catfish::kInsert ||
                Call(method, RequestOf(method, 1, record)).ok());
    for (int i = 0; i < 400; ++i) {
      Bytes request = RequestOf(method, random.Below(kKeys), record);
      if (random.OneIn(3)) request.resize(random.Below(request.size()));
      Mutate(&random, std::span(request).subspan(std::min<size_t>(request.size(), random.OneIn(8) ? 0 : 2)));
      const StatusOr<Bytes> response = Call(method, request);
      EXPECT_FALSE(absl::IsInternal(response.status())) << response.status();
    }
  }
  // Well-formed requests for impossible changes.
  const uint64_t end = cluster_.owner().node->memory().size();
  for (const rdma::GlobalAddress bad :
       {rdma::GlobalAddress(), rdma::GlobalAddress(0, 64), rdma::GlobalAddress(0, end - 8), rdma::GlobalAddress(0, end),
        rdma::GlobalAddress(1, record.offset()), record.WithMark(true), record + 8}) {
    EXPECT_FALSE(Call(catfish::kInsert, RequestOf(catfish::kInsert, kKeys + 1, bad)).ok()) << bad.ToString();
    EXPECT_FALSE(Call(catfish::kRemove, RequestOf(catfish::kRemove, 1, bad)).ok()) << bad.ToString();
  }
  const Status structure = index_->CheckStructure();
  EXPECT_TRUE(structure.ok()) << structure;
  EXPECT_EQ(index_->Find(KeyOf(2).view()).record.node(), 0);
}

// The owner would collect its whole tree for such a request. The client is told no distance, and searches by itself.
TEST_F(CatfishMessagesTest, ARequestForTooManyNeighboursStartsNoSearch) {
  constexpr uint64_t kMostNearest = 1 << 20;  // of index/catfish/rpc/server.cc
  for (const uint64_t count : {kMostNearest, kMostNearest + 1, UINT64_MAX}) {
    Bytes request = RequestOf(catfish::kNearest, 1, {});
    rdma::WireWriter(std::span(request).last(sizeof count)).PutU64(count);
    const StatusOr<Bytes> response = Call(catfish::kNearest, request);
    ASSERT_TRUE(response.ok()) << response.status();
    rdma::WireReader reader(*response);
    const bool has_result = reader.GetU8() != 0;
    EXPECT_EQ(has_result, count == kMostNearest) << count;
    if (has_result) continue;
    EXPECT_EQ(catfish::GetNumber(reader), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(reader.Finish().ok());
  }
  for (const bool by_call : {true, false}) {
    const auto remote = ConnectCatfish(client_->channel(), 0, kId, {.by_call = by_call});
    ASSERT_TRUE(remote.ok()) << remote.status();
    ScanResult found;
    const Status status = client_->Await((*remote)->Nearest({.x = 1, .y = 2, .count = kMostNearest + 1}, &found));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(found.entries.size(), kKeys);
  }
}

// A hostile owner that answers with what a true one would, changed here and there.
TEST_F(CatfishMessagesTest, Responses) {
  const rdma::GlobalAddress record = index_->Find(KeyOf(1).view()).record;
  std::map<rdma::MethodId, std::vector<Bytes>> true_responses;
  for (const rdma::MethodId method : kMethods) {
    for (uint64_t n = 0; n < 12; ++n) {
      // Inserts of new keys, and removals of what these inserted.
      const uint64_t key = method == catfish::kFind && n % 2 == 0 ? 1 : kKeys + n;
      const StatusOr<Bytes> response = Call(method, RequestOf(method, key, record));
      ASSERT_TRUE(response.ok()) << method << ": " << response.status();
      true_responses[method].push_back(*response);
    }
  }

  IndexCluster hostile({});
  Random random(3);
  for (const rdma::MethodId method : kMethods) {
    hostile.owner().node->Handle(method, [&random, &responses = true_responses[method]](
                                             rdma::NodeId, std::span<const std::byte>, std::span<std::byte> out) {
      Bytes response = responses[random.Below(responses.size())];
      if (random.OneIn(4)) response.resize(random.Below(response.size() + 1));
      if (!random.OneIn(8)) Mutate(&random, response);
      std::ranges::copy(response, out.begin());
      return StatusOr<size_t>(response.size());
    });
  }
  hostile.Serve();
  {
    ClientThread client(&hostile);
    int succeeded = 0;
    int failed = 0;
    const auto ended = [&](const Status& status) {
      ++(status.ok() ? succeeded : failed);
      EXPECT_TRUE(status.ok() || absl::IsDataLoss(status) || absl::IsAborted(status) || absl::IsInvalidArgument(status))
          << status;
    };
    const auto expect_rectangles = [&](const ScanResult& result) {
      for (const Entry& entry : result.entries) {
        EXPECT_TRUE(DecodeRectangleKey(entry.key.view()).ok());
        EXPECT_EQ(entry.record.node(), 0);
      }
      for (const Witness& witness : result.witnesses) EXPECT_EQ(witness.word.node(), 0);
    };
    for (int round = 0; round < 600; ++round) {
      // A new client asks for the description, half of them READ what it leads to.
      const auto remote = ConnectCatfish(client.channel(), 0, kId, {.by_call = round % 2 == 0});
      ASSERT_TRUE(remote.ok());
      ScanResult found;
      const bool at_one_moment = random.OneIn(2);
      ended(client.Await((*remote)->Search({.window = {0, 0, 5, 5}, .at_one_moment = at_one_moment}, &found)));
      ended(client.Await((*remote)->Nearest({.x = 1, .y = 2, .count = 5}, &found)));
      expect_rectangles(found);
      const auto key = KeyOf(random.Below(kKeys));
      ended(client.Await((*remote)->Find(key.view())).status());
      ended(client.Await((*remote)->Insert(key.view(), record)).status());
      ended(client.Await((*remote)->Remove(key.view(), record)).status());
    }
    EXPECT_GT(succeeded, 100);
    EXPECT_GT(failed, 100);
  }
  hostile.owner().node->Shutdown();
}

}  // namespace catfish_fuzz_test
}  // namespace gannet::index
