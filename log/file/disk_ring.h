// Writes through io_uring, the parts of a large write in parallel.
//
// The sync behind them is the caller's fdatasync. Linked to the write, in the same submission, it would be done by a
// worker thread of the kernel: 70 us more for 4 KiB, and another thread to compete for a busy processor.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gannet::log::internal {

// One thread at a time.
class DiskRing {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  static constexpr size_t kPieces = 16;  // in flight at once

  // Null if the kernel refuses; errno in `error`.
  static std::unique_ptr<DiskRing> Create(int* error);
  ~DiskRing();
  DiskRing(const DiskRing&) = delete;
  DiskRing& operator=(const DiskRing&) = delete;

  // Writes all of it; errno, 0 if all is well. Nothing is in flight when it returns.
  int Write(int fd, uint64_t offset, std::span<const std::byte> data);
  // False once a submission failed. The ring is of no use then, and the write is to be done in another way.
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
  // Takes off what was written; the errno of a piece that failed.
  int DropWritten();

  io_uring ring_{};
  bool works_ = true;
  std::vector<Piece> pieces_;  // of one window, not yet written
};

}  // namespace gannet::log::internal
