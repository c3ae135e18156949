// Keys from what programs have: strings, numbers, and tuples of them.
#include "index/tuple_key.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/key.h"

namespace gannet::index {
namespace tuple_key_test {

using std::literals::operator""sv;

TEST(KeyTest, ComesFromStringsAndBytes) {
  const std::string text = "gannet";
  EXPECT_EQ(Key(text).bytes(), "gannet");
  EXPECT_EQ(Key("gannet").bytes(), "gannet");
  EXPECT_EQ(Key("a\0b"sv).size(), 3u);
  EXPECT_EQ(Key(std::as_bytes(std::span(text))).bytes(), "gannet");
  EXPECT_EQ(Key(text).bytes().data(), text.data()) << "a key is a view";
}

TEST(KeyTest, ComesFromIntegersOfAnyType) {
  EXPECT_EQ(Key(0).integer(), 0u);
  EXPECT_EQ(Key(short{7}).integer(), 7u);
  EXPECT_EQ(Key(uint8_t{200}).integer(), 200u);
  EXPECT_EQ(Key(UINT64_MAX).integer(), UINT64_MAX);
  EXPECT_EQ(Key(INT64_MAX).integer(), uint64_t{INT64_MAX});
  for (const Key& negative : {Key(-1), Key(INT64_MIN), Key(short{-3})}) {
    EXPECT_EQ(negative.kind(), KeyKind::kNone);
    EXPECT_TRUE(negative.bytes().empty());
    const index::OwnedKey owned(negative);
    index::OwnedKey moved = index::OwnedKey(negative);
    moved = index::OwnedKey(owned);
    for (const Key& view : {owned.view(), moved.view()}) {
      EXPECT_EQ(view.kind(), KeyKind::kNone);
      EXPECT_EQ(view.integer(), negative.integer());
      EXPECT_TRUE(view.bytes().empty());
    }
  }
  EXPECT_EQ(Key(short{-3}).ToString(), "-3");
  EXPECT_EQ(Key(INT64_MIN).ToString(), "-9223372036854775808");
}

TEST(KeyTest, OfSignedNumbersAreInTheirOrder) {
  const std::vector<int64_t> numbers = {INT64_MIN, INT64_MIN + 1, -1000, -1, 0, 1, 1000, INT64_MAX};
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(Key::Signed(numbers[i]).signed_integer(), numbers[i]);
    if (i > 0) {
      EXPECT_LT(Key::Signed(numbers[i - 1]), Key::Signed(numbers[i]));
    }
  }
}

// The encoding is a part of directories.
TEST(TupleKeyTest, HasTheBytesThatTheHeaderSays) {
  const TupleKey key = Key::Tuple("a\0b\x01"sv, 0, 5, 256, -5, -256, true, false, 1.0, -1.0);
  EXPECT_EQ(key.bytes(),
            "\x02"
            "a\x01\x01"
            "b\x01\x02\0"
            "\x14"
            "\x15\x05"
            "\x16\x01\x00"
            "\x13\xfa"
            "\x12\xfe\xff"
            "\x27\x26"
            "\x21\xbf\xf0\0\0\0\0\0\0"
            "\x21\x40\x0f\xff\xff\xff\xff\xff\xff"sv);
}

TEST(TupleKeyTest, GivesItsFieldsBack) {
  const TupleKey key = Key::Tuple(uint16_t{7}, "Zürich", INT64_MIN, UINT64_MAX, -0.0, true);
  uint16_t warehouse = 0;
  std::string city;
  int64_t least = 0;
  uint64_t greatest = 0;
  double zero = 1;
  bool yes = false;
  const Status status = ReadTuple(key.bytes(), &warehouse, &city, &least, &greatest, &zero, &yes);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(warehouse, 7);
  EXPECT_EQ(city, "Zürich");
  EXPECT_EQ(least, INT64_MIN);
  EXPECT_EQ(greatest, UINT64_MAX);
  EXPECT_TRUE(zero == 0 && std::signbit(zero));
  EXPECT_TRUE(yes);
}

TEST(TupleKeyTest, SaysWhatDoesNotFit) {
  const TupleKey key = Key::Tuple(300, "x");
  uint8_t small = 1;
  std::string text = "before";
  bool flag = true;
  int number = 0;
  const auto wrong = [](const Status& status) { return absl::IsInvalidArgument(status); };
  EXPECT_TRUE(wrong(ReadTuple(key.bytes(), &small)));
  EXPECT_EQ(small, 1);
  EXPECT_TRUE(wrong(ReadTuple(key.bytes(), &text)));
  EXPECT_EQ(text, "before");
  EXPECT_TRUE(wrong(ReadTuple(key.bytes(), &flag)));
  EXPECT_TRUE(wrong(ReadTuple(key.bytes(), &number))) << "there is another field";
  EXPECT_TRUE(wrong(ReadTuple(key.bytes(), &number, &text, &flag))) << "there is no third field";
  uint64_t positive = 0;
  EXPECT_TRUE(wrong(ReadTuple(Key::Tuple(-1).bytes(), &positive)));
  int8_t byte = 0;
  EXPECT_TRUE(ReadTuple(Key::Tuple(-128).bytes(), &byte).ok());
  EXPECT_EQ(byte, -128);
  EXPECT_TRUE(wrong(ReadTuple(Key::Tuple(-129).bytes(), &byte)));
}

TEST(TupleKeyTest, TakesNoUnusualFormOfANumber) {
  uint64_t number = 0;
  EXPECT_TRUE(ReadTuple("\x16\x01\x00"sv, &number).ok());
  EXPECT_FALSE(ReadTuple("\x16\x00\x01"sv, &number).ok()) << "1 has one byte";
  EXPECT_FALSE(ReadTuple("\x15\x00"sv, &number).ok()) << "0 has none";
  int64_t negative = 0;
  EXPECT_FALSE(ReadTuple("\x12\xff\xfe"sv, &negative).ok()) << "-1 has one byte";
}

using Fields = std::tuple<int64_t, std::string, uint64_t, std::string>;

std::string DrawText(Random& random) {
  std::string text(random.Below(5), '\0');
  for (char& byte : text) byte = "\0\x01 a\xfe\xff"[random.Below(6)];
  return text;
}
uint64_t DrawNumber(Random& random) {
  return random.OneIn(3) ? random.Below(3) : random() >> random.Below(64);
}
Fields DrawFields(Random& random) {
  return {static_cast<int64_t>(random.OneIn(2) ? DrawNumber(random) : ~DrawNumber(random)), DrawText(random),
          DrawNumber(random), DrawText(random)};
}
TupleKey Encode(const Fields& fields) {
  return std::apply([](const auto&... each) { return Key::Tuple(each...); }, fields);
}

TEST(TupleKeyTest, IsInTheOrderOfItsFields) {
  Random random(17);
  Fields last = DrawFields(random);
  for (int i = 0; i < 100'000; ++i) {
    Fields fields = DrawFields(random);
    if (random.OneIn(2)) std::get<0>(fields) = std::get<0>(last);
    if (random.OneIn(2)) std::get<1>(fields) = std::get<1>(last);
    if (random.OneIn(2)) std::get<2>(fields) = std::get<2>(last);
    const TupleKey a = Encode(last);
    const TupleKey b = Encode(fields);
    ASSERT_EQ(last < fields, a.bytes() < b.bytes()) << Key(a).ToString() << ' ' << Key(b).ToString();
    ASSERT_EQ(last == fields, a == b);
    Fields read;
    const Status status =
        ReadTuple(b.bytes(), &std::get<0>(read), &std::get<1>(read), &std::get<2>(read), &std::get<3>(read));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(read, fields);
    // Fields in front are a prefix, and of no other tuple.
    const TupleKey front = Key::Tuple(std::get<0>(last), std::get<1>(last));
    ASSERT_EQ(b.bytes().starts_with(front.bytes()),
              std::get<0>(last) == std::get<0>(fields) && std::get<1>(last) == std::get<1>(fields));
    last = fields;
  }
}

TEST(TupleKeyTest, DoublesAreInTheirOrder) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const std::vector<double> numbers = {-kInfinite, -1e300, -1.5, -1e-300, -0.0, 0.0, 1e-300, 1.5, 1e300, kInfinite};
  for (size_t i = 1; i < numbers.size(); ++i) EXPECT_LT(Key::Tuple(numbers[i - 1]), Key::Tuple(numbers[i])) << i;
}

