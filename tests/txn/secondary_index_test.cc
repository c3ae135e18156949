// Secondary indexes: what they hold, how transactions keep them and read by them, and how they are made.
#include "txn/store/secondary_index.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/manifest/manifest.h"
#include "tests/index/kinds.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/secondary_helpers.h"
#include "txn/bulk_loader.h"
#include "txn/run/manual_transaction.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace secondary_index_test {

using index::Key;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SecondaryIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    database_ = Database::OpenInMemory({.memory_bytes = uint64_t{512} << 20}).value();
    people_ = database_->CreateTable(People()).value();
    by_city_ = database_->CreateIndex(ByCity()).value();
    by_mail_ = database_->CreateIndex(ByMail()).value();
    const Status started = database_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }

  Status Run(const std::function<Status(BlockingTransaction&)>& body) { return database_->Run(body); }
  Status Insert(uint64_t key, const std::string& mail, uint32_t city, int16_t height = 0) {
    return Run([&](auto& t) { return t.Insert(*people_, key, MakePerson(mail, city, height)); });
  }
  std::vector<uint64_t> Keys(BlockingTransaction& t, const KeyRange& range = KeyRange::All(), bool reverse = false) {
    std::vector<uint64_t> keys;
    BlockingIndexCursor cursor = t.OpenCursor(*by_city_, {.range = range});
    Status status = reverse ? cursor.Last() : cursor.First();
    for (; status.ok() && cursor.valid(); status = reverse ? cursor.Previous() : cursor.Next()) {
      keys.push_back(cursor.key().integer());
    }
    EXPECT_TRUE(status.ok()) << status;
    return keys;
  }
  std::vector<uint64_t> Keys(const KeyRange& range = KeyRange::All(), bool reverse = false) {
    std::vector<uint64_t> keys;
    const Status status = Run([&](auto& t) {
      keys = Keys(t, range, reverse);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return keys;
  }

  std::unique_ptr<Database> database_;
  const Table* people_ = nullptr;
  const SecondaryIndex* by_city_ = nullptr;
  const SecondaryIndex* by_mail_ = nullptr;
};

TEST_F(SecondaryIndexTest, FindsRows) {
  ASSERT_TRUE(Insert(1, "ann", 7, 170).ok());
  ASSERT_TRUE(Insert(2, "bob", 7, -5).ok());
  ASSERT_TRUE(Insert(3, "cy", 3, 180).ok());
  ASSERT_TRUE(Insert(4, "dee", 300, 0).ok());
  EXPECT_THAT(Keys(), ElementsAre(3, 2, 1, 4));
  EXPECT_THAT(Keys(KeyRange::All(), /*reverse=*/true), ElementsAre(4, 1, 2, 3));
  EXPECT_THAT(Keys(KeyRange::Closed(7, 7)), ElementsAre(2, 1));
  EXPECT_THAT(Keys(KeyRange::Prefix(Key::Tuple(7).bytes())), ElementsAre(2, 1));
  EXPECT_THAT(Keys(KeyRange::Prefix(Key::Tuple(255).bytes())), IsEmpty());
  EXPECT_THAT(Keys(KeyRange::Closed(Key::Tuple(7, 0), Key::Tuple(7, 170))), ElementsAre(1));
  EXPECT_THAT(Keys(KeyRange::HalfOpen(Key::Tuple(7, -5), Key::Tuple(7, 170))), ElementsAre(2));
  EXPECT_THAT(Keys(KeyRange::Above(7)), ElementsAre(4));
  EXPECT_THAT(Keys(KeyRange::Below(7)), ElementsAre(3));
  EXPECT_THAT(Keys(KeyRange::From(7), true), ElementsAre(4, 1, 2));
  EXPECT_THAT(Keys(KeyRange::UpTo(7)), ElementsAre(3, 2, 1));
  const Status status = Run([&](auto& t) -> Status {
    const StatusOr<RowBy> row = t.GetBy(*by_mail_, Key::Tuple("bob"));
    GANNET_RETURN_IF_ERROR(row.status());
    EXPECT_EQ(row->key.integer(), 2u);
    EXPECT_EQ(row->template As<Person>().height, -5);
    const Status missing = t.GetBy(*by_mail_, Key::Tuple("eve")).status();
    EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
    EXPECT_EQ(Message(missing), "index 'by_mail' of table 'people', key (\"eve\")");
    for (const Status& wrong :
         {t.GetBy(*by_mail_, "bob").status(), t.GetBy(*by_mail_, 7).status(),
          t.GetBy(*by_mail_, Key::Tuple("bob", 1)).status(), t.GetBy(*by_mail_, "").status(),
          t.GetBy(*by_mail_, -1).status(), t.RowsBy(*by_city_, KeyRange::From("")).First(),
          t.RowsBy(*by_city_, KeyRange::From("x")).First(), t.RowsBy(*by_city_).SeekForward(Key::Tuple(1, 2, 3))}) {
      EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
      EXPECT_THAT(Message(wrong), HasSubstr("index 'by_"));
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(t.GetBy(*by_city_, 7).status()));
    BlockingIndexCursor cursor = t.RowsBy(*by_city_);
    GANNET_RETURN_IF_ERROR(cursor.SeekForward(Key::Tuple(7, 0)));
    EXPECT_EQ(cursor.key().integer(), 1u);
    GANNET_RETURN_IF_ERROR(cursor.SeekBackward(7));
    EXPECT_EQ(cursor.key().integer(), 1u);
    GANNET_RETURN_IF_ERROR(cursor.SeekBackward(Key::Tuple(7, 169)));
    EXPECT_EQ(cursor.key().integer(), 2u);
    EXPECT_EQ(cursor.index_key()->bytes(), Key::Tuple(7, -5).bytes());
    GANNET_RETURN_IF_ERROR(cursor.SeekForward(1000));
    EXPECT_FALSE(cursor.valid());
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(SecondaryIndexTest, EveryWayOfWritingKeepsIt) {
  ASSERT_TRUE(Insert(1, "ann", 1).ok());
  const auto check = [&] {
    const Status same = ComparePeople(*database_);
    EXPECT_TRUE(same.ok()) << same;
  };
  check();
  ASSERT_TRUE(Run([&](auto& t) { return t.Update(*people_, 1, MakePerson("ann", 2)); }).ok());
  EXPECT_THAT(Keys(KeyRange::Closed(1, 1)), IsEmpty());
  EXPECT_THAT(Keys(KeyRange::Closed(2, 2)), ElementsAre(1));
  ASSERT_TRUE(Run([&](auto& t) { return t.Add(*people_, 1, &Person::city, 5, nullptr); }).ok());
  EXPECT_THAT(Keys(KeyRange::Closed(7, 7)), ElementsAre(1));
  ASSERT_TRUE(Run([&](auto& t) -> Status {
                Person person;
                const StatusOr<RecordHandle> handle = t.GetForUpdate(*people_, 1, &person);
                GANNET_RETURN_IF_ERROR(handle.status());
                return t.Update(*handle, &Person::city, 8);
              }).ok());
  EXPECT_THAT(Keys(KeyRange::Closed(8, 8)), ElementsAre(1));
  ASSERT_TRUE(Run([&](auto& t) { return t.Upsert(*people_, 1, MakePerson("ann2", 9)); }).ok());
  ASSERT_TRUE(Run([&](auto& t) { return t.Upsert(*people_, 2, MakePerson("bob", 9)); }).ok());
  EXPECT_THAT(Keys(KeyRange::Closed(9, 9)), ElementsAre(1, 2));
  ASSERT_TRUE(
      Run([&](auto& t) { return t.UpdateIf(*people_, 2, MakePerson("bob", 9), MakePerson("bob", 10)).status(); }).ok());
  EXPECT_THAT(Keys(KeyRange::Closed(10, 10)), ElementsAre(2));
  check();
  {
    ManualTransaction t = database_->Begin().value();
    EXPECT_TRUE(t->Update(*people_, 2, MakePerson("bo", 11)).ok());
    EXPECT_TRUE(t.Commit().ok());
  }
  check();
  ASSERT_TRUE(Run([&](auto& t) -> Status {  // removed and inserted again; inserted and removed
                GANNET_RETURN_IF_ERROR(t.Remove(*people_, 2));
                GANNET_RETURN_IF_ERROR(t.Insert(*people_, 2, MakePerson("b", 12)));
                GANNET_RETURN_IF_ERROR(t.Insert(*people_, 3, MakePerson("c", 12)));
                return t.Remove(*people_, 3);
              })
                  .ok());
  check();
  EXPECT_THAT(Keys(KeyRange::Closed(12, 12)), ElementsAre(2));
  ASSERT_TRUE(Run([&](auto& t) -> Status {  // by the handles of an index
                BlockingIndexCursor cursor = t.OpenCursor(*by_city_, {.for_update = true});
                GANNET_RETURN_IF_ERROR(cursor.First());
                GANNET_RETURN_IF_ERROR(t.Remove(cursor.handle()));
                const StatusOr<RowBy> row = t.GetBy(*by_mail_, Key::Tuple("b"), /*for_update=*/true);
                GANNET_RETURN_IF_ERROR(row.status());
                return t.Update(row->handle, MakePerson("bb", 1));
              })
                  .ok());
  check();
  EXPECT_THAT(Keys(), ElementsAre(2));
  ASSERT_TRUE(Run([&](auto& t) { return t.Remove(*people_, 2); }).ok());
  check();
  EXPECT_THAT(Keys(), IsEmpty());
}

TEST_F(SecondaryIndexTest, ATransactionSeesItsOwnWrites) {
  ASSERT_TRUE(Insert(1, "ann", 1).ok());
  ASSERT_TRUE(Insert(2, "bob", 2).ok());
  const Status status = Run([&](auto& t) -> Status {
    GANNET_RETURN_IF_ERROR(t.Insert(*people_, 3, MakePerson("cy", 1)));
    EXPECT_THAT(Keys(t), ElementsAre(1, 3, 2));
    GANNET_RETURN_IF_ERROR(t.Update(*people_, 1, MakePerson("ann", 3)));
    EXPECT_THAT(Keys(t), ElementsAre(3, 2, 1));
    GANNET_RETURN_IF_ERROR(t.Update(*people_, 1, MakePerson("eve", 0)));
    EXPECT_THAT(Keys(t), ElementsAre(1, 3, 2));
    EXPECT_TRUE(absl::IsNotFound(t.GetBy(*by_mail_, Key::Tuple("ann")).status()));
    EXPECT_EQ(t.GetBy(*by_mail_, Key::Tuple("eve"))->key.integer(), 1u);
    GANNET_RETURN_IF_ERROR(t.Remove(*people_, 3));
    EXPECT_THAT(Keys(t), ElementsAre(1, 2));
    GANNET_RETURN_IF_ERROR(t.Update(*people_, 1, MakePerson("ann", 1)));  // as it was
    EXPECT_THAT(Keys(t), ElementsAre(1, 2));
    EXPECT_EQ(t.GetBy(*by_mail_, Key::Tuple("ann"))->key.integer(), 1u);
    // Writes while a cursor moves.
    BlockingIndexCursor cursor = t.OpenCursor(*by_city_);
    GANNET_RETURN_IF_ERROR(cursor.First());
    GANNET_RETURN_IF_ERROR(t.Update(*people_, 2, MakePerson("bob", 0)));
    GANNET_RETURN_IF_ERROR(cursor.Next());
    EXPECT_FALSE(cursor.valid());
    GANNET_RETURN_IF_ERROR(cursor.First());
    EXPECT_EQ(cursor.key().integer(), 2u);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  const Status same = ComparePeople(*database_);
  EXPECT_TRUE(same.ok()) << same;
  EXPECT_THAT(Keys(), ElementsAre(2, 1));
}

TEST_F(SecondaryIndexTest, AUniqueKeyIsOfOneRow) {
  ASSERT_TRUE(Insert(1, "ann", 1).ok());
  ASSERT_TRUE(Insert(2, "bob", 2).ok());
  const auto expect_exists = [](const Status& status, const std::string& mail) {
    EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(absl::StrCat("index 'by_mail' of table 'people', key (\"", mail, "\")")));
  };
  expect_exists(Insert(3, "ann", 3), "ann");
  expect_exists(Run([&](auto& t) { return t.Update(*people_, 2, MakePerson("ann", 2)); }), "ann");
  expect_exists(Run([&](auto& t) -> Status {  // both rows are its own
                  GANNET_RETURN_IF_ERROR(t.Insert(*people_, 3, MakePerson("cy", 3)));
                  return t.Insert(*people_, 4, MakePerson("cy", 4));
                }),
                "cy");
  EXPECT_TRUE(absl::IsAlreadyExists(Insert(1, "dee", 1)));  // of the table
  // The keys are exchanged in one transaction, with and without a read in between.
  const auto exchange = [&](bool read, const std::string& one, const std::string& two) {
    return Run([&, read](auto& t) -> Status {
      GANNET_RETURN_IF_ERROR(t.Update(*people_, 1, MakePerson(one, 1)));
      if (read) expect_exists(t.GetBy(*by_mail_, Key::Tuple("ann")).status(), one);
      if (read) expect_exists(t.RowsBy(*by_city_).First(), one);
      GANNET_RETURN_IF_ERROR(t.Update(*people_, 2, MakePerson(two, 2)));
      EXPECT_EQ(t.GetBy(*by_mail_, Key::Tuple(one))->key.integer(), 1u);
      return absl::OkStatus();
    });
  };
  Status exchanged = exchange(false, "bob", "ann");
  EXPECT_TRUE(exchanged.ok()) << exchanged;
  exchanged = exchange(true, "ann", "bob");
  EXPECT_TRUE(exchanged.ok()) << exchanged;
  // One row gives its key to another.
  const Status given = Run([&](auto& t) -> Status {
    GANNET_RETURN_IF_ERROR(t.Insert(*people_, 5, MakePerson("ann", 5)));
    return t.Remove(*people_, 1);
  });
  EXPECT_TRUE(given.ok()) << given;
  const Status same = ComparePeople(*database_);
  EXPECT_TRUE(same.ok()) << same;
}

// The key was another row's before, so its entry is one that the transaction removes and inserts again.
TEST_F(SecondaryIndexTest, AReadTellsThatTwoRowsTakeAKeyThatAnotherOneGaveAway) {
  ASSERT_TRUE(Insert(1, "ann", 1).ok());
  ASSERT_TRUE(Insert(2, "bob", 2).ok());
  const Status status = Run([&](auto& t) -> Status {
    GANNET_RETURN_IF_ERROR(t.Insert(*people_, 3, MakePerson("ann", 3)));
    GANNET_RETURN_IF_ERROR(t.Update(*people_, 1, MakePerson("bob", 1)));
    GANNET_RETURN_IF_ERROR(t.Update(*people_, 2, MakePerson("ann", 2)));
    const Status twice = t.GetBy(*by_mail_, Key::Tuple("eve")).status();
    EXPECT_TRUE(absl::IsAlreadyExists(twice)) << twice;
    EXPECT_THAT(Message(twice), HasSubstr("index 'by_mail' of table 'people', key (\"ann\")"));
    GANNET_RETURN_IF_ERROR(t.Update(*people_, 2, MakePerson("cy", 2)));
    EXPECT_EQ(t.GetBy(*by_mail_, Key::Tuple("ann"))->key.integer(), 3u);
    EXPECT_EQ(t.GetBy(*by_mail_, Key::Tuple("bob"))->key.integer(), 1u);
    EXPECT_EQ(t.GetBy(*by_mail_, Key::Tuple("cy"))->key.integer(), 2u);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  const Status same = ComparePeople(*database_);
  EXPECT_TRUE(same.ok()) << same;
}

TEST_F(SecondaryIndexTest, OnlyTheEngineWritesEntries) {
  ASSERT_TRUE(Insert(1, "ann", 1).ok());
  const Table& entries = by_mail_->entries();
  EXPECT_EQ(database_->FindTable("by_mail"), &entries);
  EXPECT_EQ(database_->FindIndex("by_mail"), by_mail_);
  EXPECT_EQ(database_->FindIndex("people"), nullptr);
  for (const Status& refused : {Run([&](auto& t) { return t.Insert(entries, "x", uint64_t{1}); }),
                                Run([&](auto& t) { return t.Upsert(entries, Key::Tuple("ann"), uint64_t{1}); }),
                                Run([&](auto& t) { return t.Remove(entries, Key::Tuple("ann")); })}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("'by_mail' has the entries of a secondary index of table 'people'"));
  }
  auto session = database_->OpenSession();
  for (const Table* table : {people_, &entries}) {
    BulkLoader loader(session->get(), table);
    const Status refused = table == people_ ? loader.Add(7, Person()) : loader.Add("x", uint64_t{1});
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("index"));
  }
  EXPECT_TRUE(absl::IsAlreadyExists(database_->CreateIndex(ByMail()).status()));
}

TEST_F(SecondaryIndexTest, OptionsAreChecked) {
  const auto refused = [&](const SecondaryIndexOptions& options, const std::string& why) {
    const Status status = database_->CreateIndex(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(why));
    EXPECT_EQ(database_->FindTable("new"), nullptr);
  };
  refused({.name = "new", .table = "people"}, "either fields or a function");
  refused({.name = "new", .table = "by_mail", .fields = {IndexField::Unsigned(0, 1)}}, "is an index itself");
  refused({.name = "new", .table = "people", .fields = {IndexField::Unsigned(0, 9)}}, "1 to 8 bytes");
  refused({.name = "new", .table = "people", .fields = {IndexField::Unsigned(sizeof(Person), 1)}},
          "no row has the field");
  refused({.name = "new", .table = "people", .fields = {IndexField::Floating(0, 2)}}, "4 or 8 bytes");
  refused({.name = "new", .table = "people", .fields = {IndexField::KeyBytes()}}, "integer keys");
  refused({.name = "new", .table = "people", .fields = {IndexField::Unsigned(0, 1)}, .index = IndexKind::kHash},
          "no order");
  refused({.name = "new",
           .table = "people",
           .fields = std::vector<IndexField>(4, IndexField::Bytes(0, 16)),
           .index = IndexKind::kBlink},
          "at most 64");
  refused({.name = "new", .table = "people", .fields = std::vector<IndexField>(60, IndexField::Bytes(0, 16))},
          "at most 1024");
  refused(
      {.name = "new", .table = "people", .fields = {IndexField::Unsigned(0, 1)}, .placement = Placement::Replicated()},
      "placement is Replicated");
  refused({.name = "new",
           .table = "people",
           .fields = {IndexField::Unsigned(0, 1)},
           .wait_for_transactions = absl::Seconds(-1)},
          "wait_for_transactions is -1s");
  SecondaryIndexOptions nameless = ByMail();
  nameless.name = "";
  EXPECT_TRUE(absl::IsInvalidArgument(database_->CreateIndex(nameless).status()));
  SecondaryIndexOptions homeless = ByMail();
  homeless.table = "nobody";
  EXPECT_TRUE(absl::IsNotFound(database_->CreateIndex(homeless).status()));
}

// An index refuses a negative number as a key, as a table does. Otherwise all of them would have one key.
TEST(SecondaryFunctionTest, ANegativeNumberIsNoKey) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20}).value();
  const Table* table = database->CreateTable({.name = "rows", .payload_bytes = sizeof(int64_t)}).value();
  const auto function = [](bool is_signed) {
    return [is_signed](const Key&, std::span<const std::byte> payload) -> std::optional<index::OwnedKey> {
      const auto value = RowOf<int64_t>(payload);
      return std::optional<index::OwnedKey>(std::in_place, is_signed ? Key::Signed(value) : Key(value));
    };
  };
  const SecondaryIndex* const by_value =
      database->CreateIndex({.name = "by_value", .table = "rows", .unique = true, .function = function(false)}).value();
  ASSERT_TRUE(database->Start().ok());
  const auto insert = [&](uint64_t key, int64_t value) {
    return database->Run([&](auto& t) { return t.Insert(*table, key, value); });
  };
  ASSERT_TRUE(insert(1, 1).ok());
  const Status refused = insert(2, -1);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(Message(refused),
              HasSubstr("a negative number is no key of index 'by_value' of table 'rows': Key::Sign"));
  const Status searched = database->Run([&](auto& t) { return t.GetBy(*by_value, Key(-1)).status(); });
  EXPECT_EQ(searched, refused);
  // A build refuses it, too.
  const SecondaryIndexOptions with_sign{
      .name = "with_sign", .table = "rows", .unique = true, .function = function(true)};
  ASSERT_TRUE(database->DropTable("by_value").ok());
  ASSERT_TRUE(insert(2, -1).ok());
  ASSERT_TRUE(insert(3, -2).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      database->CreateIndex({.name = "again", .table = "rows", .unique = true, .function = function(false)}).status()));
  ASSERT_TRUE(database->DropTable("again").ok());
  const SecondaryIndex* const in_order = database->CreateIndex(with_sign).value();
  std::vector<uint64_t> keys;
  ASSERT_TRUE(database
                  ->Run([&](auto& t) {
                    keys.clear();
                    BlockingIndexCursor rows = t.RowsBy(*in_order);
                    for (const IndexCursor& row : rows) keys.push_back(row.key().integer());
                    return rows.status();
                  })
                  .ok());
  EXPECT_THAT(keys, ElementsAre(3, 2, 1));
}

// Every type of field, in the order of its values; rows that lack a field are left out.
TEST(SecondaryFieldsTest, KeepTheOrderOfValues) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20}).value();
  const Table* table = database
                           ->CreateTable({.name = "rows",
                                          .key_kind = index::KeyKind::kBytes,
                                          .max_key_bytes = 8,
                                          .payload_bytes = 40,
                                          .variable_length = true})
                           .value();
  const auto create = [&](const std::string& name, IndexField field) {
    return database->CreateIndex({.name = name, .table = "rows", .fields = {field}}).value();
  };
  const SecondaryIndex* signed_numbers = create("signed", IndexField::Signed(0, 3));
  const SecondaryIndex* floats = create("float", IndexField::Floating(3, 4));
  const SecondaryIndex* doubles = create("double", IndexField::Floating(7, 8));
  const SecondaryIndex* texts = create("text", IndexField::Text(15, 0));
  const SecondaryIndex* keys = create("key", IndexField::KeyBytes(1, 2));
  ASSERT_TRUE(database->Start().ok());
  const auto row = [](int32_t number, float single, double twice, const std::string& text) {
    std::string payload(15, '\0');
    std::memcpy(payload.data(), &number, 3);
    std::memcpy(payload.data() + 3, &single, 4);
    std::memcpy(payload.data() + 7, &twice, 8);
    return payload + text;
  };
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"aXY", row(-8388608, -1.5f, 1e300, "")},
      {"bAB", row(-1, std::numeric_limits<float>::infinity(), -2, "b")},
      {std::string("c\0\1", 3), row(0, 0, 0.25, std::string("a\0zzz", 5))},
      {"d", row(8388607, -2, -1e300, "ab")},
      {"", "x"}};
  for (const auto& [key, payload] : rows) {
    const Status put = database->Run(
        [&](auto& t) { return t.Insert(*table, key, std::as_bytes(std::span(payload.data(), payload.size()))); });
    ASSERT_TRUE(put.ok()) << put;
  }
  size_t size_of_d = 17;
  const auto order = [&](const SecondaryIndex* index) {
    std::string found;
    const Status status = database->Run([&](auto& t) -> Status {
      found.clear();
      BlockingIndexCursor cursor = t.RowsBy(*index);
      for (const IndexCursor& each : cursor) {
        found += each.key().bytes()[0];
        for (const auto& [key, payload] : rows) {
          if (each.key() == Key(std::string_view(key))) {
            EXPECT_EQ(each.payload().size(), key == "d" ? size_of_d : payload.size());
          }
        }
      }
      return cursor.status();
    });
    EXPECT_TRUE(status.ok()) << status;
    return found;
  };
  EXPECT_EQ(order(signed_numbers), "abcd");
  EXPECT_EQ(order(floats), "dacb");
  EXPECT_EQ(order(doubles), "dbca");
  EXPECT_EQ(order(texts), "acdb");
  EXPECT_EQ(order(keys), "cba");
  // A row becomes so short that it leaves the indexes of later fields, and comes back.
  for (const size_t size : {size_t{7}, size_t{16}}) {
    const std::string payload = row(5, 7, 3, "q").substr(0, size);
    size_of_d = size;
    ASSERT_TRUE(database
                    ->Run([&](auto& t) {
                      return t.Update(*table, "d", std::as_bytes(std::span(payload.data(), payload.size())));
                    })
                    .ok());
    EXPECT_EQ(order(floats), "acdb");
    EXPECT_EQ(order(texts), size == 7 ? "acb" : "acbd");
  }
}

