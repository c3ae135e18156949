// SegmentWriter: writes the current segment, prepares its successor ahead of time, and switches from one to the other.
//
// A new segment is created under another name, allocated, and gets its header durably. Only then it is renamed to its
// final name, and the directory is synced. So a file with a segment's name always has a valid header. A number belongs
// to the first segment that got this far: a failed attempt leaves at most a file that the next attempt replaces.
//
// The file of a segment that is not needed any more is reused for a later one (format.h, SegmentHeader::reused). A
// durable write to space that has been written before changes no metadata, and the space need not be filled with zeros
// first.
//
// After an error of a write or sync the content on disk is unknown, so the segment is never written again. The next one
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

// The segment to create if the disk has no room for one of the configured size.
enum class SegmentSize : uint8_t {
  kWhole,  // none
  kFits,   // one with just the requested room
  kSmall,  // as kFits; if the disk has no room for that either, one of a few blocks, or of two
  kLeast,  // as kSmall, but nothing larger is tried
};

// One thread.
class SegmentWriter {
 public:
  SegmentWriter(FileSystem* files, std::string directory, const LogEnd& end, const LogOptions& options);
  ~SegmentWriter();

  // Called before the first segment. Makes LogOptions::preallocate_bytes ready for use, as long as the disk has room:
  // from files that an earlier run or an interrupted creation of a segment left, and from new files. Removes surplus
  // files.
  Status PrepareFirst();
  // Notes in LOG-END that the log reaches the end of what was written. Called at the end of the run; does nothing if
  // the run has no segment.
  Status NoteEnd();
  // Offers the file `path` of a former segment for reuse. `path` must be its only durable name. False: the file is not
  // needed. From any thread.
  bool OfferUsed(const std::string& path);
  // Returns a name for a file to be offered.
  std::string NewSparePath();

  // Begins a segment with room for at least `room` bytes of batches (but see SegmentSize). The next batch is its first.
  Status Begin(uint64_t room, SegmentSize size);
  // Removes the files that are ready for later segments.
  void GiveBack();
  // Writes the batch durably. Begins a new segment if there is none or it has no room; if the disk is full, one with
  // room for just this batch. After an error the segment is given up; call again with the same batch.
  Status Write(BatchBuffer* batch, const BatchHeader& header, uint64_t room);
  // Prepares the next segment, with room for `room` bytes of batches, when half of this one is used, so that a full
  // disk is noticed early. ResourceExhausted, with advice: the disk is full.
  Status PrepareAhead(uint64_t room);
  // True if batches of `room` bytes can be written without creating another file.
  bool HasRoom(uint64_t room) const { return RoomLeft() >= room || HasSpare(room); }

  // True if the run has a segment.
  bool begun() const { return statistics_.segments != 0; }

  uint64_t segment() const { return segment_; }  // the last that was begun
  uint64_t next_batch() const { return next_batch_; }
  // Segments given up, batches written, ...: disk_bytes, batches, segments, failures.
  const LogStatistics& statistics() const { return statistics_; }

 private:
  // A file that will become a segment.
  struct Spare {
    std::unique_ptr<File> file;
    uint64_t bytes = 0;
    std::string path;
    bool reused = false;
  };

  static constexpr size_t kLeastKept = 4;  // files for later use, even if no preallocation is configured

  uint64_t RoomLeft() const { return current_ == nullptr ? 0 : current_bytes_ - end_; }
  size_t MostKept() const { return std::max<size_t>(kLeastKept, preallocate_bytes_ / segment_bytes_); }
  bool HasSpare(uint64_t room) const { return !spares_.empty() && spares_.back().bytes - kSegmentHeaderBytes >= room; }
  Status PrepareSpare(uint64_t room, SegmentSize size);
  // ResourceExhausted, or another error, as the disk says it.
  Status MakeSpare(uint64_t bytes);
  // Writes to LOG-END what it must say before the run's first segment takes over from the old log.
  Status NoteBegin();
  void TakeUsed();
  void NoteSpares();
  Status AddUsed(const std::string& path);
  // Removes the spare that would be used next. If removing fails, the next run removes the file at the latest.
  void DropSpare();
  Status WriteHeaderToSpare();
  Status NameSpare(const std::string& name);
  // Adds to an error what it means for the log.
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
  uint64_t noted_segment_ = 0;  // LOG-END says that it was begun
  uint64_t end_;                // offset after the last durable batch of segment_
  uint64_t next_batch_;
  uint64_t closed_epoch_;  // by the durable batches

  std::vector<Spare> spares_;  // the last is used next
  std::atomic<uint64_t> spares_made_{0};
  Mutex used_mutex_;               // guards used_
  std::vector<std::string> used_;  // offered, not yet taken
  size_t spares_seen_ = 0;         // spares_.size(), for other threads

  LogStatistics statistics_;
};

}  // namespace gannet::log
