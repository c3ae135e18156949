// Keys and payloads as text: the exact forms, and that everything comes back.
#include "cli/rows/row_text.h"

#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "cli/rows/escaped_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/rectangle.h"
#include "index/tuple_key.h"
#include "nlohmann/json.hpp"
#include "rdma/shm/shm_fabric.h"
#include "txn/database.h"

namespace gannet::cli {
namespace row_text_test {

using index::Key;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;
using namespace std::string_view_literals;

class RowTextTest : public ::testing::Test {
 protected:
  RowTextTest() {
    fabric_ = *rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{256} << 20});
    database_ = *txn::Database::Open(fabric_.get(), 0, {});
    integers_ = *database_->CreateTable({.name = "integers", .payload_bytes = 8});
    bytes_ = *database_->CreateTable(
        {.name = "bytes", .key_kind = index::KeyKind::kBytes, .max_key_bytes = 64, .payload_bytes = 8});
    boxes_ = *database_->CreateTable({.name = "boxes",
                                      .key_kind = index::KeyKind::kBytes,
                                      .max_key_bytes = index::RectangleKey::kBytes,
                                      .index = index::IndexKind::kCatfish,
                                      .payload_bytes = 8});
  }

  static RowText Form(const txn::Table* table, KeyForm keys, PayloadForm payloads = PayloadForm::kText) {
    return *RowText::For(*table, {.keys = keys, .payloads = payloads});
  }

