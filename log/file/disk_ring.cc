#include "log/file/disk_ring.h"

#include <algorithm>
#include <cerrno>

#include "log/file/posix_directory.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace gannet::log::internal {
namespace {

// A short write is continued at most this often before it counts as a failure.
constexpr int kMaxRounds = 1000;

bool Transient(int result) {
  return result == -EAGAIN || result == -EINTR;
}

// liburing maps a ring's memory with system calls of its own, which ThreadSanitizer does not see. To it, a ring that
// is mapped where another thread's was before would look like memory that both use. So the end of each ring comes
// before the beginning of each later one.
#if defined(__SANITIZE_THREAD__)
char rings;
void NoteRingBegins() {
  __tsan_acquire(&rings);
}
void NoteRingEnds() {
  __tsan_release(&rings);
}
#else
void NoteRingBegins() {}
void NoteRingEnds() {}
#endif

}  // namespace

std::unique_ptr<DiskRing> DiskRing::Create(int* error) {
  std::unique_ptr<DiskRing> ring(new DiskRing);
  const int result = io_uring_queue_init(2 * kPieces, &ring->ring_, 0);
  if (result == 0) {
    NoteRingBegins();
    CloseInForkedChildren(ring->ring_.ring_fd);
    ring->pieces_.reserve(kPieces);
    return ring;
  }
  *error = -result;
  ring->ring_.ring_fd = -1;
  return nullptr;
}

DiskRing::~DiskRing() {
  if (ring_.ring_fd < 0 || !home_.is_here()) return;
  NoteRingEnds();
  ForgetInForkedChildren(ring_.ring_fd);
  io_uring_queue_exit(&ring_);
}

int DiskRing::Write(int fd, uint64_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const size_t bytes = std::min(data.size(), kPieces * kPieceBytes);
    if (const int error = WriteWindow(fd, offset, data.first(bytes)); error != 0) return error;
    offset += bytes;
    data = data.subspan(bytes);
  }
  return 0;
}

int DiskRing::WriteWindow(int fd, uint64_t offset, std::span<const std::byte> data) {
  pieces_.clear();
  for (size_t at = 0; at < data.size(); at += kPieceBytes) {
    pieces_.push_back({offset + at, data.subspan(at, std::min(kPieceBytes, data.size() - at)), 0});
  }
  for (int round = 0; round < kMaxRounds && works_; ++round) {
    SubmitPieces(fd);
    if (const int error = DropWritten(); error != 0) return error;
    if (pieces_.empty()) return 0;
  }
  return EIO;
}

void DiskRing::SubmitPieces(int fd) {
  const auto count = static_cast<unsigned>(pieces_.size());
  for (unsigned i = 0; i < count; ++i) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    const Piece& piece = pieces_[i];
    io_uring_prep_write(sqe, fd, piece.data.data(), static_cast<unsigned>(piece.data.size()), piece.offset);
    io_uring_sqe_set_data64(sqe, i);
    pieces_[i].result = -EAGAIN;  // until it has completed
  }
  unsigned submitted = 0;
  for (int attempt = 0; submitted < count && works_; ++attempt) {
    const int result = io_uring_submit_and_wait(&ring_, count - submitted);
    if (result > 0) submitted += static_cast<unsigned>(result);
    if (result == 0 || (result < 0 && !Transient(result)) || attempt > kMaxRounds) works_ = false;
  }
  // Submitted writes read the caller's buffer, so always wait for them.
  for (unsigned completed = 0; completed < submitted;) {
    io_uring_cqe* cqe = nullptr;
    const int result = io_uring_wait_cqe(&ring_, &cqe);
    if (Transient(result)) continue;
    if (result < 0) {
      works_ = false;
      return;
    }
    pieces_[io_uring_cqe_get_data64(cqe)].result = cqe->res;
    io_uring_cqe_seen(&ring_, cqe);
    ++completed;
  }
}

int DiskRing::DropWritten() {
  int error = 0;
  for (Piece& piece : pieces_) {
    if (piece.result == 0) error = EIO;
    if (piece.result < 0 && !Transient(piece.result)) error = -piece.result;
    const size_t written = piece.result > 0 ? GoOnAfter(static_cast<size_t>(piece.result)) : 0;
    piece.offset += written;
    piece.data = piece.data.subspan(written);
    piece.result = 0;
  }
  std::erase_if(pieces_, [](const Piece& piece) { return piece.data.empty(); });
  return error;
}

}  // namespace gannet::log::internal
