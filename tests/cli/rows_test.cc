// Tables and rows of a data directory, by the commands that need no schema.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/program.h"
#include "txn/database.h"

namespace gannet::cli {
namespace rows_test {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class RowsTest : public ::testing::Test {
 protected:
  RowsTest() {
    fs::remove_all(scratch_);
    fs::create_directories(scratch_);
  }
  ~RowsTest() override { fs::remove_all(scratch_); }

  std::string Path(const std::string& name) const { return (scratch_ / name).string(); }

  // `command` in the directory "data".
  Outcome Run(const std::string& command, std::vector<std::string> arguments, const Surroundings& surroundings = {}) {
    arguments.insert(arguments.begin(), {command, Path("data"), "--memory-per-node", "1G"});
    return RunProgram(arguments, surroundings);
  }
  // Does what Run does; the command must succeed. Returns its output.
  std::string Do(const std::string& command, const std::vector<std::string>& arguments) {
    const Outcome outcome = Run(command, arguments);
    EXPECT_EQ(outcome.exit_code, 0) << command << ": " << outcome.err;
    return outcome.out;
  }

  void Write(const std::string& name, const std::string& text) const { std::ofstream(Path(name)) << text; }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }

  const fs::path scratch_ =
      fs::path(::testing::TempDir()) /
      (std::string("gannet_rows_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(RowsTest, RowsAreWrittenAndRead) {
  Do("create-table", {"cities", "--key", "bytes", "--payload", "100", "--note", "of the world", "--create"});
  Do("put", {"cities", "Oslo", "Norway"});
  Do("put", {"cities", "Zürich", "Switzerland\\n\\x00"});
  Do("put", {"cities", "Oslo", "Norge"});
  EXPECT_EQ(Do("get", {"cities", "Oslo"}), "Norge\n");
  EXPECT_EQ(Do("get", {"cities", "4f736c6f", "--keys", "hex", "--payloads", "hex"}), "4e6f726765\n");
  EXPECT_EQ(Do("get", {"cities", "Zürich", "--json"}), "{\"key\":\"Zürich\",\"payload\":\"Switzerland\\n\\u0000\"}\n");
  EXPECT_EQ(Do("scan", {"cities"}), "Oslo\tNorge\nZürich\tSwitzerland\\n\\x00\n");
  EXPECT_EQ(Do("count", {"cities"}), "2\n");
  const Outcome missing = Run("get", {"cities", "Rome"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_EQ(missing.out, "");
  EXPECT_EQ(missing.err, "gannet get: there is no such row: table 'cities', key \"Rome\"\n");
  Do("delete", {"cities", "Oslo"});
  EXPECT_EQ(Run("delete", {"cities", "Oslo"}).exit_code, 3);
  EXPECT_EQ(Run("get", {"cities", "Oslo"}).exit_code, 3);
  EXPECT_EQ(Run("get", {"towns", "Oslo"}).exit_code, 2);
  EXPECT_EQ(RunProgram({"get", Path("nothing"), "cities", "Oslo"}).exit_code, 1);
  EXPECT_THAT(RunProgram({"tpcc", "check", "--dir", Path("data")}).err, HasSubstr("has a database, not one of TPC-C"));
  const Json table = Json::parse(Do("tables", {"--json"}));
  EXPECT_EQ(table.at("table"), "cities");
  EXPECT_EQ(table.at("keys"), "bytes");
  EXPECT_EQ(table.at("key_form"), "");
  EXPECT_EQ(table.at("index"), "xstore");
  EXPECT_EQ(table.at("payload_bytes"), 100);
  EXPECT_EQ(table.at("application"), "of the world");
}

TEST_F(RowsTest, SalvageReadsAndSavesWhatIsLeft) {
  Do("create-table", {"cities", "--key", "bytes", "--payload", "100", "--create"});
  Do("create-index", {"cities", "by_country", "--field", "text:0:0"});
  for (const char* city : {"Bergen", "Oslo", "Turin"}) Do("put", {"cities", city, "somewhere"});
  // Each command has a segment of its own.
  fs::path damaged;
  for (const auto& entry : fs::directory_iterator(scratch_ / "data")) {
    const std::string name = entry.path().filename().string();
    std::string bytes = Read("data/" + name);
    const size_t at = bytes.find("Oslo");
    if (!name.starts_with("log-") || at == std::string::npos) continue;
    damaged = entry.path();
    bytes[at] = 'X';
    std::ofstream(damaged, std::ios::binary) << bytes;
  }
  ASSERT_FALSE(damaged.empty());

  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"scan", "cities"}, {"count"}, {"get", "cities", "Bergen"}, {"export", "cities"}}) {
    const std::vector<std::string> arguments(command.begin() + 1, command.end());
    const Outcome refused = Run(command[0], arguments);
    EXPECT_EQ(refused.exit_code, 1) << command[0];
    EXPECT_THAT(refused.err, HasSubstr(damaged.string() + " is damaged at offset "));
    EXPECT_THAT(refused.err, HasSubstr("save what is left in a new directory: gannet backup --salvage DIR NEW"));
    std::vector<std::string> with_salvage = arguments;
    with_salvage.push_back("--salvage");
    const Outcome salvaged = Run(command[0], with_salvage);
    EXPECT_EQ(salvaged.exit_code, 1) << "something is left out";
    EXPECT_THAT(salvaged.err, HasSubstr("DAMAGED, left out: " + damaged.string()));
    EXPECT_NE(salvaged.out, "") << salvaged.err;
    EXPECT_THAT(salvaged.out, Not(HasSubstr("Oslo")));
  }
  EXPECT_EQ(Run("scan", {"cities", "--salvage"}).out, "Bergen\tsomewhere\nTurin\tsomewhere\n");

  const Outcome verified = RunProgram({"verify", Path("data")});
  EXPECT_THAT(verified.out, HasSubstr("gannet backup --salvage"));
  EXPECT_EQ(RunProgram({"backup", Path("data"), Path("saved")}).exit_code, 1);
  EXPECT_FALSE(fs::exists(Path("saved")));
  const Outcome saved = RunProgram({"backup", "--salvage", Path("data"), Path("saved")});
  EXPECT_EQ(saved.exit_code, 1) << saved.out << saved.err;
  EXPECT_THAT(saved.err, HasSubstr("DAMAGED, left out: " + damaged.string()));
  EXPECT_THAT(saved.out, HasSubstr("all is well"));
  // It is a database that goes on, with another identity than the damaged one.
  for (int again = 0; again < 2; ++again) {
    const Outcome sound = RunProgram({"verify", Path("saved")});
    EXPECT_EQ(sound.exit_code, 0) << sound.out << sound.err;
    const Outcome rows = RunProgram({"scan", Path("saved"), "cities", "--memory-per-node", "1G"});
    EXPECT_EQ(rows.out, again == 0 ? "Bergen\tsomewhere\nTurin\tsomewhere\n"
                                   : "Bergen\tsomewhere\nOslo\tagain\nTurin\tsomewhere\n");
    const Outcome put = RunProgram({"put", Path("saved"), "cities", "Oslo", "again", "--memory-per-node", "1G"});
    EXPECT_EQ(put.exit_code, 0) << put.err;
  }
  const Outcome tables = RunProgram({"tables", Path("saved")});
  EXPECT_THAT(tables.out, HasSubstr("index of cities, not complete"));
}

TEST_F(RowsTest, KeysOfEveryKindAreText) {
  Do("create-table", {"numbers", "--payload", "10", "--create"});
  Do("create-table", {"hashed", "--index", "hash", "--payload", "4", "--fixed"});
  Do("create-table", {"tuples", "--key", "bytes", "--max-key-bytes", "20", "--index", "blink", "--payload", "0"});
  Do("create-table", {"boxes", "--index", "catfish", "--payload", "10"});
  Do("put", {"numbers", "18446744073709551615", "last"});
  Do("put", {"numbers", "--keys", "signed", "--", "-1", "minus"});
  EXPECT_EQ(Do("scan", {"numbers"}), "9223372036854775807\tminus\n18446744073709551615\tlast\n");
  EXPECT_EQ(Do("get", {"numbers", "--keys", "signed", "--", "-1"}), "minus\n");
  Do("put", {"hashed", "7", "four"});
  EXPECT_EQ(Do("scan", {"hashed"}), "7\tfour\n");
  for (const char* key : {"(1,\"b\")", "(2,\"a\")", "(1,\"a\")"}) Do("put", {"tuples", key, "", "--keys", "tuple"});
  EXPECT_EQ(Do("scan", {"tuples", "--keys", "tuple", "--prefix", "(1)"}), "(1,\"a\")\t\n(1,\"b\")\t\n");
  Do("put", {"boxes", "(1,2,3,4.5,6)", "box"});
  EXPECT_EQ(Do("get", {"boxes", "(1,2,3,4.5,6)"}), "box\n");
  EXPECT_EQ(Do("scan", {"boxes", "--json"}), "{\"key\":[1.0,2.0,3.0,4.5,6],\"payload\":\"box\"}\n");
  EXPECT_EQ(Do("count", {}), "table    rows\nnumbers     2\nhashed      1\ntuples      3\nboxes       1\n");
  EXPECT_EQ(Do("count", {"boxes", "--json"}), "{\"table\":\"boxes\",\"rows\":1}\n");
  EXPECT_EQ(Do("tables", {}),
            "table              keys    index         payload   placement  note\n"
            "numbers         integer   xstore  up to 10 bytes  first_node      \n"
            "hashed          integer     hash         4 bytes  first_node      \n"
            "tuples   up to 20 bytes    blink   up to 0 bytes  first_node      \n"
            "boxes    up to 40 bytes  catfish  up to 10 bytes  first_node      \n");
}

// The catalog keeps the form of a table's keys, so no command but create-table needs --keys.
TEST_F(RowsTest, TheFormOfKeysIsKept) {
  Do("create-table", {"people", "--keys", "tuple", "--payload", "40", "--create"});
  Do("create-table", {"numbers", "--keys", "signed", "--payload", "10"});
  Do("create-table", {"words", "--keys", "text", "--payload", "10"});
  EXPECT_EQ(Do("tables", {}),
            "table                     keys   index         payload   placement  note\n"
            "people   up to 64 bytes, tuple  xstore  up to 40 bytes  first_node      \n"
            "numbers        integer, signed  xstore  up to 10 bytes  first_node      \n"
            "words     up to 64 bytes, text  xstore  up to 10 bytes  first_node      \n");
  Write("world.csv", "country,population\nNorway,5600000\n");
  EXPECT_EQ(Run("import", {"people", Path("world.csv"), "--key", "country", "--payload", "population"}).exit_code, 0);
  Do("put", {"people", "(\"Norway\",\"Oslo\")", "709000"});
  Do("put", {"numbers", "--", "-1", "minus"});
  Do("put", {"numbers", "1", "plus"});
  Do("put", {"words", "Oslo", "Norway"});

  const std::string rows = "(\"Norway\")\t5600000\n(\"Norway\",\"Oslo\")\t709000\n";
  EXPECT_EQ(Do("scan", {"people", "--prefix", "(\"Norway\")"}), rows);
  EXPECT_EQ(Do("scan", {"people", "--from", "(\"Norway\",\"A\")", "--json"}),
            "{\"key_tuple\":[\"Norway\",\"Oslo\"],\"payload\":\"709000\"}\n");
  EXPECT_EQ(Do("count", {"people", "--prefix", "(\"Norway\",\"Oslo\")"}), "1\n");
  EXPECT_EQ(Do("get", {"people", "(\"Norway\")"}), "5600000\n");
  EXPECT_EQ(Do("get", {"people", "024e6f7277617900", "--keys", "hex"}), "5600000\n");
  EXPECT_EQ(Do("scan", {"numbers"}), "-1\tminus\n1\tplus\n");
  EXPECT_EQ(Do("scan", {"numbers", "--keys", "text", "--limit", "1"}), "9223372036854775807\tminus\n");
  EXPECT_EQ(Do("get", {"words", "Oslo"}), "Norway\n");
  const std::string exported = Do("export", {"people"});
  EXPECT_EQ(exported,
            "key_tuple,payload\n\"(\"\"Norway\"\")\",5600000\n"
            "\"(\"\"Norway\"\",\"\"Oslo\"\")\",709000\n");
  EXPECT_THAT(Do("export", {"people", "--keys", "hex"}), StartsWith("key_hex,payload\n"));
  Do("export", {"people", "--out", Path("people.json")});
  EXPECT_THAT(Read("people.json"), StartsWith("{\"key_tuple\":[\"Norway\"]")) << "the name says the format";
  EXPECT_EQ(Run("import", {"people", Path("people.json"), "--replace"}).exit_code, 0);
  Do("delete", {"people", "(\"Norway\",\"Oslo\")"});
  Write("people.csv", exported);
  EXPECT_EQ(Run("import", {"people", Path("people.csv"), "--replace"}).exit_code, 0);
  EXPECT_EQ(Do("scan", {"people"}), rows);
  EXPECT_EQ(Run("get", {"people", "Norway"}).exit_code, 2);
  EXPECT_THAT(Run("get", {"people", "Norway"}).err, HasSubstr("KEY Norway: must be a tuple such as "));
  EXPECT_EQ(Run("get", {"numbers", "--", "-2"}).err, "gannet get: there is no such row: table 'numbers', key -2\n");
  const std::string log = RunProgram({"log", "dump", Path("data")}).out;
  EXPECT_THAT(log, HasSubstr("put    people (\"Norway\",\"Oslo\") version"));
  EXPECT_THAT(log, HasSubstr("put    numbers -1 version"));

  // A copy has it, too.
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{{}, {"--salvage"}}) {
    std::vector<std::string> backup = {"backup", Path("data"), Path(flags.empty() ? "copy" : "saved")};
    backup.insert(backup.end(), flags.begin(), flags.end());
    EXPECT_EQ(RunProgram(backup).exit_code, 0);
    EXPECT_EQ(RunProgram({"scan", backup[2], "people", "--memory-per-node", "1G"}).out, rows);
  }
  Write("input", "rename-table people pairs\nscan pairs\nget numbers -- -1\n");
  const Outcome shell = RunProgram({"shell", Path("data"), "--memory-per-node", "1G"}, {.in = Path("input")});
  EXPECT_EQ(shell.out, rows + "minus\n") << shell.err;
}

TEST_F(RowsTest, FormsThatKeysCannotHaveAreRefused) {
  const auto refused = [&](std::vector<std::string> flags, const char* says) {
    flags.insert(flags.begin(), {"t", "--payload", "1", "--create"});
    const Outcome outcome = Run("create-table", flags);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(says));
  };
  refused({"--keys", "hex"}, "--keys hex: must be text, tuple or signed");
  refused({"--keys", "tuple", "--key", "integer"},
          "key_form is tuple, which is for byte keys, and its keys are integers");
  refused({"--keys", "signed", "--key", "bytes"},
          "key_form is signed, which is for integer keys, and its keys are bytes");
  refused({"--keys", "tuple", "--index", "catfish"}, "its keys are rectangles");
}

