// Rectangles, their keys, and their Hilbert values.
#include "index/rectangle.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/catfish/hilbert.h"

namespace gannet::index {
namespace rectangle_test {

using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(RectangleTest, MeetsAtEdgesAndCorners) {
  const Rectangle box{0, 0, 2, 1};
  EXPECT_TRUE(box.Meets({2, 1, 3, 3}));
  EXPECT_TRUE(box.Meets({-1, 0.5, 0, 0.5}));
  EXPECT_TRUE(box.Meets({0.5, 0.5, 0.6, 0.6}));
  EXPECT_TRUE(box.Meets({-5, -5, 5, 5}));
  EXPECT_FALSE(box.Meets({std::nextafter(2.0, 3.0), 0, 3, 1}));
  EXPECT_FALSE(box.Meets({0, -1, 2, std::nextafter(0.0, -1.0)}));
  EXPECT_TRUE(Rectangle::Everything().Meets(Rectangle::Point(kMaxCoordinate, -kMaxCoordinate)));
}

TEST(RectangleTest, Measures) {
  const Rectangle box{0, 0, 2, 1};
  EXPECT_TRUE(box.Contains({0, 0, 2, 1}));
  EXPECT_FALSE(box.Contains({0, 0, 2, 1.5}));
  EXPECT_EQ(box.Union({1, -1, 3, 0.5}), (Rectangle{0, -1, 3, 1}));
  EXPECT_EQ(box.Area(), 2);
  EXPECT_EQ(box.Margin(), 3);
  EXPECT_EQ(box.Overlap({1, 0.5, 4, 4}), 0.5);
  EXPECT_EQ(box.Overlap({2, 0, 4, 4}), 0);
  EXPECT_EQ(box.Enlargement({0, 0, 4, 1}), 2);
  EXPECT_EQ(box.SquaredDistance(1, 0.5), 0);
  EXPECT_EQ(box.SquaredDistance(5, 5), 9 + 16);
  EXPECT_EQ(box.SquaredDistance(-2, 0.5), 4);
  EXPECT_TRUE(std::isfinite(Rectangle::Everything().Area()));
  EXPECT_TRUE(std::isfinite(
      Rectangle::Point(-kMaxCoordinate, -kMaxCoordinate).SquaredDistance(kMaxCoordinate, kMaxCoordinate)));
}

TEST(RectangleTest, ErrorsNameTheRectangleAndTheCoordinate) {
  const std::vector<std::pair<Rectangle, const char*>> wrong = {
      {{kNan, 0, 1, 1}, "min_x is not a number"},    {{0, 0, 1, kNan}, "max_y is not a number"},
      {{0, -kInfinity, 1, 1}, "min_y is infinite"},  {{0, 0, 1e151, 1}, "max_x is too large"},
      {{2, 0, 1, 1}, "min_x is greater than max_x"}, {{0, 2, 1, 1}, "min_y is greater than max_y"},
  };
  for (const auto& [box, what] : wrong) {
    for (const Status& status : {CheckRectangle(box), EncodeRectangleKey(box, 1).status()}) {
      EXPECT_TRUE(absl::IsInvalidArgument(status));
      EXPECT_THAT(std::string(status.message()), HasSubstr(what));
      EXPECT_THAT(std::string(status.message()), HasSubstr(box.ToString()));
    }
  }
  EXPECT_TRUE(CheckRectangle(Rectangle::Everything()).ok());
  EXPECT_TRUE(CheckRectangle(Rectangle::Point(-3, -3)).ok());
}

TEST(RectangleTest, WordsAreInTheOrderOfNumbers) {
  const std::vector<double> ascending = {-kInfinity, -1e300,
                                         -2,         -1,
                                         -1e-300,    -std::numeric_limits<double>::denorm_min(),
                                         0,          std::numeric_limits<double>::denorm_min(),
                                         1e-300,     1,
                                         1.5,        2,
                                         1e300,      kInfinity};
  for (size_t i = 1; i < ascending.size(); ++i) EXPECT_LT(OrderedWord(ascending[i - 1]), OrderedWord(ascending[i]));
  for (const double number : ascending) EXPECT_EQ(NumberOf(OrderedWord(number)), number);
  EXPECT_EQ(OrderedWord(-0.0), OrderedWord(0.0));
}

TEST(RectangleTest, KeysAreInTheOrderOfTheirWordsAndComeBack) {
  Random random(1);
  const auto draw = [&random] { return static_cast<double>(random.Between(-3, 3)) / 2; };
  std::vector<RectangleKey> keys;
  for (int i = 0; i < 200; ++i) {
    const Rectangle at = Rectangle::Point(draw(), draw());
    keys.push_back({at.Union(Rectangle::Point(draw(), draw())), random.OneIn(2) ? random() : random.Below(3)});
  }
  for (const RectangleKey& a : keys) {
    const auto bytes = EncodeRectangleKey(a.box, a.id);
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(bytes->view().size(), RectangleKey::kBytes);
    const auto decoded = DecodeRectangleKey(bytes->view());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, a);
    for (const RectangleKey& b : keys) {
      EXPECT_EQ(bytes->view() < RectangleKeyBytes(b).view(), a.Words() < b.Words());
    }
  }
}

TEST(RectangleTest, MinusZeroIsZero) {
  const auto minus = EncodeRectangleKey({-0.0, -0.0, -0.0, -0.0}, 7);
  const auto plus = EncodeRectangleKey({0.0, 0.0, 0.0, 0.0}, 7);
  ASSERT_TRUE(minus.ok() && plus.ok());
  EXPECT_EQ(minus->view(), plus->view());
}

TEST(RectangleTest, OtherBytesAreNoKey) {
  const auto bytes = EncodeRectangleKey({1, 2, 3, 4}, 5);
  ASSERT_TRUE(bytes.ok());
  const std::string good(bytes->view().bytes());
  EXPECT_TRUE(DecodeRectangleKey(Key(std::string_view(good))).ok());
  std::string minus_zero = good;
  minus_zero.replace(0, 8, "\x7f\xff\xff\xff\xff\xff\xff\xff", 8);  // what -0.0 would be without normalisation
  std::string swapped = good.substr(16, 16) + good.substr(0, 16) + good.substr(32);
  for (const std::string& wrong : {good.substr(1), good + "x", std::string(40, '\xff'), minus_zero, swapped}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeRectangleKey(Key(std::string_view(wrong))).status()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeRectangleKey(Key(uint64_t{5})).status()));
}

