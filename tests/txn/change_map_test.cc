#include "txn/durable/change_map.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "gtest/gtest.h"

namespace gannet::txn {
namespace change_map_test {

// Integer keys, because only their hash matters here.
const KeyedHash hash_of_keys({1, 2, 3, 4});

class Keys {
 public:
  // The next key whose hash satisfies `wanted`.
  HashedKey Next(const std::function<bool(uint64_t)>& wanted) {
    for (;;) {
      const HashedKey key(index::Key(number_++), hash_of_keys);
      if (wanted(key.hash)) return key;
    }
  }

 private:
  uint64_t number_ = 0;
};

// Fills a map and looks up all keys each time that it has grown.
void ExpectAllFound(size_t count, const std::function<bool(uint64_t)>& wanted) {
  Keys keys;
  ChangeMap map(index::KeyKind::kInteger, &hash_of_keys);
  std::vector<HashedKey> added;
  while (added.size() < count) {
    const HashedKey key = keys.Next(wanted);
    ASSERT_EQ(map.Find(key), nullptr) << added.size();
    const uint64_t hint = map.hint();
    ChangeMap::Entry* entry = map.FindOrMakeRoom(key);
    const ChangeMap::Entry zeros{};
    ASSERT_EQ(std::memcmp(entry, &zeros, sizeof zeros), 0) << added.size();
    map.Use(entry, key);
    entry->version = added.size();
    entry->Set(nullptr, added.size() % 2 == 0);
    added.push_back(key);
    if (map.hint() == hint && added.size() != count) continue;
    for (size_t i = 0; i < added.size(); ++i) {
      const ChangeMap::Entry* found = map.Find(added[i]);
      ASSERT_NE(found, nullptr) << i << " of " << added.size();
      ASSERT_EQ(found->version, i);
      ASSERT_EQ(found->removed(), i % 2 == 0);
      ASSERT_EQ(map.Guess(added[i].number, added[i].hash), found);
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

}  // namespace change_map_test
}  // namespace gannet::txn
