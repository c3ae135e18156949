// The committed files of each format version are read with their original content.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "log/checkpoint/checkpoint.h"
#include "tests/log/golden/golden_content.h"

namespace gannet::log {
namespace golden_test {

// All files below tests/log/golden/<version>, as if they lay in kLogDirectory.
ImageFileSystem GoldenFiles(const std::string& version) {
  ImageFileSystem files;
  const std::filesystem::path root = std::filesystem::path(GANNET_GOLDEN_DIRECTORY) / version;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto bytes = BytesOf(text);
    files.files[std::string(kLogDirectory) + "/" + entry.path().lexically_relative(root).string()] =
        Image(bytes.begin(), bytes.end());
  }
  return files;
}

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  bool has_long_keys() const { return GetParam() >= "v3-long-keys"; }
  size_t longest() const { return has_long_keys() ? kMaxKeyBytes : kShortKeyBytes; }
};

TEST_P(GoldenTest, Log) {
  ImageFileSystem files = GoldenFiles(GetParam());
  const ReadResult read = ReadAll(files);
  ASSERT_TRUE(read.summary.ok()) << read.summary.status();
  std::vector<TestTransaction> expected;
  for (const auto& batch : GoldenBatches(longest())) expected.insert(expected.end(), batch.begin(), batch.end());
  EXPECT_EQ(read.transactions, expected);
  const LogSummary& summary = *read.summary;
  EXPECT_EQ(summary.first_segment, 1u);
  EXPECT_EQ(summary.segments, 4u);
  EXPECT_EQ(summary.batches, 5u);
  EXPECT_EQ(summary.last_batch_wall_nanos, 1'700'000'000'000'000'005u);
  EXPECT_TRUE(summary.torn_tail);
  EXPECT_EQ(summary.end.segment, 4u);
  EXPECT_EQ(summary.end.offset, 2 * kDiskBlockBytes);
  EXPECT_EQ(summary.end.next_batch, 6u);
  EXPECT_EQ(summary.end.run, 2u);
  EXPECT_EQ(summary.end.recovered_epoch, 9u);
  EXPECT_EQ(summary.end.last_epoch, 9u);
}

TEST_P(GoldenTest, ManifestAndCheckpoint) {
  ImageFileSystem files = GoldenFiles(GetParam());
  const auto manifest = ReadManifest(files, kLogDirectory);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->version, has_long_keys() ? 3u : 1u);
  EXPECT_EQ(manifest->num_nodes, 2);
  EXPECT_EQ(manifest->application, "golden");
  ASSERT_EQ(manifest->tables.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const TableDescription& table = manifest->tables[i];
    const TableDescription expected = GoldenManifest(longest()).tables[i];
    EXPECT_EQ(table.id, expected.id);
    EXPECT_EQ(table.name, expected.name);
    EXPECT_EQ(table.integer_keys, expected.integer_keys);
    EXPECT_EQ(table.max_key_bytes, expected.max_key_bytes);
    EXPECT_EQ(table.index, expected.index);
    EXPECT_EQ(table.payload_bytes, expected.payload_bytes);
    EXPECT_EQ(table.variable_length, expected.variable_length);
    EXPECT_EQ(table.replicated, expected.replicated);
    EXPECT_EQ(table.expected_rows, expected.expected_rows);
  }
  ASSERT_EQ(manifest->checkpoints.size(), 1u);
  const CheckpointDescription& checkpoint = manifest->checkpoints[0];
  EXPECT_EQ(checkpoint.id, kGoldenCheckpoint);
  EXPECT_EQ(checkpoint.begin_epoch, 3u);
  EXPECT_EQ(checkpoint.end_epoch, 4u);
  EXPECT_EQ(checkpoint.first_segment, 1u);
  EXPECT_EQ(checkpoint.wall_nanos, 1'700'000'000'000'000'000u);
  EXPECT_EQ(checkpoint.files.size(), 2u);

  std::vector<GoldenRecord> records;
  const auto visit = [&](std::span<const CheckpointRecord> some) {
    const auto text = [](std::span<const std::byte> bytes) {
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    for (const CheckpointRecord& record : some)
      records.push_back({record.table, record.epoch, record.version, text(record.key), text(record.payload)});
    return absl::OkStatus();
  };
  for (const CheckpointFile& file : checkpoint.files) {
    const Status read = ReadCheckpointFile(files, kLogDirectory, Identity::FromText(manifest->database), checkpoint.id,
                                           file, visit, nullptr);
    ASSERT_TRUE(read.ok()) << read;
  }
  EXPECT_EQ(records, GoldenRecords(longest()));
}

