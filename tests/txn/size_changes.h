// Transactions in which records of a variable-length table change their size several times, and are removed and
// inserted, checked against a model. One worker at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {

class SizeChanges {
 public:
  // `table` has keys of bytes.
  SizeChanges(uint64_t seed, uint32_t max_payload_bytes) : random_(seed), max_payload_bytes_(max_payload_bytes) {}

  // One transaction of `operations` that commits; checks each change right after it.
  void Change(Session& session, const Table& table, int operations) {
    const Random random = random_;
    std::map<std::string, std::string> model;
    const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) {
      random_ = random;  // an attempt after a conflict does the same
      model = model_;
      for (int i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) ChangeOne(t, table, &model);
      ExpectAll(t, table, model);
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    model_ = std::move(model);
  }

  // Checks what a new transaction finds.
  void Expect(Session& session, const Table& table) {
    const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) {
      ExpectAll(t, table, model_);
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
  }

 private:
  static constexpr uint64_t kKeys = 12;
  using Model = std::map<std::string, std::string>;

  static std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

  std::string NewPayload() {
    const uint64_t most =
        std::min<uint64_t>(max_payload_bytes_, std::vector{10, 60, 600, 5000, 65536}[random_.Below(5)]);
    std::string payload(random_.Below(most + 1), ' ');
    for (char& c : payload) c = static_cast<char>('a' + random_.Below(26));
    return payload;
  }

  void ChangeOne(BlockingTransaction& t, const Table& table, Model* model) {
    const std::string key = "key " + std::to_string(random_.Below(kKeys));
    const auto found = model->find(key);
    if (found == model->end()) {
      const std::string payload = NewPayload();
      const Status inserted = t.Insert(table, Key(key), BytesOf(payload));
      ASSERT_TRUE(inserted.ok()) << inserted;
      (*model)[key] = payload;
    } else if (const uint64_t choice = random_.Below(10); choice == 0) {
      const Status removed = t.Remove(table, Key(key));
      ASSERT_TRUE(removed.ok()) << removed;
      model->erase(found);
    } else if (choice < 6) {
      found->second = NewPayload();
      const Status updated = t.Update(table, Key(key), BytesOf(found->second));
      ASSERT_TRUE(updated.ok()) << updated;
    } else {
      ChangePart(t, table, found->first, &found->second);
    }
    if (model->contains(key)) ExpectPart(t, table, key, model->at(key));
  }

  void ChangePart(BlockingTransaction& t, const Table& table, const std::string& key, std::string* payload) {
    GetRequest request{.table = &table, .key = Key(key), .out = {}, .offset = 0, .for_update = true};
    ASSERT_TRUE(t.GetMany({&request, 1}).ok());
    ASSERT_TRUE(request.status.ok()) << request.status;
    ASSERT_EQ(request.payload_bytes, payload->size());
    for (uint64_t i = random_.Below(40); i != UINT64_MAX; --i) {
      const auto offset = static_cast<uint32_t>(random_.Below(payload->size() + 1));
      const std::string part(random_.Below(payload->size() - offset + 1), static_cast<char>('A' + random_.Below(26)));
      ASSERT_TRUE(t.transaction().Update(request.handle, BytesOf(part), offset).ok());
      payload->replace(offset, part.size(), part);
    }
  }

  void ExpectPart(BlockingTransaction& t, const Table& table, const std::string& key, const std::string& payload) {
    const auto offset = static_cast<uint32_t>(random_.Below(payload.size() + 1));
    std::string part(random_.Below(payload.size() - offset + 1), ' ');
    const Status got = t.Get(table, Key(key), std::as_writable_bytes(std::span(part)), offset);
    ASSERT_TRUE(got.ok()) << got;
    ASSERT_EQ(part, payload.substr(offset, part.size())) << key << " from " << offset;
  }

  void ExpectAll(BlockingTransaction& t, const Table& table, const Model& model) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = "key " + std::to_string(i);
      const auto found = model.find(key);
      std::string got(found == model.end() ? 0 : found->second.size(), ' ');
      GetRequest request{.table = &table, .key = Key(key), .out = std::as_writable_bytes(std::span(got))};
      const Status status = t.GetMany({&request, 1});
      ASSERT_TRUE(status.ok()) << status;
      if (found == model.end()) {
        ASSERT_TRUE(absl::IsNotFound(request.status)) << key << ": " << request.status;
        continue;
      }
      ASSERT_TRUE(request.status.ok()) << key << ": " << request.status;
      ASSERT_EQ(request.payload_bytes, got.size()) << key;
      ASSERT_EQ(got, found->second) << key;
    }
    if (table.options().index == IndexKind::kXStore) ExpectScan(t, table, model);
  }

  void ExpectScan(BlockingTransaction& t, const Table& table, const Model& model) {
    ScanRows rows;
    const Status scanned = t.Scan(table, {.from = Key(""), .to = Key("~")}, &rows);
    ASSERT_TRUE(scanned.ok()) << scanned;
    ASSERT_EQ(rows.size(), model.size());
    size_t i = 0;
    for (const auto& [key, payload] : model) {
      ASSERT_EQ(rows.key(i).bytes(), key);
      const std::span<const std::byte> bytes = rows.payload(i++);
      ASSERT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), payload) << key;
    }
  }

  Random random_;
  const uint32_t max_payload_bytes_;
  Model model_;
};

}  // namespace gannet::txn
