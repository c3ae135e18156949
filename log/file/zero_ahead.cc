#include "log/file/zero_ahead.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/thread.h"
#include "log/file/aligned_buffer.h"

namespace gannet::log::internal {

ZeroAhead::ZeroAhead(Descriptor fd, uint64_t begin, uint64_t end)
    : fd_(std::move(fd)), end_(end), next_(begin), thread_([this] { Run(); }) {}

ZeroAhead::~ZeroAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  thread_.join();
}

void ZeroAhead::Leave(uint64_t begin, uint64_t end) {
  std::unique_lock lock(mutex_);
  next_ = std::max(next_, end);
  piece_written_.wait(lock, [&] { return writing_end_ <= begin || writing_begin_ >= end; });
}

uint64_t ZeroAhead::next() const {
  const std::lock_guard lock(mutex_);
  return next_;
}

bool ZeroAhead::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

void ZeroAhead::Wait() {
  std::unique_lock lock(mutex_);
  piece_written_.wait(lock, [&] { return done_; });
}

void ZeroAhead::Run() {
  std::unique_lock lock(mutex_);
  bool sound = true;
  while (sound && !stop_ && next_ < end_) {
    writing_begin_ = next_;
    writing_end_ = next_ = std::min(next_ + kPieceBytes, end_);
    lock.unlock();
    sound = WriteZeros(writing_begin_, writing_end_);
    lock.lock();
    writing_begin_ = writing_end_ = 0;
    piece_written_.notify_all();
  }
  const bool sync = sound && !stop_;
  lock.unlock();
  // Makes the journal write happen here and not in a commit. An error is reported to this descriptor, and to the file's
  // own descriptor, too.
  if (sync) fdatasync(fd_.get());
  lock.lock();
  done_ = true;
  piece_written_.notify_all();
}

bool ZeroAhead::WriteZeros(uint64_t begin, uint64_t end) {
  static const AlignedBuffer zeros(kPieceBytes);
  ssize_t bytes = -1;
  do {
    bytes = pwrite(fd_.get(), zeros.data(), end - begin, static_cast<off_t>(begin));
  } while (bytes < 0 && errno == EINTR);
  return bytes == static_cast<ssize_t>(end - begin);
}

}  // namespace gannet::log::internal
