#include "log/segment/segment_scanner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gannet::log {

StatusOr<SegmentResult> SegmentScanner::Scan() {
  expected_ = plan_->header.first_batch;
  gap_known_ = !plan_->header_valid;
  while (!AtEnd()) {
    GANNET_RETURN_IF_ERROR(ReadBatch());
    const StatusOr<Step> step = batch_.status.ok() ? TakeBatch() : MeetInvalid();
    if (!step.ok()) return step.status();
    if (*step == Step::kEnd) break;
  }
  GANNET_RETURN_IF_ERROR(CheckEnd());
  result_.next_batch = expected_;
  result_.bytes_read = input_.bytes_read();
  return result_;
}

// True if nothing valid follows: the rest is void or empty.
bool SegmentScanner::AtEnd() const {
  return expected_ >= plan_->end_batch || offset_ >= std::min(plan_->end_offset, plan_->size);
}

Status SegmentScanner::ReadBatch() {
  const auto front = input_.At(offset_, kDiskBlockBytes);
  if (!front.ok()) return front.status();
  begin_ = Begin::kInvalid;
  batch_.transactions.clear();
  batch_.changes.clear();
  batch_.damaged_at = 0;
  if (front->size() < kBatchHeaderBytes) {
    batch_.status = absl::DataLossError("no batch fits in here");
    return absl::OkStatus();
  }
  const StatusOr<BatchHeader> header = BatchHeader::Decode(front->first<kBatchHeaderBytes>());
  if (!header.ok()) {
    batch_.status = header.status();
    return absl::OkStatus();
  }
  if (plan_->header.reused && header->segment < plan_->segment) {
    batch_.status = absl::DataLossError(
        absl::StrCat("a batch of segment ", header->segment, ", for which the file was used before"));
    return absl::OkStatus();
  }
  const std::string wrong = WrongPlace(*header);
  if (!wrong.empty()) {
    begin_ = Begin::kStray;
    batch_.status = absl::DataLossError(wrong);
    return absl::OkStatus();
  }
  if (header->batch != expected_ && !gap_known_) {
    GANNET_RETURN_IF_ERROR(
        damages_->Found(plan_->path, offset_, absl::StrCat("the batches from ", expected_, " to here are missing")));
  }
  begin_ = Begin::kBatch;
  const auto bytes = input_.At(offset_, BatchBytesOnDisk(header->body_bytes));
  if (!bytes.ok()) return bytes.status();
  CheckBatch(*header, *bytes, plan_->header.version, damages_->salvage(), &batch_);
  return absl::OkStatus();
}

std::string SegmentScanner::WrongPlace(const BatchHeader& header) const {
  if (header.segment != plan_->segment) return absl::StrCat("a batch of segment ", header.segment, " lies here");
  // In salvage batches may be missing before this one.
  if (header.batch == expected_) return "";
  if (damages_->salvage() && header.batch > expected_ && header.batch < plan_->end_batch) return "";
  return absl::StrCat("batch ", header.batch, " lies where batch ", expected_, " should");
}

StatusOr<SegmentScanner::Step> SegmentScanner::TakeBatch() {
  GANNET_RETURN_IF_ERROR(Deliver());
  gap_known_ = false;
  ++result_.batches;
  result_.last_wall_nanos = batch_.header.wall_nanos;
  expected_ = batch_.header.batch + 1;
  result_.last_batch_offset = offset_;
  offset_ += BatchBytesOnDisk(batch_.header.body_bytes);
  result_.end_offset = offset_;
  return Step::kGoOn;
}

StatusOr<SegmentScanner::Step> SegmentScanner::MeetInvalid() {
  if (plan_->last) return MeetTail();
  return Salvage(std::string(batch_.status.message()));
}

