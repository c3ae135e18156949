#include "base/plain_vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace gannet {
namespace plain_vector_test {

TEST(PlainVectorTest, DoesWhatAVectorDoes) {
  std::mt19937_64 random(1);
  PlainVector<uint64_t> plain;
  std::vector<uint64_t> model;
  for (int step = 0; step < 20'000; ++step) {
    switch (random() % 8) {
      case 0:
      case 1:
        plain.push_back(random());
        model.push_back(plain.back());
        break;
      case 2:
        if (!model.empty()) {
          plain.pop_back();
          model.pop_back();
        }
        break;
      case 3:
        if (!model.empty()) {
          const size_t at = random() % model.size();
          plain.erase(plain.begin() + at);
          model.erase(model.begin() + static_cast<ptrdiff_t>(at));
        }
        break;
      case 4: {
        const size_t room = random() % 100;
        const size_t written = random() % (room + 1);
        uint64_t* const to = plain.Room(room);
        for (size_t i = 0; i < written; ++i) model.push_back(to[i] = random());
        plain.Resize(plain.size() + written);
        break;
      }
      case 5: {
        const size_t size = model.size() - std::min<size_t>(model.size(), random() % 64);
        plain.Resize(size);
        model.resize(size);
        break;
      }
      case 6:
        if (random() % 50 == 0) {
          plain.clear();
          model.clear();
        }
        break;
      case 7: {
        PlainVector<uint64_t> copy = plain;
        PlainVector<uint64_t> moved = std::move(copy);
        EXPECT_TRUE(copy.empty());  // NOLINT(bugprone-use-after-move): it is empty then
        plain = moved;
        break;
      }
    }
    ASSERT_TRUE(std::ranges::equal(plain, model)) << "step " << step;
    ASSERT_GE(plain.capacity(), plain.size());
  }
}

TEST(PlainVectorTest, AppendsOneOfItsOwnElements) {
  PlainVector<uint64_t> plain;
  plain.push_back(7);
  for (int i = 0; i < 1000; ++i) plain.push_back(plain[0]);
  EXPECT_EQ(std::ranges::count(plain, 7u), 1001);
}

TEST(PlainVectorTest, RefusesMoreThanThereCanBe) {
  PlainVector<uint64_t> plain;
  plain.push_back(1);
  EXPECT_THROW(plain.Room(std::numeric_limits<size_t>::max()), std::bad_alloc);
  EXPECT_THROW(plain.Room(std::numeric_limits<size_t>::max() / 16), std::bad_alloc);
  EXPECT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain[0], 1u);
}

}  // namespace plain_vector_test
}  // namespace gannet
