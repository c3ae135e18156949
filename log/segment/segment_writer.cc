#include "log/segment/segment_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "base/sometimes.h"
#include "log/file/kill_point.h"

namespace gannet::log {
namespace {

// A small segment has room for the batches of a checkpoint and of some epochs.
constexpr uint64_t kSmallSegmentBytes = 16 * kDiskBlockBytes;

struct alignas(kDiskBlockBytes) HeaderBlock {
  std::byte bytes[kSegmentHeaderBytes];
};

}  // namespace

SegmentWriter::SegmentWriter(FileSystem* files, std::string directory, const LogEnd& end, const LogOptions& options)
    : files_(files),
      directory_(std::move(directory)),
      segment_bytes_(RoundUp(std::max<uint64_t>(options.segment_bytes, 2 * kSegmentHeaderBytes), kDiskBlockBytes)),
      preallocate_bytes_(options.preallocate_bytes),
      keep_preallocated_(options.keep_preallocated),
      whole_segments_(options.preallocate_bytes > 0),
      begin_(end),
      note_(files, directory_),
      segment_(end.segment),
      end_(end.offset),
      next_batch_(end.next_batch),
      closed_epoch_(end.recovered_epoch) {
  header_.run = end.run + 1;
  header_.node = options.node;
  header_.num_nodes = options.num_nodes;
  header_.recovered_epoch = end.recovered_epoch;
  header_.database = options.database;
  header_.run_identity = options.run;
  header_.previous_run_identity = end.run_identity;
}

SegmentWriter::~SegmentWriter() {
  DropUnused();
}

Status SegmentWriter::Finish() {
  Status noted = NoteEnd();
  DropUnused();
  return noted;
}

void SegmentWriter::DropUnused() {
  if (std::exchange(finished_, true)) return;
  TakeUsed();
  const uint64_t kept = keep_preallocated_ ? preallocate_bytes_ : 0;
  while (BytesOf(spares_) > kept) DropSpare();
  spares_.clear();
}

uint64_t SegmentWriter::BytesOf(const std::vector<Spare>& spares) {
  uint64_t bytes = 0;
  for (const Spare& spare : spares) bytes += spare.bytes;
  return bytes;
}

const SegmentWriter::Spare* SegmentWriter::SpareFor(uint64_t room) const {
  const auto found = std::find_if(spares_.rbegin(), spares_.rend(),
                                  [room](const Spare& spare) { return spare.bytes - kSegmentHeaderBytes >= room; });
  return found == spares_.rend() ? nullptr : &*found;
}

uint64_t SegmentWriter::NextBytes() const {
  if (whole_segments_) return segment_bytes_;
  const uint64_t grown = RoundUp(std::max(WrittenSinceCut() / 2, last_interval_bytes_ / 4), kDiskBlockBytes);
  return std::min(std::max(grown, kSmallSegmentBytes), segment_bytes_);
}

void SegmentWriter::Cut() {
  last_interval_bytes_ = std::max(WrittenSinceCut(), last_interval_bytes_ / 2);
  last_interval_files_ = std::max(files_since_cut_ - current_bytes_, last_interval_files_ / 2);
  cut_at_bytes_ = statistics_.disk_bytes;
  files_since_cut_ = current_bytes_;
  DropSurplus();
  NoteSpares();
}

std::string SegmentWriter::NewSparePath() {
  return absl::StrCat(directory_, "/", std::string(kSpareSegmentPrefix),
                      spares_made_.fetch_add(1, std::memory_order_relaxed));
}

Status SegmentWriter::PrepareFirst() {
  const StatusOr<std::vector<std::string>> names = files_->List(directory_);
  if (!names.ok()) return names.status();
  // Names that a killed process gave may not be durable; see OfferUsed.
  GANNET_RETURN_IF_ERROR(files_->SyncDirectory(directory_));
  uint64_t ready = 0;
  for (const std::string& name : *names) {
    if (!name.starts_with(kSpareSegmentPrefix)) continue;
    uint64_t number = 0;
    if (absl::SimpleAtoi(absl::string_view(name).substr(kSpareSegmentPrefix.size()), &number)) {
      spares_made_.store(std::max(spares_made_.load(std::memory_order_relaxed), number + 1), std::memory_order_relaxed);
    }
    const std::string old_path = absl::StrCat(directory_, "/", name);
    if (ready < preallocate_bytes_) {
      StatusOr<Spare> spare = OpenUsed(old_path);
      GANNET_RETURN_IF_ERROR(spare.status());
      if (spare->bytes >= segment_bytes_) {
        ready += spare->bytes;
        spares_.push_back(*std::move(spare));
        continue;
      }
    }
    GANNET_RETURN_IF_ERROR(files_->Remove(old_path));
  }
  for (; ready < preallocate_bytes_; ready += spares_.back().bytes) {
    const Status made = MakeSpare(segment_bytes_);
    if (absl::IsResourceExhausted(made)) {
      whole_segments_ = false;
      break;
    }
    GANNET_RETURN_IF_ERROR(Explained(made, "preallocating a segment"));
    spares_.back().file->FinishAllocation();
  }
  NoteSpares();
  return absl::OkStatus();
}

bool SegmentWriter::OfferUsed(const std::string& path) {
  StatusOr<Spare> spare = OpenUsed(path);
  if (!spare.ok()) return false;
  const std::lock_guard lock(used_mutex_);
  if (spare->bytes < least_used_ || spare_bytes_ + BytesOf(used_) + spare->bytes > most_kept_) return false;
  used_.push_back(*std::move(spare));
  return true;
}

void SegmentWriter::TakeUsed() {
  std::vector<Spare> used;
  {
    const std::lock_guard lock(used_mutex_);
    used.swap(used_);
  }
  for (Spare& spare : used) {
    spares_.push_back(std::move(spare));
    MayDieHere(KillPoint::kSegmentCreated);
  }
  if (!used.empty()) NoteSpares();
}

void SegmentWriter::DropSurplus() {
  while (spares_.size() > 1 && BytesOf(spares_) - spares_.back().bytes >= MostKept()) DropSpare();
}

void SegmentWriter::NoteSpares() {
  const std::lock_guard lock(used_mutex_);
  spare_bytes_ = BytesOf(spares_);
  most_kept_ = MostKept();
  least_used_ = whole_segments_ ? segment_bytes_ : NextBytes() / 2;
}

StatusOr<SegmentWriter::Spare> SegmentWriter::OpenUsed(const std::string& path) const {
  StatusOr<std::unique_ptr<File>> file = files_->Open(path, OpenMode::kReuse);
  GANNET_RETURN_IF_ERROR(file.status());
  const StatusOr<uint64_t> size = (*file)->Size();
  GANNET_RETURN_IF_ERROR(size.status());
  return Spare{.file = *std::move(file), .bytes = *size, .path = path, .reused = true};
}

Status SegmentWriter::Begin(uint64_t room, SegmentSize size) {
  TakeUsed();
  if (!begun()) GANNET_RETURN_IF_ERROR(NoteBegin());
  const Spare* spare = SpareFor(room);
  if (spare == nullptr && (spares_.empty() || size < SegmentSize::kSmall)) {
    GANNET_RETURN_IF_ERROR(PrepareSpare(room, size));
    spare = SpareFor(room);
  }
  if (spare != nullptr) std::swap(spares_[static_cast<size_t>(spare - spares_.data())], spares_.back());
  Status status = WriteHeaderToSpare();
  if (status.ok()) {
    status = NameSpare(SegmentName(segment_ + 1));
    // A power cut may keep the new name, and recovery then believes the header: what is written behind this end of the
    // present segment would not count. So nothing is.
    if (!status.ok() && current_ != nullptr) {
      current_.reset();
      ++statistics_.failures;
    }
  }
  if (!status.ok()) {
    Sometimes<"log: a segment cannot be begun">();
    DropSpare();
    return Explained(status, absl::StrCat("beginning ", SegmentName(segment_ + 1)));
  }
  current_ = std::move(spares_.back().file);
  current_bytes_ = spares_.back().bytes;
  GANNET_CHECK(
      current_bytes_ > kSegmentHeaderBytes && current_bytes_ - kSegmentHeaderBytes >= (spare == nullptr ? 0 : room),
      "segment %d has %d bytes, %d were asked for", segment_ + 1, current_bytes_, room);
  files_since_cut_ += current_bytes_;
  spares_.pop_back();
  NoteSpares();
  ++segment_;
  end_ = kSegmentHeaderBytes;
  ++statistics_.segments;
  MayDieHere(KillPoint::kSegmentBegun);
  return NoteEnd();
}

// Salvage may have found less than LOG-END says, and the nodes together an older epoch than this node closed. From here
// on, what was found is the log. A segment that never got a header counts as not begun.
Status SegmentWriter::NoteBegin() {
  EndNote note{.segment = begin_.segment,
               .offset = begin_.offset,
               .next_batch = begin_.next_batch,
               .run = begin_.run,
               .closed_epoch = begin_.recovered_epoch,
               .node = header_.node,
               .num_nodes = header_.num_nodes,
               .database = header_.database,
               .run_identity = begin_.run_identity};
  if (!begin_.has_header && note.segment != 0) {
    --note.segment;
    note.offset = kSegmentHeaderBytes;
  }
  return Explained(note_.Write(note), absl::StrCat("noting the end of the log in ", kEndNoteName));
}

Status SegmentWriter::NoteEnd() {
  if (!begun()) return absl::OkStatus();
  const EndNote note{.segment = segment_,
                     .offset = end_,
                     .next_batch = next_batch_,
                     .run = header_.run,
                     .closed_epoch = closed_epoch_,
                     .node = header_.node,
                     .num_nodes = header_.num_nodes,
                     .database = header_.database,
                     .run_identity = header_.run_identity};
  const Status noted = note_.Write(note);
  noted_segment_ = noted.ok() ? segment_ : 0;
  return Explained(noted, absl::StrCat("noting the end of the log in ", kEndNoteName));
}

Status SegmentWriter::WriteHeaderToSpare() {
  SegmentHeader header = header_;
  header.reused = spares_.back().reused;
  header.segment = segment_ + 1;
  header.bytes = spares_.back().bytes;
  header.first_batch = next_batch_;
  header.previous_end = end_;
  header.closed_epoch = closed_epoch_;
  GANNET_CHECK(closed_epoch_ >= header_.recovered_epoch, "segment %d of a run that recovered epoch %d closes only %d",
               header.segment, header_.recovered_epoch, closed_epoch_);
  const auto block = std::make_unique<HeaderBlock>();
  header.Encode(block->bytes);
  return spares_.back().file->WriteDurably(0, block->bytes);
}

Status SegmentWriter::NameSpare(const std::string& name) {
  const std::string path = directory_ + "/" + name;
  Spare& spare = spares_.back();
  GANNET_RETURN_IF_ERROR(files_->Rename(spare.path, path));
  spare.file->Renamed(path);
  spare.path = path;  // so that DropSpare removes the right file if the directory cannot be synced
  return files_->SyncDirectory(directory_);
}

Status SegmentWriter::Write(BatchBuffer* batch, const BatchHeader& header, uint64_t room) {
  const uint64_t bytes = batch->bytes_on_disk();
  if (RoomLeft() < bytes) {
    Status begun = Begin(std::max(room, bytes), SegmentSize::kFits);
    if (absl::IsResourceExhausted(begun)) begun = Begin(bytes, SegmentSize::kFits);
    GANNET_RETURN_IF_ERROR(begun);
  }
  if (noted_segment_ != segment_) GANNET_RETURN_IF_ERROR(NoteEnd());
  BatchHeader complete = header;
  complete.batch = next_batch_;
  complete.segment = segment_;
  const std::span<const std::byte> sealed = batch->Seal(complete);
  // A batch beyond the segment's end would be cut off. One that closes less than the one before would open an epoch
  // again that others have acknowledged.
  GANNET_CHECK(sealed.size() == bytes && end_ % kDiskBlockBytes == 0 && end_ + bytes <= current_bytes_,
               "%d of %d bytes at offset %d of segment %d, which has %d", sealed.size(), bytes, end_, segment_,
               current_bytes_);
  GANNET_CHECK(complete.closed_epoch >= closed_epoch_, "batch %d closes epoch %d; epoch %d was closed before",
               complete.batch, complete.closed_epoch, closed_epoch_);
  if (Status status = current_->WriteDurably(end_, sealed); !status.ok()) {
    Sometimes<"log: a segment is given up">();
    current_.reset();
    ++statistics_.failures;
    return Explained(status, absl::StrCat("writing to ", SegmentName(segment_)));
  }
  end_ += bytes;
  ++next_batch_;
  closed_epoch_ = complete.closed_epoch;
  ++statistics_.batches;
  statistics_.disk_bytes += bytes;
  return absl::OkStatus();
}

Status SegmentWriter::PrepareAhead(uint64_t room) {
  TakeUsed();
  if (SpareFor(room) != nullptr || RoomLeft() >= std::max(room, current_bytes_ / 2)) return absl::OkStatus();
  return PrepareSpare(room, SegmentSize::kWhole);
}

bool SegmentWriter::LeavesFree(uint64_t room, uint64_t bytes) const {
  const uint64_t made = std::max(NextBytes(), RoundUp(kSegmentHeaderBytes + room, kDiskBlockBytes));
  const uint64_t free = files_->FreeBytes(directory_).value_or(0);
  return free >= made && free - made >= bytes;
}

Status SegmentWriter::KeptForCheckpoint() const {
  return Explained(
      absl::ResourceExhaustedError("what is free on the disk is kept for the checkpoint that is being taken"),
      "making a segment");
}

void SegmentWriter::GiveBack() {
  TakeUsed();
  while (!spares_.empty()) DropSpare();
  NoteSpares();
}

Status SegmentWriter::PrepareSpare(uint64_t room, SegmentSize size) {
  const uint64_t fits = RoundUp(kSegmentHeaderBytes + room, kDiskBlockBytes);
  std::vector<uint64_t> sizes;
  if (size != SegmentSize::kLeast) sizes.push_back(std::max(NextBytes(), fits));
  if (size == SegmentSize::kFits || size == SegmentSize::kSmall) sizes.push_back(fits);
  if (size >= SegmentSize::kSmall) {
    sizes.push_back(kSmallSegmentBytes);
    sizes.push_back(kSegmentHeaderBytes + kDiskBlockBytes);
  }
  Status status = absl::ResourceExhaustedError("not tried");
  uint64_t tried = UINT64_MAX;
  for (const uint64_t bytes : sizes) {
    if (!absl::IsResourceExhausted(status) || bytes >= tried || bytes <= kSegmentHeaderBytes) continue;
    tried = bytes;
    status = spares_.empty() ? MakeSpare(bytes) : GrowSpare(bytes);
  }
  NoteSpares();
  return Explained(status, absl::StrCat("making a segment of ", tried, " bytes"));
}

Status SegmentWriter::MakeSpare(uint64_t bytes) {
  Spare spare{.file = nullptr, .bytes = bytes, .path = NewSparePath()};
  StatusOr<std::unique_ptr<File>> file = files_->Open(spare.path, OpenMode::kCreate);
  if (!file.ok()) return file.status();
  spare.file = std::move(*file);
  Status status = spare.file->Allocate(bytes);
  spares_.push_back(std::move(spare));
  if (!status.ok()) {
    DropSpare();
    return status;
  }
  MayDieHere(KillPoint::kSegmentCreated);
  return absl::OkStatus();
}

Status SegmentWriter::GrowSpare(uint64_t bytes) {
  Spare& spare = spares_.back();
  if (Status status = spare.file->Allocate(bytes); !status.ok()) {
    // The file can be used as it was only if the failure has left its length alone.
    const StatusOr<uint64_t> size = spare.file->Size();
    if (!absl::IsResourceExhausted(status) || !size.ok() || *size != spare.bytes) DropSpare();
    return status;
  }
  spare.bytes = bytes;
  MayDieHere(KillPoint::kSegmentGrown);
  return absl::OkStatus();
}

void SegmentWriter::DropSpare() {
  spares_.back().file.reset();
  files_->Remove(spares_.back().path).IgnoreError();
  spares_.pop_back();
}

Status SegmentWriter::Explained(const Status& status, const std::string& doing) const {
  if (status.ok()) return status;
  const char* advice =
      absl::IsResourceExhausted(status)
          ? "; commits are refused until there is room, and then continue by themselves; reads "
            "continue. Free some space there (a checkpoint does, if there is room for it); never remove "
            "files of the database by hand"
          : "; nothing is acknowledged until a new segment could be written; this is tried again";
  return {status.code(), absl::StrCat("log in ", directory_, ": ", doing, ": ", status.message(), advice)};
}

}  // namespace gannet::log