TEST(SecondaryFunctionTest, MakesKeys) {
  const Disk disk = NewDisk();
  const auto with_function = [](KeyFunction function) {
    SecondaryIndexOptions options{.name = "even", .table = "rows", .unique = true, .function = std::move(function)};
    return options;
  };
  const KeyFunction half = [](const Key&, std::span<const std::byte> payload) -> std::optional<index::OwnedKey> {
    uint64_t value = 0;
    std::memcpy(&value, payload.data(), sizeof value);
    if (value == 13) throw std::runtime_error("thirteen");
    if (value % 2 != 0) return std::nullopt;
    return index::OwnedKey(Key(value / 2));
  };
  const auto find = [](Database& database, uint64_t key) {
    uint64_t row = 0;
    const Status status = database.Run([&](auto& t) -> Status {
      const StatusOr<RowBy> found = t.GetBy(*database.FindIndex("even"), key);
      if (found.ok()) row = found->key.integer();
      return found.status();
    });
    return status.ok() ? StatusOr<uint64_t>(row) : StatusOr<uint64_t>(status);
  };
  {
    auto cluster = Open(disk, {HashTable("rows")});
    Database& database = (*cluster)->database();
    ASSERT_TRUE(Put(**cluster, "rows", 1, 10).ok());
    ASSERT_TRUE(Put(**cluster, "rows", 2, 11).ok());
    const auto created = database.CreateIndex(with_function(half));
    ASSERT_TRUE(created.ok()) << created.status();
    EXPECT_EQ(find(database, 5).value(), 1u);
    ASSERT_TRUE(Put(**cluster, "rows", 2, 12).ok());
    EXPECT_EQ(find(database, 6).value(), 2u);
    const Status thrown = Put(**cluster, "rows", 3, 13);
    EXPECT_TRUE(absl::IsInternal(thrown)) << thrown;
    EXPECT_THAT(Message(thrown), HasSubstr("index 'even' of table 'rows': the key function threw: thirteen"));
    // A read by the index that meets the exception fails the transaction.
    const Status failed = database.Run([&](auto& t) -> Status {
      GANNET_RETURN_IF_ERROR(t.Insert((*cluster)->table("rows"), 3, uint64_t{13}));
      EXPECT_TRUE(absl::IsInternal(t.GetBy(*database.FindIndex("even"), 5).status()));
      EXPECT_TRUE(absl::IsInternal(t.Remove((*cluster)->table("rows"), 3)));
      return absl::OkStatus();
    });
    EXPECT_TRUE(absl::IsInternal(failed)) << failed;
    ASSERT_TRUE(Put(**cluster, "rows", 1, 11).ok());
    EXPECT_TRUE(absl::IsNotFound(find(database, 5).status()));
    EXPECT_TRUE(absl::IsAlreadyExists(Put(**cluster, "rows", 1, 12)));
  }
  // A program that does not have the function may read, and does not write.
  auto cluster = Open(disk);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  EXPECT_EQ(find(database, 6).value(), 2u);
  for (int way = 0; way < 3; ++way) {
    const Status refused = database.Run([&](auto& t) -> Status {
      const Table& rows = (*cluster)->table("rows");
      return way == 0 ? t.Insert(rows, 9, uint64_t{9}) : way == 1 ? t.Remove(rows, 1) : t.Update(rows, 1, uint64_t{1});
    });
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("index 'even' of table 'rows' gets its keys from a function"));
  }
  SecondaryIndexOptions other = with_function(half);
  other.unique = false;
  EXPECT_TRUE(absl::IsInvalidArgument(database.CreateIndex(other).status()));
  ASSERT_TRUE(database.CreateIndex(with_function(half)).ok());
  ASSERT_TRUE(Put(**cluster, "rows", 2, 20).ok());
  EXPECT_EQ(find(database, 10).value(), 2u);
}

