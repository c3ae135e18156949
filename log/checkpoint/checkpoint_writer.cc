#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "log/checkpoint/checkpoint.h"
#include "log/checkpoint/checkpoint_format.h"
#include "log/file/aligned_buffer.h"
#include "log/format/crc32c.h"
#include "log/format/little_endian.h"

namespace gannet::log {

// The current file, and the block that is being filled.
class CheckpointWriter::Output {
 public:
  Output(std::unique_ptr<File> file, CheckpointFile description)
      : description_(std::move(description)), file_(std::move(file)), buffer_(kBlockBytes) {}

  bool empty() const { return records_ == 0; }
  bool Fits(size_t bytes) const { return used_ + bytes <= buffer_.size(); }
  bool Full() const { return offset_ >= kFileBytes; }

  void Add(const CheckpointRecord& record) {
    const size_t bytes = RecordBytes(record);
    GANNET_CHECK(Fits(bytes) || empty(), "a record of %d bytes behind %d others in a block of %d", bytes, records_,
                 buffer_.size());
    if (!Fits(bytes)) buffer_ = AlignedBuffer(kBlockHeaderBytes + bytes);
    used_ += EncodeRecord(record, buffer_.data() + used_);
    ++records_;
  }

  Status WriteHeader(uint64_t checkpoint, const Identity& database) {
    CheckpointHeader{checkpoint, description_.table, database}.Encode(buffer_.span().first<kCheckpointHeaderBytes>());
    return Write(kCheckpointHeaderBytes);
  }

  // Writes the block to the file; returns its number of bytes.
  StatusOr<uint64_t> WriteBlock() {
    const uint32_t crc = BlockHeader::Seal(buffer_.span().first(used_), records_);
    AddCrc(crc);
    description_.records += records_;
    ++blocks_;
    const uint64_t bytes = BlockBytesOnDisk(used_ - kBlockHeaderBytes);
    GANNET_RETURN_IF_ERROR(Write(bytes));
    return bytes;
  }

  // Writes the last block and makes everything durable.
  Status Finish() {
    GANNET_CHECK(empty(), "%d records of %s are not written", records_, description_.name);
    StoreLittle(buffer_.data() + used_, blocks_);
    StoreLittle(buffer_.data() + used_ + 8, description_.records);
    used_ += kLastBlockBytes;
    AddCrc(BlockHeader::Seal(buffer_.span().first(used_), 0));
    GANNET_RETURN_IF_ERROR(Write(kDiskBlockBytes));
    description_.bytes = offset_;
    return file_->Sync();
  }

  const CheckpointFile& description() const { return description_; }

 private:
  void AddCrc(uint32_t crc) { description_.crc = Crc32c(std::as_bytes(std::span(&crc, 1)), description_.crc); }

  Status Write(size_t bytes) {
    Status written = file_->Write(offset_, buffer_.span().first(bytes));
    offset_ += bytes;
    std::memset(buffer_.data(), 0, bytes);
    used_ = kBlockHeaderBytes;
    records_ = 0;
    return written;
  }

  CheckpointFile description_;
  std::unique_ptr<File> file_;
  AlignedBuffer buffer_;  // zeros from used_ on
  size_t used_ = kBlockHeaderBytes;
  uint32_t records_ = 0;  // in the buffer
  uint64_t offset_ = 0;
  uint64_t blocks_ = 0;
};

StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(FileSystem* files, const std::string& directory,
                                                                     const Identity& database, uint64_t id,
                                                                     uint64_t bytes_per_second) {
  GANNET_RETURN_IF_ERROR(RemoveCheckpoint(*files, directory, id));
  GANNET_RETURN_IF_ERROR(files->MakeDirectory(CheckpointDirectory(directory, id)));
  return std::unique_ptr<CheckpointWriter>(new CheckpointWriter(files, directory, database, id, bytes_per_second));
}

CheckpointWriter::CheckpointWriter(FileSystem* files, std::string directory, const Identity& database, uint64_t id,
                                   uint64_t bytes_per_second)
    : files_(files),
      directory_(std::move(directory)),
      database_(database),
      id_(id),
      bytes_per_second_(bytes_per_second),
      start_nanos_(NowNanos()) {}

CheckpointWriter::~CheckpointWriter() = default;

Status CheckpointWriter::BeginTable(uint16_t table) {
  GANNET_RETURN_IF_ERROR(EndFile());
  table_ = table;
  part_ = 0;
  return absl::OkStatus();
}

Status CheckpointWriter::Add(const CheckpointRecord& record) {
  if (record.table != table_)
    return absl::InvalidArgumentError(absl::StrCat("a record of table ", record.table, " among those of ", table_));
  const size_t bytes = RecordBytes(record);
  if (output_ != nullptr && !output_->empty() && !output_->Fits(bytes)) {
    GANNET_RETURN_IF_ERROR(WriteBlock());
    if (output_->Full()) GANNET_RETURN_IF_ERROR(EndFile());
  }
  if (output_ == nullptr) GANNET_RETURN_IF_ERROR(BeginFile());
  output_->Add(record);
  return absl::OkStatus();
}

Status CheckpointWriter::BeginFile() {
  CheckpointFile description;
  description.name = absl::StrFormat("table-%05d-%05d", table_, part_++);
  description.table = table_;
  auto file = files_->Open(CheckpointDirectory(directory_, id_) + "/" + description.name, OpenMode::kCreate);
  if (!file.ok()) return file.status();
  output_ = std::make_unique<Output>(*std::move(file), description);
  return output_->WriteHeader(id_, database_);
}

Status CheckpointWriter::WriteBlock() {
  const StatusOr<uint64_t> bytes = output_->WriteBlock();
  if (!bytes.ok()) return bytes.status();
  Throttle(*bytes);
  return absl::OkStatus();
}

Status CheckpointWriter::EndFile() {
  if (output_ == nullptr) return absl::OkStatus();
  if (!output_->empty()) GANNET_RETURN_IF_ERROR(WriteBlock());
  GANNET_RETURN_IF_ERROR(output_->Finish());
  done_.push_back(output_->description());
  output_.reset();
  return absl::OkStatus();
}

// Sleeps until the limit on bytes per second allows what has been written since the beginning.
void CheckpointWriter::Throttle(uint64_t bytes) {
  written_bytes_ += bytes;
  if (bytes_per_second_ == 0) return;
  const double due_seconds = static_cast<double>(written_bytes_) / static_cast<double>(bytes_per_second_);
  const double passed_seconds = static_cast<double>(NowNanos() - start_nanos_) * 1e-9;
  if (due_seconds > passed_seconds) SleepForNanos(static_cast<uint64_t>((due_seconds - passed_seconds) * 1e9));
}

Status CheckpointWriter::Finish(CheckpointDescription* description, absl::FunctionRef<Status()> go_on) {
  GANNET_RETURN_IF_ERROR(EndFile());
  GANNET_RETURN_IF_ERROR(files_->SyncDirectory(CheckpointDirectory(directory_, id_)));
  GANNET_RETURN_IF_ERROR(files_->SyncDirectory(directory_));
  for (const CheckpointFile& file : done_) {
    GANNET_RETURN_IF_ERROR(go_on());
    GANNET_RETURN_IF_ERROR(ReadCheckpointFile(*files_, directory_, database_, id_, file, nullptr, nullptr));
    Throttle(file.bytes);
  }
  description->id = id_;
  description->files = std::move(done_);
  return absl::OkStatus();
}

}  // namespace gannet::log
