// Reads one segment from its first batch to its end, checks everything, and passes the valid transactions to a visitor.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "log/file/damage.h"
#include "log/file/file_input.h"
#include "log/file/file_system.h"
#include "log/format/batch.h"
#include "log/segment/log_reader.h"
#include "log/segment/segment_chain.h"

namespace gannet::log {

struct SegmentResult {
  uint64_t last_batch_offset = 0;             // of the last valid batch; 0: there is none
  uint64_t end_offset = kSegmentHeaderBytes;  // after the last valid batch
  uint64_t next_batch = 0;
  uint64_t closed_epoch = 0;  // greatest of its batches
  uint64_t last_epoch = 0;    // greatest of its batches and transactions, void ones too
  uint64_t batches = 0;
  uint64_t transactions = 0;
  uint64_t changes = 0;
  uint64_t bytes_read = 0;
  uint64_t last_wall_nanos = 0;
  bool torn = false;  // at end_offset
};

class SegmentScanner {
 public:
  // All must outlive it. `visit` and `batch_end` (ReadOptions) may be empty. `thread` is for them.
  SegmentScanner(const SegmentPlan* plan, File* file, DamageList* damages, int thread, const TransactionVisitor* visit,
                 const std::function<Status(int thread)>* batch_end)
      : plan_(plan),
        damages_(damages),
        thread_(thread),
        visit_(visit),
        batch_end_(batch_end),
        input_(file, plan->size, damages) {}

  StatusOr<SegmentResult> Scan();

 private:
  enum class Step { kGoOn, kEnd };
  enum class Begin {
    kInvalid,
    kStray,
    kBatch
  };  // kind of the bytes at offset_; kStray: a valid header that belongs to another place

  bool AtEnd() const;
  // Reads the batch that belongs at offset_ into batch_. If it is not there, batch_.status says why.
  Status ReadBatch();
  std::string WrongPlace(const BatchHeader& header) const;
  StatusOr<Step> TakeBatch();
  StatusOr<Step> MeetInvalid();
  StatusOr<Step> MeetTail();
  StatusOr<Step> Salvage(const std::string& what);
  StatusOr<uint64_t> FindBatch(uint64_t offset, uint64_t least);
  Status CheckEnd();
  Status Deliver();

  const SegmentPlan* const plan_;
  DamageList* const damages_;
  const int thread_;
  const TransactionVisitor* const visit_;
  const std::function<Status(int thread)>* const batch_end_;
  FileInput input_;

  uint64_t offset_ = kSegmentHeaderBytes;
  uint64_t expected_ = 0;   // number of the batch at offset_
  bool gap_known_ = false;  // in salvage: the possible loss of batches from expected_ on has been reported
  Begin begin_ = Begin::kInvalid;
  Batch batch_;
  SegmentResult result_;
};

}  // namespace gannet::log