// A function that returns something else than it did is found out, and damages nothing.
TEST(SecondaryFunctionTest, AnotherFunctionIsFoundOut) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20}).value();
  const Table* table = database->CreateTable(HashTable("rows")).value();
  std::atomic<uint64_t> add{0};
  const KeyFunction function = [&](const Key& key, std::span<const std::byte>) -> std::optional<index::OwnedKey> {
    return index::OwnedKey(Key(key.integer() + add.load()));
  };
  ASSERT_TRUE(database->CreateIndex({.name = "index", .table = "rows", .function = function}).ok());
  ASSERT_TRUE(database->Start().ok());
  ASSERT_TRUE(database->Run([&](auto& t) { return t.Insert(*table, 1, uint64_t{1}); }).ok());
  add = 1;
  const Status found = database->Run([&](auto& t) { return t.Remove(*table, 1); });
  EXPECT_TRUE(absl::IsDataLoss(found)) << found;
  EXPECT_THAT(Message(found), HasSubstr("its function has changed"));
  add = 0;
  EXPECT_TRUE(database->Run([&](auto& t) { return t.Remove(*table, 1); }).ok());
}

// Another transaction changes the row between the two calls of the function by a commit.
TEST(SecondaryFunctionTest, SeesOnlyRowsThatTransactionsLeave) {
  struct Pair {
    uint64_t a = 0;
    uint64_t b = 0;
  };
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20}).value();
  const Table* const pairs = database->CreateTable({.name = "pairs", .payload_bytes = sizeof(Pair)}).value();
  std::atomic<bool> interrupts{false};
  std::atomic<bool> saw_another_row{false};
  const auto put = [&](const Pair& pair) {
    return database->Run([&](auto& t) { return t.Upsert(*pairs, uint64_t{1}, pair); });
  };
  const KeyFunction function = [&](const Key& key, std::span<const std::byte> row) {
    const Pair pair = RowOf<Pair>(row);
    const bool is_left = pair.a == pair.b || (pair.a == 2 && pair.b == 1);
    if (!is_left) saw_another_row = true;
    if (interrupts.exchange(false)) {
      std::jthread other([&] {
        const Status changed = put({5, 5});
        EXPECT_TRUE(changed.ok()) << changed;
      });
    }
    return std::optional<index::OwnedKey>(key);
  };
  ASSERT_TRUE(database->CreateIndex({.name = "index", .table = "pairs", .function = function}).ok());
  ASSERT_TRUE(database->Start().ok());
  ASSERT_TRUE(put({1, 1}).ok());
  int runs = 0;
  const Status changed = database->Run([&](auto& t) -> Status {
    Pair pair;
    GANNET_RETURN_IF_ERROR(t.Get(*pairs, uint64_t{1}, &pair));
    interrupts = ++runs == 1;
    return pair.b == 1 ? t.Update(*pairs, uint64_t{1}, &Pair::a, uint64_t{2}) : absl::OkStatus();
  });
  EXPECT_TRUE(changed.ok()) << changed;
  EXPECT_EQ(runs, 2) << "it met the other transaction";
  EXPECT_FALSE(saw_another_row.load());
}

