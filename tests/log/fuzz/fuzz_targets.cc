#include "tests/log/fuzz/fuzz_targets.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/check.h"
#include "log/checkpoint/checkpoint_format.h"
#include "log/format/crc32c.h"
#include "log/format/little_endian.h"
#include "log/manifest/manifest_json.h"
#include "tests/log/log_builder.h"

namespace gannet::log {

namespace {

using Bytes = std::span<std::byte>;

// Reads every byte, so that AddressSanitizer detects bytes outside of the input.
uint64_t Touch(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (const std::byte byte : bytes) sum += static_cast<uint64_t>(byte);
  volatile uint64_t sink = sum;
  return sink;
}

void RepairTransactions(Bytes body) {
  while (body.size() >= kTransactionHeaderBytes) {
    uint32_t bytes = LoadLittle<uint32_t>(&body[4]);
    if (bytes < kTransactionHeaderBytes || bytes > body.size() || bytes % 8 != 0)
      bytes = static_cast<uint32_t>(body.size() / 8 * 8);
    StoreLittle(&body[4], bytes);
    StoreLittle(&body[0], Crc32c(body.subspan(4, bytes - 4)));
    body = body.subspan(bytes);
  }
}

void RepairSegment(Bytes segment) {
  if (segment.size() < kSegmentHeaderBytes) return;
  StoreLittle(&segment[0], kSegmentMagic);
  StoreLittle(&segment[12], 1 + LoadLittle<uint32_t>(&segment[12]) % kFormatVersion);
  StoreLittle(&segment[16], uint64_t{1});
  StoreLittle(&segment[24], uint64_t{segment.size()});
  StoreLittle(&segment[80], kSegmentEndMark);
  const auto version = LoadLittle<uint32_t>(&segment[12]);
  if (version >= 4) StoreLittle(&segment[104], kSegmentEndMark);
  if (version >= 5) StoreLittle(&segment[144], kSegmentEndMark);
  StoreLittle(&segment[8], Crc32c(segment.subspan(12, kSegmentHeaderBytes - 12)));
  for (size_t at = kSegmentHeaderBytes; at + kDiskBlockBytes <= segment.size(); at += kDiskBlockBytes) {
    const Bytes header = segment.subspan(at, kBatchHeaderBytes);
    if (LoadLittle<uint32_t>(&header[4]) != kBatchMagic) continue;
    StoreLittle(&header[0], Crc32c(header.subspan(4)));
    const size_t body = std::min<size_t>(LoadLittle<uint32_t>(&header[40]), segment.size() - at - kBatchHeaderBytes);
    RepairTransactions(segment.subspan(at + kBatchHeaderBytes, body));
  }
}

void RepairCheckpoint(Bytes file) {
  if (file.size() < kCheckpointHeaderBytes) return;
  CheckpointHeader{.checkpoint = 1, .table = 1}.Encode(file.first<kCheckpointHeaderBytes>());
  for (size_t at = kCheckpointHeaderBytes; at + kDiskBlockBytes <= file.size(); at += kDiskBlockBytes) {
    const Bytes block = file.subspan(at);
    if (LoadLittle<uint32_t>(&block[4]) != kCheckpointBlockMagic) continue;
    const size_t body = std::min<size_t>(LoadLittle<uint32_t>(&block[8]), block.size() - kBlockHeaderBytes);
    StoreLittle(&block[0], Crc32c(block.subspan(4, kBlockHeaderBytes - 4 + body)));
  }
}

void ReadTransactions(std::span<const std::byte> body, uint32_t version) {
  TransactionDecoder decoder(body, version);
  std::vector<ChangeView> decoded;
  while (true) {
    const size_t before = decoded.size();
    const StatusOr<bool> more = decoder.Next(&decoded);
    GANNET_CHECK(decoded.size() == before + (more.ok() && *more ? decoder.changes() : 0), "%d after %d", decoded.size(),
                 before);
    GANNET_CHECK(decoder.consumed() <= body.size(), "%d of %d", decoder.consumed(), body.size());
    if (!more.ok()) {
      GANNET_CHECK(absl::IsDataLoss(more.status()), "%s", more.status().ToString());
      if (!decoder.SkipDamaged()) return;
      continue;
    }
    if (!*more) return;
    for (const ChangeView& change : std::span(decoded).subspan(before)) {
      Touch(change.key());
      Touch(change.payload);
    }
  }
}

void ReadSegment(std::span<const std::byte> bytes) {
  ImageFileSystem files;
  files.files[PathOf(1)] = Image(bytes.begin(), bytes.end());
  const ReadResult strict = ReadAll(files);
  const ReadResult salvaged = ReadAll(files, {.salvage = true});
  const Status& status = strict.summary.status();
  GANNET_CHECK(status.ok() || absl::IsDataLoss(status) || absl::IsInvalidArgument(status), "%s", status.ToString());
  if (!salvaged.summary.ok()) {
    GANNET_CHECK(absl::IsInvalidArgument(salvaged.summary.status()), "%s", salvaged.summary.status().ToString());
    return;
  }
  GANNET_CHECK(strict.summary.ok() == salvaged.summary->damages.empty(), "%s", status.ToString());
  GANNET_CHECK(salvaged.transactions.size() >= strict.transactions.size(), "salvage gives less");
  if (strict.summary.ok()) GANNET_CHECK(salvaged.transactions == strict.transactions, "salvage gives something else");
}

void ReadCheckpoint(std::span<const std::byte> bytes) {
  ImageFileSystem files;
  files.files[CheckpointDirectory(kLogDirectory, 1) + "/file"] = Image(bytes.begin(), bytes.end());
  const CheckpointFile file{.name = "file", .table = 1, .bytes = bytes.size(), .records = 1, .crc = 0};
  uint64_t records = 0;
  uint64_t damages = 0;
  const auto visit = [&](std::span<const CheckpointRecord> some) {
    for (const CheckpointRecord& record : some) {
      Touch(record.key);
      Touch(record.payload);
    }
    records += some.size();
    return absl::OkStatus();
  };
  const auto damaged = [&](uint64_t, const std::string&) { ++damages; };
  const Status strict = ReadCheckpointFile(files, kLogDirectory, Identity{}, 1, file, visit, nullptr);
  const uint64_t before = std::exchange(records, 0);
  const Status salvaged = ReadCheckpointFile(files, kLogDirectory, Identity{}, 1, file, visit, damaged);
  GANNET_CHECK(strict.ok() || absl::IsDataLoss(strict) || absl::IsInvalidArgument(strict), "%s", strict.ToString());
  GANNET_CHECK(salvaged.ok() || absl::IsInvalidArgument(salvaged), "%s", salvaged.ToString());
  GANNET_CHECK(!salvaged.ok() || strict.ok() == (damages == 0), "%s", strict.ToString());
  GANNET_CHECK(!salvaged.ok() || records >= before, "salvage gives less");
}

void ReadManifestText(std::string_view text) {
  const StatusOr<Manifest> manifest = ManifestFromJson(text);
  if (!manifest.ok()) {
    GANNET_CHECK(absl::IsDataLoss(manifest.status()) || absl::IsInvalidArgument(manifest.status()), "%s",
                 manifest.status().ToString());
    return;
  }
  const std::string again = ManifestToJson(*manifest);
  const StatusOr<Manifest> second = ManifestFromJson(again);
  GANNET_CHECK(second.ok() && ManifestToJson(*second) == again, "%s", again);
}

std::vector<std::byte> CopyOfBytes(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> SeedSegment() {
  SegmentBuilder segment(FirstHeader(6));
  segment.Add(1, {Simple(1, "a"), Simple(1, std::string(100, 'b'))});
  segment.Add(2, {Simple(2, std::string(5000, 'c'))});
  segment.Add(3, {});
  return segment.image();
}

std::vector<std::byte> SeedCheckpoint() {
  std::vector<std::byte> file(kCheckpointHeaderBytes + 3 * kDiskBlockBytes);
  CheckpointHeader{.checkpoint = 1, .table = 1}.Encode(Bytes(file).first<kCheckpointHeaderBytes>());
  const std::string text = "some bytes";
  for (size_t at = kCheckpointHeaderBytes; at + 2 * kDiskBlockBytes <= file.size(); at += kDiskBlockBytes) {
    const Bytes block = Bytes(file).subspan(at);
    const size_t record = EncodeRecord({1, 2, 3, BytesOf(text), BytesOf(text)}, &block[kBlockHeaderBytes]);
    BlockHeader::Seal(block.first(kBlockHeaderBytes + record), 1);
  }
  const Bytes last = Bytes(file).last(kDiskBlockBytes).first(kBlockHeaderBytes + kLastBlockBytes);
  StoreLittle(&last[kBlockHeaderBytes], uint64_t{2});
  StoreLittle(&last[kBlockHeaderBytes + 8], uint64_t{2});
  BlockHeader::Seal(last, 0);
  return file;
}

std::vector<std::byte> SeedManifest() {
  Manifest manifest;
  manifest.tables.emplace_back().name = "orders";
  manifest.checkpoints.emplace_back().files.push_back({"table-00001-00000", 1, 2, 3, 4});
  return CopyOfBytes(BytesOf(ManifestToJson(manifest)));
}

}  // namespace

void RunFuzzTarget(FuzzTarget target, bool repair, std::span<const std::byte> bytes) {
  std::vector<std::byte> copy = CopyOfBytes(bytes);
  switch (target) {
    case FuzzTarget::kTransactions:
      if (repair) RepairTransactions(copy);
      for (uint32_t version = 1; version <= kFormatVersion; ++version) ReadTransactions(copy, version);
      return;
    case FuzzTarget::kSegment:
      if (repair) RepairSegment(copy);
      return ReadSegment(copy);
    case FuzzTarget::kCheckpoint:
      if (repair) RepairCheckpoint(copy);
      return ReadCheckpoint(copy);
    case FuzzTarget::kManifest:
      return ReadManifestText({reinterpret_cast<const char*>(copy.data()), copy.size()});
    case FuzzTarget::kCount:
      return;
  }
}

std::vector<std::byte> FuzzSeed(FuzzTarget target) {
  switch (target) {
    case FuzzTarget::kTransactions:
      return Encode({.epoch = 1,
                     .changes = {{.version = 2, .key = "key", .payload = "payload"},
                                 {.kind = ChangeKind::kRemove, .version = 3, .key = "gone"}}});
    case FuzzTarget::kSegment:
      return SeedSegment();
    case FuzzTarget::kCheckpoint:
      return SeedCheckpoint();
    case FuzzTarget::kManifest:
      return SeedManifest();
    case FuzzTarget::kCount:
      break;
  }
  return {};
}

}  // namespace gannet::log
