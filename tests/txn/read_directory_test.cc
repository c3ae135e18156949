// docs/log_format.md is enough to read a data directory: read_directory.py, which was made from that page alone, finds
// the rows that the database has.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "log/file/posix_file_system.h"
#include "log/manifest/manifest.h"
#include "log/segment/log_reader.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/database.h"

namespace gannet::txn {
namespace read_directory_test {

namespace fs = std::filesystem;

std::string Hex(std::string_view bytes) {
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

std::string Hex(uint64_t number) {
  std::string bytes(sizeof(number), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(number >> 8 * i);
  return Hex(bytes);
}

// Prints the output of the command, and returns it.
std::string Output(const std::string& command) {
  std::FILE* const pipe = popen(command.c_str(), "r");
  std::string output;
  char some[4096];
  for (size_t bytes; (bytes = std::fread(some, 1, sizeof(some), pipe)) > 0;) output.append(some, bytes);
  EXPECT_EQ(pclose(pipe), 0) << command << "\n" << output;
  return output;
}

class ReadDirectoryTest : public testing::Test {
 protected:
  ReadDirectoryTest() {
    std::string name = testing::TempDir() + "/gannet-read-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~ReadDirectoryTest() override { fs::remove_all(root_); }

  std::string data() const { return (root_ / "data").string(); }

  void Open(int nodes) {
    fabric_ = *rdma::ShmFabric::InProcess({.num_nodes = nodes, .bytes_per_node = uint64_t{256} << 20});
    for (int node = 0; node < nodes; ++node) {
      DatabaseOptions options;
      options.directory = data();
      options.create_if_missing = true;
      options.log_segment_bytes = 128 << 10;
      options.log_buffer_bytes = 16 << 10;
      options.log_large_buffer_bytes = 64 << 10;
      auto database = Database::Open(fabric_.get(), static_cast<rdma::NodeId>(node), options);
      ASSERT_TRUE(database.ok()) << database.status();
      ASSERT_TRUE(
          (*database)->CreateTable({.name = "numbers", .payload_bytes = 8, .placement = Placement::ByHash()}).ok());
      ASSERT_TRUE((*database)
                      ->CreateTable({.name = "words",
                                     .key_kind = index::KeyKind::kBytes,
                                     .max_key_bytes = 100,
                                     .index = IndexKind::kXStore,
                                     .payload_bytes = 300,
                                     .variable_length = true,
                                     .placement = Placement::ByHash()})
                      .ok());
      databases_.push_back(*std::move(database));
    }
    ForAll([](Database& database) { return database.Start(); });
  }
  void Close() {
    ForAll([](Database& database) { return database.Close(); });
    databases_.clear();
    fabric_.reset();
  }
  template <class Call>
  void ForAll(const Call& call) {
    std::vector<Status> done(databases_.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < done.size(); ++i) threads.emplace_back([&, i] { done[i] = call(*databases_[i]); });
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : done) EXPECT_TRUE(status.ok()) << status;
  }

  // A transaction of several rows, which different nodes own: some are new, some are updated, one is removed.
  void Commit(uint64_t n) {
    Database& database = *databases_[n % databases_.size()];
    const Table& numbers = *database.FindTable("numbers");
    const Table& words = *database.FindTable("words");
    const std::string word(1 + n % 90, static_cast<char>('a' + n % 26));
    const std::string text(n % 300, static_cast<char>('A' + n % 26));
    const Status done = database.Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t i = 0; i < 3; ++i) GANNET_RETURN_IF_ERROR(t.Upsert(numbers, (n * 3 + i) % 70, n));
      GANNET_RETURN_IF_ERROR(t.Upsert(words, std::string_view(word), std::as_bytes(std::span(text))));
      const Status removed = t.Remove(numbers, n * 7 % 70);
      return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
    });
    ASSERT_TRUE(done.ok()) << done;
  }

