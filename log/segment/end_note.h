// DIR/LOG-END: a note of how far the log reaches. Without it a complete log looks like one whose last segments are
// missing or whose last segment was cut: the remaining part is valid in both cases.
//
// The note is a lower bound. It is written durably, after the log has become durable as far as the note says, and
// before anything relies on the note. It is written when a segment has been begun, before the first batch in the
// segment is acknowledged; and when the log is stopped, with the end of its last batch. A log only grows, so a note
// stays true until the next one is written. So after a crash between any two operations the log reaches at least as far
// as its note says. After an unclean stop the note names the last segment but no end within it. A missing tail of that
// segment is then not noticed, if it is from the last run.
//
// The note is small and written in place, so it costs one durable write per segment and no space. Two blocks are
// written in turn, so a block that a crash has torn leaves the previous note intact (docs/log_format.md). A note lies
// in one sector, so only persistent memory tears one: it is written from front to back, and ends with the number with
// which it begins. So a newest note that is complete, and has a wrong checksum, is damaged: the one before says less
// than was known, and does not take its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "log/file/file_system.h"
#include "log/format/identity.h"

namespace gannet::log {

inline constexpr char kEndNoteName[] = "LOG-END";
inline constexpr size_t kEndNoteBytes = kDiskBlockBytes;  // of one of the two

struct EndNote {
  uint64_t segment = 0;       // has been begun: it has its header and its full length. 0: no segment
  uint64_t offset = 0;        // in that segment; valid batches reach up to it
  uint64_t next_batch = 1;    // number after the last of these batches
  uint64_t run = 0;           // of that segment
  uint64_t closed_epoch = 0;  // the log closed this epoch in that run
  uint16_t node = 0;
  uint16_t num_nodes = 1;
  Identity database{};      // from version 2 on
  Identity run_identity{};  // of the run; from version 3 on
  bool operator==(const EndNote&) const = default;

  // `sequence`: ascends from note to note; the note with the greater one counts.
  void Encode(uint64_t sequence, std::span<std::byte, kEndNoteBytes> to) const;
  // InvalidArgument: a version that this program does not know. DataLoss: damaged, torn, or never written.
  static StatusOr<EndNote> Decode(std::span<const std::byte, kEndNoteBytes> from, uint64_t* sequence);
};

// The newest note. NotFound: there is none. DataLoss: it is damaged. InvalidArgument: a newer version. May be called
// while a log is running. *doubt, if it is not null, gets what is wrong with the other block: it has the note before,
// damaged, or one whose writing a crash interrupted. Empty: nothing.
StatusOr<EndNote> ReadEndNote(FileSystem& files, const std::string& directory, std::string* doubt = nullptr);

// Writes the note of a running log. One thread.
class EndNoteFile {
 public:
  // Both must outlive it.
  EndNoteFile(FileSystem* files, const std::string& directory) : files_(files), directory_(directory) {}

  // The note is durable when Write returns. Does nothing if this object's last note was the same. Creates the file if
  // it is missing or damaged. After an error the caller may write the same or another note.
  Status Write(const EndNote& note);

 private:
  Status Open();
  Status Make(const EndNote& note);

  FileSystem* const files_;
  const std::string directory_;
  std::unique_ptr<File> file_;      // null: not opened yet
  uint64_t sequence_ = 0;           // of the note that counts
  std::optional<EndNote> written_;  // by this object, the last
};

}  // namespace gannet::log
