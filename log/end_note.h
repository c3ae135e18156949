// DIR/LOG-END: how far the log is known to reach. Without it nobody could tell a log from one whose last segments are
// missing, or whose last segment was cut: what is there is valid in both cases.
//
// The note is a lower bound. It is written, durably, before anything relies on what it says, and only when that is
// durable: when a segment was begun, before the first batch in it is acknowledged; and when the log was stopped, with
// the end of its last batch. Since a log only grows, a note stays true until the next one is written, so a crash
// between any two operations leaves a directory whose log reaches at least as far as its note says. After an unclean
// stop the note names the last segment and not an end within it: there a tail may be missing unnoticed, as far as it is
// of the last run.
//
// It is small, and written in place: so it costs one durable write per segment and no space. Two blocks take turns, so
// that one which was torn by a crash leaves the note before it (docs/log_format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "log/file/file_system.h"

namespace gannet::log {

inline constexpr char kEndNoteName[] = "LOG-END";
inline constexpr size_t kEndNoteBytes = kDiskBlockBytes;  // of one of the two

struct EndNote {
  uint64_t segment = 0;       // this one has been begun: it has its header and its whole length. 0: none has
  uint64_t offset = 0;        // in it, up to which there are valid batches
  uint64_t next_batch = 1;    // the number after the last of them
  uint64_t run = 0;           // of that segment
  uint64_t closed_epoch = 0;  // in that run the log closed this epoch
  uint16_t node = 0;
  uint16_t num_nodes = 1;
  bool operator==(const EndNote&) const = default;

  // `sequence`: ascending from note to note; the greater one counts.
  void Encode(uint64_t sequence, std::span<std::byte, kEndNoteBytes> to) const;
  // InvalidArgument: of a version that this program does not know. DataLoss: damaged, torn, or never written.
  static StatusOr<EndNote> Decode(std::span<const std::byte, kEndNoteBytes> from, uint64_t* sequence);
};

// NotFound: there is none. DataLoss: damaged. InvalidArgument: of a newer version. May be called while a log is
// running.
StatusOr<EndNote> ReadEndNote(FileSystem& files, const std::string& directory);

// The note of a log that is written. One thread.
class EndNoteFile {
 public:
  // Both must outlive it.
  EndNoteFile(FileSystem* files, const std::string& directory) : files_(files), directory_(directory) {}

  // Durable when it returns. Does nothing if this object wrote the same note last. Makes the file if there is none, or
  // if it is damaged. After an error the same or another note may be written.
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