TEST(SecondaryCatalogTest, ADirectoryKeepsIndexes) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {People()});
    Database& database = (*cluster)->database();
    ASSERT_TRUE(database.CreateIndex(ByCity()).ok());
    for (uint64_t key = 0; key < 100; ++key) {
      ASSERT_TRUE(database
                      .Run([&](auto& t) {
                        return t.Insert(*database.FindTable("people"), key,
                                        MakePerson(absl::StrCat("p", key), static_cast<uint32_t>(key % 7)));
                      })
                      .ok());
      if (key == 50) {
        ASSERT_TRUE(database.Checkpoint().ok());
      }
    }
    ASSERT_TRUE(database.CreateIndex(ByMail()).ok());
    const StatusOr<log::Manifest> manifest = log::ReadManifest(*disk, "/data");
    ASSERT_TRUE(manifest.ok());
    EXPECT_EQ(manifest->version, log::kSecondaryIndexManifestVersion);
  }
  for (const bool crash : {false, true}) {
    auto cluster = Open(crash ? disk->CrashedCopy(3) : disk);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    ASSERT_NE(database.FindIndex("by_city"), nullptr);
    EXPECT_TRUE(database.FindIndex("by_mail")->is_complete());
    EXPECT_EQ(database.FindIndex("by_city")->fields(), ByCity().fields);
    PeopleRows rows;
    const Status same = ComparePeople(database, &rows);
    EXPECT_TRUE(same.ok()) << same;
    EXPECT_EQ(rows.size(), 100u);
    // A program that knows nothing of the indexes keeps them.
    const Status removed = database.Run([&](auto& t) { return t.Remove(*database.FindTable("people"), 7); });
    EXPECT_TRUE(removed.ok()) << removed;
    EXPECT_TRUE(ComparePeople(database).ok());
    // One that creates them again gets them.
    EXPECT_EQ(database.CreateIndex(ByCity()).value(), database.FindIndex("by_city"));
    SecondaryIndexOptions other = ByMail();
    other.fields = {IndexField::Text(0, 8)};
    const Status differs = database.CreateIndex(other).status();
    EXPECT_TRUE(absl::IsInvalidArgument(differs)) << differs;
    EXPECT_THAT(Message(differs), HasSubstr("text of payload at 0, 16 bytes"));
    EXPECT_TRUE(absl::IsInvalidArgument(database.CreateTable(OrderedTable("by_mail")).status()));
    if (!crash) {
      ASSERT_TRUE(
          database.Run([&](auto& t) { return t.Insert(*database.FindTable("people"), 7, MakePerson("p7", 0)); }).ok());
    }
  }
  // Before Start an index of a table with rows is not made.
  auto database = Database::Open("/data", {.files = disk, .memory_bytes = uint64_t{256} << 20}).value();
  SecondaryIndexOptions late = ByMail();
  late.name = "late";
  EXPECT_TRUE(absl::IsFailedPrecondition(database->CreateIndex(late).status()));
}

