#include "log/segment_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "log/kill_point.h"
#include "rdma/base/cache_line.h"

namespace gannet::log {
namespace {

constexpr char kSparePrefix[] = "new-segment-";

struct alignas(kDiskBlockBytes) HeaderBlock {
  std::byte bytes[kSegmentHeaderBytes];
};

}  // namespace

SegmentWriter::SegmentWriter(FileSystem* files, std::string directory, const LogEnd& end, const LogOptions& options)
    : files_(files),
      directory_(std::move(directory)),
      segment_bytes_(RoundUp(std::max<uint64_t>(options.segment_bytes, 2 * kSegmentHeaderBytes), kDiskBlockBytes)),
      segment_(end.segment),
      end_(end.offset),
      next_batch_(end.next_batch),
      closed_epoch_(end.recovered_epoch) {
  header_.run = end.run + 1;
  header_.node = options.node;
  header_.num_nodes = options.num_nodes;
  header_.recovered_epoch = end.recovered_epoch;
}

SegmentWriter::~SegmentWriter() {
  DropSpare();
}

Status SegmentWriter::RemoveLeftovers() {
  StatusOr<std::vector<std::string>> names = files_->List(directory_);
  GANNET_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (absl::StartsWith(name, kSparePrefix)) GANNET_RETURN_IF_ERROR(files_->Remove(directory_ + "/" + name));
  }
  return absl::OkStatus();
}

Status SegmentWriter::Begin(uint64_t room) {
  if (!HasSpare(room)) GANNET_RETURN_IF_ERROR(PrepareSpare(room));
  Status status = WriteHeaderToSpare();
  if (status.ok()) status = NameSpare(SegmentName(segment_ + 1));
  if (!status.ok()) {
    DropSpare();
    return Explained(status, absl::StrCat("beginning ", SegmentName(segment_ + 1)));
  }
  current_ = std::move(spare_);
  current_bytes_ = spare_bytes_;
  ++segment_;
  end_ = kSegmentHeaderBytes;
  ++statistics_.segments;
  MayDieHere(KillPoint::kSegmentBegun);
  return absl::OkStatus();
}

Status SegmentWriter::WriteHeaderToSpare() {
  SegmentHeader header = header_;
  header.segment = segment_ + 1;
  header.bytes = spare_bytes_;
  header.first_batch = next_batch_;
  header.previous_end = end_;
  header.closed_epoch = closed_epoch_;
  const auto block = std::make_unique<HeaderBlock>();
  header.Encode(block->bytes);
  return spare_->WriteDurably(0, block->bytes);
}

Status SegmentWriter::NameSpare(const std::string& name) {
  const std::string path = directory_ + "/" + name;
  GANNET_RETURN_IF_ERROR(files_->Rename(spare_path_, path));
  spare_->Renamed(path);
  spare_path_ = path;  // what DropSpare is to remove if the directory cannot be synced
  return files_->SyncDirectory(directory_);
}

Status SegmentWriter::Write(BatchBuffer* batch, const BatchHeader& header, uint64_t room) {
  const uint64_t bytes = batch->bytes_on_disk();
  if (RoomLeft() < bytes) GANNET_RETURN_IF_ERROR(Begin(std::max(room, bytes)));
  BatchHeader complete = header;
  complete.batch = next_batch_;
  complete.segment = segment_;
  if (Status status = current_->WriteDurably(end_, batch->Seal(complete)); !status.ok()) {
    current_.reset();
    ++statistics_.failures;
    return Explained(status, absl::StrCat("writing to ", SegmentName(segment_)));
  }
  end_ += bytes;
  ++next_batch_;
  closed_epoch_ = std::max(closed_epoch_, complete.closed_epoch);
  ++statistics_.batches;
  statistics_.disk_bytes += bytes;
  return absl::OkStatus();
}

Status SegmentWriter::PrepareAhead(uint64_t room) {
  if (HasSpare(room) || RoomLeft() >= std::max(room, current_bytes_ / 2)) return absl::OkStatus();
  return PrepareSpare(room);
}

Status SegmentWriter::PrepareSpare(uint64_t room) {
  DropSpare();
  spare_path_ = absl::StrCat(directory_, "/", kSparePrefix, spares_++);
  StatusOr<std::unique_ptr<File>> file = files_->Open(spare_path_, OpenMode::kCreate);
  if (!file.ok()) return Explained(file.status(), "making a segment");
  spare_ = std::move(*file);
  spare_bytes_ = std::max(segment_bytes_, RoundUp(kSegmentHeaderBytes + room, kDiskBlockBytes));
  if (Status status = spare_->Allocate(spare_bytes_); !status.ok()) {
    DropSpare();
    return Explained(status, absl::StrCat("allocating a segment of ", spare_bytes_, " bytes"));
  }
  MayDieHere(KillPoint::kSegmentCreated);
  return absl::OkStatus();
}

void SegmentWriter::DropSpare() {
  if (spare_ == nullptr) return;
  spare_.reset();
  files_->Remove(spare_path_).IgnoreError();
}

Status SegmentWriter::Explained(const Status& status, const std::string& doing) const {
  const char* advice = absl::IsResourceExhausted(status)
                           ? "; free some space there (or let a checkpoint remove old segments): commits go on by "
                             "themselves when a segment can be allocated, reads go on meanwhile"
                           : "; nothing is acknowledged until a new segment could be written; this is tried again";
  return {status.code(), absl::StrCat("log in ", directory_, ": ", doing, ": ", status.message(), advice)};
}

}  // namespace gannet::log
