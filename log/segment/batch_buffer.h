// BatchBuffer: one batch in the form in which it is written to the disk: room for the header, the body, zeros up to a
// whole number of blocks. It is kept until the batch is durable, so that the batch can be written again, to another
// segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "log/file/aligned_buffer.h"
#include "log/format/segment_format.h"

namespace gannet::log {

class BatchBuffer {
 public:
  bool empty() const { return body_bytes_ == 0; }
  size_t body_bytes() const { return body_bytes_; }
  uint64_t bytes_on_disk() const { return BatchBytesOnDisk(body_bytes_); }

  void Clear();
  // Makes room for `body_bytes` of body.
  void Grow(size_t body_bytes);
  // Appends whole transactions, for which there is room. The copy bypasses the caches: a batch takes a large part of a
  // core's L2, a worker needs that core, and the next reader of the batch is the disk.
  void Append(std::span<const std::byte> transactions);

  struct Content {
    uint32_t transactions = 0;
    uint64_t least_epoch = UINT64_MAX;  // of the transactions
    uint64_t greatest_epoch = 0;
  };
  const Content& content() const { return content_; }

  // Returns the whole batch with this header (its body_bytes are filled in). Valid until the next change.
  std::span<const std::byte> Seal(BatchHeader header);

 private:
  AlignedBuffer memory_;
  size_t body_bytes_ = 0;
  Content content_;
};

}  // namespace gannet::log
