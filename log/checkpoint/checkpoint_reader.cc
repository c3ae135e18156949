#include <array>
#include <memory>

#include "absl/strings/str_cat.h"
#include "log/checkpoint/checkpoint.h"
#include "log/checkpoint/checkpoint_format.h"
#include "log/file/damage.h"
#include "log/file/file_input.h"
#include "log/format/crc32c.h"
#include "log/format/little_endian.h"

namespace gannet::log {

namespace {

// Records that are visited together.
constexpr size_t kAtOnce = 64;

class FileReader {
 public:
  FileReader(uint64_t checkpoint, const Identity& database, const CheckpointFile* expected, File* file, uint64_t size,
             DamageList* damages, const CheckpointVisitor* visit)
      : checkpoint_(checkpoint),
        database_(database),
        expected_(expected),
        damages_(damages),
        visit_(visit),
        input_(file, size, damages) {}

  Status Read() {
    GANNET_RETURN_IF_ERROR(CheckHeader());
    if (is_foreign_) return absl::OkStatus();
    offset_ = kCheckpointHeaderBytes;
    while (!ended_ && offset_ < input_.size()) GANNET_RETURN_IF_ERROR(ReadBlock());
    if (!ended_) return Damaged("the file ends before its last block");
    if (offset_ != input_.size()) return Damaged("something follows behind the last block");
    if (records_ != expected_->records || crc_ != expected_->crc || input_.size() != expected_->bytes)
      return Damaged("the file is not the one that the manifest describes");
    return absl::OkStatus();
  }

 private:
  Status Damaged(const std::string& what) { return damages_->Found(input_.path(), offset_, what); }

  Status CheckHeader() {
    const auto bytes = input_.At(0, kCheckpointHeaderBytes);
    if (!bytes.ok()) return bytes.status();
    if (bytes->size() < kCheckpointHeaderBytes) return Damaged("the file is too short");
    const auto header = CheckpointHeader::Decode(bytes->first<kCheckpointHeaderBytes>());
    if (absl::IsInvalidArgument(header.status()))
      return absl::InvalidArgumentError(absl::StrCat(input_.path(), ": ", header.status().message()));
    if (!header.ok()) return Damaged(std::string(header.status().message()));
    if (const std::string other = OtherDatabase(header->database, database_); !other.empty()) {
      is_foreign_ = true;
      return Damaged(other);
    }
    if (header->checkpoint == checkpoint_ && header->table == expected_->table) return absl::OkStatus();
    return Damaged(absl::StrCat("the file is of checkpoint ", header->checkpoint, ", table ", header->table));
  }

  Status ReadBlock() {
    const auto front = input_.At(offset_, kBlockHeaderBytes);
    if (!front.ok()) return front.status();
    if (front->size() < kBlockHeaderBytes) return Skip("the block is cut off");
    const StatusOr<BlockHeader> header = BlockHeader::Decode(front->first<kBlockHeaderBytes>());
    if (!header.ok()) return Skip(std::string(header.status().message()));
    const auto bytes = input_.At(offset_, BlockBytesOnDisk(header->body_bytes));
    if (!bytes.ok()) return bytes.status();
    StatusOr<BlockDecoder> block = BlockDecoder::Check(*header, *bytes);
    if (!block.ok()) return Skip(std::string(block.status().message()));
    crc_ = Crc32c(std::as_bytes(std::span(&header->crc, 1)), crc_);
    offset_ += BlockBytesOnDisk(header->body_bytes);
    if (header->records == 0) return TakeLast(*block);
    ++blocks_;
    records_ += header->records;
    return Visit(&*block);
  }

  // Called in salvage. Continues at the next place where a block may begin.
  Status Skip(const std::string& what) {
    GANNET_RETURN_IF_ERROR(Damaged(what));
    for (offset_ += kDiskBlockBytes; offset_ < input_.size(); offset_ += kDiskBlockBytes) {
      const auto front = input_.At(offset_, kBlockHeaderBytes);
      if (!front.ok()) return front.status();
      if (front->size() == kBlockHeaderBytes && BlockHeader::Decode(front->first<kBlockHeaderBytes>()).ok()) break;
    }
    return absl::OkStatus();
  }

  Status TakeLast(const BlockDecoder& block) {
    ended_ = true;
    const auto blocks = LoadLittle<uint64_t>(block.body().data());
    const auto records = LoadLittle<uint64_t>(block.body().data() + 8);
    if (blocks == blocks_ && records == records_) return absl::OkStatus();
    return Damaged(absl::StrCat("the file should have ", blocks, " blocks with ", records, " records, but has ",
                                blocks_, " with ", records_));
  }

  Status Visit(BlockDecoder* block) {
    if (!*visit_) return absl::OkStatus();
    std::array<CheckpointRecord, kAtOnce> records;
    for (size_t n = kAtOnce; n == kAtOnce;) {
      n = 0;
      while (n < kAtOnce && block->Next(&records[n])) ++n;
      if (n > 0) GANNET_RETURN_IF_ERROR((*visit_)(std::span(records).first(n)));
    }
    return absl::OkStatus();
  }

  const uint64_t checkpoint_;
  const Identity database_;
  const CheckpointFile* const expected_;
  DamageList* const damages_;
  const CheckpointVisitor* const visit_;
  FileInput input_;
  uint64_t offset_ = 0;
  uint64_t blocks_ = 0;
  uint64_t records_ = 0;
  uint32_t crc_ = 0;
  bool ended_ = false;
  bool is_foreign_ = false;  // reported, and not read
};

}  // namespace

Status ReadCheckpointFile(FileSystem& files, const std::string& directory, const Identity& database, uint64_t id,
                          const CheckpointFile& file, const CheckpointVisitor& visit,
                          const std::function<void(uint64_t offset, const std::string& what)>& damaged) {
  DamageList damages(damaged != nullptr);
  const std::string path = CheckpointDirectory(directory, id) + "/" + file.name;
  StatusOr<std::unique_ptr<File>> opened = files.Open(path, OpenMode::kRead);
  if (absl::IsNotFound(opened.status())) {
    GANNET_RETURN_IF_ERROR(damages.Found(path, 0, "the file is missing"));
    damaged(0, "the file is missing");
    return absl::OkStatus();
  }
  if (!opened.ok()) return opened.status();
  const StatusOr<uint64_t> size = (*opened)->Size();
  if (!size.ok()) return size.status();
  FileReader reader(id, database, &file, opened->get(), *size, &damages, &visit);
  Status read = reader.Read();
  for (const Damage& damage : damages.TakeSorted()) damaged(damage.offset, damage.what);
  return read;
}

}  // namespace gannet::log
