// A decoded batch. Its bytes are checked as a whole before any of them is used.
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
  // Offset of the first invalid part, from the batch's begin; `status` says why it is invalid.
  size_t damaged_at = 0;
  Status status;
};

// `bytes`: BatchBytesOnDisk of `header`, including the header, or fewer if the file ends earlier. `version`: version of
// the segment. `batch` is overwritten (its memory is reused) and points into `bytes`. If its status is not ok,
// `transactions` are those before the damage, and with `salvage` also the valid ones behind it.
void CheckBatch(const BatchHeader& header, std::span<const std::byte> bytes, uint32_t version, bool salvage,
                Batch* batch);

}  // namespace gannet::log
