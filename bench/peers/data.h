// The rows that every engine gets: a list of words with a number each, and a table of accounts. The same for the same
// seed on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gannet::bench::peers {

enum class Table : uint8_t { kWords, kRows };
inline constexpr std::array kTables = {Table::kWords, Table::kRows};

inline constexpr size_t kMaxWordBytes = 24;
inline constexpr size_t kWordPayloadBytes = 8;
inline constexpr size_t kMinRowPayloadBytes = 64;
inline constexpr size_t kMaxRowPayloadBytes = 100;

// The key of a word is its bytes, that of an account its number.
struct Key {
  std::string_view bytes = {};
  uint64_t number = 0;  // of a word from Data: its place in the list
};

// A payload in place. Its first 8 bytes are a number: of an account, its balance.
struct Payload {
  std::array<char, kMaxRowPayloadBytes> bytes;
  size_t size = 0;

  std::string_view view() const { return {bytes.data(), size}; }
};

int64_t NumberOf(std::string_view payload);
void SetNumber(int64_t number, Payload* payload);

class Data {
 public:
  // Words of `words` different texts, whose lengths are those of an English word list (2 to 24 bytes, 9 on average),
  // and which begin alike as often; `rows` accounts with payloads of 64 to 100 bytes. Both in an order drawn from
  // `seed`, in which they are loaded.
  Data(uint64_t words, uint64_t rows, uint64_t seed);

  uint64_t size(Table table) const { return table == Table::kWords ? words_.size() : numbers_.size(); }
  Key key(Table table, uint64_t i) const {
    return table == Table::kWords ? Key{.bytes = words_[i], .number = i} : Key{.number = numbers_[i]};
  }
  // The payload of the row of a key from key(), after the change `version`; 0: as loaded. Payloads of one row have one
  // size.
  static Payload payload(Table table, const Key& key, uint64_t version);
  // Bytes of all keys and payloads.
  uint64_t bytes(Table table) const;

 private:
  std::vector<std::string> words_;
  std::vector<uint64_t> numbers_;
};

// What was read, in the order in which it was read. Engines that return the same rows have the same value.
class Digest {
 public:
  void AddRow(const Key& key, std::string_view payload) {
    Add(key.bytes.empty() ? key.number : key.bytes.size() + static_cast<unsigned char>(key.bytes.back()));
    AddPayload(payload);
  }
  void AddPayload(std::string_view payload) {
    const auto number = static_cast<uint64_t>(NumberOf(payload));
    sum_ += number;
    Add(number + payload.size() + static_cast<unsigned char>(payload.back()));
  }
  void Add(uint64_t word) { value_ = (value_ ^ word) * 0x9e3779b97f4a7c15ull + (value_ >> 29); }
  uint64_t value() const { return value_; }
  // Sum of the payloads' numbers, modulo 2^64.
  uint64_t sum() const { return sum_; }

 private:
  uint64_t value_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace gannet::bench::peers