// Each write counts the bytes that its row's entries need in the log. If they do not fit, that write is refused, and
// the commit of the others succeeds.
TEST(SecondaryCatalogTest, AWriteWhoseEntriesTheLogDoesNotTakeIsRefusedAtOnce) {
  auto database = Database::Open("/data", {.create_if_missing = true,
                                           .log_large_buffer_bytes = size_t{1} << 20,
                                           .files = NewDisk(),
                                           .memory_bytes = uint64_t{256} << 20})
                      .value();
  const Table& people = *database->CreateTable(People()).value();
  const SecondaryIndex& by_city = *database->CreateIndex(ByCity()).value();
  ASSERT_TRUE(database->CreateIndex(ByMail()).ok());
  ASSERT_TRUE(database->Start().ok());
  const auto person = [](uint64_t key, uint32_t city) { return MakePerson(absl::StrCat("p", key), city); };
  // Inserts rows from `*next` on until one is refused.
  const auto fill = [&](BlockingTransaction& t, uint64_t* next) -> Status {
    for (Status inserted; inserted.ok(); ++*next) {
      inserted = t.Insert(people, *next, person(*next, 1));
      if (absl::IsResourceExhausted(inserted)) return absl::OkStatus();
      GANNET_RETURN_IF_ERROR(inserted);
    }
    return absl::OkStatus();
  };
  const auto read_by_index = [&](BlockingTransaction& t, size_t* rows) -> Status {
    BlockingIndexCursor cursor = t.RowsBy(by_city);
    for ([[maybe_unused]] const IndexCursor& row : cursor) ++*rows;
    return cursor.status();
  };
  uint64_t filled = 0;
  for (const bool reads : {false, true}) {
    const uint64_t first = filled;
    const Status done = database->Run([&](BlockingTransaction& t) -> Status {
      filled = first;
      GANNET_RETURN_IF_ERROR(fill(t, &filled));
      EXPECT_GT(filled - first, 2000U);
      if (!reads) return absl::OkStatus();
      // The entries of the rows are known then, and take less than was counted. There is room again, also where rows go
      // away.
      size_t rows = 0;
      GANNET_RETURN_IF_ERROR(read_by_index(t, &rows));
      EXPECT_EQ(rows, filled);
      const uint64_t before = filled;
      GANNET_RETURN_IF_ERROR(fill(t, &filled));
      EXPECT_GT(filled, before);
      for (uint64_t key = first; key < first + 1000; ++key) GANNET_RETURN_IF_ERROR(t.Remove(people, key));
      GANNET_RETURN_IF_ERROR(read_by_index(t, &rows));
      const uint64_t removed = filled;
      GANNET_RETURN_IF_ERROR(fill(t, &filled));
      EXPECT_GE(filled, removed + 500);
      return absl::OkStatus();
    });
    ASSERT_TRUE(done.ok()) << done;
  }
  // Rows that leave one entry for another.
  const Status updated = database->Run([&](BlockingTransaction& t) -> Status {
    uint64_t key = 0;
    for (Status written; written.ok(); ++key) written = t.Update(people, key, person(key, 2));
    EXPECT_GT(key, 1000U);
    size_t rows = 0;
    return read_by_index(t, &rows);
  });
  ASSERT_TRUE(updated.ok()) << updated;
  const Status same = ComparePeople(*database);
  EXPECT_TRUE(same.ok()) << same;
  const Status removed = database->Run([&](BlockingTransaction& t) -> Status {
    uint64_t key = 0;
    for (Status written; written.ok(); ++key) written = t.Remove(people, key);
    EXPECT_GT(key, 1000U);
    return absl::OkStatus();
  });
  ASSERT_TRUE(removed.ok()) << removed;
  EXPECT_TRUE(ComparePeople(*database).ok());
}

