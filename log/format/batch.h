// A decoded batch. Its bytes are checked as a whole before any of them is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/format/segment_format.h"
#include "log/format/transaction_format.h"

namespace gannet::log {

struct BatchTransaction {
  uint64_t epoch = 0;
  uint64_t id = 0;
  TransactionPart part = TransactionPart::kWhole;
  size_t first_change = 0;  // in the batch
  size_t changes = 0;
};

struct Batch {
  BatchHeader header;
  std::vector<BatchTransaction> transactions;  // the valid ones
  std::vector<ChangeView> changes;             // theirs
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
