// Payloads as programs pass them (txn/store/payload.h): which types are rows, whole rows and parts of them, and numbers
// that are added to. tests/txn/payload_mistakes has what does not compile.
#include "txn/store/payload.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "txn/bulk_loader.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace payload_test {

using ::testing::HasSubstr;

struct Item {
  int64_t stock = 0;
  uint32_t sold = 0;
  float weight = 0;
};
struct Base {
  int64_t number;
};
struct Derived : Base {
  char text[3];
};
struct Empty {};
struct Nested {
  Item items[3];
  Derived derived;
  std::array<char, 3000> text;
  Empty empty;
  std::chrono::nanoseconds time;
  enum class Kind : uint8_t { kOne } kind;
  union {
    double real;
    uint64_t number;
  };
};
struct [[gnu::packed]] Packed {
  char first;
  uint64_t number;
  uint32_t low : 12;
  uint32_t high : 20;
  char name[500];
};
union Either {
  int number;
  float real;
};
class Money {
 public:
  Money() = default;
  explicit Money(int64_t cents) : cents_(cents) {}
  int64_t cents() const { return cents_; }

 private:
  int64_t cents_ = 0;
};
struct Price {
  Money net, gross;
};

static_assert(PayloadType<int> && PayloadType<bool> && PayloadType<double> && PayloadType<std::byte>);
static_assert(PayloadType<Item> && PayloadType<const Item> && PayloadType<Empty>);
static_assert(PayloadType<Nested> && PayloadType<Packed> && PayloadType<Either> && PayloadType<Nested::Kind>);
static_assert(PayloadType<Money> && PayloadType<Price> && PayloadType<std::array<Item, 4>>);
static_assert(PayloadType<std::array<std::byte, 16>> && PayloadType<std::array<char, 16>>);

template <class T>
inline constexpr bool kIsNone = !PayloadType<T>;

struct WithPointer {
  int number;
  const char* text;
};
struct WithView {
  std::string_view text;
};
struct WithSpan {
  std::span<int> numbers;
};
struct WithString {
  std::string text;
};
struct WithReference {
  int& number;
};
struct WithConstReference {
  const int& number;
};
struct WithConst {
  const int number;
};
struct WithMemberPointer {
  int64_t Item::*member;
};
struct WithFunction {
  void (*function)();
};
struct WithPointers {
  const char* names[3];
};
struct WithArrayOfPointers {
  std::array<const char*, 2> names;
};
struct WithList {
  std::initializer_list<int> numbers;
};
struct WithKey {
  index::Key key;
};
struct Deep {
  Item items[3];
  struct {
    char before[900];
    WithPointer pointer;
  } inner[2];
};
struct OfTwoBases : Empty, Item {};
struct DerivedOfPointer : WithPointer {
  int more;
};
struct Virtual {
  virtual ~Virtual() = default;
  int number;
};
struct ConvertsToView {
  int number;
  operator std::string_view() const { return "text"; }
};

static_assert(kIsNone<WithPointer> && kIsNone<WithView> && kIsNone<WithSpan> && kIsNone<WithString>);
static_assert(kIsNone<WithReference> && kIsNone<WithConstReference> && kIsNone<WithConst>);
static_assert(kIsNone<WithMemberPointer> && kIsNone<WithFunction> && kIsNone<WithPointers>);
static_assert(kIsNone<WithArrayOfPointers> && kIsNone<WithList> && kIsNone<WithKey> && kIsNone<Deep>);
static_assert(kIsNone<Derived> && kIsNone<OfTwoBases> && kIsNone<DerivedOfPointer>);
static_assert(kIsNone<Virtual> && kIsNone<ConvertsToView>);
static_assert(kIsNone<std::array<WithPointer, 1>> && kIsNone<std::array<const char*, 2>>);
static_assert(kIsNone<const char*> && kIsNone<int*> && kIsNone<std::nullptr_t> && kIsNone<void()> && kIsNone<void>);
static_assert(kIsNone<int&> && kIsNone<int64_t Item::*> && kIsNone<char[6]> && kIsNone<int[2]>);
static_assert(kIsNone<std::string> && kIsNone<std::string_view> && kIsNone<std::span<const std::byte>>);
static_assert(kIsNone<std::span<int>> && kIsNone<std::vector<int>> && kIsNone<std::reference_wrapper<int>>);
static_assert(kIsNone<std::initializer_list<char>> && kIsNone<index::Key> && kIsNone<std::unique_ptr<int>>);

