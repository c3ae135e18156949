#include "tests/log/log_builder.h"

#include <cstring>

#include "base/check.h"

namespace gannet::log {

namespace {

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TestChange CopyOf(const ChangeView& change) {
  return {change.kind, change.table, change.version, TextOf(change.key()), TextOf(change.payload)};
}

std::vector<std::byte> Encode(const TestTransaction& transaction) {
  size_t bytes = kTransactionOverheadBytes;
  for (const TestChange& change : transaction.changes)
    bytes += MaxChangeBytes(change.key.size(), change.payload.size());
  std::vector<std::byte> buffer(bytes, std::byte{0xcc});
  TransactionEncoder encoder(buffer.data());
  for (const TestChange& change : transaction.changes) {
    std::byte* const room =
        encoder.Add(change.kind, change.table, change.version, BytesOf(change.key), change.payload.size());
    if (!change.payload.empty()) std::memcpy(room, change.payload.data(), change.payload.size());
  }
  const size_t used = encoder.Finish(transaction.epoch, transaction.part, transaction.id);
  GANNET_CHECK(used <= bytes, "encoded %d bytes into %d", used, bytes);
  buffer.resize(used);
  return buffer;
}

SegmentBuilder::SegmentBuilder(SegmentHeader header)
    : header_(header), image_(header.bytes), next_batch_(header.first_batch), closed_epoch_(header.closed_epoch) {
  header.Encode(std::span(image_).first<kSegmentHeaderBytes>());
}

uint64_t SegmentBuilder::Add(uint64_t closed_epoch, const std::vector<TestTransaction>& transactions) {
  std::vector<std::byte> body;
  for (const TestTransaction& transaction : transactions) {
    const std::vector<std::byte> bytes = Encode(transaction);
    body.insert(body.end(), bytes.begin(), bytes.end());
  }
  const uint64_t offset = end_;
  const BatchHeader header{.batch = next_batch_,
                           .segment = header_.segment,
                           .closed_epoch = closed_epoch,
                           .wall_nanos = 1'700'000'000'000'000'000 + next_batch_,
                           .body_bytes = static_cast<uint32_t>(body.size()),
                           .transactions = static_cast<uint32_t>(transactions.size())};
  end_ += BatchBytesOnDisk(body.size());
  ++next_batch_;
  closed_epoch_ = closed_epoch;
  GANNET_CHECK(end_ <= image_.size(), "a test's segment is too small");
  header.Encode(std::span(image_).subspan(offset).first<kBatchHeaderBytes>());
  if (!body.empty()) std::memcpy(image_.data() + offset + kBatchHeaderBytes, body.data(), body.size());
  return offset;
}

SegmentHeader HeaderAfter(const SegmentBuilder& previous) {
  SegmentHeader header = previous.header();
  ++header.segment;
  header.first_batch = previous.next_batch();
  header.previous_end = previous.end();
  header.closed_epoch = previous.closed_epoch();
  return header;
}

SegmentHeader FirstHeader(uint64_t blocks) {
  return {.segment = 1, .bytes = kSegmentHeaderBytes + blocks * kDiskBlockBytes, .run = 1, .first_batch = 1};
}

std::string PathOf(uint64_t segment) {
  return std::string(kLogDirectory) + "/" + SegmentName(segment);
}

void Put(ImageFileSystem* files, SegmentBuilder* segment) {
  files->files[PathOf(segment->header().segment)] = segment->image();
}

TestTransaction Simple(uint64_t epoch, const std::string& payload) {
  return {.epoch = epoch, .changes = {{.version = epoch, .key = "k", .payload = payload}}};
}

ReadResult ReadAll(FileSystem& files, ReadOptions options, const std::string& directory) {
  std::vector<TestTransaction> found;
  const TransactionVisitor visit = [&](int, const TransactionView& view) {
    TestTransaction transaction{.epoch = view.epoch, .part = view.part, .id = view.id, .changes = {}};
    for (const ChangeView& change : view.changes) transaction.changes.push_back(CopyOf(change));
    found.push_back(std::move(transaction));
    return absl::OkStatus();
  };
  StatusOr<LogSummary> summary = ReadLog(files, directory, options, visit);
  return {std::move(summary), std::move(found)};
}

}  // namespace gannet::log
