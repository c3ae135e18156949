// The content of the golden files. Those of each format version lie in v1/, v2/, v3/, v3-log-end/ (with the note of the
// log's end), v3-long-keys/ (with that, and keys of kMaxKeyBytes in place of kShortKeyBytes), v4/ (the same, and the
// identity of the database in every file), v5/ (the same, and the identities of the runs). They were made once, by
// make_golden.cc of that version; no test writes them, and every later version of Gannet must read them.
//
//   segment 1   run 1: batch 1, batch 2 with transactions of epochs that were not recovered, batch 3 torn
//   segment 2   a crash interrupted its creation
//   segment 3   run 2, recovered epoch 4: batches 3 and 4
//   segment 4   run 2: batch 5, batch 6 torn
//   checkpoint  8: two tables, in a file each
#pragma once

#include <string>
#include <vector>

#include "log/manifest/manifest.h"
#include "log/segment/end_note.h"
#include "tests/log/log_builder.h"

namespace gannet::log {

struct GoldenRecord {
  uint16_t table = 0;
  uint64_t epoch = 0;
  uint64_t version = 0;
  std::string key{};
  std::string payload{};
  friend bool operator==(const GoldenRecord&, const GoldenRecord&) = default;
};

inline constexpr uint64_t kGoldenCheckpoint = 8;
inline constexpr char kGoldenDatabase[] = "0123456789abcdef0123456789abcdef";  // from v4 on

inline constexpr char kGoldenRuns[2][33] = {"11111111111111111111111111111111",
                                            "22222222222222222222222222222222"};  // from v5 on

inline std::string IntegerKey(uint8_t number) {
  return std::string(7, '\0') + static_cast<char>(number);
}

// The transactions that count, by batch. `longest`: bytes of the longest keys.
inline std::vector<std::vector<TestTransaction>> GoldenBatches(size_t longest) {
  const auto put = [](uint16_t table, uint64_t version, std::string key, std::string payload) {
    return TestChange{ChangeKind::kPut, table, version, std::move(key), std::move(payload)};
  };
  const std::string long_key(longest, 'k');
  return {
      {{.epoch = 1, .changes = {put(1, 1, IntegerKey(1), "one"), put(2, 1, "", "")}},
       {.epoch = 2, .changes = {put(2, 7, long_key, std::string(300, 'p'))}}},
      {{.epoch = 4, .changes = {{.kind = ChangeKind::kRemove, .table = 1, .version = 2, .key = IntegerKey(1)}}}},
      {{.epoch = 7, .part = TransactionPart::kPart, .id = TransactionIdOf(1, 5), .changes = {put(1, 8, "x", "part")}},
       {.epoch = 7, .part = TransactionPart::kDecision, .id = TransactionIdOf(0, 6)}},
      {},
      {{.epoch = 9, .changes = {put(65535, ~uint64_t{0}, IntegerKey(255), "last")}}},
  };
}

inline std::vector<GoldenRecord> GoldenRecords(size_t longest) {
  return {{1, 0, 3, IntegerKey(1), "first"},
          {1, 4, 5, IntegerKey(2), std::string(5000, 'q')},
          {2, 4, 6, std::string(longest, 'k'), ""}};
}

// The note of the log's end in segment 3 or 4. v1 to v3 have none. `run`: the identity of its run; empty before v5.
inline EndNote GoldenNote(uint64_t segment, const std::string& database, const std::string& run) {
  return {.segment = segment,
          .offset = segment == 3 ? kSegmentHeaderBytes : 2 * kDiskBlockBytes,
          .next_batch = segment == 3 ? uint64_t{3} : 6,
          .run = 2,
          .closed_epoch = segment == 3 ? uint64_t{4} : 9,
          .node = 0,
          .num_nodes = 2,
          .database = Identity::FromText(database),
          .run_identity = Identity::FromText(run)};
}

inline Manifest GoldenManifest(size_t longest) {
  Manifest manifest;
  manifest.node = 0;
  manifest.num_nodes = 2;
  manifest.application = "golden";
  TableDescription first;
  first.id = 1;
  first.name = "numbers";
  first.index = "hash";
  first.payload_bytes = 8192;
  first.variable_length = true;
  first.expected_rows = 10;
  TableDescription second = first;
  second.id = 2;
  second.name = "names";
  second.integer_keys = false;
  second.max_key_bytes = static_cast<uint32_t>(longest);
  second.index = longest > kShortKeyBytes ? "hash" : "xstore";
  second.replicated = true;
  manifest.tables = {first, second};
  return manifest;  // the caller adds the checkpoint
}

}  // namespace gannet::log
