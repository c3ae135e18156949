// The segments of a log and, from their headers alone, what each of them must hold.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/damage.h"
#include "log/file/file_system.h"
#include "log/format/identity.h"
#include "log/format/segment_format.h"
#include "log/segment/end_note.h"
#include "log/segment/log_reader.h"

namespace gannet::log {

inline constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

struct SegmentPlan {
  uint64_t segment = 0;
  std::string path;
  uint64_t size = 0;
  // The segment's own header. In salvage, if that is damaged: the fields that the neighbours' headers give.
  SegmentHeader header;
  bool header_valid = true;
  // Number of the first batch after this segment, and its offset in this segment: a later header takes over there.
  // kUnknown: no header does (the last segment), or (offset only) the header does not say.
  uint64_t end_batch = kUnknown;
  uint64_t end_offset = kUnknown;
  // Transactions of later epochs are void: a later run recovered only up to this epoch.
  uint64_t last_valid_epoch = kUnknown;
  // The last segment's header says that the log has closed this epoch.
  uint64_t closed_later = 0;
  bool last = false;          // the log's last segment with a header: its tail may be torn
  bool next_missing = false;  // in salvage: its end is unknown
};

struct SegmentChain {
  std::vector<SegmentPlan> plans;  // ascending, without those that a crash left without header
  uint64_t first_segment = 0;
  uint64_t last_segment = 0;  // may have no header
  uint64_t segments = 0;      // all of them
};

// Facts about the log from the other files of its directory.
struct LogFacts {
  struct Owner {
    uint16_t node;
    uint16_t num_nodes;
  };
  std::optional<EndNote> note;  // how far the log reaches; empty: no file says it
  std::optional<Owner> owner;   // empty: there is no manifest
  Identity database{};          // of the manifest; not known: files are compared with each other only
  Identity run{};               // of the manifest: the log has it; not known: nothing says which it has
};

// Reads all headers and checks that they fit together and agree with `facts`. NotFound: there is no segment.
StatusOr<SegmentChain> ReadSegmentChain(FileSystem& files, const std::string& directory, const ReadOptions& options,
                                        const LogFacts& facts, DamageList* damages);

}  // namespace gannet::log
