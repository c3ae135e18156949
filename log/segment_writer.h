// SegmentWriter: the current segment, its successor made ahead of time, and the change from one to the other.
//
// A new segment is made under another name, allocated, and gets its header, durably; only then it is renamed to its
// name, and the directory synced. So a segment's name never stands for a file without a valid header, and a number is
// used by the first segment that got that far: a failed attempt leaves at most a file that is replaced by the next.
//
// After an error of a write or sync nobody knows what is on disk, so the segment is never written again: the next one
// takes over at the end of the last batch that is known to be durable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "log/batch_buffer.h"
#include "log/file/file_system.h"
#include "log/format.h"
#include "log/log.h"
#include "rdma/base/status.h"

namespace gannet::log {

// One thread.
class SegmentWriter {
 public:
  SegmentWriter(FileSystem* files, std::string directory, const LogEnd& end, const LogOptions& options);
  ~SegmentWriter();

  // Removes what interrupted attempts to make a segment left behind.
  Status RemoveLeftovers();

  // Begins a segment, with room for `room` bytes of batches at least, whose first batch is the next to be written.
  Status Begin(uint64_t room);
  // Writes the batch durably, in a new segment if there is none or no room in it. After an error the segment is given
  // up; to be called again with the same batch.
  Status Write(BatchBuffer* batch, const BatchHeader& header, uint64_t room);
  // Prepares the next segment, with room for `room` bytes of batches, when half of this one is used, so that a full
  // disk is known early. ResourceExhausted if it is, with advice.
  Status PrepareAhead(uint64_t room);
  // Whether batches of `room` bytes can be written without another file.
  bool HasRoom(uint64_t room) const { return RoomLeft() >= room || HasSpare(room); }

  uint64_t segment() const { return segment_; }  // the last that was begun
  uint64_t next_batch() const { return next_batch_; }
  // Segments given up, batches written, ...: disk_bytes, batches, segments, failures.
  const LogStatistics& statistics() const { return statistics_; }

 private:
  uint64_t RoomLeft() const { return current_ == nullptr ? 0 : current_bytes_ - end_; }
  bool HasSpare(uint64_t room) const { return spare_ != nullptr && spare_bytes_ - kSegmentHeaderBytes >= room; }
  Status PrepareSpare(uint64_t room);
  // Also if that fails: it is not needed, and removed by the next run at the latest.
  void DropSpare();
  Status WriteHeaderToSpare();
  Status NameSpare(const std::string& name);
  Status Explained(const Status& status, const std::string& doing) const;

  FileSystem* const files_;
  const std::string directory_;
  const uint64_t segment_bytes_;
  SegmentHeader header_;  // of the run; the rest is filled in for each segment

  std::unique_ptr<File> current_;  // null: given up, or none yet
  uint64_t current_bytes_ = 0;
  uint64_t segment_;
  uint64_t end_;  // offset after the last durable batch of segment_
  uint64_t next_batch_;
  uint64_t closed_epoch_;  // by the durable batches

  std::unique_ptr<File> spare_;
  uint64_t spare_bytes_ = 0;
  std::string spare_path_;
  uint64_t spares_ = 0;

  LogStatistics statistics_;
};

}  // namespace gannet::log
