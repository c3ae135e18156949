// Writes through io_uring, with the pieces of a large write in parallel.
//
// The caller syncs with fdatasync after the write. If the sync were linked to the write in the same submission, a
// worker thread of the kernel would do it: 70 us more for 4 KiB, and another thread that competes for a busy processor.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/home_process.h"

namespace gannet::log::internal {

// One thread at a time.
class DiskRing {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  static constexpr size_t kPieces = 16;  // in flight at once

  // Null: the kernel refused, with errno in `error`.
  static std::unique_ptr<DiskRing> Create(int* error);
  ~DiskRing();
  DiskRing(const DiskRing&) = delete;
  DiskRing& operator=(const DiskRing&) = delete;

  // Writes all of the data. Returns errno, or 0 on success. Nothing is in flight when it returns.
  int Write(int fd, uint64_t offset, std::span<const std::byte> data);
  // False once a submission has failed. The ring is then unusable, and the caller must write in another way.
  bool works() const { return works_; }

 private:
  struct Piece {
    uint64_t offset;
    std::span<const std::byte> data;
    int result;
  };

  DiskRing() = default;
  int WriteWindow(int fd, uint64_t offset, std::span<const std::byte> data);
  void SubmitPieces(int fd);  // and waits for them
  // Removes the written part of each piece. Returns the errno of a failed piece.
  int DropWritten();

  HomeProcess home_;
  io_uring ring_{};
  bool works_ = true;
  std::vector<Piece> pieces_;  // of one window, not yet written
};

}  // namespace gannet::log::internal
