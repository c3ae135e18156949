// Writes through io_uring: the parts of a large write in parallel, and the sync behind them in the same submission.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gannet::log::internal {

struct WriteOutcome {
  int error = 0;               // errno, 0 if all is well
  bool sync_failed = false;    // the error is the sync's
  bool not_submitted = false;  // the ring does not work any more; the write may be tried in another way
};

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

  // Writes all of it, then fdatasync if `sync`. Nothing is in flight when it returns.
  WriteOutcome Write(int fd, uint64_t offset, std::span<const std::byte> data, bool sync);

 private:
  struct Piece {
    uint64_t offset;
    std::span<const std::byte> data;
    int result;
  };

  DiskRing() = default;
  WriteOutcome WriteWindow(int fd, uint64_t offset, std::span<const std::byte> data, bool sync);
  // One submission: the pieces that are left, and the sync. False if the ring does not work.
  bool Round(int fd, bool sync, int* sync_result);
  bool SubmitAndWait(unsigned count, int* sync_result);
  // Takes off what was written; the errno of a piece that failed.
  int DropWritten();

  io_uring ring_{};
  std::vector<Piece> pieces_;  // of one window, not yet written
};

}  // namespace gannet::log::internal
