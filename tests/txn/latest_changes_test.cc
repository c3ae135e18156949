#include "txn/durable/latest_changes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "gtest/gtest.h"

namespace gannet::txn {
namespace {

struct TestChange {
  uint64_t epoch;
  uint64_t version;
  uint16_t table;
  bool removed;
  std::string key;
  std::string payload;
};

// The fields that decide which change is the newest, and a payload that encodes them.
struct Newest {
  std::pair<uint64_t, uint64_t> order;
  bool removed;
  std::string payload;
  friend bool operator==(const Newest&, const Newest&) = default;
};
using Model = std::map<std::pair<uint16_t, std::string>, Newest>;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

log::ChangeView ViewOf(const TestChange& change) {
  log::ChangeView view;
  view.kind = change.removed ? log::ChangeKind::kRemove : log::ChangeKind::kPut;
  view.table = change.table;
  view.version = change.version;
  view.payload = Bytes(change.payload);
  view.long_key = Bytes(change.key);
  return view;
}

// Keys of 0 to 40 bytes: many have the same first eight bytes, some differ only by zeros at the end.
std::string KeyOf(uint64_t number) {
  std::string key(number % 41, '\0');
  if (!key.empty()) key.back() = static_cast<char>(number % 251);
  if (key.size() > 4) key[number % 4] = static_cast<char>(number / 251 % 256);
  return key;
}

void AddToModel(const TestChange& change, Model* model) {
  const Newest newest{{change.epoch, change.version}, change.removed, change.payload};
  const auto [at, added] = model->try_emplace({change.table, change.key}, newest);
  if (!added && at->second.order < newest.order) at->second = newest;
}

// Changes as a log may hold them: no two changes of a key have the same epoch and version.
std::vector<TestChange> RandomChanges(uint64_t seed, size_t n) {
  std::mt19937_64 random(seed);
  std::vector<TestChange> changes(n);
  for (size_t i = 0; i < n; ++i) {
    TestChange& change = changes[i];
    change.epoch = random() % 7;
    change.version = i;
    change.table =
        static_cast<uint16_t>(random() % 8 == 0 ? 300 + random() % 2 : random() % 18);  // more than there are hints
    change.removed = random() % 5 == 0;
    change.key = KeyOf(random() % 3000);
    if (!change.removed)
      change.payload = std::string(random() % 200, static_cast<char>('a' + i % 26)) + std::to_string(i);
  }
  return changes;
}

// Adds them as transactions of 1 to 70 changes; all changes of one transaction have its epoch.
void AddAll(const std::vector<TestChange>& changes, uint64_t seed, LatestChanges* to) {
  std::mt19937_64 random(seed);
  for (uint64_t epoch = 0; epoch < 7; ++epoch) {
    std::vector<log::ChangeView> transaction;
    for (const TestChange& change : changes) {
      if (change.epoch != epoch) continue;
      transaction.push_back(ViewOf(change));
      if (random() % 70 > transaction.size()) continue;
      to->Add(epoch, transaction);
      transaction.clear();
    }
    to->Add(epoch, transaction);
  }
}

void ExpectIs(const LatestChanges& changes, const Model& model) {
  std::map<uint16_t, std::vector<std::string>> keys;
  for (const auto& [place, newest] : model) {
    keys[place.first].push_back(place.second);
    const LatestChange* found = changes.Find(place.first, place.second);
    ASSERT_NE(found, nullptr) << "table " << place.first;
    EXPECT_EQ((Newest{{found->epoch, found->version}, found->removed != 0, std::string(found->bytes())}), newest);
  }
  for (uint16_t table = 0; table < 400; ++table) {
    std::vector<std::string> whole;
    for (const LatestChanges::Change& change : changes.Sorted(table, 0, LatestChanges::kParts)) {
      whole.emplace_back(change.first.bytes());
      EXPECT_EQ(change.second, changes.Find(table, whole.back()));
    }
    EXPECT_EQ(whole, keys[table]) << "table " << table;  // std::map sorts bytes as recovery must
    std::vector<std::string> by_parts;
    for (size_t part = 0; part < LatestChanges::kParts; ++part) {
      for (const LatestChanges::Change& change : changes.Sorted(table, part, part + 1))
        by_parts.emplace_back(change.first.bytes());
    }
    std::ranges::sort(by_parts);
    EXPECT_EQ(by_parts, keys[table]);
  }
}

TEST(LatestChangesTest, KeepTheNewestOfEachKey) {
  const std::vector<TestChange> changes = RandomChanges(1, 20'000);
  Model model;
  for (const TestChange& change : changes) AddToModel(change, &model);
  LatestChanges latest;
  AddAll(changes, 1, &latest);
  ExpectIs(latest, model);
  EXPECT_EQ(latest.Find(0, "no such key"), nullptr);
  EXPECT_EQ(latest.Find(400, ""), nullptr);
}

TEST(LatestChangesTest, AreFilledByThreadsAtOnce) {
  constexpr size_t kThreads = 4;
  const std::vector<TestChange> changes = RandomChanges(2, 20'000);
  Model model;
  for (const TestChange& change : changes) AddToModel(change, &model);
  LatestChanges latest;
  std::vector<std::vector<TestChange>> shares(kThreads);
  for (size_t i = 0; i < changes.size(); ++i) shares[i % kThreads].push_back(changes[i]);
  std::vector<Thread> threads;
  for (size_t i = 0; i < kThreads; ++i) threads.emplace_back("adder", [&, i] { AddAll(shares[i], i, &latest); });
  for (Thread& thread : threads) thread.join();
  ExpectIs(latest, model);
}

}  // namespace
}  // namespace gannet::txn
