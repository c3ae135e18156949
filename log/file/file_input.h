// Reads a segment, or a file of a checkpoint, from front to back, with few, large, aligned reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "log/file/aligned_buffer.h"
#include "log/file/damage.h"
#include "log/file/file_system.h"

namespace gannet::log {

// One thread.
class FileInput {
 public:
  static constexpr size_t kReadBytes = size_t{4} << 20;

  // Both must outlive it. `size` is the file's.
  FileInput(File* file, uint64_t size, DamageList* damages) : file_(file), size_(size), damages_(damages) {}

  // Returns `bytes` bytes from `offset` (a multiple of kDiskBlockBytes) on, or fewer if the file ends there. Valid
  // until the next call.
  StatusOr<std::span<const std::byte>> At(uint64_t offset, size_t bytes);

  uint64_t size() const { return size_; }
  uint64_t bytes_read() const { return bytes_read_; }
  const std::string& path() const { return file_->path(); }

 private:
  Status MoveWindow(uint64_t offset, size_t bytes);
  void KeepOverlap(uint64_t offset, size_t capacity);
  Status Fill(uint64_t offset, std::span<std::byte> to);
  Status FillBlockwise(uint64_t offset, std::span<std::byte> to, const Status& why);

  File* const file_;
  const uint64_t size_;
  DamageList* const damages_;
  AlignedBuffer buffer_;
  uint64_t begin_ = 0;  // of what is in the buffer
  size_t length_ = 0;
  uint64_t bytes_read_ = 0;
};

// Offset of the first block from `offset` on that is not all zeros; the input's size if there is none.
StatusOr<uint64_t> FindNonZero(FileInput* input, uint64_t offset);

}  // namespace gannet::log