TEST(SecondaryEntriesTest, IndexesTheRowsThatThereAre) {
  for (const IndexKind kind : index::KindsOfPoints()) {
    auto database = Database::OpenInMemory({.memory_bytes = uint64_t{512} << 20}).value();
    const Table* people = database->CreateTable(People(kind)).value();
    ASSERT_TRUE(database->Start().ok());
    constexpr uint64_t kRows = 3000;
    {
      auto session = database->OpenSession();
      BulkLoader loader(session->get(), people);
      for (uint64_t key = 0; key < kRows; ++key) {
        ASSERT_TRUE(loader.Add(key, MakePerson(absl::StrCat("p", key), static_cast<uint32_t>(key % 10))).ok());
      }
      ASSERT_TRUE(loader.Finish().ok());
    }
    SecondaryIndexOptions by_city = ByCity();
    by_city.index = kind == IndexKind::kHash ? IndexKind::kXStore : kind;
    const auto created = database->CreateIndex(by_city);
    ASSERT_TRUE(created.ok()) << created.status();
    ASSERT_TRUE(database->CreateIndex(ByMail()).ok());
    uint64_t found = 0;
    ASSERT_TRUE(database
                    ->Run([&](auto& t) -> Status {
                      found = 0;
                      BlockingIndexCursor cursor = t.RowsBy(**created);
                      uint32_t city = 0;
                      for (const IndexCursor& row : cursor) {
                        const auto person = row.template As<Person>();
                        EXPECT_GE(person.city, city);
                        EXPECT_EQ(MailOf(person), absl::StrCat("p", row.key().integer()));
                        city = person.city;
                        ++found;
                      }
                      return cursor.status();
                    })
                    .ok());
    EXPECT_EQ(found, kRows);
    if (kind == IndexKind::kHash) continue;
    const Status same = ComparePeople(*database);
    EXPECT_TRUE(same.ok()) << same;
  }
}

