// One batch's bytes, checked as a whole before anything of it is believed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/format.h"
#include "log/transaction_format.h"

namespace gannet::log {

struct Batch {
  BatchHeader header;
  std::vector<TransactionDecoder> transactions;  // each at one valid transaction, before its first change
  // Of the first byte of what is invalid, from the batch's begin; and why.
  size_t damaged_at = 0;
  Status status;
};

// `bytes`: BatchBytesOnDisk of `header`, the header included, or less if the file ends before. `version`: of the
// segment. `batch` is overwritten (its memory is used again) and points into `bytes`. Not ok: `transactions` are those
// before the damage; with `salvage` also those behind it that are valid.
void CheckBatch(const BatchHeader& header, std::span<const std::byte> bytes, uint32_t version, bool salvage,
                Batch* batch);

}  // namespace gannet::log
