// SegmentWriter: the current segment, its successor made ahead of time, and the change from one to the other.
//
// A new segment is made under another name, allocated, and gets its header, durably; only then it is renamed to its
// name, and the directory synced. So a segment's name never stands for a file without a valid header, and a number is
// used by the first segment that got that far: a failed attempt leaves at most a file that is replaced by the next.
//
// A segment that is not needed any more becomes the file of a later one (format.h, SegmentHeader::reused): space that
// has been written before takes a durable write without a change of metadata, and need not be filled with zeros first.
//
// After an error of a write or sync nobody knows what is on disk, so the segment is never written again: the next one
// takes over at the end of the last batch that is known to be durable.
//
// Before the first batch of a segment is written, LOG-END says that the segment was begun (end_note.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "log/batch_buffer.h"
#include "log/end_note.h"
#include "log/file/file_system.h"
#include "log/format.h"
#include "log/log.h"

namespace gannet::log {

// What is made if the disk has no room for a segment as the options say.
enum class SegmentSize : uint8_t {
  kWhole,  // none
  kFits,   // one that has just the room that is asked for
  kSmall,  // if there is no room for that either, one of a few blocks, or of two
  kLeast,  // as kSmall, but nothing larger is tried
};

// One thread.
class SegmentWriter {
 public:
  SegmentWriter(FileSystem* files, std::string directory, const LogEnd& end, const LogOptions& options);
  ~SegmentWriter();

  // Before the first segment: makes LogOptions::preallocate_bytes ready for use, of what an earlier run, or an
  // interrupted attempt to make a segment, left behind, and of new files, as long as the disk has room. Removes what is
  // too much.
  Status PrepareFirst();
  // Notes in LOG-END that the log reaches the end of what was written. For the end of the run; nothing if none began.
  Status NoteEnd();
  // From any thread: `path`, the only name of which is durable, was a segment and may be used again. False: it is not
  // wanted.
  bool OfferUsed(const std::string& path);
  // A name for a file that is offered.
  std::string NewSparePath();

  // Begins a segment, with room for `room` bytes of batches at least (but see SegmentSize), whose first batch is the
  // next to be written.
  Status Begin(uint64_t room, SegmentSize size);
  // Removes what is ready for later segments.
  void GiveBack();
  // Writes the batch durably, in a new segment if there is none or no room in it; if the disk is full, in one that has
  // room for just this batch. After an error the segment is given
  // up; to be called again with the same batch.
  Status Write(BatchBuffer* batch, const BatchHeader& header, uint64_t room);
  // Prepares the next segment, with room for `room` bytes of batches, when half of this one is used, so that a full
  // disk is known early. ResourceExhausted if it is, with advice.
  Status PrepareAhead(uint64_t room);
  // Whether batches of `room` bytes can be written without another file.
  bool HasRoom(uint64_t room) const { return RoomLeft() >= room || HasSpare(room); }

  // Whether the run has a segment.
  bool begun() const { return statistics_.segments != 0; }

  // Of the disk that it writes to (FileSystem::CompletionCpu).
  std::optional<int> CompletionCpu() const { return files_->CompletionCpu(directory_); }

  uint64_t segment() const { return segment_; }  // the last that was begun
  uint64_t next_batch() const { return next_batch_; }
  // Segments given up, batches written, ...: disk_bytes, batches, segments, failures.
  const LogStatistics& statistics() const { return statistics_; }

 private:
  // A file that will be a segment.
  struct Spare {
    std::unique_ptr<File> file;
    uint64_t bytes = 0;
    std::string path;
    bool reused = false;
  };

  static constexpr size_t kLeastKept = 4;  // files for later use, even if none was asked for

  uint64_t RoomLeft() const { return current_ == nullptr ? 0 : current_bytes_ - end_; }
  size_t MostKept() const { return std::max<size_t>(kLeastKept, preallocate_bytes_ / segment_bytes_); }
  bool HasSpare(uint64_t room) const { return !spares_.empty() && spares_.back().bytes - kSegmentHeaderBytes >= room; }
  Status PrepareSpare(uint64_t room, SegmentSize size);
  // ResourceExhausted, or another error, as the disk says it.
  Status MakeSpare(uint64_t bytes);
  // What LOG-END must say before the first segment of the run takes over from what was there.
  Status NoteBegin();
  void TakeUsed();
  void NoteSpares();
  Status AddUsed(const std::string& path);
  // The one that would be used next. Also if that fails: it is not needed, and removed by the next run at the latest.
  void DropSpare();
  Status WriteHeaderToSpare();
  Status NameSpare(const std::string& name);
  // An error, with what it means for the log.
  Status Explained(const Status& status, const std::string& doing) const;

  FileSystem* const files_;
  const std::string directory_;
  const uint64_t segment_bytes_;
  const uint64_t preallocate_bytes_;
  const LogEnd begin_;  // of the run
  EndNoteFile note_;
  SegmentHeader header_;  // of the run; the rest is filled in for each segment

  std::unique_ptr<File> current_;  // null: given up, or none yet
  uint64_t current_bytes_ = 0;
  uint64_t segment_;
  uint64_t noted_segment_ = 0;  // LOG-END says that this one was begun
  uint64_t end_;                // offset after the last durable batch of segment_
  uint64_t next_batch_;
  uint64_t closed_epoch_;  // by the durable batches

  std::vector<Spare> spares_;  // the last is used next
  std::atomic<uint64_t> spares_made_{0};
  Mutex used_mutex_;               // of what follows
  std::vector<std::string> used_;  // offered, not yet taken
  size_t spares_seen_ = 0;         // spares_.size(), for other threads

  LogStatistics statistics_;
};

}  // namespace gannet::log
