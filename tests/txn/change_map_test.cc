#include "txn/durable/change_map.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace gannet::txn {
namespace {

// Integer keys, because only their hash matters here.
const KeyedHash hash_of_keys({1, 2, 3, 4});

class Keys {
 public:
  // The next key whose hash satisfies `wanted`.
  RedoKeyView Next(const std::function<bool(uint64_t)>& wanted) {
    for (;; ++number_) {
      std::array<char, sizeof number_>& bytes = bytes_.emplace_back();
      std::memcpy(bytes.data(), &number_, sizeof number_);
      const RedoKeyView key(std::string_view(bytes.data(), bytes.size()));
      if (wanted(key.Hash(hash_of_keys))) {
        ++number_;
        return key;
      }
      bytes_.pop_back();
    }
  }

 private:
  uint64_t number_ = 0;
  std::deque<std::array<char, sizeof(uint64_t)>> bytes_;
};

// Fills a map and looks up all keys each time that it has grown.
void ExpectAllFound(size_t count, const std::function<bool(uint64_t)>& wanted) {
  Keys keys;
  ChangeMap map;
  std::vector<RedoKeyView> added;
  while (added.size() < count) {
    const RedoKeyView key = keys.Next(wanted);
    const uint64_t hash = key.Hash(hash_of_keys);
    ASSERT_EQ(map.Find(key, hash), nullptr) << added.size();
    const uint64_t hint = map.hint();
    ChangeMap::Entry* entry = map.FindOrMakeRoom(key, hash);
    const ChangeMap::Entry zeros{};
    ASSERT_EQ(std::memcmp(entry, &zeros, sizeof zeros), 0) << added.size();
    entry->change.version = added.size();
    map.Use(entry, key, hash);
    added.push_back(key);
    if (map.hint() == hint && added.size() != count) continue;
    for (size_t i = 0; i < added.size(); ++i) {
      const ChangeMap::Entry* found = map.Find(added[i], added[i].Hash(hash_of_keys));
      ASSERT_NE(found, nullptr) << i << " of " << added.size();
      ASSERT_EQ(found->change.version, i);
    }
    size_t met = 0;
    map.ForEach([&](const ChangeMap::Entry&) { ++met; });
    ASSERT_EQ(met, added.size());
  }
  EXPECT_EQ(map.size(), count);
}

TEST(ChangeMapTest, FindsAllAfterItGrew) {
  ExpectAllFound(100'000, [](uint64_t) { return true; });
}

// Long runs that wrap around the end of the table, of the old one and of the new one.
TEST(ChangeMapTest, FindsAllThatPassTheEnd) {
  for (const uint64_t bits : {3, 4, 5, 8}) {
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    ExpectAllFound(300, [mask](uint64_t hash) { return (hash & mask) == mask; });
    ExpectAllFound(300, [mask](uint64_t hash) { return (hash & mask) == mask || (hash & mask) == 0; });
    ExpectAllFound(300, [mask](uint64_t hash) { return (hash & mask) >= mask - 1 || (hash & mask) == 1; });
  }
}

}  // namespace
}  // namespace gannet::txn
