#include "log/segment/batch_buffer.h"

#include <algorithm>
#include <cstring>

#include "base/cache_line.h"
#include "base/check.h"
#include "log/file/file_system.h"
#include "log/format/little_endian.h"
#include "log/format/transaction_format.h"

namespace gannet::log {

namespace {

constexpr size_t kPieceBytes = 2048;  // a multiple of a line
// Batches of this size come from a busy log, so a whole huge page pays off.
constexpr size_t kHugeFrom = size_t{64} << 10;
// A larger buffer, which a large transaction needed, is not kept for the next batch.
constexpr size_t kMostKept = size_t{32} << 20;

void Prefetch(std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size(); at += kLineBytes) PrefetchToReadOnce(bytes.data() + at);
}

}  // namespace

void BatchBuffer::Clear() {
  body_bytes_ = 0;
  content_ = {};
  if (memory_.size() > kMostKept) memory_ = {};
}

void BatchBuffer::Grow(size_t body_bytes) {
  const size_t needed = BatchBytesOnDisk(body_bytes);
  if (needed <= memory_.size()) return;
  const size_t larger = std::max(needed, 2 * memory_.size());
  AlignedBuffer memory(larger < kHugeFrom ? larger : RoundUp(larger, BulkMemory::kHugePageBytes));
  if (body_bytes_ != 0) std::memcpy(memory.data() + kBatchHeaderBytes, memory_.data() + kBatchHeaderBytes, body_bytes_);
  memory_ = std::move(memory);
}

void BatchBuffer::Append(std::span<const std::byte> transactions) {
  constexpr size_t kBytesAt = 4;  // transaction_format.h: crc32c 4 | bytes 4 | epoch 8 | ...
  constexpr size_t kEpochAt = 8;
  GANNET_CHECK(BatchBytesOnDisk(body_bytes_ + transactions.size()) <= memory_.size(), "%d + %d bytes in a buffer of %d",
               body_bytes_, transactions.size(), memory_.size());
  // Copies in pieces, and prefetches each one while the previous one is copied. Otherwise each transaction header,
  // which tells where the next one is, would be a cache miss.
  std::byte* const to = memory_.data() + kBatchHeaderBytes + body_bytes_;
  Prefetch(transactions.first(std::min(kPieceBytes, transactions.size())));
  size_t at = 0;
  for (size_t begin = 0; begin < transactions.size(); begin += kPieceBytes) {
    const size_t end = std::min(begin + kPieceBytes, transactions.size());
    Prefetch(transactions.subspan(end, std::min(kPieceBytes, transactions.size() - end)));
    for (; at < end; ++content_.transactions) {
      const std::byte* transaction = transactions.data() + at;
      const size_t bytes = LoadLittle<uint32_t>(transaction + kBytesAt);
      GANNET_CHECK(bytes >= kTransactionHeaderBytes && bytes <= transactions.size() - at,
                   "a transaction of %d bytes at %d of %d was appended", bytes, at, transactions.size());
      const auto epoch = LoadLittle<uint64_t>(transaction + kEpochAt);
      content_.least_epoch = std::min(content_.least_epoch, epoch);
      content_.greatest_epoch = std::max(content_.greatest_epoch, epoch);
      at += bytes;
    }
    std::memcpy(to + begin, transactions.data() + begin, end - begin);
  }
  body_bytes_ += transactions.size();
}

std::span<const std::byte> BatchBuffer::Seal(BatchHeader header) {
  Grow(body_bytes_);
  GANNET_CHECK(body_bytes_ <= UINT32_MAX && header.transactions == content_.transactions,
               "a batch of %d bytes and %d transactions is sealed as one of %d", body_bytes_, content_.transactions,
               header.transactions);
  header.body_bytes = static_cast<uint32_t>(body_bytes_);
  header.Encode(std::span<std::byte, kBatchHeaderBytes>(memory_.data(), kBatchHeaderBytes));
  const size_t end = kBatchHeaderBytes + body_bytes_;
  std::memset(memory_.data() + end, 0, bytes_on_disk() - end);
  return {memory_.data(), bytes_on_disk()};
}

}  // namespace gannet::log
