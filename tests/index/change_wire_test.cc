// Changes in messages: they come back as they were, and no message makes the decoder take more than there is.
#include "index/change_wire.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet::index {
namespace change_wire_test {

// A change of `words` words, every third of them created.
Change ChangeOf(size_t words) {
  Change change;
  for (size_t i = 0; i < words; ++i) {
    const rdma::GlobalAddress word(1, 64 * (i + 1));
    if (i % 3 == 2) {
      change.AddCreated({word, 10 + i});
    } else {
      change.AddChanged(word, 100 + i, 200 + i);
    }
  }
  return change;
}

TEST(ChangeWireTest, ChangesComeBackAsTheyWere) {
  for (const size_t words : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{40}, kMostWordsInMessage}) {
    std::array<std::byte, ChangeBytes(kMostWordsInMessage)> buffer;
    rdma::WireWriter writer(buffer);
    const Change change = ChangeOf(words);
    PutChange(writer, change);
    ASSERT_TRUE(writer.ok());
    EXPECT_EQ(writer.size(), ChangeBytes(words));
    rdma::WireReader reader(writer.written());
    Change read = ChangeOf(1);  // is overwritten
    ASSERT_TRUE(GetChange(reader, &read));
    EXPECT_TRUE(reader.Finish().ok());
    ASSERT_EQ(read.words().size(), words);
    for (size_t i = 0; i < words; ++i) {
      EXPECT_EQ(read.words()[i].word, change.words()[i].word);
      EXPECT_EQ(read.words()[i].before, change.words()[i].before);
      EXPECT_EQ(read.words()[i].after, change.words()[i].after);
      EXPECT_EQ(read.words()[i].created(), i % 3 == 2);
    }
    // No prefix of the message is a change.
    for (size_t bytes = 0; bytes < writer.size(); bytes += words < 100 ? 1 : 7) {
      rdma::WireReader cut(writer.written().first(bytes));
      EXPECT_FALSE(GetChange(cut, &read)) << bytes << " bytes of " << words << " words";
    }
  }
}

// All or nothing: to list some words only would be wrong (index.h).
TEST(ChangeWireTest, ChangesThatDoNotFitListNothing) {
  const auto words_of = [](const Change& change, size_t room, size_t reserve) {
    std::array<std::byte, 2 * ChangeBytes(kMostWordsInMessage)> buffer;
    const std::span<std::byte> message = std::span<std::byte>(buffer).first(room);
    rdma::WireWriter writer(message);
    PutChange(writer, change, reserve);
    EXPECT_TRUE(writer.ok());
    rdma::WireReader reader(writer.written());
    Change read;
    EXPECT_TRUE(GetChange(reader, &read));
    return read.words().size();
  };
  constexpr size_t kEnough = ChangeBytes(kMostWordsInMessage + 1);
  EXPECT_EQ(words_of(ChangeOf(kMostWordsInMessage), kEnough, 0), kMostWordsInMessage);
  EXPECT_EQ(words_of(ChangeOf(kMostWordsInMessage + 1), kEnough, 0), 0u);
  EXPECT_EQ(words_of(ChangeOf(3), ChangeBytes(3), 0), 3u);
  EXPECT_EQ(words_of(ChangeOf(3), ChangeBytes(3) - 1, 0), 0u);
  EXPECT_EQ(words_of(ChangeOf(3), ChangeBytes(3) + 40, 40), 3u);
  EXPECT_EQ(words_of(ChangeOf(3), ChangeBytes(3) + 40, 41), 0u);
}

TEST(ChangeWireTest, HostileMessagesAreErrors) {
  std::vector<std::byte> buffer(2 * ChangeBytes(UINT16_MAX), std::byte{1});
  Change change;
  const auto is_change_of = [&](size_t words) {
    rdma::WireWriter(std::span(buffer)).PutU16(static_cast<uint16_t>(words));
    rdma::WireReader reader(buffer);
    return GetChange(reader, &change);
  };
  EXPECT_TRUE(is_change_of(kMostWordsInMessage));
  EXPECT_FALSE(is_change_of(kMostWordsInMessage + 1));
  EXPECT_FALSE(is_change_of(UINT16_MAX));
  // A null address.
  rdma::WireWriter writer(buffer);
  writer.PutU16(1);
  writer.PutAddress({});
  writer.PutU64(1);
  writer.PutU64(2);
  rdma::WireReader null(writer.written());
  EXPECT_FALSE(GetChange(null, &change));

  Random random(5);
  for (int i = 0; i < 10000; ++i) {
    for (std::byte& byte : std::span(buffer).first(512)) byte = static_cast<std::byte>(random());
    rdma::WireReader reader(std::span<const std::byte>(buffer).first(random.Below(512)));
    const bool is_change = GetChange(reader, &change);
    EXPECT_TRUE(!is_change || change.words().size() <= kMostWordsInMessage);
  }
}

}  // namespace change_wire_test
}  // namespace gannet::index
