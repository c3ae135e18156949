// BatchBuffer: one batch as it goes to the disk: room for the header, the body, zeros up to a whole number of blocks.
// It is kept until it is durable, so that it can be written once more, to another segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "log/file/aligned_buffer.h"
#include "log/format.h"

namespace gannet::log {

class BatchBuffer {
 public:
  bool empty() const { return body_bytes_ == 0; }
  size_t body_bytes() const { return body_bytes_; }
  uint64_t bytes_on_disk() const { return BatchBytesOnDisk(body_bytes_); }

  void Clear();
  // Makes room for so many bytes of body.
  void Grow(size_t body_bytes);
  // Whole transactions, for which there is room. The copy goes past the caches: a batch is as large as a good part of
  // a core's L2, the core is needed by a worker, and the next who reads it is the disk.
  void Append(std::span<const std::byte> transactions);

  struct Content {
    uint32_t transactions = 0;
    uint64_t greatest_epoch = 0;
  };
  const Content& content() const { return content_; }

  // The whole, with this header (whose body_bytes are filled in). Valid until the next change.
  std::span<const std::byte> Seal(BatchHeader header);

 private:
  AlignedBuffer memory_;
  size_t body_bytes_ = 0;
  Content content_;
};

}  // namespace gannet::log
