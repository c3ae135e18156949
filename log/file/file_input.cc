#include "log/file/file_input.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/format/little_endian.h"

namespace gannet::log {

StatusOr<std::span<const std::byte>> FileInput::At(uint64_t offset, size_t bytes) {
  if (offset >= size_) return std::span<const std::byte>{};
  bytes = std::min<uint64_t>(bytes, size_ - offset);
  if (offset < begin_ || offset + bytes > begin_ + length_) GANNET_RETURN_IF_ERROR(MoveWindow(offset, bytes));
  return std::span<const std::byte>(buffer_.data() + (offset - begin_), bytes);
}

Status FileInput::MoveWindow(uint64_t offset, size_t bytes) {
  const size_t wanted = std::min<uint64_t>(std::max(bytes, kReadBytes), size_ - offset);
  KeepOverlap(offset, wanted);
  const std::span<std::byte> missing(buffer_.data() + length_, wanted - length_);
  Status read = Fill(begin_ + length_, missing);
  length_ = read.ok() ? wanted : 0;
  if (read.ok() && begin_ + length_ < size_) file_->WillRead(begin_ + length_, kReadBytes);
  return read;
}

// Moves the part of the new window that is in the buffer to its front; makes the buffer large enough for the window.
void FileInput::KeepOverlap(uint64_t offset, size_t capacity) {
  const bool overlaps = offset >= begin_ && offset < begin_ + length_;
  const size_t skipped = overlaps ? offset - begin_ : length_;
  const size_t kept = length_ - skipped;
  if (capacity > buffer_.size()) {
    AlignedBuffer larger(capacity);
    if (kept != 0) std::memcpy(larger.data(), buffer_.data() + skipped, kept);
    buffer_ = std::move(larger);
  } else if (kept != 0) {
    std::memmove(buffer_.data(), buffer_.data() + skipped, kept);
  }
  begin_ = offset;
  length_ = kept;
}

Status FileInput::Fill(uint64_t offset, std::span<std::byte> to) {
  const StatusOr<size_t> got = file_->Read(offset, to);
  if (!got.ok()) {
    if (!damages_->salvage()) return got.status();
    return FillBlockwise(offset, to, got.status());
  }
  bytes_read_ += *got;
  if (*got == to.size()) return absl::OkStatus();
  Status shorter = damages_->Found(path(), offset + *got, "the file has become shorter while it was read");
  std::memset(to.data() + *got, 0, to.size() - *got);
  return shorter;
}

// Unreadable blocks become zeros, which no checksum takes for data.
Status FileInput::FillBlockwise(uint64_t offset, std::span<std::byte> to, const Status& why) {
  for (size_t at = 0; at < to.size(); at += kDiskBlockBytes) {
    const std::span<std::byte> block = to.subspan(at, std::min(kDiskBlockBytes, to.size() - at));
    const StatusOr<size_t> got = file_->Read(offset + at, block);
    if (got.ok() && *got == block.size()) {
      bytes_read_ += *got;
      continue;
    }
    const Status& reason = got.ok() ? why : got.status();
    GANNET_RETURN_IF_ERROR(damages_->Found(path(), offset + at, absl::StrCat("cannot be read: ", reason.ToString())));
    std::memset(block.data(), 0, block.size());
  }
  return absl::OkStatus();
}

StatusOr<uint64_t> FindNonZero(FileInput* input, uint64_t offset) {
  while (offset < input->size()) {
    const auto block = input->At(offset, kDiskBlockBytes);
    if (!block.ok()) return block.status();
    if (!AllZero(*block)) return offset;
    offset += kDiskBlockBytes;
  }
  return input->size();
}

}  // namespace gannet::log