TEST_F(RowsTest, MessagesHaveTuplesAsTuples) {
  Do("create-table", {"people", "--key", "bytes", "--payload", "20", "--create"});
  EXPECT_EQ(Run("get", {"people", "(\"Norway\",1)", "--keys", "tuple"}).err,
            "gannet get: there is no such row: table 'people', key (\"Norway\",1)\n");
  EXPECT_EQ(Run("get", {"people", "\\xff"}).err, "gannet get: there is no such row: table 'people', key \"\\xff\"\n");
}

TEST_F(RowsTest, AnyColumnsOfCsvAreImported) {
  Do("create-table", {"people", "--key", "bytes", "--payload", "40", "--create"});
  Do("create-table", {"cities", "--key", "bytes", "--payload", "40"});
  Do("create-table", {"numbers", "--payload", "40"});
  Write("world.csv", "id,country,year,population,note\n7,Norway,2026,5600000,\"a, b\"\n8,C:\\x,1990,1,\n");
  const auto import = [&](const std::string& table, const std::string& key, const std::string& payload) {
    return Run("import", {table, Path("world.csv"), "--key", key, "--payload", payload, "--replace"});
  };
  EXPECT_EQ(import("people", "country,year:integer", "population").exit_code, 0);
  EXPECT_EQ(Do("scan", {"people", "--keys", "tuple"}), "(\"C:\\\\x\",1990)\t1\n(\"Norway\",2026)\t5600000\n");
  EXPECT_EQ(import("cities", "country", "population,note").exit_code, 0);
  EXPECT_EQ(Do("scan", {"cities"}), "C:\\\\x\t1,\nNorway\t5600000,\"a, b\"\n");
  EXPECT_EQ(import("numbers", "id", "country").exit_code, 0);
  EXPECT_EQ(Do("get", {"numbers", "7"}), "Norway\n");
  EXPECT_THAT(import("numbers", "country", "id").err, HasSubstr("line 2: column 'country' must be an integer key"));
  EXPECT_THAT(import("numbers", "id,year", "note").err, HasSubstr("keys that are integers are not made of several"));
  EXPECT_THAT(import("people", "country,age", "note").err, HasSubstr("line 1: must name a column 'age'"));
  EXPECT_THAT(import("people", "country,year:int", "note").err,
              HasSubstr("column 'year:int'; the types of columns are text, integer, double and bool"));
  EXPECT_EQ(Run("import", {"people", Path("world.csv"), "--key", "country"}).exit_code, 2) << "and no payload";
  EXPECT_THAT(Run("import", {"people", Path("world.csv")}).err, HasSubstr("--key and --payload say which"));
}