  // What the reader prints of the rows as the database has them.
  std::string Rows() {
    std::vector<std::string> lines;
    const Table& numbers = *databases_[0]->FindTable("numbers");
    const Table& words = *databases_[0]->FindTable("words");
    const Status read = databases_[0]->Run([&](BlockingTransaction& t) -> Status {
      lines.clear();
      for (uint64_t key = 0; key < 70; ++key) {
        uint64_t value = 0;
        const Status got = t.Get(numbers, key, &value);
        if (!got.ok() && !absl::IsNotFound(got)) return got;
        std::string big_endian(8, '\0');
        big_endian[7] = static_cast<char>(key);
        if (got.ok())
          lines.push_back(absl::StrCat(numbers.OwnerOf(key, 0), " numbers ", Hex(big_endian), " ", Hex(value)));
      }
      for (size_t bytes = 1; bytes <= 90; ++bytes) {
        for (char letter = 'a'; letter <= 'z'; ++letter) {
          const std::string word(bytes, letter);
          std::string text;
          const Status got = t.Get(words, std::string_view(word), &text);
          if (!got.ok() && !absl::IsNotFound(got)) return got;
          if (got.ok())
            lines.push_back(
                absl::StrCat(words.OwnerOf(std::string_view(word), 0), " words ", Hex(word), " ", Hex(text)));
        }
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    std::ranges::sort(lines);
    std::string all;
    for (const std::string& line : lines) absl::StrAppend(&all, line, "\n");
    return all;
  }

  std::string ReadByThePage() const { return Output(absl::StrCat(GANNET_READ_DIRECTORY, " ", data(), " 2>&1")); }

  fs::path root_;
  std::unique_ptr<rdma::ShmFabric> fabric_;
  std::vector<std::unique_ptr<Database>> databases_;
};

TEST_F(ReadDirectoryTest, OfOneNode) {
  uint64_t n = 0;
  for (int run = 0; run < 3; ++run) {
    Open(1);
    for (int i = 0; i < 40; ++i) {
      Commit(++n);
      if (run > 0 && i == 20) {
        ASSERT_TRUE(databases_[0]->Checkpoint().ok());
      }
    }
    const std::string rows = Rows();
    EXPECT_EQ(ReadByThePage(), rows) << "while the database is open and idle";
    Close();
    EXPECT_EQ(ReadByThePage(), rows);
  }
}

// Node 0 takes checkpoints and node 1 none, so segments below that of the checkpoint of node 0 have decisions that node
// 1 needs.
TEST_F(ReadDirectoryTest, OfTwoNodesWithDecisionsBelowTheCheckpoint) {
  uint64_t n = 0;
  for (int run = 0; run < 3; ++run) {
    Open(2);
    for (int i = 0; i < 40; ++i) {
      Commit(++n);
      if (i % 20 == 19) {
        ASSERT_TRUE(databases_[0]->Checkpoint().ok());
      }
    }
    const std::string rows = Rows();
    Close();
    EXPECT_EQ(ReadByThePage(), rows);
  }
  log::PosixFileSystem files;
  const uint64_t needed = log::ReadManifest(files, data() + "/node-0")->checkpoints.front().first_segment;
  uint64_t below = 0;
  const auto read = log::ReadLog(files, data() + "/node-0", {}, [&](int, const log::TransactionView& transaction) {
    below += transaction.part == log::TransactionPart::kDecision && transaction.batch.segment < needed ? 1 : 0;
    return absl::OkStatus();
  });
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_GT(below, 10u);
}

// Both take checkpoints, of different moments, and remove what no node needs.
TEST_F(ReadDirectoryTest, OfThreeNodesWithCheckpointsOfDifferentMoments) {
  uint64_t n = 0;
  for (int run = 0; run < 2; ++run) {
    Open(3);
    for (int i = 0; i < 60; ++i) {
      Commit(++n);
      if (i % 10 == 5) {
        ASSERT_TRUE(databases_[n / 10 % 3]->Checkpoint().ok());
      }
    }
    const std::string rows = Rows();
    Close();
    EXPECT_EQ(ReadByThePage(), rows);
  }
}

// What does not belong together is noticed by the rules of the page.
TEST_F(ReadDirectoryTest, AnOlderNodeIsNoticed) {
  for (const uint64_t run : {1, 2}) {
    Open(2);
    for (uint64_t i = 0; i < 10; ++i) Commit(run * 10 + i);
    Close();
    if (run == 1) fs::copy(data() + "/node-1", root_ / "older", fs::copy_options::recursive);
  }
  fs::remove_all(data() + "/node-1");
  fs::rename(root_ / "older", data() + "/node-1");
  const std::string output = Output(absl::StrCat(GANNET_READ_DIRECTORY, " ", data(), " 2>&1 || true"));
  EXPECT_NE(output.find("node-1 lacks run 2"), std::string::npos) << output;
}

}  // namespace read_directory_test
}  // namespace gannet::txn