// Any bytes give an error or fields, and what was read is encoded as it was.
TEST(TupleKeyTest, ReadsAnyBytes) {
  Random random(23);
  for (int i = 0; i < 200'000; ++i) {
    std::string bytes(random.Below(24), '\0');
    for (char& byte : bytes) {
      byte = random.OneIn(2) ? "\x02\x0c\x13\x14\x15\x1c\x21\x26\x27\0\xff\x01"[random.Below(12)]
                             : static_cast<char>(random.Below(256));
    }
    // The copy lies in memory of exactly this size, so that a read beyond it is found.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    TupleReader reader(std::string_view(exact.data(), exact.size()));
    TupleKey again;
    for (;;) {
      std::string text;
      int64_t integer = 0;
      uint64_t positive = 0;
      double number = 0;
      bool flag = false;
      if (reader.Read(&text).ok()) {
        again.Append(text);
      } else if (reader.Read(&integer).ok()) {
        again.Append(integer);
      } else if (reader.Read(&positive).ok()) {
        again.Append(positive);
      } else if (reader.Read(&number).ok()) {
        again.Append(number);
      } else if (reader.Read(&flag).ok()) {
        again.Append(flag);
      } else {
        break;
      }
    }
    ASSERT_TRUE(std::string_view(bytes).starts_with(again.bytes())) << Key(bytes).ToString();
  }
}

}  // namespace tuple_key_test
}  // namespace gannet::index
