#include "rdma/shm/adversary.h"

#include <array>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace gannet::rdma::shm {
namespace adversary_test {

TEST(Adversary, CopiesEveryByteOnceInWhateverOrder) {
  Adversary adversary(1);
  std::vector<uint64_t> memory(128);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = 1000 + i;
  const auto* bytes = reinterpret_cast<const std::byte*>(memory.data());
  for (size_t from = 0; from < 12; ++from) {
    for (size_t words = 1; words < 40; ++words) {
      std::vector<uint64_t> out(words + 1, 7);
      adversary.Read(bytes + from * 8, reinterpret_cast<std::byte*>(out.data()), words * 8);
      for (size_t i = 0; i < words; ++i) ASSERT_EQ(out[i], 1000 + from + i);
      ASSERT_EQ(out[words], 7u);
    }
  }
}

TEST(Adversary, WritesWhatItShould) {
  Adversary adversary(2);
  for (size_t from = 0; from < 10; ++from) {
    alignas(kLineBytes) std::array<uint64_t, 64> memory;
    memory.fill(5);
    std::vector<uint64_t> out(30);
    StoreNote note{};
    const LineWriter writer(BusyMarker(1, 2), &note, reinterpret_cast<const std::byte*>(memory.data()));
    for (size_t i = 0; i < out.size(); ++i) out[i] = i;
    adversary.Write(writer, reinterpret_cast<std::byte*>(memory.data() + from),
                    reinterpret_cast<const std::byte*>(out.data()), out.size() * 8);
    for (size_t i = 0; i < memory.size(); ++i) {
      ASSERT_EQ(memory[i], i < from || i >= from + out.size() ? 5 : i - from);
    }
  }
}

std::vector<Operation> Batch() {
  uint64_t* nowhere = nullptr;
  return {Operation::Read(GlobalAddress(1, 64), nowhere, 8),  Operation::Write(nowhere, GlobalAddress(1, 64), 8),
          Operation::Read(GlobalAddress(1, 64), nowhere, 8),  Operation::FetchAndAdd(GlobalAddress(1, 64), 1),
          Operation::Write(nowhere, GlobalAddress(2, 64), 8), Operation::CompareAndSwap(GlobalAddress(2, 64), 0, 1)};
}

// The promised order is kept; every order that is not promised occurs.
TEST(Adversary, ReordersABatchAsFarAsTheContractAllows) {
  Adversary adversary(3);
  const std::vector<Operation> batch = Batch();
  std::set<std::pair<uint32_t, uint32_t>> seen_before;  // (a, b): a took effect before b
  for (int round = 0; round < 1000; ++round) {
    const std::span<const uint32_t> order = adversary.Order(batch);
    ASSERT_EQ(std::set(order.begin(), order.end()).size(), batch.size());
    for (size_t i = 0; i < order.size(); ++i) {
      for (size_t j = i + 1; j < order.size(); ++j) seen_before.emplace(order[i], order[j]);
    }
  }
  // WRITE 1 before READ 2 and FAA 3; WRITE 4 before CAS 5.
  for (const auto& [later, earlier] : {std::pair{2u, 1u}, {3u, 1u}, {5u, 4u}}) {
    EXPECT_FALSE(seen_before.contains({later, earlier})) << later << " overtook " << earlier;
  }
  // A READ may be overtaken by operations posted after it, and there is no order between nodes.
  for (const auto& [later, earlier] : {std::pair{1u, 0u}, {2u, 0u}, {3u, 0u}, {3u, 2u}, {4u, 1u}, {5u, 3u}}) {
    EXPECT_TRUE(seen_before.contains({later, earlier})) << later << " never overtook " << earlier;
  }
}

}  // namespace adversary_test
}  // namespace gannet::rdma::shm
