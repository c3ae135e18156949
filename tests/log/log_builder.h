// Logs made byte by byte, without the writer, and read back as plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "log/format/segment_format.h"
#include "log/format/transaction_format.h"
#include "log/segment/log_reader.h"
#include "tests/log/image_file_system.h"
#include "tests/log/log_directory.h"

namespace gannet::log {

struct TestChange {
  ChangeKind kind = ChangeKind::kPut;
  uint16_t table = 0;
  uint64_t version = 0;
  std::string key{};
  std::string payload{};
  friend bool operator==(const TestChange&, const TestChange&) = default;
};

struct TestTransaction {
  uint64_t epoch = 0;
  TransactionPart part = TransactionPart::kWhole;
  uint64_t id = 0;
  std::vector<TestChange> changes{};
  friend bool operator==(const TestTransaction&, const TestTransaction&) = default;
};

std::vector<std::byte> Encode(const TestTransaction& transaction);
TestChange CopyOf(const ChangeView& change);
std::span<const std::byte> BytesOf(const std::string& text);

// A segment's bytes. Batches are numbered from header.first_batch on.
class SegmentBuilder {
 public:
  explicit SegmentBuilder(SegmentHeader header);
  // Returns the batch's offset.
  uint64_t Add(uint64_t closed_epoch, const std::vector<TestTransaction>& transactions);
  uint64_t end() const { return end_; }
  uint64_t next_batch() const { return next_batch_; }
  uint64_t closed_epoch() const { return closed_epoch_; }
  const SegmentHeader& header() const { return header_; }
  Image& image() { return image_; }

 private:
  SegmentHeader header_;
  Image image_;
  uint64_t end_ = kSegmentHeaderBytes;
  uint64_t next_batch_;
  uint64_t closed_epoch_;
};

// The header of a segment that follows `previous` in the same run.
SegmentHeader HeaderAfter(const SegmentBuilder& previous);
// The header of the first segment of a log, with room for `blocks` blocks after the header.
SegmentHeader FirstHeader(uint64_t blocks);

void Put(ImageFileSystem* files, SegmentBuilder* segment);
std::string PathOf(uint64_t segment);

// A transaction with one put of this text under the key "k".
TestTransaction Simple(uint64_t epoch, const std::string& payload);

// The result of reading with one thread; transactions are in the log's order.
struct ReadResult {
  StatusOr<LogSummary> summary;
  std::vector<TestTransaction> transactions;
};
ReadResult ReadAll(FileSystem& files, ReadOptions options = {}, const std::string& directory = kLogDirectory);

}  // namespace gannet::log
