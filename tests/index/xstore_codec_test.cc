// The words of keys: their order, of every length next to the borders of the widths, and what they are when they come
// from a peer or from a record.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/xstore/rpc/messages.h"
#include "index/xstore/tree/record_keys.h"
#include "rdma/fabric.h"

namespace gannet::index::xstore {
namespace xstore_codec_test {

constexpr size_t kLengths[] = {0,  1,  6,  7,   8,   22,  23,  24,  38,  39,  40,  62,  63,  64,   65,
                               71, 72, 73, 254, 255, 256, 257, 262, 263, 264, 512, 767, 768, 1023, 1024};

template <int W>
std::vector<std::string> SomeKeys() {
  Random random(static_cast<uint64_t>(W));
  std::vector<std::string> keys;
  for (const size_t length : kLengths) {
    if (length > CapacityOf(W)) continue;
    for (const char filler : {'\0', 'k', '\xff'}) {
      std::string key(length, filler);
      keys.push_back(key);
      if (length == 0) continue;
      for (int i = 0; i < 4; ++i) {
        key[random.Below(length)] = static_cast<char>(random.Below(256));
        keys.push_back(key);
      }
    }
  }
  return keys;
}

template <int W>
void CheckCodecs() {
  SCOPED_TRACE(W);
  const std::vector<std::string> keys = SomeKeys<W>();
  for (const std::string& a : keys) {
    const auto words = EncodeBytes<W>(a);
    OwnedKey back;
    Decode<W>(words, KeyKind::kBytes, &back);
    ASSERT_EQ(back.bytes(), a);
    ASSERT_TRUE(IsKey<W>(words, KeyKind::kBytes));
    ASSERT_LT(words, KeyWords<W>::Highest());
    for (const std::string& b : keys) {
      ASSERT_EQ(words < EncodeBytes<W>(b), a < b) << a.size() << " " << b.size();
      ASSERT_EQ(words == EncodeBytes<W>(b), a == b) << a.size() << " " << b.size();
    }
    // Bounds that are longer than any key.
    for (const char last : {'\0', 'm', '\xff'}) {
      std::string bound = a;
      bound.resize(CapacityOf(W), last);
      bound.push_back(last);
      const auto from = EncodeFrom<W>(Key(bound));
      const auto to = EncodeTo<W>(Key(bound));
      for (const std::string& b : keys) {
        ASSERT_EQ(from <= EncodeBytes<W>(b), bound <= b) << bound.size() << " " << b.size();
        ASSERT_EQ(EncodeBytes<W>(b) <= to, b <= bound) << bound.size() << " " << b.size();
      }
    }
    // WordsOfRecord cuts a record's key if its meta word has a greater length than keys of this width may have.
    const size_t bytes = RecordBytes(kMaxKeyBytes, 8);
    const auto record = std::make_unique<std::byte[]>(bytes + kLineBytes);
    void* at = record.get();
    size_t space = bytes + kLineBytes;
    auto* const aligned = static_cast<std::byte*>(std::align(kLineBytes, bytes, at, space));
    StoreHeader(aligned, {.key_bytes = static_cast<uint16_t>(a.size()), .payload_bytes = 8}, Key(a));
    ASSERT_EQ(WordsOfRecord<W>(aligned), words);
    StoreWord(aligned + rdma::PlaceOf(kMetaDataOffset), RecordMeta{.key_bytes = 4095}.Pack());
    OwnedKey cut;
    Decode<W>(WordsOfRecord<W>(aligned), KeyKind::kBytes, &cut);
    ASSERT_EQ(cut.bytes().size(), CapacityOf(W));
    ASSERT_EQ(cut.bytes().substr(0, a.size()), a);
  }
  // Lengths that no key has.
  for (const uint64_t wrong : {uint64_t{CapacityOf(W)} + 1, uint64_t{255}, uint64_t{1} << 40, ~uint64_t{0}}) {
    KeyWords<W> words = EncodeBytes<W>("");
    const uint64_t length = W < kLeastWordsWithLength ? (wrong & 0xff) : wrong;
    if (length <= CapacityOf(W)) continue;
    words.words[W - 1] = length;
    ASSERT_FALSE(IsKey<W>(words, KeyKind::kBytes)) << wrong;
    OwnedKey any;
    Decode<W>(words, KeyKind::kBytes, &any);
    ASSERT_LE(any.bytes().size(), CapacityOf(W));
  }
  // Bytes behind the end.
  KeyWords<W> words = EncodeBytes<W>("ab");
  words.words[0] |= uint64_t{1} << 40;
  ASSERT_FALSE(IsKey<W>(words, KeyKind::kBytes));
}

TEST(XStoreCodecTest, WordsAreInTheOrderOfTheKeys) {
#define GANNET_CHECK_WIDTH(W) CheckCodecs<W>();
  GANNET_XSTORE_WIDTHS(GANNET_CHECK_WIDTH)
#undef GANNET_CHECK_WIDTH
}

TEST(XStoreCodecTest, AnIndexTakesTheLeastWidthThatIsEnough) {
  const auto width = [](KeyKind kind, size_t most) { return WithWordsOf(kind, most, [&]<int W>() { return W; }); };
  EXPECT_EQ(width(KeyKind::kInteger, 8), 1);
  for (size_t most = 1; most <= kMaxKeyBytes; ++most) {
    const int words = width(KeyKind::kBytes, most);
    EXPECT_EQ(words, most <= 7 ? 1 : most <= 23 ? 3 : most <= 39 ? 5 : most <= 64 ? 9 : most <= 256 ? 33 : 129);
    EXPECT_LE(most, CapacityOf(words));
  }
}

TEST(XStoreCodecTest, AnAnswerToAScanFitsAMessage) {
  const auto bytes = []<int W>() {
    return 8 + 1 + W * kWordBytes + 4 + kMaxScanEntries<W> * (W + 1) * kWordBytes + 4 + (kMaxScanLeaves + 1) * 16;
  };
#define GANNET_CHECK_WIDTH(W) EXPECT_LE(bytes.operator()<W>(), rdma::kMaxMessageBytes) << W;
  GANNET_XSTORE_WIDTHS(GANNET_CHECK_WIDTH)
#undef GANNET_CHECK_WIDTH
  EXPECT_EQ(kMaxScanEntries<9>, 512u);
  EXPECT_GE(kMaxScanEntries<129>, 64u);
}

}  // namespace xstore_codec_test
}  // namespace gannet::index::xstore
