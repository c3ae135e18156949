#include "bench/peers/data.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/random.h"

namespace gannet::bench::peers {
namespace {

constexpr std::array<std::string_view, 28> kOnsets = {"b",  "c",  "d",  "f",  "g",  "h",  "l",  "m",  "n",  "p",
                                                      "r",  "s",  "t",  "v",  "w",  "st", "tr", "pr", "ch", "sh",
                                                      "ph", "th", "cr", "gr", "pl", "br", "sp", ""};
constexpr std::array<std::string_view, 12> kVowels = {"a", "e", "i", "o", "u", "a", "e", "i", "o", "ea", "io", "ou"};
constexpr std::array<std::string_view, 14> kCodas = {"",  "",  "",  "",   "n",  "r",  "l",
                                                     "s", "t", "m", "ck", "nt", "st", "x"};
constexpr std::array<std::string_view, 16> kEndings = {"",   "s",   "ed",  "ing",  "er", "ers",  "ly",   "ness",
                                                       "al", "ism", "ist", "able", "y",  "less", "ship", "ation"};

template <size_t n>
std::string_view Draw(const std::array<std::string_view, n>& parts, Random& random) {
  return parts[random.Below(n)];
}

// Most stems have two syllables.
std::string Stem(Random& random) {
  constexpr std::array<int, 8> kSyllables = {1, 2, 2, 2, 2, 2, 3, 3};
  std::string stem;
  for (int left = kSyllables[random.Below(kSyllables.size())]; left > 0; --left) {
    stem += Draw(kOnsets, random);
    stem += Draw(kVowels, random);
    if (left == 1) stem += Draw(kCodas, random);
  }
  return stem;
}

std::vector<std::string> Words(uint64_t count, Random& random) {
  absl::flat_hash_set<std::string> seen;
  std::vector<std::string> words;
  while (words.size() < count) {
    // A family of words that begin alike.
    const std::string stem = Stem(random);
    for (uint64_t members = 1 + random.Below(6); members > 0 && words.size() < count; --members) {
      std::string word = stem;
      word += Draw(kEndings, random);
      if (word.size() < 2 || word.size() > kMaxWordBytes) continue;
      if (seen.insert(word).second) words.push_back(std::move(word));
    }
  }
  return words;
}

}  // namespace

int64_t NumberOf(std::string_view payload) {
  int64_t number;
  std::memcpy(&number, payload.data(), sizeof number);
  return number;
}

void SetNumber(int64_t number, Payload* payload) {
  std::memcpy(payload->bytes.data(), &number, sizeof number);
}

Data::Data(uint64_t words, uint64_t rows, uint64_t seed) {
  Random random(seed);
  words_ = Words(words, random);
  for (uint64_t i = 0; i < rows; ++i) numbers_.push_back(10 * i + random.Below(10));
  std::shuffle(words_.begin(), words_.end(), random);
  std::shuffle(numbers_.begin(), numbers_.end(), random);
}

Payload Data::payload(Table table, const Key& key, uint64_t version) {
  static constexpr uint64_t kTexts = 32;
  static constexpr std::string_view kText =
      "the quick brown fox jumps over the lazy dog while seventeen gannets dive for the herring of the northern seas, "
      "and none of them waits for another";
  static_assert(kText.size() >= kMaxRowPayloadBytes + kTexts);
  Payload payload;
  payload.size = kWordPayloadBytes;
  if (table == Table::kRows) {
    payload.size = kMinRowPayloadBytes + Mix64(key.number + 1) % (kMaxRowPayloadBytes - kMinRowPayloadBytes + 1);
    std::memcpy(payload.bytes.data(), kText.data() + version % kTexts, payload.size);
  }
  SetNumber(static_cast<int64_t>(Mix64(key.number + (version << 32) + 1) >> 16), &payload);
  return payload;
}

uint64_t Data::bytes(Table table) const {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < size(table); ++i) {
    bytes += payload(table, key(table, i), 0).size + (table == Table::kWords ? words_[i].size() : sizeof(uint64_t));
  }
  return bytes;
}

}  // namespace gannet::bench::peers
