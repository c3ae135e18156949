#include "log/format/batch.h"

#include <algorithm>
#include <utility>

#include "log/format/little_endian.h"

namespace gannet::log {

namespace {

void SetDamage(Batch* batch, size_t at, Status status) {
  if (!batch->status.ok()) return;
  batch->damaged_at = at;
  batch->status = std::move(status);
}

}  // namespace

void CheckBatch(const BatchHeader& header, std::span<const std::byte> bytes, uint32_t version, bool salvage,
                Batch* batch) {
  batch->header = header;
  batch->transactions.clear();
  batch->changes.clear();
  batch->status = absl::OkStatus();
  const uint64_t end = kBatchHeaderBytes + uint64_t{header.body_bytes};
  if (bytes.size() < BatchBytesOnDisk(header.body_bytes)) {
    SetDamage(batch, 0, absl::DataLossError("the batch is longer than the segment"));
    if (!salvage) return;
  }
  const size_t body_bytes = std::min<uint64_t>(end, bytes.size()) - kBatchHeaderBytes;
  TransactionDecoder decoder(bytes.subspan(kBatchHeaderBytes, body_bytes), version);
  while (true) {
    const size_t first = batch->changes.size();
    const StatusOr<bool> more = decoder.Next(&batch->changes);
    if (more.ok()) {
      if (!*more) break;
      batch->transactions.push_back({.epoch = decoder.epoch(),
                                     .id = decoder.id(),
                                     .part = decoder.part(),
                                     .first_change = first,
                                     .changes = batch->changes.size() - first});
      continue;
    }
    SetDamage(batch, kBatchHeaderBytes + decoder.consumed(), more.status());
    if (!salvage || !decoder.SkipDamaged()) return;
  }
  if (batch->transactions.size() != header.transactions)
    SetDamage(batch, 0, absl::DataLossError("the batch does not hold as many transactions as its header says"));
  if (end < bytes.size() && !AllZero(bytes.subspan(end)))
    SetDamage(batch, end, absl::DataLossError("the padding of the batch is not all zeros"));
}

}  // namespace gannet::log
