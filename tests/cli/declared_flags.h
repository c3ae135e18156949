// Tests that every list of declared flags passes (cli/common/flags.h).
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/common/flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {

// One of them is a valid value of every flag that the tests declare.
inline const std::vector<std::string> kSamples = {
    "1", "8",    "50",     "1s", "2x2",    "none", "45,43,4,4,4", "async",  "file",  "xstore", "owner",
    "a", "call", "random", "kv", "spread", "rpc",  "shm",         "linear", "whole", "latest", "one-sided"};

// Gives each flag a value. What is made of the flags must then have it, and read it as it was written.
inline void ExpectReadAsWritten(const Flags& flags) {
  for (const Flag& flag : flags.all()) {
    SCOPED_TRACE(flag.name);
    bool set = false;
    for (const std::string& sample : kSamples) set = set || flag.set(sample).ok();
    EXPECT_TRUE(set) << "no sample is a value of it";
    EXPECT_TRUE(flag.key.empty() || !flag.json().is_null()) << "the report lacks its value";
  }
  const std::vector<std::string> written = flags.Arguments();
  for (const Flag& flag : flags.all()) {
    if (flag.text().empty()) continue;  // another flag says it
    const auto at = std::ranges::find(written, flag.name);
    ASSERT_NE(at, written.end()) << flag.name;
    EXPECT_TRUE(flag.word.empty() || flag.set(*(at + 1)).ok()) << flag.name;
  }
  EXPECT_EQ(flags.Arguments(), written);
}

// docs/commands.md has a row for each heading of the help, with its flags and the keys of their values.
inline std::vector<std::string> RowsOfDocs(const Flags& flags, const std::string& without_heading = "",
                                           Marks elsewhere = 0, const std::string& where = "") {
  std::vector<std::string> rows;
  std::string heading;
  for (const Flag& flag : flags.all()) {
    if (rows.empty() || flag.group != heading) {
      rows.push_back(absl::StrCat("| ", flag.group.empty() ? without_heading : flag.group, " | "));
    } else {
      rows.back() += ", ";
    }
    heading = flag.group;
    absl::StrAppend(&rows.back(), "`", flag.name, "`");
    if (flag.key.empty()) continue;
    absl::StrAppend(&rows.back(), " (`", (flag.marks & elsewhere) != 0 ? where : "", flag.key, "`)");
  }
  for (std::string& row : rows) row += " |\n";
  return rows;
}

inline void ExpectInHelpAndDocs(const Flags& flags, const std::string& help, const std::vector<std::string>& rows) {
  for (const Flag& flag : flags.all()) EXPECT_THAT(help, ::testing::HasSubstr("\n  " + flag.name + " "));
  std::ifstream file(GANNET_SOURCE_DIR "/docs/commands.md");
  const std::string docs(std::istreambuf_iterator<char>(file), {});
  for (const std::string& row : rows) EXPECT_THAT(docs, ::testing::HasSubstr("\n" + row));
}

}  // namespace gannet::cli