// In the last segment, an invalid batch is the end of the log, a write torn by a crash, or damage.
StatusOr<SegmentScanner::Step> SegmentScanner::MeetTail() {
  const std::string why(batch_.status.message());
  const bool reused = plan_->header.reused;
  const StatusOr<uint64_t> data = reused ? offset_ : FindNonZero(&input_, offset_);
  if (!data.ok()) return data.status();
  if (*data == plan_->size) return Step::kEnd;
  if (begin_ == Begin::kStray) return Salvage(why);
  if (begin_ == Begin::kBatch) {
    const uint64_t end = offset_ + BatchBytesOnDisk(batch_.header.body_bytes);
    if (end > plan_->size) return Salvage(why);
    // Nothing is written after a batch before the batch is durable.
    const StatusOr<uint64_t> behind = reused ? FindBatch(end, expected_) : FindNonZero(&input_, end);
    if (!behind.ok()) return behind.status();
    if (*behind != plan_->size) return Salvage(absl::StrCat(why, ", and data follows at offset ", *behind));
  } else {
    const StatusOr<uint64_t> later = FindBatch(offset_, expected_);
    if (!later.ok()) return later.status();
    if (*later != plan_->size) return Salvage(absl::StrCat(why, ", and another batch follows at offset ", *later));
  }
  // In a reused file, bytes that are not a batch may be old content.
  result_.torn = !reused || begin_ == Begin::kBatch;
  return Step::kEnd;
}

// Reports the damage; in salvage, delivers what is left of the batch and continues with the next one.
StatusOr<SegmentScanner::Step> SegmentScanner::Salvage(const std::string& what) {
  GANNET_RETURN_IF_ERROR(damages_->Found(plan_->path, offset_ + batch_.damaged_at, what));
  gap_known_ = true;
  if (begin_ == Begin::kBatch) {
    // The batch is read again, because MeetTail has moved the window: batch_ points to bytes that are gone.
    GANNET_RETURN_IF_ERROR(ReadBatch());
    GANNET_RETURN_IF_ERROR(Deliver());
  }
  const StatusOr<uint64_t> next = FindBatch(offset_ + kDiskBlockBytes, expected_);
  if (!next.ok()) return next.status();
  offset_ = *next;
  return Step::kGoOn;
}

// The first offset at or after `offset` at which a batch of this segment with a number of at least `least` begins.
StatusOr<uint64_t> SegmentScanner::FindBatch(uint64_t offset, uint64_t least) {
  const uint64_t end = std::min(plan_->end_offset, plan_->size);
  for (; offset < end; offset += kDiskBlockBytes) {
    const auto block = input_.At(offset, kDiskBlockBytes);
    if (!block.ok()) return block.status();
    if (block->size() < kBatchHeaderBytes) break;
    const StatusOr<BatchHeader> header = BatchHeader::Decode(block->first<kBatchHeaderBytes>());
    if (header.ok() && header->segment == plan_->segment && header->batch >= least) return offset;
  }
  return plan_->size;
}

Status SegmentScanner::CheckEnd() {
  if (plan_->last) return absl::OkStatus();
  if (plan_->next_missing) return absl::OkStatus();  // has been reported
  if (expected_ != plan_->end_batch) {
    return damages_->Found(plan_->path, offset_,
                           absl::StrCat("the next segment begins with batch ", plan_->end_batch, ", but batch ",
                                        expected_, " is missing"));
  }
  if (plan_->end_offset == kUnknown || offset_ == plan_->end_offset) return absl::OkStatus();
  return damages_->Found(
      plan_->path, offset_,
      absl::StrCat("its batches end here, but the next segment says that they end at ", plan_->end_offset));
}

Status SegmentScanner::Deliver() {
  result_.closed_epoch = std::max(result_.closed_epoch, batch_.header.closed_epoch);
  result_.last_epoch = std::max(result_.last_epoch, batch_.header.closed_epoch);
  TransactionView view;
  view.batch = {plan_->segment, offset_};
  view.closed_epoch = batch_.header.closed_epoch;
  view.closed_later = std::max(view.closed_epoch, plan_->closed_later);
  const std::span<const ChangeView> changes(batch_.changes);
  for (const BatchTransaction& transaction : batch_.transactions) {
    result_.last_epoch = std::max(result_.last_epoch, transaction.epoch);
    if (transaction.epoch > plan_->last_valid_epoch) continue;
    ++result_.transactions;
    result_.changes += transaction.changes;
    if (!*visit_) continue;
    view.epoch = transaction.epoch;
    view.part = transaction.part;
    view.id = transaction.id;
    view.changes = changes.subspan(transaction.first_change, transaction.changes);
    GANNET_RETURN_IF_ERROR((*visit_)(thread_, view));
  }
  return *batch_end_ ? (*batch_end_)(thread_) : absl::OkStatus();
}

}  // namespace gannet::log
