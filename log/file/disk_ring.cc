#include "log/file/disk_ring.h"

#include <algorithm>
#include <cerrno>

#include "log/file/file_system.h"

namespace gannet::log::internal {
namespace {

constexpr uint64_t kSyncTag = ~uint64_t{0};
// So often a short write is continued before it counts as a failure.
constexpr int kMaxRounds = 1000;

bool Transient(int result) {
  return result == -EAGAIN || result == -EINTR;
}

}  // namespace

std::unique_ptr<DiskRing> DiskRing::Create(int* error) {
  std::unique_ptr<DiskRing> ring(new DiskRing);
  const int result = io_uring_queue_init(2 * kPieces, &ring->ring_, 0);
  if (result == 0) {
    ring->pieces_.reserve(kPieces);
    return ring;
  }
  *error = -result;
  ring->ring_.ring_fd = -1;
  return nullptr;
}

DiskRing::~DiskRing() {
  if (ring_.ring_fd >= 0) io_uring_queue_exit(&ring_);
}

WriteOutcome DiskRing::Write(int fd, uint64_t offset, std::span<const std::byte> data, bool sync) {
  do {
    const size_t bytes = std::min(data.size(), kPieces * kPieceBytes);
    const bool last = bytes == data.size();
    const WriteOutcome outcome = WriteWindow(fd, offset, data.first(bytes), sync && last);
    if (outcome.error != 0) return outcome;
    offset += bytes;
    data = data.subspan(bytes);
  } while (!data.empty());
  return {};
}

WriteOutcome DiskRing::WriteWindow(int fd, uint64_t offset, std::span<const std::byte> data, bool sync) {
  pieces_.clear();
  for (size_t at = 0; at < data.size(); at += kPieceBytes) {
    pieces_.push_back({offset + at, data.subspan(at, std::min(kPieceBytes, data.size() - at)), 0});
  }
  for (int round = 0; round < kMaxRounds; ++round) {
    int sync_result = 0;
    if (!Round(fd, sync, &sync_result)) return {.error = EIO, .not_submitted = true};
    if (const int error = DropWritten(); error != 0) return {.error = error};
    // The sync of a chain that broke was cancelled; any other failure counts, even if more is to be written.
    const bool cancelled = sync_result == -ECANCELED || Transient(sync_result);
    if (sync_result < 0 && !cancelled) return {.error = -sync_result, .sync_failed = true};
    if (pieces_.empty() && !(sync && cancelled)) return {};
  }
  return {.error = EIO};
}

bool DiskRing::Round(int fd, bool sync, int* sync_result) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    const Piece& piece = pieces_[i];
    io_uring_prep_write(sqe, fd, piece.data.data(), static_cast<unsigned>(piece.data.size()), piece.offset);
    io_uring_sqe_set_data64(sqe, i);
    if (sync && pieces_.size() == 1) sqe->flags |= IOSQE_IO_LINK;
  }
  if (sync) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
    io_uring_sqe_set_data64(sqe, kSyncTag);
    // Behind several parallel pieces: not before all of them have completed.
    if (pieces_.size() > 1) sqe->flags |= IOSQE_IO_DRAIN;
  }
  const auto count = static_cast<unsigned>(pieces_.size() + (sync ? 1 : 0));
  return count == 0 || SubmitAndWait(count, sync_result);
}

bool DiskRing::SubmitAndWait(unsigned count, int* sync_result) {
  unsigned submitted = 0;
  bool works = true;
  for (int attempt = 0; submitted < count && works; ++attempt) {
    const int result = io_uring_submit_and_wait(&ring_, count - submitted);
    if (result > 0) submitted += static_cast<unsigned>(result);
    if (result == 0 || (result < 0 && !Transient(result)) || attempt > kMaxRounds) works = false;
  }
  // Whatever was submitted reads the caller's buffer: wait for it in any case.
  for (unsigned completed = 0; completed < submitted;) {
    io_uring_cqe* cqe = nullptr;
    const int result = io_uring_wait_cqe(&ring_, &cqe);
    if (result == -EINTR || result == -EAGAIN) continue;
    if (result < 0) return false;
    const uint64_t tag = io_uring_cqe_get_data64(cqe);
    (tag == kSyncTag ? *sync_result : pieces_[tag].result) = cqe->res;
    io_uring_cqe_seen(&ring_, cqe);
    ++completed;
  }
  return works;
}

int DiskRing::DropWritten() {
  int error = 0;
  for (Piece& piece : pieces_) {
    if (piece.result == 0) error = EIO;
    if (piece.result < 0 && !Transient(piece.result) && piece.result != -ECANCELED) error = -piece.result;
    // What is not a whole block is written again, to stay aligned.
    const size_t written = piece.result > 0 ? static_cast<size_t>(piece.result) / kDiskBlockBytes * kDiskBlockBytes : 0;
    piece.offset += written;
    piece.data = piece.data.subspan(written);
    piece.result = 0;
  }
  std::erase_if(pieces_, [](const Piece& piece) { return piece.data.empty(); });
  return error;
}

}  // namespace gannet::log::internal