// While a unique index is built, an entry may be that of another row with the same key.
TEST(SecondaryEntriesTest, ARowThatLeavesADuplicateKeyLeavesTheEntryOfTheOther) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20}).value();
  const Table* people = database->CreateTable(People()).value();
  ASSERT_TRUE(database->Start().ok());
  constexpr uint64_t kRows = 5'000;  // the build takes a while to come from the first row to the last
  const auto put = [&](uint64_t key, const std::string& mail) {
    return database->Run([&](auto& t) { return t.Upsert(*people, key, MakePerson(mail, 1)); });
  };
  for (uint64_t key = 0; key < kRows; ++key) ASSERT_TRUE(put(key, absl::StrCat("p", key)).ok());
  int complete = 0;
  for (int round = 0; complete < 10 && round < 500; ++round) {
    SCOPED_TRACE(round);
    ASSERT_TRUE(put(kRows, "p0").ok());
    std::atomic<bool> ended{false};
    std::thread leaves([&] {
      // Waits until the first row has its entry. Then the last row gets another key.
      for (bool has_entry = false; !has_entry && !ended.load();) {
        const SecondaryIndex* const index = database->FindIndex("by_mail");
        if (index == nullptr || people->secondary_indexes() == nullptr) continue;
        const Status looked = database->Run([&](BlockingTransaction& t) -> Status {
          const StatusOr<bool> found = t.Exists(index->entries(), Key::Tuple("p0"));
          has_entry = found.ok() && *found;
          return found.status();
        });
        EXPECT_TRUE(looked.ok()) << looked;
      }
      const Status left = put(kRows, "other");
      EXPECT_TRUE(left.ok()) << left;
    });
    const Status made = database->CreateIndex(ByMail()).status();
    ended = true;
    leaves.join();
    EXPECT_TRUE(made.ok() || absl::IsAlreadyExists(made)) << made;
    if (!made.ok()) continue;
    ++complete;
    const Status same = ComparePeople(*database);
    EXPECT_TRUE(same.ok()) << same;
    ASSERT_TRUE(database->DropTable("by_mail").ok());
  }
  EXPECT_GT(complete, 0);
}

// An entry may be too long for the index, because texts of a table may be longer than keys of ordered tables.
TEST(SecondaryEntriesTest, EntriesThatAreTooLongAreNamed) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20}).value();
  const Table* rows = database
                          ->CreateTable({.name = "rows",
                                         .key_kind = index::KeyKind::kBytes,
                                         .max_key_bytes = 64,
                                         .payload_bytes = 100,
                                         .variable_length = true})
                          .value();
  ASSERT_TRUE(database->Start().ok());
  const auto put = [&](const std::string& key, const std::string& text) {
    return database->Run(
        [&](auto& t) { return t.Upsert(*rows, key, std::as_bytes(std::span(text.data(), text.size()))); });
  };
  const std::string longest(64, 'x');
  ASSERT_TRUE(put(longest, "text").ok());
  const SecondaryIndexOptions options{
      .name = "by_text", .table = "rows", .fields = {IndexField::Text(0, 0)}, .index = IndexKind::kBlink};
  const auto expect_long = [](const Status& status, const std::string& what) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(what));
    EXPECT_THAT(Message(status), HasSubstr("bytes, at most 64"));
  };
  expect_long(database->CreateIndex(options).status(), "xxx\": its entry in index 'by_text' of table 'rows'");
  ASSERT_TRUE(database->Run([&](auto& t) { return t.Remove(*rows, longest); }).ok());
  ASSERT_TRUE(database->CreateIndex(options).ok());
  expect_long(put("key", std::string(60, 'y')), "table 'rows', key \"key\"");
  EXPECT_TRUE(put("key", std::string(59, 'y')).ok());
  expect_long(put("key", std::string(50, '\1')), "table 'rows', key \"key\"");
}

// Indexes of a table with long keys: by a text, whose entries end with those keys, and by a function.
TEST(SecondaryEntriesTest, EntriesMayBeLong) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20}).value();
  const Table* rows = database
                          ->CreateTable({.name = "rows",
                                         .key_kind = index::KeyKind::kBytes,
                                         .max_key_bytes = 700,
                                         .index = IndexKind::kXStore,
                                         .payload_bytes = 400,
                                         .variable_length = true})
                          .value();
  ASSERT_TRUE(database->Start().ok());
  const auto put = [&](const std::string& key, const std::string& text) {
    return database->Run(
        [&](auto& t) { return t.Upsert(*rows, key, std::as_bytes(std::span(text.data(), text.size()))); });
  };
  const auto key_of = [](int n) { return std::string(690, 'k') + std::to_string(n); };
  for (int n = 0; n < 50; ++n) ASSERT_TRUE(put(key_of(n), std::string(290, 't') + std::to_string(n % 7)).ok());
  ASSERT_TRUE(
      database->CreateIndex({.name = "by_text", .table = "rows", .fields = {IndexField::Text(0, 0)}}).status().ok());
  const auto length = [](const index::Key& key, std::span<const std::byte> payload) {
    return std::optional(index::OwnedKey(index::Key::Tuple(key.size(), payload.size())));
  };
  ASSERT_TRUE(database->CreateIndex({.name = "by_length", .table = "rows", .function = length}).status().ok());
  EXPECT_EQ(database->FindTable("by_text")->options().max_key_bytes, index::kMaxKeyBytes);
  EXPECT_EQ(database->FindTable("by_length")->options().max_key_bytes, 764u);
  for (int n = 50; n < 90; ++n) ASSERT_TRUE(put(key_of(n), std::string(290, 't') + std::to_string(n % 7)).ok());
  for (int n = 0; n < 90; n += 3) ASSERT_TRUE(put(key_of(n), "moved").ok());
  ASSERT_TRUE(database->Run([&](auto& t) { return t.Remove(*rows, key_of(1)); }).ok());

  std::vector<std::string> expected;
  for (int n = 0; n < 90; ++n) {
    if (n % 3 != 0 && n % 7 == 2) expected.push_back(key_of(n));
  }
  std::ranges::sort(expected);
  const auto found_by = [&](const char* index, const index::Key& value) {
    std::vector<std::string> found;
    const Status read = database->Run([&](BlockingTransaction& t) {
      found.clear();
      BlockingIndexCursor cursor = t.RowsBy(*database->FindIndex(index), KeyRange::Closed(value, value));
      for (const IndexCursor& row : cursor) found.emplace_back(row.key().bytes());
      return cursor.status();
    });
    EXPECT_TRUE(read.ok()) << read;
    return found;
  };
  EXPECT_EQ(found_by("by_text", index::Key::Tuple(std::string(290, 't') + "2")), expected);
  expected.clear();
  for (int n = 0; n < 90; n += 3) expected.push_back(key_of(n));
  std::ranges::sort(expected);
  EXPECT_EQ(found_by("by_text", index::Key::Tuple("moved")), expected);
  std::erase_if(expected, [](const std::string& key) { return key.size() != 692; });
  EXPECT_EQ(found_by("by_length", index::Key::Tuple(size_t{692}, size_t{5})), expected);
  const Status too_long = put("key", std::string(390, '\0') + std::string(10, 't'));
  EXPECT_TRUE(too_long.ok()) << "790 bytes and the key: " << too_long;
  const Status longer = put(std::string(690, 'k'), std::string(400, 't'));
  EXPECT_TRUE(absl::IsInvalidArgument(longer)) << longer;
  EXPECT_THAT(Message(longer), HasSubstr("bytes, at most 1024"));
}