// Neighbours on the curve are neighbours in the plane, and the curve fills the first cells of the plane first.
TEST(HilbertTest, TheCurveIsOne) {
  constexpr uint32_t kSide = 32;
  std::vector<std::pair<uint32_t, uint32_t>> cells(kSide * kSide, {UINT32_MAX, 0});
  for (uint32_t x = 0; x < kSide; ++x) {
    for (uint32_t y = 0; y < kSide; ++y) {
      const uint64_t position = catfish::HilbertPosition(x, y);
      ASSERT_LT(position, cells.size());
      EXPECT_EQ(cells[position].first, UINT32_MAX) << "two cells at " << position;
      cells[position] = {x, y};
    }
  }
  for (size_t i = 1; i < cells.size(); ++i) {
    const int dx = static_cast<int>(cells[i].first) - static_cast<int>(cells[i - 1].first);
    const int dy = static_cast<int>(cells[i].second) - static_cast<int>(cells[i - 1].second);
    EXPECT_EQ(std::abs(dx) + std::abs(dy), 1) << "at " << i;
  }
}

TEST(HilbertTest, TheWorldMayBeKnown) {
  const catfish::HilbertCurve unit(Rectangle{0, 0, 1, 1});
  std::set<uint64_t> quarters;
  for (const double x : {0.25, 0.75}) {
    for (const double y : {0.25, 0.75}) quarters.insert(unit(Rectangle::Point(x, y)) >> 62);
  }
  EXPECT_EQ(quarters.size(), 4u);
  EXPECT_EQ(unit(Rectangle::Point(-5, -5)), unit(Rectangle::Point(0, 0)));
  EXPECT_EQ(unit(Rectangle::Point(7, 0.5)), unit(Rectangle::Point(1, 0.5)));
  // Without bounds nothing is cut off.
  const catfish::HilbertCurve anywhere(std::nullopt);
  EXPECT_NE(anywhere(Rectangle::Point(-5, -5)), anywhere(Rectangle::Point(-6, -5)));
  EXPECT_NE(anywhere(Rectangle::Point(1e100, 0)), anywhere(Rectangle::Point(1e101, 0)));
  EXPECT_EQ(catfish::HilbertCurve(Rectangle{1, 1, 1, 1})(Rectangle::Point(3, 3)), 0u);  // a world of one point
}

}  // namespace rectangle_test
}  // namespace gannet::index
