// Which segments a log has, and, from their headers alone, what each of them must hold.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/damage.h"
#include "log/end_note.h"
#include "log/file/file_system.h"
#include "log/format.h"
#include "log/log_reader.h"

namespace gannet::log {

inline constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

struct SegmentPlan {
  uint64_t segment = 0;
  std::string path;
  uint64_t size = 0;
  // Its own header; in salvage of a segment whose header is damaged: as much of it as the neighbours tell.
  SegmentHeader header;
  bool header_valid = true;
  // The first batch number that is not this segment's, and the offset at which it would be: a later header takes over
  // there. kUnknown: none does (the last segment), or (offset only) it does not say.
  uint64_t end_batch = kUnknown;
  uint64_t end_offset = kUnknown;
  // Transactions of later epochs are void: a later run recovered only so far.
  uint64_t last_valid_epoch = kUnknown;
  bool last = false;          // with a header, of the log: its tail may be torn
  bool next_missing = false;  // in salvage: nothing is known of its end
};

struct SegmentChain {
  std::vector<SegmentPlan> plans;  // ascending, without those that a crash left without header
  uint64_t first_segment = 0;
  uint64_t last_segment = 0;  // has perhaps no header
  uint64_t segments = 0;      // all of them
};

// What the files beside the log say of it.
struct LogFacts {
  struct Owner {
    uint16_t node;
    uint16_t num_nodes;
  };
  std::optional<EndNote> note;  // how far the log reaches; nothing: no file says it
  std::optional<Owner> owner;   // nothing: there is no manifest
};

// Reads all headers and checks that they fit together, and what `facts` says. NotFound if there is no segment.
StatusOr<SegmentChain> ReadSegmentChain(FileSystem& files, const std::string& directory, const ReadOptions& options,
                                        const LogFacts& facts, DamageList* damages);

}  // namespace gannet::log