// Earlier versions gave entries at most 64 bytes, in a kind of index that now takes longer keys.
TEST(SecondaryEntriesTest, AnIndexOfADirectoryKeepsTheLengthOfItsEntries) {
  const TableOptions rows{.name = "rows", .index = IndexKind::kXStore, .payload_bytes = 100, .variable_length = true};
  const SecondaryIndexOptions by_text{.name = "by_text", .table = "rows", .fields = {IndexField::Text(0, 50)}};
  const SecondaryIndexOptions by_function{
      .name = "by_function", .table = "rows", .function = [](const index::Key&, std::span<const std::byte> payload) {
        return std::optional(index::OwnedKey(index::Key::Tuple(payload.size())));
      }};
  const auto put = [](Database& database, uint64_t key, const std::string& text) {
    return database.Run([&](auto& t) {
      return t.Upsert(*database.FindTable("rows"), key, std::as_bytes(std::span(text.data(), text.size())));
    });
  };
  const auto disk = std::make_shared<log::FaultyFileSystem>(1);
  {
    auto cluster = DurableCluster::Open(disk, {rows});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    ASSERT_TRUE(database.CreateIndex(by_text).status().ok());
    ASSERT_TRUE(database.CreateIndex(by_function).status().ok());
    EXPECT_EQ(database.FindTable("by_text")->options().max_key_bytes, 2u + 2 * 50 + 8);
    EXPECT_EQ(database.FindTable("by_function")->options().max_key_bytes, 64u);
    ASSERT_TRUE(put(database, 1, "text").ok());
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  auto manifest = log::ReadManifest(*disk, "/data");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  for (log::TableDescription& table : manifest->tables) {
    if (table.name == "by_text") table.max_key_bytes = 64;
    if (table.name == "by_function") table.max_key_bytes = 48;
  }
  ASSERT_TRUE(log::WriteManifest(*disk, "/data", *manifest).ok());
  for (int again = 0; again < 2; ++again) {
    auto cluster = DurableCluster::Open(disk, {rows});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    for (const SecondaryIndexOptions& index : {by_text, by_function}) {
      const auto created = database.CreateIndex(index);
      ASSERT_TRUE(created.ok()) << created.status();
    }
    EXPECT_EQ(database.FindTable("by_text")->options().max_key_bytes, 64u);
    EXPECT_EQ(database.FindTable("by_function")->options().max_key_bytes, 48u);
    EXPECT_TRUE(put(database, 2, std::string(49, 'x')).ok());
    EXPECT_THAT(Message(put(database, 2, std::string(50, '\1'))), HasSubstr("bytes, at most 64"));
    ASSERT_TRUE((*cluster)->Close().ok());
  }
}

// Tests indexes on several nodes, whose indexes and rows are anywhere.
TEST(SecondaryClusterTest, RowsAndEntriesOnSeveralNodes) {
  const Disk disk = NewDisk();
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{512} << 20});
  std::vector<std::unique_ptr<Database>> nodes;
  for (rdma::NodeId node = 0; node < 2; ++node) {
    nodes.push_back(Database::Open(fabric->get(), node, {}).value());
    TableOptions people = People();
    people.placement = Placement::ByHash();
    ASSERT_TRUE(nodes.back()->CreateTable(people).ok());
    SecondaryIndexOptions by_city = ByCity();
    by_city.placement = Placement::ByHash();
    ASSERT_TRUE(nodes.back()->CreateIndex(by_city).ok());
    ASSERT_TRUE(nodes.back()->CreateIndex(ByMail()).ok());
  }
  std::thread other([&] { ASSERT_TRUE(nodes[1]->Start().ok()); });
  ASSERT_TRUE(nodes[0]->Start().ok());
  other.join();
  Random random(5);
  for (int i = 0; i < 300; ++i) {
    Database& database = *nodes[random.Below(2)];
    const uint64_t key = random.Below(40);
    const std::string mail = absl::StrCat("m", random.Below(30));
    const auto city = static_cast<uint32_t>(random.Below(4));
    const Status done = database.Run([&](auto& t) -> Status {
      const Table& people = *database.FindTable("people");
      if (i % 4 != 0) return t.Upsert(people, key, MakePerson(mail, city));
      const Status removed = t.Remove(people, key);
      return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
    });
    EXPECT_TRUE(done.ok() || absl::IsAlreadyExists(done)) << done;
  }
  PeopleRows rows;
  for (const auto& database : nodes) {
    const Status same = ComparePeople(*database, &rows);
    EXPECT_TRUE(same.ok()) << same;
    EXPECT_GT(rows.size(), 10u);
  }
  SecondaryIndexOptions late = ByMail();
  late.name = "late";
  EXPECT_TRUE(absl::IsUnimplemented(nodes[0]->CreateIndex(late).status()));
  nodes.clear();
}

// One node alone would build it from the rows of all, and note it in its own manifest only.
TEST(SecondaryClusterTest, AnIncompleteIndexIsNotBuiltByOneNode) {
  const Disk disk = NewDisk();
  const auto open = [&](rdma::Fabric* fabric, rdma::NodeId node) {
    return Database::Open(fabric, node, {.directory = "/data", .create_if_missing = true, .files = disk}).value();
  };
  for (const bool first : {true, false}) {
    auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{512} << 20});
    std::vector<std::unique_ptr<Database>> nodes;
    for (rdma::NodeId node = 0; node < 2; ++node) {
      nodes.push_back(open(fabric->get(), node));
      if (!first) continue;
      ASSERT_TRUE(nodes.back()->CreateTable(People()).ok());
      ASSERT_TRUE(nodes.back()->CreateIndex(ByCity()).ok());
    }
    std::thread other([&] { ASSERT_TRUE(nodes[1]->Start().ok()); });
    ASSERT_TRUE(nodes[0]->Start().ok());
    other.join();
    if (!first) {
      EXPECT_TRUE(absl::IsUnimplemented(nodes[0]->CreateIndex(ByCity()).status()));
      EXPECT_FALSE(nodes[0]->FindIndex("by_city")->is_complete());
    }
    std::thread closes([&] { nodes[1]->Close().IgnoreError(); });
    EXPECT_TRUE(nodes[0]->Close().ok());
    closes.join();
    for (const char* path : {"/data/node-0", "/data/node-1"}) {
      log::Manifest manifest = log::ReadManifest(*disk, path).value();
      manifest.tables.back().secondary->complete = false;
      ASSERT_TRUE(log::WriteManifest(*disk, path, manifest).ok());
    }
  }
}

}  // namespace secondary_index_test
}  // namespace gannet::txn
