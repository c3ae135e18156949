// A lane and its calls on a queue pair that has no device: what is posted is kept, and the test completes it.
#include "rdma/verbs/lane.h"

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "rdma/verbs/call_client.h"

namespace gannet::rdma::verbs {
namespace lane_test {

constexpr NodeId kPeer = 1;

// Access to a private member: only an explicit instantiation may name it.
rdma_cm_id*& IdOf(Link* link);
template <rdma_cm_id* Link::*kId>
struct Access {
  friend rdma_cm_id*& IdOf(Link* link) { return link->*kId; }
};
template struct Access<&Link::id_>;

class LaneTest : public testing::Test, protected Lane::Listener {
 protected:
  LaneTest() {
    context_.ops.post_send = [](ibv_qp* qp, ibv_send_wr* work, ibv_send_wr**) {
      auto* const posted = static_cast<std::vector<ibv_sge>*>(qp->qp_context);
      for (; work != nullptr; work = work->next) posted->push_back(*work->sg_list);
      return 0;
    };
    qp_.context = &context_;
    qp_.qp_context = &posted_;
    id_.qp = &qp_;
    IdOf(link_.get()) = &id_;
    EXPECT_TRUE(staging_.Open(nullptr).ok());
    lane_.Open(link_, 1, {});
  }
  ~LaneTest() override { IdOf(link_.get()) = nullptr; }

  void FinishBatch(Batch*) override { ++finished_batches_; }

  // Posts the queue, and returns where its parts lie here.
  std::vector<std::byte*> Flush() {
    posted_.clear();
    EXPECT_TRUE(lane_.Flush().ok());
    std::vector<std::byte*> parts;
    for (const ibv_sge& part : posted_) parts.push_back(reinterpret_cast<std::byte*>(part.addr));
    return parts;
  }

  ibv_context context_{};
  ibv_qp qp_{};
  rdma_cm_id id_{};
  std::vector<ibv_sge> posted_;
  std::shared_ptr<Link> link_ = std::make_shared<Link>(nullptr, 1, kPeer, uint16_t{0});
  Staging staging_;
  Lane lane_{kPeer, &staging_, /*line_consistent=*/false, this};
  int finished_batches_ = 0;
};

TEST_F(LaneTest, ALineThatIsBusyAtBothLooksIsBusyWhateverWasReadBetween) {
  std::array<uint64_t, 8> line{};
  Operation read = Operation::Read(GlobalAddress(kPeer, kLineBytes), line.data(), kLineBytes);
  Batch batch;
  lane_.Add(&read, &batch, 0);
  const std::vector<std::byte*> parts = Flush();
  ASSERT_EQ(parts.size(), 3u);  // the first word, all, the first word
  const std::array<uint64_t, 3> first_words{kLineBusy, 5, kLineBusy};
  for (size_t i = 0; i < parts.size(); ++i) std::memcpy(parts[i], &first_words[i], kWordBytes);
  lane_.Complete(2);
  EXPECT_EQ(finished_batches_, 1);
  EXPECT_EQ(line[0], kLineBusy);
}

// The server sends what no Gannet node would send.
TEST_F(LaneTest, AnAnswerIsTakenOnlyIfItsCallWasSentAndIntoItsBuffer) {
  VerbCounters counters;
  std::vector<Completion*> finished;
  CallClient calls(kPeer + 1, &counters, &finished);
  constexpr size_t kRoom = 60;
  std::array<std::byte, 4 * kRoom> buffer{};
  Completion completion;
  calls.Submit(
      {.node = kPeer, .method = 60000, .request = {}, .response = std::span(buffer).first(kRoom), .timeout = {}},
      &completion);
  calls.Start(&lane_);
  const auto answer = [&](uint32_t total, uint32_t offset, size_t bytes) {
    const FragmentHeader header{.call = 1 << 16, .total_bytes = total, .offset = offset};  // the first call's name
    std::vector<std::byte> fragment(sizeof header + bytes, std::byte{1});
    std::memcpy(fragment.data(), &header, sizeof header);
    return calls.TakeFragment(kPeer, fragment);
  };
  EXPECT_TRUE(absl::IsInternal(answer(10, 0, 10)));  // the lane has not sent it yet
  ASSERT_EQ(Flush().size(), 1u);
  EXPECT_TRUE(absl::IsInternal(answer(kRoom + 1, 0, kRoom + 1)));
  EXPECT_TRUE(answer(kRoom, 0, 50).ok());
  EXPECT_TRUE(absl::IsInternal(answer(40, 50, 100)));  // a shorter answer, which ends before this part
  for (size_t i = 50; i < buffer.size(); ++i) ASSERT_EQ(buffer[i], std::byte{0}) << i;
  EXPECT_TRUE(finished.empty());
}

}  // namespace lane_test
}  // namespace gannet::rdma::verbs

// These take the places of the functions in libibverbs: without a device, registered memory is just memory.
ibv_mr*(ibv_reg_mr)(ibv_pd*, void*, size_t, int) {
  return new ibv_mr{};
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd*, void*, size_t, uint64_t, unsigned int) {
  return new ibv_mr{};
}
int ibv_dereg_mr(ibv_mr* region) {
  delete region;
  return 0;
}