  // `key` has this text, and the text is this key.
  static void ExpectKey(const RowText& form, const Key& key, const std::string& text) {
    EXPECT_EQ(form.KeyText(key), text);
    const StatusOr<txn::KeyCopy> parsed = form.ParseKey(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_TRUE(parsed->view() == key) << text;
  }

  std::unique_ptr<rdma::Fabric> fabric_;
  std::unique_ptr<txn::Database> database_;
  const txn::Table* integers_;
  const txn::Table* bytes_;
  const txn::Table* boxes_;
};

TEST_F(RowTextTest, KeysHaveTheseForms) {
  ExpectKey(Form(integers_, KeyForm::kText), Key(uint64_t{18446744073709551615u}), "18446744073709551615");
  ExpectKey(Form(integers_, KeyForm::kHex), Key(0), "0");
  ExpectKey(Form(integers_, KeyForm::kSigned), Key::Signed(-9223372036854775807 - 1), "-9223372036854775808");
  ExpectKey(Form(integers_, KeyForm::kSigned), Key::Signed(7), "7");
  const RowText text = Form(bytes_, KeyForm::kText);
  ExpectKey(text, "Zürich 東京 😀", "Zürich 東京 😀");
  ExpectKey(text, "", "");
  ExpectKey(text, "a\\b\n\r\t\"'"sv, R"(a\\b\n\r\t"')");
  ExpectKey(text, std::string_view("\0001\xff\x7f", 4), R"(\x001\xff\x7f)");
  ExpectKey(text, "\xc2\x85 \xc3"sv, R"(\xc2\x85 \xc3)");  // a control character; half a character
  ExpectKey(Form(bytes_, KeyForm::kHex), "\x5a\xff"sv, "5aff");
  const RowText tuple = Form(bytes_, KeyForm::kTuple);
  ExpectKey(tuple, Key::Tuple(12, "Main \"x\",)", true, 2.5, -3, false, 4.0),
            R"~((12,"Main \"x\",)",true,2.5,-3,false,4.0))~");
  ExpectKey(tuple, Key::Tuple(uint64_t{18446744073709551615u}, INT64_MIN),
            "(18446744073709551615,-9223372036854775808)");
  ExpectKey(tuple, Key::Tuple(""), "(\"\")");
  ExpectKey(tuple, Key::Tuple(" a ", 1), "(\" a \",1)");
  ExpectKey(tuple, Key::Tuple(INFINITY, 1e300), "(inf,1e+300)");
  ExpectKey(tuple, "\xff!"sv, "ff21");  // no tuple
  const auto box = index::EncodeRectangleKey({.min_x = 1, .min_y = -2.5, .max_x = 3, .max_y = 1e100}, 7);
  for (const KeyForm form : {KeyForm::kText, KeyForm::kHex}) {
    ExpectKey(Form(boxes_, form), box->view(), "(1,-2.5,3,1e+100,7)");
  }
}

TEST_F(RowTextTest, TextIsReadWithBlanksInTuplesAndWithEscapedQuotes) {
  EXPECT_TRUE(Form(bytes_, KeyForm::kTuple).ParseKey("( 1 , \"a\" )")->view() == Key(Key::Tuple(1, "a")));
  EXPECT_EQ(*UnescapeText(R"(\"\'\x41B)"), "\"'AB");
  EXPECT_EQ(Form(bytes_, KeyForm::kHex).ParseKey("0x5A")->bytes(), "\x5a");
}

TEST_F(RowTextTest, WrongTextIsRefusedWithWhatItMustBe) {
  const auto refused = [](const RowText& form, std::string_view text, const char* says) {
    const StatusOr<txn::KeyCopy> key = form.ParseKey(text);
    EXPECT_TRUE(absl::IsInvalidArgument(key.status())) << text;
    EXPECT_THAT(std::string(key.status().message()), HasSubstr(says));
  };
  for (const char* text : {"", "-1", "1x", " 1", "18446744073709551616"}) {
    refused(Form(integers_, KeyForm::kText), text, "whole number from 0");
  }
  for (const char* text : {"", "1x", "9223372036854775808"}) {
    refused(Form(integers_, KeyForm::kSigned), text, "signed key");
  }
  for (const char* text : {"\\", "\\q", "\\x4", "\\x4g", "a\\x"}) {
    refused(Form(bytes_, KeyForm::kText), text, "two hexadecimal digits");
  }
  for (const char* text : {"5", "5g", "0x5"}) refused(Form(bytes_, KeyForm::kHex), text, "pairs of hexadecimal");
  for (const char* text : {"(", "(1", "(1,)", "(1)2", "(a)", "(\"a)", "(1 2)", "(18446744073709551616)"}) {
    refused(Form(bytes_, KeyForm::kTuple), text, "must be a tuple");
  }
  refused(Form(bytes_, KeyForm::kTuple), "Oslo", "must be a tuple");
  for (const char* text : {"", "1,2,3,4,5", "(1,2,3,4)", "(1,2,3,4,x)", "(1,2,3,4,5,6)"}) {
    refused(Form(boxes_, KeyForm::kText), text, "(min_x,min_y,max_x,max_y,id)");
  }
  refused(Form(boxes_, KeyForm::kText), "(3,2,1,4,5)", "rectangle");
}

TEST_F(RowTextTest, TheTableSaysTheFormIfNobodyElseDoes) {
  const auto table = [&](const char* name, txn::KeyForm form) {
    const bool integer = form == txn::KeyForm::kSigned;
    return *database_->CreateTable({.name = name,
                                    .key_kind = integer ? index::KeyKind::kInteger : index::KeyKind::kBytes,
                                    .max_key_bytes = integer ? index::kIntegerKeyBytes : 64,
                                    .key_form = form,
                                    .payload_bytes = 8});
  };
  const txn::Table* const tuples = table("tuples", txn::KeyForm::kTuple);
  ExpectKey(*RowText::For(*tuples, {}), Key::Tuple(1, "a"), "(1,\"a\")");
  ExpectKey(Form(tuples, KeyForm::kText), "Oslo", "Oslo");
  ExpectKey(*RowText::For(*table("signed", txn::KeyForm::kSigned), {}), Key::Signed(-1), "-1");
  ExpectKey(*RowText::For(*table("text", txn::KeyForm::kText), {}), "Oslo", "Oslo");
  ExpectKey(*RowText::For(*bytes_, {}), "Oslo", "Oslo");
  ExpectKey(*RowText::For(*integers_, {}), Key(5), "5");
}

TEST_F(RowTextTest, FormsThatATableCannotHaveAreRefused) {
  EXPECT_THAT(std::string(RowText::For(*bytes_, {.keys = KeyForm::kSigned}).status().message()),
              HasSubstr("are bytes"));
  EXPECT_THAT(std::string(RowText::For(*integers_, {.keys = KeyForm::kTuple}).status().message()),
              HasSubstr("are integers"));
  EXPECT_THAT(std::string(RowText::For(*boxes_, {.keys = KeyForm::kTuple}).status().message()),
              HasSubstr("are rectangles"));
}

TEST_F(RowTextTest, ColumnsNameTheForms) {
  const RowText plain = Form(bytes_, KeyForm::kText);
  EXPECT_EQ(plain.KeyColumn() + plain.PayloadColumn(), "keypayload");
  const RowText other = *plain.WithColumns("key_tuple", "payload_hex");
  EXPECT_EQ(other.KeyColumn(), "key_tuple");
  EXPECT_EQ(other.KeyText(Key::Tuple(1)), "(1)");
  EXPECT_EQ(*other.ParsePayload("41"), "A");
  EXPECT_FALSE(plain.WithColumns("key_signed", "payload").ok());
  EXPECT_FALSE(plain.WithColumns("name", "payload").ok());
  EXPECT_FALSE(plain.WithColumns("key", "payload_tuple").ok());
  EXPECT_TRUE(Form(integers_, KeyForm::kText).WithColumns("key_signed", "payload").ok());
  EXPECT_FALSE(Form(integers_, KeyForm::kText).WithColumns("key_hex", "payload").ok());
  EXPECT_FALSE(Form(boxes_, KeyForm::kText).WithColumns("key_tuple", "payload").ok());
}

TEST_F(RowTextTest, JsonHasTextAsItIsAndOtherBytesInBase64) {
  const RowText text = Form(bytes_, KeyForm::kText);
  EXPECT_EQ(text.ToJson("a\\\n", "\"").dump(), R"({"key":"a\\\n","payload":"\""})");
  EXPECT_EQ(text.ToJson("\xff", "\xfe").dump(), R"({"key_base64":"/w==","payload_base64":"/g=="})");
  EXPECT_EQ(Form(integers_, KeyForm::kSigned, PayloadForm::kHex).ToJson(Key::Signed(-1), "A").dump(),
            R"({"key_signed":-1,"payload_hex":"41"})");
  EXPECT_EQ(Form(bytes_, KeyForm::kTuple).ToJson(Key::Tuple(1, "a", 2.0, true), "").dump(),
            R"({"key_tuple":[1,"a",2.0,true],"payload":""})");
  EXPECT_EQ(Form(bytes_, KeyForm::kTuple).ToJson(Key::Tuple(INFINITY), "").dump().substr(0, 11), R"({"key_hex":)");
  const auto box = index::EncodeRectangleKey({.min_x = 1, .min_y = 2, .max_x = 3, .max_y = 4}, 5);
  EXPECT_EQ(Form(boxes_, KeyForm::kText).ToJson(box->view(), "").dump(), R"({"key":[1.0,2.0,3.0,4.0,5],"payload":""})");
}

