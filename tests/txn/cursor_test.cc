// Cursors and ranges of keys as a program uses them. tests/model has the random programs.
#include "txn/run/cursor.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/tuple_key.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace cursor_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kMany = 20'000;

std::vector<TableOptions> Tables() {
  return {{.name = "words",
           .key_kind = index::KeyKind::kBytes,
           .max_key_bytes = 16,
           .index = IndexKind::kXStore,
           .payload_bytes = 64,
           .variable_length = true},
          {.name = "numbers",
           .index = IndexKind::kXStore,
           .payload_bytes = sizeof(uint64_t),
           .expected_rows = kMany,
           .placement = Placement::ByHash()},
          {.name = "hashed", .payload_bytes = sizeof(uint64_t)}};
}

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class CursorTest : public testing::TestWithParam<int> {
 protected:
  CursorTest() : cluster_({.nodes = GetParam()}, Tables()) {
    const Status filled = Run([&](BlockingTransaction& t) -> Status {
      for (const char* word : {"gander", "gannet", "gannets", "gap", "gull", "tern"}) {
        GANNET_RETURN_IF_ERROR(t.Insert(words(), word, Bytes(word)));
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(filled.ok()) << filled;
  }

  // The test runs at the last node; with several nodes, the rows of "words" are another node's.
  Status Run(const std::function<Status(BlockingTransaction&)>& body) { return database().Run(body); }
  Database& database() { return *cluster_.databases.back(); }
  const Table& words() { return *database().FindTable("words"); }
  const Table& numbers() { return *database().FindTable("numbers"); }

  std::vector<std::string> Found(const KeyRange& range) {
    std::vector<std::string> found;
    const Status status = Run([&](BlockingTransaction& t) {
      found.clear();
      for (const Cursor& word : t.Rows(words(), range)) {
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(word.payload().data()), word.payload().size()),
                  word.key().bytes());
        found.emplace_back(word.key().bytes());
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return found;
  }

  Cluster cluster_;
};

TEST_P(CursorTest, ARangeIsALoop) {
  EXPECT_THAT(Found(KeyRange::All()), ElementsAre("gander", "gannet", "gannets", "gap", "gull", "tern"));
  EXPECT_THAT(Found(KeyRange::Prefix("gann")), ElementsAre("gannet", "gannets"));
  EXPECT_THAT(Found(KeyRange::Prefix("")), ElementsAre("gander", "gannet", "gannets", "gap", "gull", "tern"));
  EXPECT_THAT(Found(KeyRange::Prefix("x")), IsEmpty());
  EXPECT_THAT(Found(KeyRange::HalfOpen("gannet", "gull")), ElementsAre("gannet", "gannets", "gap"));
  EXPECT_THAT(Found(KeyRange::Closed("gannet", "gull")), ElementsAre("gannet", "gannets", "gap", "gull"));
  EXPECT_THAT(Found(KeyRange::From("gap")), ElementsAre("gap", "gull", "tern"));
  EXPECT_THAT(Found(KeyRange::Above("gap")), ElementsAre("gull", "tern"));
  EXPECT_THAT(Found(KeyRange::UpTo("gannet")), ElementsAre("gander", "gannet"));
  EXPECT_THAT(Found(KeyRange::Below("gannet")), ElementsAre("gander"));
  EXPECT_THAT(Found(KeyRange::HalfOpen("gull", "gannet")), IsEmpty());
}

TEST(KeyRangeTest, ThePrefixOfTheLastKeysHasNoEnd) {
  const KeyRange range = KeyRange::Prefix("\xff\xff");
  EXPECT_FALSE(range.to.has_value());
  const KeyRange one = KeyRange::Prefix("a\xff");
  ASSERT_TRUE(one.to.has_value());
  EXPECT_EQ(one.to->key.bytes(), "b");
  EXPECT_FALSE(one.to->included);
}

TEST_P(CursorTest, GoesToAndFro) {
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    BlockingCursor cursor = t.OpenCursor(words(), {.range = KeyRange::Prefix("g")});
    GANNET_RETURN_IF_ERROR(cursor.Last());
    EXPECT_EQ(cursor.key().bytes(), "gull");
    GANNET_RETURN_IF_ERROR(cursor.Next());
    EXPECT_FALSE(cursor.valid()) << "the range ends there";
    EXPECT_TRUE(absl::IsFailedPrecondition(cursor.Next()));
    GANNET_RETURN_IF_ERROR(cursor.SeekForward("gannetry"));
    EXPECT_EQ(cursor.key().bytes(), "gannets");
    GANNET_RETURN_IF_ERROR(cursor.Previous());
    EXPECT_EQ(cursor.key().bytes(), "gannet");
    GANNET_RETURN_IF_ERROR(cursor.SeekBackward("gannetry"));
    EXPECT_EQ(cursor.key().bytes(), "gannet");
    GANNET_RETURN_IF_ERROR(cursor.SeekBackward("a"));
    EXPECT_FALSE(cursor.valid());
    GANNET_RETURN_IF_ERROR(cursor.SeekForward("a"));
    EXPECT_EQ(cursor.key().bytes(), "gander");
    GANNET_RETURN_IF_ERROR(cursor.Previous());
    EXPECT_FALSE(cursor.valid());
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(CursorTest, RemovesAndInsertsAroundItself) {
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    BlockingCursor cursor = t.OpenCursor(words(), {.for_update = true});
    for (Status s = cursor.First(); cursor.valid(); s = cursor.Next()) {
      GANNET_RETURN_IF_ERROR(s);
      if (cursor.key().bytes().starts_with("ga")) GANNET_RETURN_IF_ERROR(t.Remove(cursor.handle()));
      if (cursor.key().bytes() == "gull") {
        GANNET_RETURN_IF_ERROR(t.Insert(words(), "kite", Bytes("kite")));
      }
    }
    return cursor.status();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(Found(KeyRange::All()), ElementsAre("gull", "kite", "tern"));
}

// The batches of a long table, from several nodes, one after the other in both directions.
TEST_P(CursorTest, GoesThroughALongTable) {
  for (uint64_t from = 0; from < kMany; from += 1000) {
    const Status filled = Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t key = from; key < from + 1000; ++key) GANNET_RETURN_IF_ERROR(t.Insert(numbers(), 3 * key, key));
      return absl::OkStatus();
    });
    ASSERT_TRUE(filled.ok()) << filled;
  }
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    BlockingCursor cursor = t.OpenCursor(numbers());
    uint64_t next = 0;
    for (Status s = cursor.First(); cursor.valid(); s = cursor.Next(), ++next) {
      GANNET_RETURN_IF_ERROR(s);
      if (cursor.key().integer() != 3 * next || cursor.As<uint64_t>() != next) {
        return absl::DataLossError("another row comes");
      }
    }
    EXPECT_EQ(next, kMany);
    GANNET_RETURN_IF_ERROR(cursor.Last());
    while (cursor.valid()) {
      if (cursor.key().integer() != 3 * --next) return absl::DataLossError("another row comes on the way back");
      GANNET_RETURN_IF_ERROR(cursor.Previous());
    }
    EXPECT_EQ(next, 0u);
    return cursor.status();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(CursorTest, AnotherTransactionsRowInFrontOfItIsAConflict) {
  Session& session = cluster_.NewSession(GetParam() - 1);
  Step reader(session);
  {
    BlockingCursor cursor = reader->OpenCursor(words());
    ASSERT_TRUE(cursor.First().ok());
    const Status inserted = Run([&](BlockingTransaction& t) { return t.Insert(words(), "auk", Bytes("auk")); });
    ASSERT_TRUE(inserted.ok()) << inserted;
  }
  ASSERT_TRUE(reader->Upsert(words(), "tern", Bytes("tern")).ok());
  EXPECT_TRUE(absl::IsAborted(reader.Commit()));
}

TEST_P(CursorTest, SaysWhatDoesNotFit) {
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    BlockingCursor hashed = t.OpenCursor(*database().FindTable("hashed"));
    const Status unordered = hashed.First();
    EXPECT_TRUE(absl::IsFailedPrecondition(unordered)) << unordered;
    EXPECT_THAT(std::string(unordered.message()), HasSubstr("hashed"));
    BlockingCursor of_numbers = t.OpenCursor(words(), {.range = KeyRange::Closed(1, 2)});
    EXPECT_TRUE(absl::IsInvalidArgument(of_numbers.First()));
    EXPECT_TRUE(absl::IsInvalidArgument(of_numbers.SeekForward("a")));
    EXPECT_TRUE(absl::IsInvalidArgument(of_numbers.SeekBackward(Key(uint64_t{1}))));
    EXPECT_FALSE(of_numbers.valid());
    const std::string long_key(1000, 'x');
    BlockingCursor cursor = t.OpenCursor(words());
    EXPECT_TRUE(absl::IsInvalidArgument(cursor.SeekForward(long_key)));
    EXPECT_TRUE(absl::IsInvalidArgument(cursor.SeekBackward(long_key)));
    EXPECT_TRUE(absl::IsInvalidArgument(t.OpenCursor(words(), {.range = KeyRange::Prefix(long_key)}).First()));
    EXPECT_TRUE(absl::IsInvalidArgument(t.OpenCursor(words(), {.range = KeyRange::Below(long_key)}).Last()));
    for ([[maybe_unused]] const Cursor& row : t.Rows(words(), KeyRange::From(7))) ADD_FAILURE() << "there is no row";
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(CursorTest, FindsTheTuplesThatBeginWithCertainFields) {
  const Status filled = Run([&](BlockingTransaction& t) -> Status {
    for (int warehouse = 1; warehouse <= 3; ++warehouse) {
      for (int district = 1; district <= 300; district += 100) {
        GANNET_RETURN_IF_ERROR(t.Upsert(words(), Key::Tuple(warehouse, district), Bytes("row")));
      }
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(filled.ok()) << filled;
  std::vector<int> districts;
  const Status status = Run([&](BlockingTransaction& t) -> Status {
    districts.clear();
    for (const Cursor& row : t.Rows(words(), KeyRange::Prefix(Key::Tuple(2).bytes()))) {
      int warehouse = 0;
      GANNET_RETURN_IF_ERROR(index::ReadTuple(row.key().bytes(), &warehouse, &districts.emplace_back()));
      EXPECT_EQ(warehouse, 2);
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(districts, ElementsAre(1, 101, 201));
}

TEST_P(CursorTest, ANegativeNumberIsNoKey) {
  const Status status = Run([&](BlockingTransaction& t) {
    uint64_t value = 0;
    EXPECT_TRUE(absl::IsInvalidArgument(t.Get(words(), -1, &value)));
    EXPECT_TRUE(absl::IsInvalidArgument(t.OpenCursor(words(), {.range = KeyRange::From(-1)}).First()));
    EXPECT_TRUE(absl::IsInvalidArgument(t.OpenCursor(words()).SeekForward(-1)));
    EXPECT_TRUE(absl::IsInvalidArgument(t.Insert(numbers(), -1, value)));
    EXPECT_TRUE(absl::IsInvalidArgument(t.Remove(numbers(), -1)));
    EXPECT_TRUE(absl::IsInvalidArgument(t.Exists(numbers(), -1).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(t.OpenCursor(numbers(), {.range = KeyRange::From(-1)}).First()));
    ScanRows rows;
    EXPECT_TRUE(absl::IsInvalidArgument(t.Scan(numbers(), {.from = -5, .to = 7}, &rows)));
    const Status got = t.Get(numbers(), -1, &value);
    EXPECT_THAT(std::string(got.message()), HasSubstr("Key::Signed"));
    GANNET_RETURN_IF_ERROR(t.Insert(numbers(), Key::Signed(-1), value));
    return t.Get(numbers(), Key::Signed(-1), &value);
  });
  EXPECT_TRUE(status.ok()) << status;
}

INSTANTIATE_TEST_SUITE_P(, CursorTest, testing::Values(1, 3),
                         [](const auto& each) { return "Nodes" + std::to_string(each.param); });

}  // namespace cursor_test
}  // namespace gannet::txn
