// SegmentWriter: writes the current segment, prepares its successor ahead of time, and switches from one to the other.
//
// A new segment is created under another name, allocated, and gets its header durably. Only then it is renamed to its
// final name, and the directory is synced. So a file with a segment's name always has a valid header. A number belongs
// to the first segment that got this far: a failed attempt leaves at most a file that the next attempt replaces.
//
// Sizes. The first segment of a run has 64 KiB. A later one has half of what was written since the last cut, or a
// quarter of what lies between the last two if that is more, up to LogOptions::segment_bytes. (BeginSegment cuts the
// log for a checkpoint.) So the files grow with the log, the end of a segment that a cut leaves unused is a small part
// of the log, and a log that is cut rarely has few large segments. A spare that is too small for the commits in
// progress is made longer. With LogOptions::preallocate_bytes all segments have the full size, unless the disk has no
// room for that when the run begins.
//
// The file of a segment that is not needed any more is reused for a later one (SegmentHeader::reused). A durable write
// to space that has been written before changes no metadata, and the space need not be filled with zeros first. As many
// bytes of files are kept for that as the log took between the last two cuts, and no files that are much smaller than a
// new segment.
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
#include "log/file/file_system.h"
#include "log/format/segment_format.h"
#include "log/segment/batch_buffer.h"
#include "log/segment/end_note.h"
#include "log/segment/log_end.h"
#include "log/segment/log_options.h"
#include "log/segment/log_statistics.h"

namespace gannet::log {

// The segment to create if the disk has no room for one of the size that the log's growth asks for.
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
  // The end of the run: notes in LOG-END that the log reaches the end of what was written, if the run has a segment,
  // and removes the files made ready for later ones that are not to be kept. The directory is not used after this.
  Status Finish();
  // Offers the file `path` of a former segment for reuse. `path` must be its only durable name. False: the file is not
  // needed, or cannot be used. From any thread.
  bool OfferUsed(const std::string& path);
  // Returns a name for a file to be offered.
  std::string NewSparePath();

  // Begins a segment with room for at least `room` bytes of batches (but see SegmentSize). The next batch is its first.
  Status Begin(uint64_t room, SegmentSize size);
  // The segment that was begun last divides what a checkpoint makes unnecessary from the rest.
  void Cut();
  // Removes the files that are ready for later segments.
  void GiveBack();
  // Writes the batch durably. Begins a new segment if there is none or it has no room; if the disk is full, one with
  // room for just this batch. After an error the segment is given up; call again with the same batch.
  Status Write(BatchBuffer* batch, const BatchHeader& header, uint64_t room);
  // Prepares the next segment, with room for `room` bytes of batches, when half of this one is used, so that a full
  // disk is noticed early. ResourceExhausted, with advice: the disk is full.
  Status PrepareAhead(uint64_t room);
  // True if batches of `room` bytes can be written without creating another file.
  bool HasRoom(uint64_t room) const { return RoomLeft() >= room || SpareFor(room) != nullptr; }

  // True if a segment with room for `room` bytes, made now, leaves `bytes` of the disk free.
  bool LeavesFree(uint64_t room, uint64_t bytes) const;
  // ResourceExhausted: why it is not made if it does not.
  Status KeptForCheckpoint() const;

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

  uint64_t RoomLeft() const { return current_ == nullptr ? 0 : current_bytes_ - end_; }
  // Size of the next segment if it is made now.
  uint64_t NextBytes() const;
  // Bytes of the files that are kept for later segments. The last of them may exceed it.
  uint64_t MostKept() const { return std::max(preallocate_bytes_, last_interval_files_); }
  uint64_t WrittenSinceCut() const { return statistics_.disk_bytes - cut_at_bytes_; }
  static uint64_t BytesOf(const std::vector<Spare>& spares);
  // A spare with room for `room` bytes of batches, the one that would be used first; null: there is none.
  const Spare* SpareFor(uint64_t room) const;
  Status PrepareSpare(uint64_t room, SegmentSize size);
  // These return ResourceExhausted, or another error, as the disk says it.
  Status MakeSpare(uint64_t bytes);
  Status GrowSpare(uint64_t bytes);
  Status NoteEnd();
  void DropUnused();
  // Writes to LOG-END what it must say before the run's first segment takes over from the old log.
  Status NoteBegin();
  void TakeUsed();
  // Removes spares that exceed MostKept, except for one.
  void DropSurplus();
  void NoteSpares();
  // Opens the file of a former segment.
  StatusOr<Spare> OpenUsed(const std::string& path) const;
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
  const bool keep_preallocated_;
  bool whole_segments_;  // all have the full size
  const LogEnd begin_;   // of the run
  EndNoteFile note_;
  SegmentHeader header_;  // of the run; the rest is filled in for each segment
  bool finished_ = false;

  std::unique_ptr<File> current_;  // null: given up, or none yet
  uint64_t current_bytes_ = 0;
  uint64_t segment_;
  uint64_t noted_segment_ = 0;  // LOG-END says that it was begun
  uint64_t end_;                // offset after the last durable batch of segment_
  uint64_t next_batch_;
  uint64_t closed_epoch_;  // by the durable batches

  uint64_t cut_at_bytes_ = 0;     // statistics_.disk_bytes at the last cut
  uint64_t files_since_cut_ = 0;  // bytes of the segments that were begun, with the one at the cut
  // Bytes that were written between the last two cuts, and bytes of the segments for them. They fall by at most half
  // from cut to cut.
  uint64_t last_interval_bytes_ = 0;
  uint64_t last_interval_files_ = 0;

  std::vector<Spare> spares_;  // the last is used next
  std::atomic<uint64_t> spares_made_{0};
  Mutex used_mutex_;         // guards the members below, which other threads use
  std::vector<Spare> used_;  // offered, not yet taken
  uint64_t spare_bytes_ = 0;
  uint64_t most_kept_ = 0;
  uint64_t least_used_ = 0;  // smaller files are not reused

  LogStatistics statistics_;
};

}  // namespace gannet::log
