// The histories that Elle accepts. jepsen.history refuses a history whose indices are not 0, 1, 2, ..., whose processes
// invoke during an operation, or complete what they did not invoke. elle.list-append refuses other micro-operations
// than [:r k v] and [:append k v], and values appended to a key twice.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace gannet::scenario {

struct Op {
  std::string type;
  std::string value;
  uint64_t process = 0;
  uint64_t time = 0;
  uint64_t index = 0;
};

struct Mop {
  bool append = false;
  uint64_t key = 0;
  std::string value;  // a number, a list in brackets, or nil
};

// A line of the file is one map with these keys and nothing else.
inline bool ParseOp(const std::string& line, Op* op) {
  const size_t value = line.find(":value [");
  const size_t behind = line.rfind("], :process ");
  if (value == std::string::npos || behind == std::string::npos) return false;
  char type[8] = {};
  int used = 0;
  if (std::sscanf(line.c_str(), "{:type :%7[a-z], :f :txn, %n", type, &used) != 1) return false;
  if (static_cast<size_t>(used) != value) return false;
  op->type = type;
  op->value = line.substr(value + 8, behind - value - 8);
  used = 0;
  const int read =
      std::sscanf(line.c_str() + behind, "], :process %" SCNu64 ", :time %" SCNu64 ", :index %" SCNu64 "}%n",
                  &op->process, &op->time, &op->index, &used);
  return read == 3 && behind + static_cast<size_t>(used) == line.size();
}

// Returns false if anything is left over.
inline bool ParseMops(std::string text, std::vector<Mop>* mops) {
  static const std::regex kMop(R"(^ ?\[(:append|:r) (\d+) (nil|\d+|\[(?:\d+(?: \d+)*)?\])\])");
  for (std::smatch match; std::regex_search(text, match, kMop);) {
    mops->push_back({match[1] == ":append", std::stoull(match[2]), match[3]});
    text = match.suffix();
  }
  return text.empty();
}

// Both have the same micro-operations; the results of reads are known only for :ok.
inline void ExpectCompletes(const Op& invoke, const Op& completion) {
  std::vector<Mop> asked;
  std::vector<Mop> done;
  ASSERT_TRUE(ParseMops(invoke.value, &asked)) << invoke.value;
  ASSERT_TRUE(ParseMops(completion.value, &done)) << completion.value;
  ASSERT_EQ(asked.size(), done.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(asked[i].append, done[i].append);
    EXPECT_EQ(asked[i].key, done[i].key);
    if (asked[i].append) {
      EXPECT_EQ(asked[i].value, done[i].value);
    } else {
      EXPECT_EQ(asked[i].value, "nil");
      EXPECT_EQ(completion.type == "ok", done[i].value.front() == '[') << done[i].value;
    }
  }
}

inline std::vector<Op> ReadHistory(const std::string& path) {
  std::ifstream file(path);
  std::vector<Op> history;
  for (std::string line; std::getline(file, line);) {
    EXPECT_TRUE(ParseOp(line, &history.emplace_back())) << line;
  }
  return history;
}

inline void ExpectAccepted(const std::vector<Op>& history) {
  std::map<uint64_t, Op> executing;  // by process
  std::set<uint64_t> over;           // processes that ended with :info
  std::set<std::pair<uint64_t, std::string>> appended;
  uint64_t time = 0;
  for (size_t i = 0; i < history.size(); ++i) {
    const Op& op = history[i];
    ASSERT_EQ(op.index, i);
    ASSERT_GE(op.time, time) << i;
    time = op.time;
    ASSERT_FALSE(over.contains(op.process)) << i;
    if (op.type == "invoke") {
      ASSERT_TRUE(executing.emplace(op.process, op).second) << i;
      std::vector<Mop> mops;
      ASSERT_TRUE(ParseMops(op.value, &mops)) << op.value;
      for (const Mop& mop : mops) {
        ASSERT_TRUE(!mop.append || appended.emplace(mop.key, mop.value).second) << mop.key << " " << mop.value;
      }
      continue;
    }
    ASSERT_TRUE(op.type == "ok" || op.type == "fail" || op.type == "info") << op.type;
    ASSERT_TRUE(executing.contains(op.process)) << i;
    ExpectCompletes(executing[op.process], op);
    executing.erase(op.process);
    if (op.type == "info") over.insert(op.process);
  }
  EXPECT_TRUE(executing.empty());
}

}  // namespace gannet::scenario
