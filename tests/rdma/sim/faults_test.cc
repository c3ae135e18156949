#include "rdma/sim/faults.h"

#include <set>
#include <string>

#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet::rdma::sim {
namespace faults_test {

TEST(Faults, NoneByDefault) {
  EXPECT_FALSE(Faults{}.Any());
  EXPECT_EQ(Faults{}.ToString(), "none");
}

TEST(Faults, EachIsSeenAndNamed) {
  const Faults each[] = {{.scatter_lines = 0.1},    {.preempt = 0.1},      {.slow_completion = 0.1},
                         {.stuck_completion = 0.1}, {.lost_request = 0.1}, {.lost_response = 0.1},
                         {.disconnect = 0.1},       {.pause_every = 10},   {.cut_every = 10},
                         {.clock_skew_nanos = 10},  {.clock_drift = 0.001}};
  std::set<std::string> texts;
  for (const Faults& faults : each) {
    EXPECT_TRUE(faults.Any());
    texts.insert(faults.ToString());
  }
  EXPECT_EQ(texts.size(), std::size(each));
  EXPECT_TRUE(texts.contains("cut_every=10"));
}

TEST(Faults, DrawsEachOnAndOffByTheSeed) {
  std::set<std::string> names_seen;
  int quiet = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed), again(seed);
    const Faults faults = Faults::Draw(&random);
    EXPECT_EQ(faults.ToString(), Faults::Draw(&again).ToString());
    for (const auto& [name, on] : {std::pair{"scatter", faults.scatter_lines > 0},
                                   {"preempt", faults.preempt > 0},
                                   {"lost", faults.lost_request > 0 && faults.lost_response > 0},
                                   {"pause", faults.pause_every > 0},
                                   {"cut", faults.cut_every > 0},
                                   {"skew", faults.clock_skew_nanos > 0}}) {
      names_seen.insert(std::string(name) + (on ? " on" : " off"));
    }
    quiet += !faults.Any();
  }
  EXPECT_EQ(names_seen.size(), 12u);
  EXPECT_LT(quiet, 20);
}

}  // namespace faults_test
}  // namespace gannet::rdma::sim