TEST_F(RowsTest, ATableGetsAnotherName) {
  Do("create-table", {"cities", "--payload", "20", "--create"});
  Do("put", {"cities", "1", "Oslo"});
  Do("rename-table", {"cities", "towns"});
  EXPECT_EQ(Do("get", {"towns", "1"}), "Oslo\n");
  const Outcome gone = Run("rename-table", {"town", "places"});
  EXPECT_EQ(gone.exit_code, 2);
  EXPECT_THAT(gone.err, HasSubstr("has no table 'town'; did you mean towns?"));
}

TEST_F(RowsTest, ADatabaseNeedsADirectoryOfItsOwn) {
  fs::create_directories(Path("data"));
  Write("data/notes.txt", "mine");
  const Outcome refused = Run("create-table", {"cities", "--payload", "20", "--create"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("data has other files (notes.txt), and a database needs a directory of its own"));
  EXPECT_EQ(std::distance(fs::directory_iterator(Path("data")), fs::directory_iterator()), 1) << "no LOCK";
  fs::remove(Path("data/notes.txt"));
  Do("create-table", {"cities", "--payload", "20", "--create"});
}

TEST_F(RowsTest, AReaderOfADirectoryInUseSaysWhatItSees) {
  Do("create-table", {"cities", "--payload", "20", "--create"});
  Do("put", {"cities", "1", "Oslo"});
  const auto database = txn::Database::Open(Path("data"), {.memory_bytes = uint64_t{64} << 20});
  ASSERT_TRUE(database.ok()) << database.status();
  ASSERT_TRUE((*database)->Start().ok());
  const Outcome outcome = Run("get", {"cities", "1"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "Oslo\n");
  EXPECT_EQ(outcome.err, Path("data") + " is open in process " + std::to_string(getpid()) +
                             "; the rows are those of one moment, with every commit that was durable when this command "
                             "began\n");
  ASSERT_TRUE((*database)->Close().ok());
}

TEST_F(RowsTest, SecondaryIndexesAreMadeAndKept) {
  Do("create-table", {"people", "--payload", "20", "--create"});
  Do("put", {"people", "1", "Ann"});
  Do("put", {"people", "2", "Bob"});
  Do("create-index", {"people", "by_name", "--field", "text:0:0", "--unique"});
  Do("create-index", {"people", "by_initial", "--field", "bytes:0:1", "--field", "key"});
  const std::string tables = Do("tables", {});
  EXPECT_THAT(tables, HasSubstr("unique index of people: text of payload from 0 on"));
  EXPECT_THAT(tables, HasSubstr("index of people: bytes of payload at 0, 1 bytes; unsigned of key at 0, 8 bytes"));
  const Outcome twice = Run("put", {"people", "3", "Bob"});
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_THAT(twice.err, HasSubstr("index 'by_name' of table 'people', key (\"Bob\")"));
  Do("put", {"people", "1", "Cy"});
  EXPECT_EQ(Do("scan", {"by_name", "--keys", "tuple", "--payloads", "hex"}),
            "(\"Bob\")\t0000000000000002\n(\"Cy\")\t0000000000000001\n");
  EXPECT_EQ(Do("count", {"by_initial"}), "2\n");
  EXPECT_EQ(Run("put", {"by_name", "x", "12345678"}).exit_code, 1);
  for (const char* wrong : {"text:0", "text:0:x", "word:0:1", "text:0:21", "floating:0:3"}) {
    const Outcome refused = Run("create-index", {"people", "wrong", "--field", wrong});
    EXPECT_NE(refused.exit_code, 0) << wrong;
    EXPECT_NE(refused.err, "") << wrong;
  }
}

TEST_F(RowsTest, RowsAreReadByASecondaryIndex) {
  Do("create-table", {"cities", "--key", "bytes", "--payload", "60", "--create"});
  for (const auto& [city, country] : std::vector<std::pair<std::string, std::string>>{
           {"Oslo", "Norway"}, {"Bergen", "Norway"}, {"Bern", "Switzerland"}, {"Rome", "Italy"}, {"Lima", "Peru"}}) {
    Do("put", {"cities", city, country});
  }
  Do("create-index", {"cities", "by_country", "--field", "text:0:0"});
  Do("create-index", {"cities", "by_initial", "--field", "bytes:0:2", "--field", "key", "--unique"});
  const std::string tables = Do("tables", {"--json"});
  EXPECT_THAT(tables, HasSubstr(R"("fields":[{"source":"payload","type":"text","offset":0,"bytes":0}])"));
  EXPECT_THAT(tables, HasSubstr(R"({"source":"key","type":"bytes","offset":0,"bytes":0})"));
  EXPECT_EQ(Do("scan", {"cities", "--by", "by_country"}),
            "Rome\tItaly\nBergen\tNorway\nOslo\tNorway\nLima\tPeru\nBern\tSwitzerland\n");
  EXPECT_EQ(Do("scan", {"cities", "--by", "by_country", "--reverse", "--limit", "3"}),
            "Bern\tSwitzerland\nLima\tPeru\nOslo\tNorway\n");
  EXPECT_EQ(Do("scan", {"cities", "--by", "by_country", "--prefix", "No"}), "Bergen\tNorway\nOslo\tNorway\n");
  EXPECT_EQ(Do("scan", {"cities", "--by", "by_country", "--prefix", "(\"No\")"}), "") << "of the whole field";
  EXPECT_EQ(Do("scan", {"cities", "--by", "by_country", "--prefix", "(\"Norway\")"}), "Bergen\tNorway\nOslo\tNorway\n");
  EXPECT_EQ(Do("scan", {"cities", "--by", "by_country", "--from", "Norway", "--to", "Switzerland", "--json"}),
            "{\"key\":\"Bergen\",\"payload\":\"Norway\"}\n{\"key\":\"Oslo\",\"payload\":\"Norway\"}\n"
            "{\"key\":\"Lima\",\"payload\":\"Peru\"}\n");
  EXPECT_EQ(Do("count", {"cities", "--by", "by_country", "--prefix", "Norway"}), "2\n");
  EXPECT_EQ(Do("count", {"cities", "--by", "by_country"}), "5\n");
  EXPECT_EQ(Do("get", {"cities", "(\"No\",\"Oslo\")", "--by", "by_initial"}), "Norway\n");
  EXPECT_EQ(Do("get", {"cities", "(\"No\",\"Oslo\")", "--by", "by_initial", "--json"}),
            "{\"key\":\"Oslo\",\"payload\":\"Norway\"}\n");
  const Outcome missing = Run("get", {"cities", "(\"No\",\"Rome\")", "--by", "by_initial"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err,
              HasSubstr("there is no such row: index 'by_initial' of table 'cities', key (\"No\", \"Rome\")"));
}

TEST_F(RowsTest, WrongReadsByAnIndexSayWhatToDo) {
  Do("create-table", {"cities", "--payload", "60", "--create"});
  Do("create-table", {"people", "--payload", "60"});
  Do("put", {"cities", "1", "abcdefgh"});
  Do("create-index", {"cities", "by_country", "--field", "text:0:0"});
  Do("create-index", {"cities", "by_size", "--field", "unsigned:0:8", "--unique"});
  const auto refused = [this](const std::string& command, const std::vector<std::string>& arguments,
                              const std::string& says) {
    const Outcome outcome = Run(command, arguments);
    EXPECT_EQ(outcome.exit_code, 2) << says;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(outcome.out, "");
  };
  refused("scan", {"cities", "--by", "by_contry"}, "table 'cities' has no such index; did you mean by_country?");
  refused("scan", {"cities", "--by", "zzz"}, "it has by_country, by_size");
  refused("scan", {"cities", "--by", "people"}, "it has by_country, by_size");
  refused("count", {"people", "--by", "by_country"}, "gannet create-index makes one");
  refused("count", {"--by", "by_country"}, "name the table");
  refused("get", {"cities", "Oslo", "--by", "by_country"}, "the index is not unique");
  refused("get", {"cities", "Oslo", "--by", "by_size"}, "KEY Oslo: must be a whole number from 0 to 2^64 - 1");
  refused("get", {"cities", "(\"Oslo\")", "--by", "by_size"}, "is a Key::Tuple of its first fields");
  refused("get", {"cities", "(Oslo", "--by", "by_size"}, "KEY (Oslo: ");
  refused("scan", {"cities", "--by", "by_size", "--prefix", "1"}, "--prefix 1: numbers have no prefix");
  refused("scan", {"cities", "--by", "by_size", "--from", "x"}, "--from x: must be a whole number");
  refused("scan", {"cities", "--by", "by_country", "--to", "\\q"}, "--to \\q: ");
}

// A scan is made of many transactions, but rows with equal keys are in one.
TEST_F(RowsTest, AScanByAnIndexHasEveryRowOnce) {
  Do("create-table", {"rows", "--payload", "10", "--create"});
  std::string file = "key,payload\n";
  constexpr int kRows = 20'000;
  // 3000 rows of each key; one has 8000.
  const auto group = [](int i) { return i < 8000 ? 5 : i / 3000; };
  for (int i = 0; i < kRows; ++i) file += std::to_string(i) + "," + static_cast<char>('a' + group(i)) + "\n";
  Write("rows.csv", file);
  Do("import", {"rows", Path("rows.csv")});
  Do("create-index", {"rows", "by_letter", "--field", "bytes:0:1"});
  std::vector<int> order(kRows);
  for (int i = 0; i < kRows; ++i) order[static_cast<size_t>(i)] = i;
  std::ranges::stable_sort(order, {}, group);
  std::string expected;
  for (const int i : order) expected += std::to_string(i) + "\t" + static_cast<char>('a' + group(i)) + "\n";
  EXPECT_EQ(Do("scan", {"rows", "--by", "by_letter"}), expected);
  std::string reversed;
  for (size_t i = order.size(); i-- > 0;) {
    reversed += std::to_string(order[i]) + "\t" + static_cast<char>('a' + group(order[i])) + "\n";
  }
  EXPECT_EQ(Do("scan", {"rows", "--by", "by_letter", "--reverse"}), reversed);
  EXPECT_EQ(Do("count", {"rows", "--by", "by_letter"}), "20000\n");
}

// The program does not know the functions, but the directory has their entries.
TEST_F(RowsTest, RowsAreReadByAnIndexOfAFunction) {
  {
    auto database = txn::Database::Open(Path("data"), {.create_if_missing = true, .memory_bytes = 256 << 20});
    ASSERT_TRUE(database.ok()) << database.status();
    const auto words = (*database)->CreateTable({.name = "words", .payload_bytes = 20, .variable_length = true});
    ASSERT_TRUE(words.ok()) << words.status();
    const auto payload_of = [](std::span<const std::byte> payload) {
      return std::string(reinterpret_cast<const char*>(payload.data()), payload.size());
    };
    const auto reversed = [&](const index::Key&, std::span<const std::byte> payload) {
      std::string text = payload_of(payload);
      std::ranges::reverse(text);
      return std::optional(index::OwnedKey(index::Key(std::string_view(text))));
    };
    const auto length = [](const index::Key&, std::span<const std::byte> payload) {
      return std::optional(index::OwnedKey(index::Key(uint64_t{payload.size()})));
    };
    const auto pair = [&](const index::Key&, std::span<const std::byte> payload) {
      return std::optional(index::OwnedKey(index::Key::Tuple(uint64_t{payload.size()}, payload_of(payload))));
    };
    for (const auto& [name, function] : std::vector<std::pair<std::string, txn::KeyFunction>>{
             {"by_end", reversed}, {"by_length", length}, {"by_pair", pair}}) {
      const auto made =
          (*database)->CreateIndex({.name = name, .table = "words", .unique = name == "by_end", .function = function});
      ASSERT_TRUE(made.ok()) << made.status();
    }
    ASSERT_TRUE((*database)->Start().ok());
    ASSERT_TRUE((*database)
                    ->Run([&](txn::BlockingTransaction& t) -> Status {
                      uint64_t key = 0;
                      for (const std::string_view word : {"walking", "cat", "talking", "dog"}) {
                        GANNET_RETURN_IF_ERROR(t.Insert(**words, ++key, std::as_bytes(std::span(word))));
                      }
                      return absl::OkStatus();
                    })
                    .ok());
    ASSERT_TRUE((*database)->Close().ok());
  }
  EXPECT_EQ(Do("scan", {"words", "--by", "by_end"}), "3\ttalking\n1\twalking\n4\tdog\n2\tcat\n");
  EXPECT_EQ(Do("scan", {"words", "--by", "by_end", "--prefix", "gnik"}), "3\ttalking\n1\twalking\n");
  EXPECT_EQ(Do("get", {"words", "tac", "--by", "by_end"}), "cat\n");
  EXPECT_EQ(Run("get", {"words", "ta", "--by", "by_end"}).exit_code, 3);
  EXPECT_EQ(Do("scan", {"words", "--by", "by_length", "--from", "4"}), "1\twalking\n3\ttalking\n");
  EXPECT_EQ(Do("count", {"words", "--by", "by_length", "--to", "4"}), "2\n");
  EXPECT_THAT(Run("scan", {"words", "--by", "by_length", "--prefix", "7"}).err, HasSubstr("numbers have no prefix"));
  EXPECT_EQ(Do("scan", {"words", "--by", "by_pair", "--prefix", "(3)"}), "2\tcat\n4\tdog\n");
  EXPECT_EQ(Do("scan", {"words", "--by", "by_pair", "--from", "(7,\"u\")"}), "1\twalking\n");
  EXPECT_THAT(Do("tables", {}), HasSubstr("unique index of words: a function of a program"));
  // Rows cannot be written without the functions, but the shell, too, can read.
  Write("lines", "scan words --by by_length --limit 1\nput words 9 nine\n");
  const Outcome shell = RunProgram({"shell", Path("data"), "--memory-per-node", "1G"}, {.in = Path("lines")});
  EXPECT_EQ(shell.exit_code, 1);
  EXPECT_EQ(shell.out, "2\tcat\n");
  EXPECT_THAT(shell.err, HasSubstr("function"));
}

TEST_F(RowsTest, AScanHasARangeALimitAndADirection) {
  Do("create-table", {"numbers", "--payload", "10", "--create"});
  std::string file = "key,payload\n";
  for (int i = 0; i < 10000; ++i) file += std::to_string(i) + ",row " + std::to_string(i) + "\n";
  Write("rows.csv", file);
  const Outcome import = Run("import", {"numbers", Path("rows.csv")});
  ASSERT_EQ(import.exit_code, 0) << import.err;
  EXPECT_THAT(import.err, HasSubstr("10,000 rows imported into table numbers"));
  EXPECT_EQ(Do("scan", {"numbers", "--from", "3", "--to", "5"}), "3\trow 3\n4\trow 4\n");
  EXPECT_EQ(Do("scan", {"numbers", "--from", "9998"}), "9998\trow 9998\n9999\trow 9999\n");
  EXPECT_EQ(Do("scan", {"numbers", "--to", "5", "--reverse", "--limit", "2"}), "4\trow 4\n3\trow 3\n");
  EXPECT_EQ(Do("scan", {"numbers", "--limit", "0"}), "");
  // More rows than one transaction reads.
  const std::string all = Do("scan", {"numbers"});
  std::string expected;
  std::string reversed;
  for (int i = 0; i < 10000; ++i) {
    const std::string line = std::to_string(i) + "\trow " + std::to_string(i) + "\n";
    expected += line;
    reversed.insert(0, line);
  }
  EXPECT_EQ(all, expected);
  EXPECT_EQ(Do("scan", {"numbers", "--reverse"}), reversed);
  EXPECT_EQ(Do("scan", {"numbers", "--limit", "4096"}), expected.substr(0, expected.find("4096\t")));
  EXPECT_EQ(Do("count", {"numbers", "--from", "100", "--to", "9000"}), "8900\n");
}

TEST_F(RowsTest, WrongCommandsSayWhatToDo) {
  Do("create-table", {"numbers", "--payload", "3", "--create"});
  Do("create-table", {"hashed", "--index", "hash", "--payload", "4", "--fixed"});
  struct Wrong {
    std::string command;
    std::vector<std::string> arguments;
    int exit_code;
    std::vector<std::string> says;
  };
  const std::vector<Wrong> all = {
      {"get", {"people", "1"}, 2, {"has no table 'people'; it has numbers, hashed", "gannet create-table"}},
      {"put", {"people", "1", "x"}, 2, {"gannet create-table " + Path("data") + " people --key integer|bytes"}},
      {"get", {"numbers", "one"}, 2, {"KEY one: must be an integer key"}},
      {"get", {"numbers", "1", "--keys", "tuple"}, 2, {"--keys tuple", "are integers"}},
      {"get", {"numbers", "1", "--keys", "octal"}, 2, {"--keys octal", "must be text, hex, tuple or signed"}},
      {"get", {"numbers"}, 2, {"KEY is required"}},
      {"put", {"numbers", "1", "four"}, 2, {"4 bytes does not fit table 'numbers', at most 3"}},
      {"put", {"hashed", "1", "x"}, 2, {"1 bytes does not fit table 'hashed', exactly 4"}},
      {"put", {"numbers", "1", "\\q"}, 2, {"VALUE \\q: ", "\\xNN"}},
      {"scan", {"hashed", "--from", "1"}, 2, {"--from: the index of table 'hashed' is not ordered"}},
      {"scan", {"hashed", "--reverse"}, 2, {"--reverse: the index"}},
      {"scan", {"numbers", "--from", "x"}, 2, {"--from x: must be an integer key"}},
      {"scan", {"numbers", "--prefix", "1"}, 2, {"--prefix 1: integer keys have no prefix"}},
      {"scan", {"numbers", "--prefix", "1", "--to", "2"}, 2, {"--prefix", "--to"}},
      {"count", {"--from", "1"}, 2, {"name the table"}},
      {"create-table", {"numbers", "--payload", "3"}, 1, {"there is a table 'numbers' already"}},
      {"create-table", {"more"}, 2, {"--payload is required"}},
      {"create-table", {"more", "--payload", "1", "--max-key-bytes", "9"}, 2, {"--max-key-bytes", "--key bytes"}},
      {"create-table", {"more", "--payload", "70000"}, 2, {"--payload 70000", "65536"}},
      {"create-table", {"more", "--payload", "1", "--index", "btree"}, 2, {"--index btree: must be hash, xstore"}},
      {"import", {"numbers", Path("none.csv")}, 2, {"FILE " + Path("none.csv") + ": cannot be read: No such file"}},
      {"import", {"numbers", Path("data/MANIFEST")}, 2, {"give --csv or --json"}},
  };
  for (const Wrong& wrong : all) {
    SCOPED_TRACE(wrong.command + " " + testing::PrintToString(wrong.arguments));
    const Outcome outcome = Run(wrong.command, wrong.arguments);
    EXPECT_EQ(outcome.exit_code, wrong.exit_code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("gannet " + wrong.command + ": "));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    for (const std::string& text : wrong.says) EXPECT_THAT(outcome.err, HasSubstr(text));
  }
  EXPECT_EQ(Do("count", {"numbers"}), "0\n");
  const Outcome nowhere = RunProgram({"put", Path("nothing"), "t", "1", "x"});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("holds no database"));
  const Outcome no_create = RunProgram({"create-table", Path("nothing"), "t", "--payload", "1"});
  EXPECT_EQ(no_create.exit_code, 1);
  EXPECT_THAT(no_create.err, HasSubstr("--create"));
  EXPECT_FALSE(fs::exists(Path("nothing")));
}

TEST_F(RowsTest, WhatIsExportedIsImported) {
  Do("create-table", {"bytes", "--key", "bytes", "--payload", "100", "--create"});
  Do("create-table", {"numbers", "--payload", "10"});
  Do("create-table", {"boxes", "--index", "catfish", "--payload", "10"});
  const std::vector<std::vector<std::string>> rows = {{"bytes", "", ""},
                                                      {"bytes", "a,\"b\"", "\\n\\x00\\xff, \"q\""},
                                                      {"bytes", "\\xff\\\\", "ü"},
                                                      {"numbers", "5", "five,"},
                                                      {"numbers", "18446744073709551615", "\\xc3"},
                                                      {"boxes", "(1,2,3,4,5)", "first"},
                                                      {"boxes", "(0.1,-2,3,4,5)", "second"}};
  for (const auto& row : rows) Do("put", row);
  for (const char* table : {"bytes", "numbers", "boxes"}) {
    const std::string before = Do("scan", {table, "--json"});
    const std::vector<std::vector<std::string>> formats = {{}, {"--json"}, {"--payloads", "hex", "--keys", "hex"}};
    for (const std::vector<std::string>& format : formats) {
      const bool json = !format.empty() && format[0] == "--json";
      const std::string file = Path(json ? "rows.json" : "rows.csv");
      std::vector<std::string> arguments = {table, "--out", file};
      arguments.insert(arguments.end(), format.begin(), format.end());
      Do("export", arguments);
      // The rows go into an empty table of another directory, and over the rows themselves.
      fs::rename(Path("data"), Path("source"));
      const std::string kind = table == std::string("bytes") ? "bytes" : "integer";
      Do("create-table", {table, "--key", kind, "--index", table == std::string("boxes") ? "catfish" : "xstore",
                          "--payload", "100", "--create"});
      Do("import", {table, file});
      EXPECT_EQ(Do("scan", {table, "--json"}), before) << Read(json ? "rows.json" : "rows.csv");
      const Outcome again = Run("import", {table, file});
      EXPECT_EQ(again.exit_code, 1);
      EXPECT_THAT(again.err, HasSubstr("has a row that is there already, line " + std::string(json ? "1" : "2")));
      Do("import", {table, file, "--replace"});
      EXPECT_EQ(Do("scan", {table, "--json"}), before);
      fs::remove_all(Path("data"));
      fs::rename(Path("source"), Path("data"));
    }
  }
}

TEST_F(RowsTest, AWrongLineIsNamedAndTheRowsBeforeItAreThere) {
  Do("create-table", {"numbers", "--payload", "5", "--create"});
  const auto fails = [this](const std::string& name, const std::string& text, const std::string& says) {
    SCOPED_TRACE(text);
    Write(name, text);
    const Outcome import = Run("import", {"numbers", Path(name), "--replace"});
    EXPECT_EQ(import.exit_code, 1);
    EXPECT_THAT(import.err, HasSubstr(Path(name) + " line " + says));
  };
  fails("a.csv", "key,payload\n1,one\ntwo,two\n3,three\n", "3: the key must be an integer key");
  EXPECT_EQ(Do("scan", {"numbers"}), "1\tone\n");
  fails("a.csv", "payload,key\none,1\ntwo,2\nthree,3,3\n", "4: has 3 fields");
  EXPECT_EQ(Do("scan", {"numbers"}), "1\tone\n2\ttwo\n");
  fails("a.csv", "key,payload\n3,three\n4,fourfour\n5,five\n", "3: a payload of 8 bytes does not fit");
  EXPECT_EQ(Do("count", {"numbers"}), "3\n");
  fails("a.csv", "key,payload\n4,\"four\n", "2: has a quote that is not closed");
  fails("a.csv", "1,one\n", "1: the columns must be key or key_signed");
  fails("a.csv", "", "1: must name the columns");
  fails("a.json", "{\"key\":4,\"payload\":\"four\"}\n\n{\"key\":5}\n", "3: has no \"payload\"");
  fails("a.json", "{\"key\":5,\n", "1: is no JSON");
  fails("a.json", "{\"key\":5,\"payload\":\"x\",\"key\":6}\n", "1: \"key\" is there twice");
  fails("a.json", "{\"key\":5,\"payload\":\"x\",\"payload\":\"x\"}\n", "1: \"payload\" is there twice");
  EXPECT_EQ(Do("count", {"numbers"}), "4\n");
  const Outcome directory = Run("import", {"numbers", Path("data"), "--csv"});
  EXPECT_EQ(directory.exit_code, 1);
  EXPECT_THAT(directory.err, HasSubstr(Path("data") + " line 1: cannot be read: Is a directory"));
  // A key that is there already, or twice in the file.
  Write("b.csv", "key,payload\n10,ten\n11,x\n4,y\n12,z\n");
  const Outcome there = Run("import", {"numbers", Path("b.csv")});
  EXPECT_EQ(there.exit_code, 1);
  EXPECT_THAT(there.err, HasSubstr("b.csv has a row that is there already, line 4: table 'numbers', key 4"));
  EXPECT_THAT(there.err, HasSubstr("imported: the first 2 rows; with --replace such rows are replaced"));
  EXPECT_EQ(Do("scan", {"numbers", "--from", "5"}), "10\tten\n11\tx\n");
  Write("c.csv", "key,payload\n20,a\n20,b\n");
  EXPECT_THAT(Run("import", {"numbers", Path("c.csv")}).err, HasSubstr("line 3: table 'numbers', key 20"));
}

// An import that was stopped, or killed, leaves the first rows of the file, and can be repeated.
TEST_F(RowsTest, AnInterruptedImportIsRunAgain) {
  Do("create-table", {"numbers", "--payload", "20", "--create"});
  const auto lines = [](int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i) text += std::to_string(i) + ",row " + std::to_string(i) + "\n";
    return text;
  };
  Write("all.csv", "key,payload\n" + lines(0, 5000));
  for (const int signal : {SIGINT, SIGKILL}) {
    ASSERT_EQ(mkfifo(Path("pipe.csv").c_str(), 0600), 0);
    Program import({"import", Path("data"), "numbers", Path("pipe.csv"), "--replace", "--memory-per-node", "1G"},
                   {.err_is_terminal = true});
    std::ofstream pipe(Path("pipe.csv"));
    pipe << "key,payload\n" << lines(0, 2500) << std::flush;
    ASSERT_TRUE(import.WaitForStderr("2,000 rows"));
    import.Signal(signal);
    std::signal(SIGPIPE, SIG_IGN);
    if (signal == SIGINT) pipe << lines(2500, 2600) << std::flush;
    pipe.close();
    const Outcome outcome = import.Wait();
    EXPECT_EQ(outcome.exit_code, 128 + signal);
    if (signal == SIGINT) {
      EXPECT_THAT(outcome.err, HasSubstr("stopped while rows were imported; imported: the first 2,"));
      EXPECT_THAT(outcome.err, HasSubstr("to run it again, give --replace"));
    }
    const std::string rows = Do("scan", {"numbers"});
    const auto count = std::ranges::count(rows, '\n');
    EXPECT_GE(count, 2000);
    std::string expected = lines(0, static_cast<int>(count));
    std::ranges::replace(expected, ',', '\t');
    EXPECT_EQ(rows, expected);
    fs::remove(Path("pipe.csv"));
  }
  Do("import", {"numbers", Path("all.csv"), "--replace"});
  std::string expected = lines(0, 5000);
  std::ranges::replace(expected, ',', '\t');
  EXPECT_EQ(Do("scan", {"numbers"}), expected);
}

TEST_F(RowsTest, ReadingChangesNothingAndWritingNeedsTheDirectoryForItself) {
  Do("create-table", {"numbers", "--payload", "20", "--create"});
  Do("put", {"numbers", "1", "one"});
  const auto contents = [this] {
    std::map<std::string, std::pair<uintmax_t, fs::file_time_type>> files;
    for (const auto& entry : fs::recursive_directory_iterator(Path("data"))) {
      files[entry.path().string()] = {entry.is_regular_file() ? entry.file_size() : 0, entry.last_write_time()};
    }
    return files;
  };
  const auto before = contents();
  Do("get", {"numbers", "1"});
  Do("scan", {"numbers"});
  Do("count", {});
  Do("tables", {});
  Do("export", {"numbers"});
  EXPECT_EQ(contents(), before);

  ASSERT_EQ(mkfifo(Path("pipe.csv").c_str(), 0600), 0);
  Program import({"import", Path("data"), "numbers", Path("pipe.csv"), "--memory-per-node", "1G"},
                 {.err_is_terminal = true});
  std::ofstream pipe(Path("pipe.csv"));
  pipe << "key,payload\n";
  for (int i = 100; i < 1101; ++i) pipe << i << ",x\n";
  pipe << std::flush;
  ASSERT_TRUE(import.WaitForStderr("1,000 rows"));
  const Outcome put = Run("put", {"numbers", "2", "two"});
  EXPECT_EQ(put.exit_code, 1);
  EXPECT_THAT(put.err, HasSubstr("end it, or use another directory"));
  pipe.close();
  EXPECT_EQ(import.Wait().exit_code, 0);
  EXPECT_EQ(Do("count", {"numbers"}), "1002\n");
}

// Each command that writes begins a segment of the log.
TEST_F(RowsTest, ManyCommandsDoNotFillTheDisk) {
  Do("create-table", {"numbers", "--payload", "20", "--create"});
  for (int i = 0; i < 40; ++i) Do("put", {"numbers", std::to_string(i), "x"});
  int segments = 0;
  for (const auto& entry : fs::directory_iterator(Path("data"))) {
    segments += entry.path().filename().string().starts_with("log-") ? 1 : 0;
  }
  EXPECT_LE(segments, 34);
  EXPECT_EQ(Do("count", {"numbers"}), "40\n");
  EXPECT_EQ(RunProgram({"verify", Path("data")}).exit_code, 0);
}

// The log, and a checkpoint that is kept, have changes of a table that is no more.
TEST_F(RowsTest, ADroppedTableIsGone) {
  Do("create-table", {"numbers", "--payload", "20", "--create"});
  Do("create-table", {"words", "--key", "bytes", "--payload", "20"});
  for (int i = 0; i < 40; ++i) Do("put", {"words", std::to_string(i), "x"});  // enough for a checkpoint
  Do("put", {"numbers", "1", "one"});
  Do("drop-table", {"words"});
  EXPECT_EQ(Do("count", {}), "table    rows\nnumbers     1\n");
  EXPECT_EQ(Do("get", {"numbers", "1"}), "one\n");
  const Outcome again = Run("drop-table", {"words"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("has no table 'words'; it has numbers"));
  for (const char* command : {"verify", "recover"}) {
    const Outcome outcome = RunProgram({command, Path("data")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  }
  EXPECT_EQ(RunProgram({"backup", Path("data"), Path("copy")}).exit_code, 0);
  EXPECT_EQ(RunProgram({"verify", Path("copy")}).exit_code, 0);
  Do("create-table", {"words", "--payload", "5"});
  EXPECT_EQ(Do("count", {"words"}), "0\n");
}

TEST_F(RowsTest, AWidenedTableHasLongerRows) {
  Do("create-table", {"fixed", "--payload", "2", "--fixed", "--create"});
  Do("create-table", {"words", "--payload", "2"});
  for (int i = 0; i < 40; ++i) Do("put", {"fixed", std::to_string(i), "xy"});  // enough for a checkpoint
  Do("widen-table", {"fixed", "--payload", "4"});
  EXPECT_EQ(Do("get", {"fixed", "1", "--payloads", "hex"}), "78790000\n");
  Do("put", {"fixed", "2", "abcd"});
  EXPECT_EQ(Do("get", {"fixed", "2"}), "abcd\n");
  EXPECT_EQ(Run("put", {"words", "1", "abcd"}).exit_code, 2);
  Do("widen-table", {"words", "--payload", "4"});
  Do("put", {"words", "1", "abcd"});
  EXPECT_EQ(Do("get", {"words", "1"}), "abcd\n");
  const Outcome narrower = Run("widen-table", {"fixed", "--payload", "3"});
  EXPECT_EQ(narrower.exit_code, 2) << narrower.err;
  EXPECT_THAT(narrower.err, HasSubstr("table 'fixed' has payloads of 4 bytes"));
  EXPECT_EQ(RunProgram({"verify", Path("data")}).exit_code, 0);
}

// Directories of the version before the catalog.
TEST_F(RowsTest, OlderDirectoriesAreReadAndWritten) {
  fs::copy(fs::path(GANNET_KEPT_DIRECTORIES) / "v2/nodes-1", Path("data"), fs::copy_options::recursive);
  EXPECT_THAT(Do("tables", {}), HasSubstr("counters         integer"));
  EXPECT_EQ(Do("get", {"cities", "city 3"}), "mayor 9\n");
  EXPECT_EQ(Do("get", {"counters", "3", "--payloads", "hex"}), "6700000000000000\n");
  EXPECT_EQ(Do("count", {}), "table     rows\ncities      20\ncounters    20\nwords       20\n");
  Do("put", {"cities", "city 3", "a new mayor"});
  EXPECT_EQ(Do("get", {"cities", "city 3"}), "a new mayor\n");

  fs::remove_all(Path("data"));
  fs::copy(fs::path(GANNET_KEPT_DIRECTORIES) / "v2/nodes-2", Path("data"), fs::copy_options::recursive);
  EXPECT_THAT(Do("tables", {}), HasSubstr("hashed"));
  const Outcome two = Run("count", {});
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_THAT(two.err, HasSubstr("holds a database of 2 nodes"));
  EXPECT_THAT(Do("export", {"ranges"}), StartsWith("key,payload\n"));
}

}  // namespace rows_test
}  // namespace gannet::cli
