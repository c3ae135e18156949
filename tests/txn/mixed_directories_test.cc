// Directories whose files are of different moments: some are one run older than the others, or of a copy that went on
// separately. Each is refused, unchanged, with the name of what does not belong there, and `gannet verify` finds it; or
// it has everything.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/format/segment_format.h"
#include "log/manifest/manifest.h"
#include "log/segment/end_note.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "txn/durable/data_directory.h"
#include "txn/durable/verify.h"

namespace gannet::txn {
namespace mixed_directories_test {

using ::testing::HasSubstr;
using Disk = std::shared_ptr<log::FaultyFileSystem>;

constexpr uint64_t kRowsPerRun = 8;

std::vector<TableOptions> Tables() {
  return {HashTable("rows", Placement::ByHash())};
}

// What a run does.
struct Run {
  uint64_t value = 0;  // of its rows; 0: it has none
  bool checkpoints = false;
};

// Continues a directory by these runs, each of which is closed.
DiskImage Continue(const DiskImage& from, int nodes, const std::vector<Run>& runs) {
  const Disk disk = DiskOf(from);
  for (const Run& run : runs) {
    auto cluster = DurableCluster::Open(disk, Tables(), {.nodes = nodes});
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    if (!cluster.ok()) return {};
    for (uint64_t i = 0; run.value != 0 && i < kRowsPerRun; ++i) {
      const Status done = (*cluster)->database().Run(
          [&](BlockingTransaction& t) { return t.Insert((*cluster)->table("rows"), run.value * 100 + i, run.value); });
      EXPECT_TRUE(done.ok()) << done;
    }
    for (int node = 0; run.checkpoints && node < nodes; ++node)
      EXPECT_TRUE((*cluster)->database(node).Checkpoint().ok());
    EXPECT_TRUE((*cluster)->Close().ok());
  }
  return ImageOf(*disk);
}

std::map<uint64_t, uint64_t> Rows(DurableCluster& cluster) {
  std::map<uint64_t, uint64_t> rows;
  for (uint64_t key = 100; key < 500; ++key) {
    if (key % 100 >= kRowsPerRun) continue;
    uint64_t value = 0;
    const Status got =
        cluster.database().Run([&](BlockingTransaction& t) { return t.Get(cluster.table("rows"), key, &value); });
    EXPECT_TRUE(got.ok() || absl::IsNotFound(got)) << got;
    if (got.ok()) rows[key] = value;
  }
  return rows;
}

// The kinds of files of one node that may be of another moment.
constexpr int kManifestAndCheckpoints = 1;
constexpr int kEndNote = 2;
constexpr int kSegments = 4;
constexpr int kAll = 7;

int KindOf(const std::string& name) {
  if (name == "MANIFEST" || name.starts_with("checkpoint-")) return kManifestAndCheckpoints;
  if (name == "LOG-END") return kEndNote;
  return name.starts_with("log-") ? kSegments : 0;
}

// `image` with the files of these kinds below `part` from `other`.
DiskImage Mixed(DiskImage image, const std::string& part, const DiskImage& other, int kinds) {
  const auto replaced = [&](const std::string& path) {
    return path.starts_with(part + "/") && (KindOf(path.substr(part.size() + 1)) & kinds) != 0;
  };
  std::erase_if(image, [&](const auto& entry) { return replaced(entry.first); });
  for (const auto& [path, content] : other) {
    if (replaced(path)) image[path] = content;
  }
  return image;
}

// The directory is refused by name and unchanged, or opened whole. Returns the message; empty: it was opened.
std::string TryToOpen(const DiskImage& mixed, int nodes, const std::map<uint64_t, uint64_t>& whole) {
  const auto verified = VerifyDataDirectory(*DiskOf(mixed), "/data", 1);
  EXPECT_TRUE(verified.ok() || absl::IsDataLoss(verified.status())) << verified.status();
  const bool sound = verified.ok() && verified->problems.empty();
  const Disk disk = DiskOf(mixed);
  auto cluster = DurableCluster::Open(disk, Tables(), {.nodes = nodes, .create = false});
  if (cluster.ok()) {
    EXPECT_EQ(Rows(**cluster), whole);
    return "";
  }
  EXPECT_FALSE(sound) << "verify finds nothing, and it is refused: " << cluster.status();
  EXPECT_TRUE(absl::IsDataLoss(cluster.status())) << cluster.status();
  EXPECT_TRUE(ImageOf(*disk) == mixed) << "refused, and changed";
  return std::string(cluster.status().message());
}

struct History {
  std::string name;
  std::vector<Run> before;
  std::vector<Run> after;
};

std::vector<History> Histories() {
  return {
      {"two runs", {{1}}, {{2}}},
      {"an idle run before", {{1}, {0}}, {{2}}},
      {"idle runs after", {{1}}, {{2}, {0}, {0}}},
      {"three runs", {{1}}, {{2}, {3}}},
      {"checkpoints", {{1, true}, {2, true}}, {{3, true}}},
      {"checkpoints, then a run without", {{1, true}, {2, true}}, {{3}}},
      {"checkpoints in the last run only", {{1}}, {{2, true}, {3}}},
  };
}

TEST(MixedDirectoriesTest, OlderFilesOfOneNodeAreRefusedOrNotNeeded) {
  const std::vector<History> histories = Histories();
  for (const int nodes : {1, 2}) {
    for (const History& history : histories) {
      const DiskImage older = Continue({}, nodes, history.before);
      const DiskImage newer = Continue(older, nodes, history.after);
      auto cluster = DurableCluster::Open(DiskOf(newer), Tables(), {.nodes = nodes, .create = false});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      const std::map<uint64_t, uint64_t> whole = Rows(**cluster);
      for (int node = &history == &histories.front() ? 0 : nodes - 1; node < nodes; ++node) {
        const std::string part = NodeDirectory("/data", node, nodes);
        for (int kinds = 1; kinds <= (nodes == 1 ? kAll - 1 : kAll); ++kinds) {
          SCOPED_TRACE(absl::StrCat(history.name, ", ", part, ", kinds ", kinds));
          const std::string refused = TryToOpen(Mixed(newer, part, older, kinds), nodes, whole);
          if ((kinds & kSegments) != 0) {
            EXPECT_THAT(refused, HasSubstr(part)) << "commits are missing";
          }
        }
      }
    }
  }
}

TEST(MixedDirectoriesTest, FilesOfACopyThatWentOnSeparatelyAreRefused) {
  const std::vector<History> histories = Histories();
  for (const int nodes : {1, 2}) {
    for (const History& history : histories) {
      const DiskImage older = Continue({}, nodes, history.before);
      const DiskImage mine = Continue(older, nodes, history.after);
      const DiskImage copy = Continue(older, nodes, history.after);
      for (int node = &history == &histories.front() ? 0 : nodes - 1; node < nodes; ++node) {
        const std::string part = NodeDirectory("/data", node, nodes);
        for (int kinds = 1; kinds <= (nodes == 1 ? kAll - 1 : kAll); ++kinds) {
          SCOPED_TRACE(absl::StrCat(history.name, ", ", part, ", kinds ", kinds));
          const DiskImage mixed = Mixed(mine, part, copy, kinds);
          // Both have the same rows, so only what is refused tells whether it was noticed.
          const Disk disk = DiskOf(mixed);
          const Status opened = DurableCluster::Open(disk, Tables(), {.nodes = nodes, .create = false}).status();
          EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
          EXPECT_THAT(std::string(opened.message()), HasSubstr("/data"));
          EXPECT_TRUE(ImageOf(*disk) == mixed) << "refused, and changed";
          const auto verified = VerifyDataDirectory(*disk, "/data", 1);
          EXPECT_TRUE(!verified.ok() || !verified->problems.empty());
        }
      }
    }
  }
}

// Each single segment, too, whose numbers and sizes are the same in both.
TEST(MixedDirectoriesTest, ASegmentOfACopyThatWentOnSeparatelyIsRefused) {
  const DiskImage older = Continue({}, 1, {{1}});
  const DiskImage mine = Continue(older, 1, {{2}, {3}, {4}});
  const DiskImage copy = Continue(older, 1, {{2}, {3}, {4}});
  int segments = 0;
  for (const auto& [path, content] : copy) {
    if (!path.starts_with("/data/log-") || !mine.contains(path) || mine.at(path) == content) continue;
    ++segments;
    DiskImage mixed = mine;
    mixed[path] = content;
    EXPECT_THAT(TryToOpen(mixed, 1, {}), HasSubstr("went on separately")) << path;
  }
  EXPECT_EQ(segments, 3);
}

// What earlier programs wrote: runs without an identity. The epoch with which a run began tells it then.
DiskImage OfVersionFour(DiskImage image) {
  for (auto& [path, content] : image) {
    if (path.find("/log-") == std::string::npos) continue;
    const auto block = std::as_writable_bytes(std::span(*content)).first<log::kSegmentHeaderBytes>();
    auto header = log::SegmentHeader::Decode(block);
    EXPECT_TRUE(header.ok()) << header.status();
    header->version = 4;
    header->Encode(block);
  }
  const Disk disk = DiskOf(image);
  const std::vector<NodeData> nodes = *ReadDataDirectory(*disk, "/data");
  for (const NodeData& node : nodes) {
    log::Manifest manifest = node.manifest;
    manifest.run.clear();
    EXPECT_TRUE(log::WriteManifest(*disk, node.path, manifest).ok());
    log::EndNote note = *log::ReadEndNote(*disk, node.path);
    note.run_identity = {};
    EXPECT_TRUE(log::EndNoteFile(disk.get(), node.path).Write(note).ok());
  }
  return ImageOf(*disk);
}

TEST(MixedDirectoriesTest, AnOlderNodeOfAnEarlierVersionIsRefused) {
  const DiskImage older = Continue({}, 2, {{1}});
  const DiskImage newer = Continue(older, 2, {{2}});
  std::map<uint64_t, uint64_t> whole;
  {
    auto cluster = DurableCluster::Open(DiskOf(OfVersionFour(newer)), Tables(), {.nodes = 2, .create = false});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    whole = Rows(**cluster);
    EXPECT_EQ(whole.size(), 2 * kRowsPerRun);
  }
  for (const std::string part : {"/data/node-0", "/data/node-1"}) {
    const DiskImage old = Mixed(newer, part, older, kAll);
    EXPECT_THAT(TryToOpen(OfVersionFour(old), 2, whole), HasSubstr(part + ": its log lacks run 2"));
    // One of this version, which continued a directory of an earlier one.
    const DiskImage continued = Continue(OfVersionFour(older), 2, {{2}});
    EXPECT_THAT(TryToOpen(Mixed(continued, part, OfVersionFour(older), kAll), 2, whole),
                HasSubstr(part + ": its log lacks run 2"));
  }
}

// The message says which node it is, and how to go on.
TEST(MixedDirectoriesTest, TheNodeThatIsOlderIsNamed) {
  const DiskImage older = Continue({}, 2, {{1}});
  const DiskImage newer = Continue(older, 2, {{2}});
  const DiskImage copy = Continue(older, 2, {{2}});
  const std::string refused = TryToOpen(Mixed(newer, "/data/node-1", older, kAll), 2, {});
  EXPECT_THAT(refused, HasSubstr("/data/node-1: its log lacks run 2 ("));
  EXPECT_THAT(refused, HasSubstr("/data/node-0 has that run. This directory is older than the other"));
  EXPECT_THAT(refused, HasSubstr("--salvage"));
  EXPECT_THAT(TryToOpen(Mixed(newer, "/data/node-1", copy, kAll), 2, {}),
              HasSubstr("the two went on separately from copies of one directory"));
}

// What the log of one node has of epochs that the other's log does not close is left out, and counted.
TEST(MixedDirectoriesTest, WhatIsUndoneIsCounted) {
  const Disk disk = std::make_shared<log::FaultyFileSystem>(1);
  auto cluster = DurableCluster::Open(disk, Tables(), {.nodes = 2});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  std::vector<DiskImage> images;
  for (uint64_t value = 1; value <= 2; ++value) {
    for (uint64_t i = 0; i < kRowsPerRun; ++i) {
      const Status done = (*cluster)->database().Run(
          [&](BlockingTransaction& t) { return t.Insert((*cluster)->table("rows"), value * 100 + i, value); });
      ASSERT_TRUE(done.ok()) << done;
    }
    images.push_back(ImageOf(*disk));  // as a kill leaves it
  }
  const DiskImage mixed = Mixed(images[1], "/data/node-1", images[0], kAll);
  auto recovered = DurableCluster::Open(DiskOf(mixed), Tables(), {.nodes = 2, .create = false});
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_EQ(Rows(**recovered).size(), kRowsPerRun) << "nothing says how far the log of node 1 went in this run";
  EXPECT_EQ((*recovered)->database(0).recovery().undone_transactions, kRowsPerRun);
  EXPECT_EQ((*recovered)->database(1).recovery().undone_transactions, 0u);
}

}  // namespace mixed_directories_test
}  // namespace gannet::txn