TEST_F(RowTextTest, WrongJsonIsRefusedByTheMembersName) {
  const auto says = [](const RowText& form, const char* row) {
    const StatusOr<RowBytesOwned> read = form.FromJson(Json::parse(row));
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << row;
    return std::string(read.status().message());
  };
  const RowText text = Form(bytes_, KeyForm::kText);
  EXPECT_THAT(says(text, "[]"), HasSubstr("JSON object"));
  EXPECT_THAT(says(text, R"({"key":"a"})"), HasSubstr("no \"payload\""));
  EXPECT_THAT(says(text, R"({"payload":"a"})"), HasSubstr("no \"key\""));
  EXPECT_THAT(says(text, R"({"key":1,"payload":"a"})"), HasSubstr("\"key\" must be a string"));
  EXPECT_THAT(says(text, R"({"key":"a","key_hex":"00","payload":"a"})"),
              HasSubstr("\"key_hex\" is one member too many"));
  EXPECT_THAT(says(text, R"({"key":"a","payload":"a","size":1})"), HasSubstr("\"size\""));
  EXPECT_THAT(says(text, R"({"key_base64":"!","payload":"a"})"), HasSubstr("\"key_base64\" must be in base64"));
  EXPECT_THAT(says(text, R"({"key_tuple":[[]],"payload":"a"})"), HasSubstr("\"key_tuple\""));
  EXPECT_THAT(says(Form(integers_, KeyForm::kText), R"({"key":-1,"payload":"a"})"), HasSubstr("whole number from 0"));
  EXPECT_THAT(says(Form(integers_, KeyForm::kText), R"({"key_signed":9223372036854775808,"payload":"a"})"),
              HasSubstr("2^63 - 1"));
  EXPECT_THAT(says(Form(boxes_, KeyForm::kText), R"({"key":[1,2,3,4],"payload":"a"})"), HasSubstr("rectangle"));
}