class PayloadTest : public testing::Test {
 protected:
  void SetUp() override {
    database_ = Database::OpenInMemory({.memory_bytes = uint64_t{128} << 20}).value();
    items_ = database_->CreateTable({.name = "items", .payload_bytes = sizeof(Item)}).value();
    numbers_ = database_->CreateTable({.name = "numbers", .payload_bytes = sizeof(int64_t)}).value();
    packed_ = database_->CreateTable({.name = "packed", .payload_bytes = sizeof(Packed)}).value();
    texts_ = database_->CreateTable({.name = "texts", .payload_bytes = 40, .variable_length = true}).value();
    ASSERT_TRUE(database_->Start().ok());
  }

  // `body` is called by a blocking transaction.
  void Run(const std::function<void(BlockingTransaction&)>& body) {
    const Status status = database_->Run([&](BlockingTransaction& t) {
      body(t);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
  static void ExpectRefused(const Status& status, const char* why) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  std::string TextOf(BlockingTransaction& t, uint64_t key) {
    std::string text;
    EXPECT_TRUE(t.Get(*texts_, key, &text).ok());
    return text;
  }

  std::unique_ptr<Database> database_;
  const Table* items_ = nullptr;
  const Table* numbers_ = nullptr;
  const Table* packed_ = nullptr;
  const Table* texts_ = nullptr;
};

TEST_F(PayloadTest, BytesAreStoredAsTheyAre) {
  const std::string text = "hello";
  const std::vector<char> chars(text.begin(), text.end());
  const std::vector<unsigned char> unsigned_chars(text.begin(), text.end());
  const std::array<char, 5> array = {'h', 'e', 'l', 'l', 'o'};
  Run([&](BlockingTransaction& t) {
    EXPECT_TRUE(t.Insert(*texts_, 0, text).ok());
    EXPECT_TRUE(t.Insert(*texts_, 1, std::string_view("hello")).ok());
    EXPECT_TRUE(t.Insert(*texts_, 2, std::span(chars)).ok());
    EXPECT_TRUE(t.Insert(*texts_, 3, unsigned_chars).ok());
    EXPECT_TRUE(t.Insert(*texts_, 4, std::as_bytes(std::span(text))).ok());
    EXPECT_TRUE(t.Upsert(*texts_, 5, array).ok());
    EXPECT_TRUE(t.Insert(*texts_, 6, std::string()).ok());
    EXPECT_TRUE(t.Update(*texts_, 6, std::string("hello")).ok());
    for (uint64_t key = 0; key < 7; ++key) EXPECT_EQ(TextOf(t, key), "hello") << key;
    EXPECT_TRUE(t.UpdateIf(*texts_, 0, std::string_view("hello"), std::string("bye")).value());
    EXPECT_EQ(TextOf(t, 0), "bye");
  });
}

TEST_F(PayloadTest, AWholeRowHasItsSize) {
  constexpr const char* kSizes = "16 bytes";
  constexpr const char* kRead = "table 'items', key 1: its payload has 16 bytes, not 2";
  constexpr const char* kWrite = "a payload of 4 bytes does not fit table 'items', exactly 16";
  Run([&](BlockingTransaction& t) {
    ExpectRefused(t.Insert(*items_, 1, 5), kWrite);
    ExpectRefused(t.Upsert(*items_, 1, 5), kWrite);
    EXPECT_TRUE(t.Insert(*items_, 1, Item{.stock = 7}).ok());
    uint16_t small = 1;
    std::array<std::byte, 17> large;
    ExpectRefused(t.Get(*items_, 1, &small), kRead);
    ExpectRefused(t.Get(*items_, 1, large), kSizes);
    ExpectRefused(t.Get(*items_, 1, std::span<std::byte>()), kSizes);
    ExpectRefused(t.GetForUpdate(*items_, 1, &small).status(), kRead);
    ExpectRefused(t.Update(*items_, 1, 5), kWrite);
    ExpectRefused(t.Upsert(*items_, 1, 5), kWrite);
    ExpectRefused(t.UpdateIf(*items_, 1, 5, 5).status(), kWrite);
    ExpectRefused(t.UpdateIf(*items_, 1, Item{}, 5).status(), kWrite);
    GetRequest requests[] = {GetRequest::Of(*items_, 1, &small), GetRequest::Of(*items_, 2, &small)};
    EXPECT_TRUE(t.GetMany(requests).ok());
    ExpectRefused(requests[0].status, kRead);
    EXPECT_TRUE(absl::IsNotFound(requests[1].status)) << requests[1].status;
    Item item;
    const StatusOr<RecordHandle> handle = t.GetForUpdate(*items_, 1, &item);
    ASSERT_TRUE(handle.ok());
    ExpectRefused(t.Update(*handle, 5), kWrite);
    EXPECT_EQ(item.stock, 7);
    EXPECT_EQ(small, 1);
    EXPECT_TRUE(t.Update(*handle, Item{.stock = 8}).ok());
    // The size of a row of variable length is its own.
    EXPECT_TRUE(t.Insert(*texts_, 1, std::string_view("text")).ok());
    ExpectRefused(t.Get(*texts_, 1, &small), "table 'texts', key 1: its payload has 4 bytes, not 2");
    std::array<char, 4> text;
    EXPECT_TRUE(t.Get(*texts_, 1, text).ok());
    EXPECT_EQ(std::string_view(text.data(), 4), "text");
    EXPECT_TRUE(t.Update(*texts_, 1, 'x').ok());
    ExpectRefused(t.Update(*texts_, 1, std::string(41, 'x')), "at most 40");
    EXPECT_EQ(TextOf(t, 1), "x");
  });
  auto session = database_->OpenSession();
  BulkLoader loader(session->get(), numbers_);
  ExpectRefused(loader.Add(1, 5), "a payload of 4 bytes does not fit table 'numbers', exactly 8");
}

// A row is taken as the comment of ScanRows::As says.
TEST(PayloadDeathTest, ARowIsTakenAsAWhole) {
  const Item item{.stock = 7};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&item, 1));
  EXPECT_EQ(RowOf<Item>(bytes).stock, 7);
  EXPECT_EQ(RowOf<int64_t>(bytes.first(8)), 7);
  EXPECT_DEATH(RowOf<int64_t>(bytes), "a row of 16 bytes was taken as a struct of 8");
}

TEST_F(PayloadTest, PartsAreNamedByFieldOrOffset) {
  struct Longer {
    Item item;
    int64_t more;
  };
  Run([&](BlockingTransaction& t) {
    EXPECT_TRUE(t.Insert(*items_, 1, Item{.stock = 7, .sold = 3, .weight = 0.5f}).ok());
    float weight = 0;
    uint32_t sold = 0;
    EXPECT_TRUE(t.Get(*items_, 1, &Item::weight, &weight).ok());
    EXPECT_EQ(weight, 0.5f);
    EXPECT_TRUE(t.Get(*items_, 1, &sold, offsetof(Item, sold)).ok());
    // No offset means all of the row.
    Item whole{};
    EXPECT_TRUE(absl::IsOutOfRange(t.Get(*items_, 1, &whole, UINT32_MAX)));
    ExpectRefused(t.Update(*items_, 1, whole, UINT32_MAX), "do not fit a payload of 16 bytes of table 'items'");
    EXPECT_EQ(sold, 3u);
    EXPECT_TRUE(absl::IsOutOfRange(t.Get(*items_, 1, &sold, 13)));
    EXPECT_TRUE(t.Update(*items_, 1, &Item::sold, 4).ok());
    EXPECT_TRUE(t.Update(*items_, 1, 1.5f, offsetof(Item, weight)).ok());
    ExpectRefused(t.Update(*items_, 1, 1.5f, 13), "bytes [13, 17) do not fit a payload of 16 bytes of table 'items'");
    const StatusOr<RecordHandle> handle = t.GetForUpdate(*items_, 1, &Item::sold, &sold);
    ASSERT_TRUE(handle.ok());
    EXPECT_EQ(sold, 4u);
    EXPECT_TRUE(t.Update(*handle, &Item::stock, 9).ok());
    EXPECT_TRUE(t.Update(*handle, uint32_t{5}, offsetof(Item, sold)).ok());
    Item item;
    EXPECT_TRUE(t.Get(*items_, 1, &item).ok());
    EXPECT_EQ(item.stock, 9);
    EXPECT_EQ(item.sold, 5u);
    EXPECT_EQ(item.weight, 1.5f);
    // A field of a struct that is not the table's.
    constexpr const char* kOther = "a struct of 24 bytes is not that of table 'items', whose rows have 16";
    int64_t more = 0;
    ExpectRefused(t.Get(*items_, 1, &Longer::more, &more), kOther);
    ExpectRefused(t.GetForUpdate(*items_, 1, &Longer::item, &item).status(), kOther);
    ExpectRefused(t.Update(*items_, 1, &Longer::item, item), kOther);
    ExpectRefused(t.Update(*handle, &Longer::item, item), kOther);
    ExpectRefused(t.Add(*items_, 1, &Longer::more, 1), kOther);
    // Rows of variable length may go on after the struct, or end before the field.
    EXPECT_TRUE(t.Insert(*texts_, 1, std::string(20, '\0')).ok());
    EXPECT_TRUE(t.Update(*texts_, 1, &Item::sold, 6).ok());
    EXPECT_TRUE(t.Get(*texts_, 1, &Item::sold, &sold).ok());
    EXPECT_EQ(sold, 6u);
    EXPECT_EQ(TextOf(t, 1).size(), 20u);
    EXPECT_TRUE(absl::IsOutOfRange(t.Get(*texts_, 1, &Longer::more, &more)));
    // Members of packed structs have any place.
    EXPECT_TRUE(t.Insert(*packed_, 1, Packed{.first = 'a', .number = 1, .low = 2, .high = 3, .name = "name"}).ok());
    EXPECT_TRUE(t.Add(*packed_, 1, &Packed::number, 5).ok());
    char name[500];
    EXPECT_TRUE(t.Get(*packed_, 1, &Packed::name, &name).ok());
    EXPECT_STREQ(name, "name");
    Packed packed;
    EXPECT_TRUE(t.Get(*packed_, 1, &packed).ok());
    EXPECT_EQ(packed.number, 6u);
    EXPECT_EQ(packed.high, 3u);
  });
}

TEST_F(PayloadTest, AddKnowsTheTypeOfTheNumber) {
  constexpr int64_t kLarge = int64_t{1} << 32;
  constexpr const char* kSize = "its payload has 16 bytes, not 4";
  Run([&](BlockingTransaction& t) {
    EXPECT_TRUE(t.Insert(*items_, 1, Item{.stock = kLarge, .sold = 1, .weight = 0.5f}).ok());
    ExpectRefused(t.Add(*items_, 1, -1), kSize);
    int64_t sum = 0;
    EXPECT_TRUE(t.Add(*items_, 1, &Item::stock, -1, &sum).ok());
    EXPECT_EQ(sum, kLarge - 1);
    EXPECT_TRUE(t.Add(*items_, 1, &Item::stock, 2, nullptr).ok());
    EXPECT_TRUE(t.AddAt<int64_t>(*items_, 1, 0, int8_t{-3}, &sum).ok());
    EXPECT_EQ(sum, kLarge - 2);
    // The sum is exact, whatever the type of the delta; one that does not fit changes nothing.
    uint32_t sold = 99;
    EXPECT_TRUE(t.Add(*items_, 1, &Item::sold, -1, &sold).ok());
    EXPECT_EQ(sold, 0u);
    EXPECT_TRUE(absl::IsOutOfRange(t.Add(*items_, 1, &Item::sold, -1, &sold)));
    EXPECT_TRUE(absl::IsOutOfRange(t.Add(*items_, 1, &Item::sold, kLarge, &sold)));
    EXPECT_TRUE(absl::IsOutOfRange(t.Add(*items_, 1, &Item::stock, std::numeric_limits<uint64_t>::max())));
    EXPECT_EQ(sold, 0u);
    EXPECT_TRUE(t.Add(*items_, 1, &Item::weight, 2).ok());
    Item item;
    EXPECT_TRUE(t.Get(*items_, 1, &item).ok());
    EXPECT_EQ(item.stock, kLarge - 2);
    EXPECT_EQ(item.sold, 0u);
    EXPECT_EQ(item.weight, 2.5f);
    // A number that is the whole row.
    EXPECT_TRUE(t.Insert(*numbers_, 1, kLarge).ok());
    EXPECT_TRUE(t.Add(*numbers_, 1, int64_t{-1}, nullptr).ok());
    ExpectRefused(t.Add(*numbers_, 1, -1), "its payload has 8 bytes, not 4");
    EXPECT_TRUE(t.Get(*numbers_, 1, &sum).ok());
    EXPECT_EQ(sum, kLarge - 1);
  });
}

}  // namespace payload_test
}  // namespace gannet::txn