INSTANTIATE_TEST_SUITE_P(Versions, GoldenTest,
                         testing::Values("v1", "v2", "v3", "v3-log-end", "v3-long-keys", "v4", "v5"),
                         [](const auto& version) {
                           return absl::StrReplaceAll(version.param, {{"-", "_"}});
                         });

void ExpectIdentity(const std::string& version) {
  ImageFileSystem files = GoldenFiles(version);
  EXPECT_EQ(ReadEndNote(files, kLogDirectory).value(),
            GoldenNote(4, kGoldenDatabase, version >= "v5" ? kGoldenRuns[1] : ""));
  Manifest manifest = ReadManifest(files, kLogDirectory).value();
  EXPECT_EQ(manifest.database, kGoldenDatabase);
  const auto said = [&](const std::string& path, size_t at) {
    return LoadIdentity(&files.files[std::string(kLogDirectory) + "/" + path][at]).ToText();
  };
  for (const uint64_t segment : {1, 3, 4}) EXPECT_EQ(said(SegmentName(segment), 88), kGoldenDatabase);
  for (const CheckpointFile& file : manifest.checkpoints[0].files)
    EXPECT_EQ(said("checkpoint-0000000000000008/" + file.name, 32), kGoldenDatabase);
}

// Every file of v4 and v5 has the identity that its manifest has.
TEST(GoldenIdentityTest, IsInEveryFile) {
  for (const char* version : {"v4", "v5"}) ExpectIdentity(version);
}

TEST(GoldenIdentityTest, TheSegmentsOfV5HaveTheirRuns) {
  ImageFileSystem files = GoldenFiles("v5");
  EXPECT_EQ(ReadManifest(files, kLogDirectory)->run, kGoldenRuns[1]);
  const StatusOr<LogSummary> read = ReadAll(files).summary;
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->runs.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read->runs[i].number, i + 1);
    EXPECT_EQ(read->runs[i].identity.ToText(), kGoldenRuns[i]);
    EXPECT_TRUE(read->runs[i].closed);
  }
  EXPECT_EQ(read->end.run_identity.ToText(), kGoldenRuns[1]);
}

TEST(GoldenNoteTest, IsReadAndNeeded) {
  ImageFileSystem files = GoldenFiles("v3-log-end");
  const StatusOr<EndNote> note = ReadEndNote(files, kLogDirectory);
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_EQ(*note, GoldenNote(4, "", ""));
  EXPECT_EQ(files.files[std::string(kLogDirectory) + "/" + kEndNoteName].size(), 2 * kEndNoteBytes);
  EXPECT_TRUE(ReadManifest(files, kLogDirectory)->log_end);
  files.files.erase(PathOf(4));
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(files).summary.status()));
  for (const char* before : {"v1", "v2", "v3"}) {
    ImageFileSystem old = GoldenFiles(before);
    EXPECT_FALSE(ReadManifest(old, kLogDirectory)->log_end);
    EXPECT_TRUE(absl::IsNotFound(ReadEndNote(old, kLogDirectory).status()));
    old.files.erase(PathOf(4));
    EXPECT_TRUE(ReadAll(old).summary.ok()) << "nothing says that there was more";
  }
}

}  // namespace golden_test
}  // namespace gannet::log