// Any bytes come back from text and from JSON, in every form.
TEST_F(RowTextTest, RandomRowsComeBack) {
  constexpr uint64_t kSeed = 17;
  Random random(kSeed);
  const auto bytes = [&random] {
    std::string text(random() % 20, '\0');
    const bool any = random() % 2 == 0;
    for (char& c : text) c = any ? static_cast<char>(random()) : "ab\\\",\n\x01\xc3\xbc("[random() % 11];
    return text;
  };
  const auto number = [&random] { return random() >> (random() % 64); };
  const auto tuple = [&] {
    index::TupleKey key;
    for (uint64_t fields = random() % 4; fields > 0; --fields) {
      switch (random() % 5) {
        case 0:
          key.Append(bytes());
          break;
        case 1:
          key.Append(number());
          break;
        case 2:
          key.Append(static_cast<int64_t>(number()) * -1);
          break;
        case 3:
          key.Append(std::bit_cast<double>(random() & 0xbfffffffffffffff));  // finite
          break;
        default:
          key.Append(random() % 2 == 0);
      }
    }
    return std::string(key.bytes());
  };
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", round " << round);
    const auto keys = static_cast<KeyForm>(round % 4);
    const txn::Table* table = keys == KeyForm::kSigned || round % 7 == 0 ? integers_ : bytes_;
    if (table == integers_ && keys == KeyForm::kTuple) continue;
    const RowText form = Form(table, keys, static_cast<PayloadForm>(random() % 2));
    const std::string key_bytes = keys == KeyForm::kTuple ? tuple() : bytes();
    const Key key = table == integers_ ? Key(number()) : Key(key_bytes);
    const std::string payload = bytes();
    const StatusOr<txn::KeyCopy> key_again = form.ParseKey(form.KeyText(key));
    ASSERT_TRUE(key_again.ok()) << form.KeyText(key) << key_again.status();
    EXPECT_TRUE(key_again->view() == key) << form.KeyText(key);
    EXPECT_EQ(*form.ParsePayload(form.PayloadText(payload)), payload);
    const std::string json = form.ToJson(key, payload).dump();
    const StatusOr<RowBytesOwned> row = form.FromJson(Json::parse(json));
    ASSERT_TRUE(row.ok()) << json << row.status();
    EXPECT_TRUE(row->key.view() == key) << json;
    EXPECT_EQ(row->payload, payload) << json;
  }
}

}  // namespace row_text_test
}  // namespace gannet::cli
