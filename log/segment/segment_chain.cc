#include "log/segment/segment_chain.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/file/file_input.h"

namespace gannet::log {

namespace {

struct Entry {
  SegmentPlan plan;
  bool torn = false;     // a crash interrupted its creation: it lacks a whole header or its whole length
  bool foreign = false;  // of another database: reported, and as good as missing
};

StatusOr<std::vector<uint64_t>> ListSegments(FileSystem& files, const std::string& directory) {
  const StatusOr<std::vector<std::string>> names = files.List(directory);
  if (!names.ok()) return names.status();
  std::vector<uint64_t> segments;
  for (const std::string& name : *names) {
    if (const std::optional<uint64_t> segment = SegmentOfName(name)) segments.push_back(*segment);
  }
  if (segments.empty()) return absl::NotFoundError(absl::StrCat(directory, " has no log"));
  std::sort(segments.begin(), segments.end());
  return segments;
}

// Why a decoded header is not that of this file; empty: it is.
std::string Misplaced(const SegmentHeader& header, const SegmentPlan& plan) {
  if (header.segment != plan.segment) return absl::StrCat("the file is segment ", header.segment, " by its header");
  if (header.bytes < plan.size)
    return absl::StrCat("the file has ", plan.size, " bytes; its header says ", header.bytes);
  if (header.run == 0 || header.first_batch == 0 || header.node >= header.num_nodes ||
      header.closed_epoch < header.recovered_epoch)
    return "the segment header has impossible numbers";
  return "";
}

// Puts the header into the plan, or the reason why `block` is not the header of this segment into *what.
Status TakeHeader(std::span<const std::byte, kSegmentHeaderBytes> block, SegmentPlan* plan, std::string* what) {
  const StatusOr<SegmentHeader> header = SegmentHeader::Decode(block);
  // Salvage cannot read a valid header of a newer version.
  if (absl::IsInvalidArgument(header.status()) && SegmentHeader::HasMagic(block))
    return absl::InvalidArgumentError(absl::StrCat(plan->path, ": ", header.status().message()));
  *what = header.ok() ? Misplaced(*header, *plan) : std::string(header.status().message());
  plan->header_valid = what->empty();
  if (plan->header_valid) plan->header = *header;
  return absl::OkStatus();
}

StatusOr<Entry> ReadEntry(FileSystem& files, const std::string& directory, uint64_t segment, DamageList* damages) {
  Entry entry;
  SegmentPlan& plan = entry.plan;
  plan.segment = segment;
  plan.path = directory + "/" + SegmentName(segment);
  plan.header_valid = false;
  StatusOr<std::unique_ptr<File>> file = files.Open(plan.path, OpenMode::kRead);
  if (!file.ok()) return file.status();
  const StatusOr<uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.status();
  plan.size = *size;
  std::array<std::byte, kSegmentHeaderBytes> block{};  // the missing bytes of a short file count as zeros
  const StatusOr<size_t> got = (*file)->Read(0, block);
  std::string what;
  if (!got.ok()) {
    if (!damages->salvage()) return got.status();
    what = absl::StrCat("cannot be read: ", got.status().ToString());
  } else if (SegmentHeader::Torn(block)) {
    entry.torn = true;
  } else {
    GANNET_RETURN_IF_ERROR(TakeHeader(block, &plan, &what));
    entry.torn = plan.header_valid && plan.size < plan.header.bytes;
  }
  if (!what.empty()) GANNET_RETURN_IF_ERROR(damages->Found(plan.path, 0, what));
  return entry;
}

// Reconstructs the fields of a damaged header as far as the neighbours' headers tell them.
void GuessHeader(SegmentPlan* plan, const SegmentPlan* previous, const SegmentPlan* next) {
  if (next != nullptr) {
    plan->header = next->header;
  } else if (previous != nullptr) {
    plan->header = previous->header;
  }
  plan->header.segment = plan->segment;
  plan->header.bytes = plan->size;
  plan->header.first_batch = previous != nullptr ? previous->header.first_batch : 0;
}

// Why `next` cannot follow `previous`, if both have valid headers; empty: it can.
std::string Contradiction(const SegmentHeader& previous, const SegmentHeader& next) {
  // A database that has an identity keeps it, and writes it into all later segments.
  if (previous.database.is_known() && next.database != previous.database)
    return absl::StrCat("it is of ", next.database.is_known() ? next.database.ToText() : "an unknown database",
                        ", and the segment before is of the database ", previous.database.ToText());
  if (next.node != previous.node || next.num_nodes != previous.num_nodes)
    return absl::StrCat("it is of node ", next.node, " of ", next.num_nodes, ", the segment before of node ",
                        previous.node, " of ", previous.num_nodes);
  if (next.run < previous.run) return "it is of an earlier run than the segment before";
  // Runs have the same numbers in two copies of a directory that went on separately.
  const bool follows = next.run == previous.run ? next.run_identity == previous.run_identity &&
                                                      next.previous_run_identity == previous.previous_run_identity
                                                : next.previous_run_identity == previous.run_identity;
  if (!follows)
    return absl::StrCat("it does not continue the run of the segment before (", previous.run_identity.ToText(),
                        "): one of them is from a copy of this directory that went on separately");
  if (next.first_batch < previous.first_batch) return "its batches are numbered lower than those of the segment before";
  if (next.run == previous.run ? next.recovered_epoch != previous.recovered_epoch
                               : next.recovered_epoch < previous.recovered_epoch)
    return "its recovered epoch contradicts the segment before";
  if (next.run == previous.run && next.closed_epoch < previous.closed_epoch)
    return "the epoch that it says was closed is lower than in the segment before";
  return "";
}

Status CheckTakeover(const SegmentPlan& before, bool before_torn, const SegmentPlan& next, DamageList* damages) {
  const uint64_t end = next.header.previous_end;
  if (before_torn && end == kSegmentHeaderBytes) return absl::OkStatus();
  if (before_torn)
    return damages->Found(
        before.path, 0,
        "its header is not whole, or the file is cut off behind it, but the next segment says that it had data");
  if (end >= kSegmentHeaderBytes && end <= before.size && end % kDiskBlockBytes == 0) return absl::OkStatus();
  return damages->Found(next.path, 0, absl::StrCat("it takes over at offset ", end, ", which cannot be"));
}

Status CheckMissing(const std::string& directory, uint64_t from, uint64_t to, DamageList* damages) {
  if (from == to) return absl::OkStatus();
  const std::string which =
      to - from == 1 ? "this segment is missing" : absl::StrCat(to - from, " segments are missing from here on");
  return damages->Found(directory + "/" + SegmentName(from), 0, which);
}

// Fills in the end of each segment, from the header of the next one.
Status Link(const std::string& directory, std::vector<Entry>* entries, DamageList* damages) {
  SegmentPlan* previous = nullptr;  // the last one with a header
  for (size_t i = 0; i < entries->size(); ++i) {
    SegmentPlan& plan = (*entries)[i].plan;
    const Entry* before = i == 0 ? nullptr : &(*entries)[i - 1];
    if (before != nullptr && before->plan.segment + 1 != plan.segment) {
      GANNET_RETURN_IF_ERROR(CheckMissing(directory, before->plan.segment + 1, plan.segment, damages));
      if (previous != nullptr) previous->next_missing = true;
      previous = nullptr;
      before = nullptr;
    }
    if ((*entries)[i].torn) continue;
    if ((*entries)[i].foreign) {
      if (previous != nullptr) previous->next_missing = true;
      previous = nullptr;
      continue;
    }
    if (!plan.header_valid) {
      if (previous != nullptr) previous->next_missing = true;
      previous = &plan;
      continue;
    }
    if (before != nullptr && !before->foreign)
      GANNET_RETURN_IF_ERROR(CheckTakeover(before->plan, before->torn, plan, damages));
    if (previous != nullptr) {
      previous->end_batch = plan.header.first_batch;
      if (&before->plan == previous) previous->end_offset = plan.header.previous_end;
      const std::string what = previous->header_valid ? Contradiction(previous->header, plan.header) : "";
      if (!what.empty()) GANNET_RETURN_IF_ERROR(damages->Found(plan.path, 0, what));
    }
    previous = &plan;
  }
  if (previous != nullptr) previous->last = !previous->next_missing;
  return absl::OkStatus();
}

void LimitEpochs(std::vector<SegmentPlan>* plans) {
  uint64_t limit = kUnknown;
  for (size_t i = plans->size(); i-- > 0;) {
    if (i + 1 < plans->size() && (*plans)[i + 1].header.run > (*plans)[i].header.run)
      limit = std::min(limit, (*plans)[i + 1].header.recovered_epoch);
    (*plans)[i].last_valid_epoch = limit;
  }
  if (plans->empty() || !plans->back().header_valid) return;
  for (SegmentPlan& plan : *plans) plan.closed_later = plans->back().header.closed_epoch;
}

// Segments that never got a header are empty. (Those before a segment with a header are known to hold nothing that
// counts.)
Status CheckEmptyTail(FileSystem& files, const std::vector<Entry>& entries, DamageList* damages) {
  for (size_t i = entries.size(); i-- > 0 && entries[i].torn;) {
    const SegmentPlan& plan = entries[i].plan;
    StatusOr<std::unique_ptr<File>> file = files.Open(plan.path, OpenMode::kRead);
    if (!file.ok()) return file.status();
    FileInput input(file->get(), plan.size, damages);
    const StatusOr<uint64_t> found = FindNonZero(&input, kSegmentHeaderBytes);
    if (!found.ok()) return found.status();
    if (*found == plan.size) continue;
    GANNET_RETURN_IF_ERROR(
        damages->Found(plan.path, 0, "its making was interrupted (no whole header, or too short), but it holds data"));
  }
  return absl::OkStatus();
}

// Checks that the segment that was begun last, according to the note, exists with its header and its whole length.
Status CheckLastBegun(const std::string& directory, const EndNote& note, const SegmentChain& chain,
                      DamageList* damages) {
  const std::string path = directory + "/" + SegmentName(note.segment);
  if (chain.last_segment < note.segment) {
    return damages->Found(path, 0,
                          absl::StrCat("this segment is missing: ", kEndNoteName, " says that the log reached it"));
  }
  const auto noted = std::ranges::find(chain.plans, note.segment, &SegmentPlan::segment);
  const bool of_other_run = noted != chain.plans.end() && noted->header_valid && note.run_identity.is_known() &&
                            noted->header.run_identity != note.run_identity;
  if (of_other_run) {
    return damages->Found(absl::StrCat(directory, "/", kEndNoteName), 0,
                          absl::StrCat("it is of another run (", note.run_identity.ToText(), ") than ",
                                       SegmentName(note.segment), " (", noted->header.run_identity.ToText(),
                                       "): one of them is from a copy of this directory that went on separately"));
  }
  if (chain.last_segment > note.segment || note.segment == 0) return absl::OkStatus();
  if (chain.plans.empty() || chain.plans.back().segment != note.segment) {
    return damages->Found(
        path, 0, absl::StrCat("it has no header, or is too short, but ", kEndNoteName, " says that it was begun"));
  }
  const SegmentHeader& header = chain.plans.back().header;
  if (header.node == note.node && header.num_nodes == note.num_nodes) return absl::OkStatus();
  return damages->Found(absl::StrCat(directory, "/", kEndNoteName), 0,
                        absl::StrCat("it is of node ", note.node, " of ", note.num_nodes, ", the log of node ",
                                     header.node, " of ", header.num_nodes));
}

// Checks that the log has the run that had begun when the manifest was written. (A log without segments is reported as
// such.)
Status CheckRun(const std::string& directory, const Identity& run, const SegmentChain& chain, DamageList* damages) {
  const auto is_of_run = [&run](const SegmentPlan& plan) { return plan.header.run_identity == run; };
  if (!run.is_known() || chain.plans.empty() || std::ranges::any_of(chain.plans, is_of_run)) return absl::OkStatus();
  return damages->Found(directory + "/MANIFEST", 0,
                        absl::StrCat("the log does not have run ", run.ToText(),
                                     ", which had begun when this file was written: files of the log are older than "
                                     "this one, or one of them is from a copy of this directory that went on "
                                     "separately"));
}

// Reports all segments of other databases: they were copied, or put into the wrong directory. Salvage leaves them out.
Status CheckDatabase(const Identity& database, std::vector<Entry>* entries, DamageList* damages) {
  for (Entry& entry : *entries) {
    if (!entry.plan.header_valid) continue;
    const std::string what = OtherDatabase(entry.plan.header.database, database);
    if (what.empty()) continue;
    entry.foreign = true;
    entry.torn = false;
    GANNET_RETURN_IF_ERROR(damages->Found(entry.plan.path, 0, what));
  }
  return absl::OkStatus();
}

// Reports the first segment of another node: it was copied, or put into the wrong directory.
Status CheckOwner(const LogFacts::Owner& owner, const std::vector<Entry>& entries, DamageList* damages) {
  for (const Entry& entry : entries) {
    const SegmentHeader& header = entry.plan.header;
    if (entry.foreign || !entry.plan.header_valid || (header.node == owner.node && header.num_nodes == owner.num_nodes))
      continue;
    return damages->Found(entry.plan.path, 0,
                          absl::StrCat("this segment is of node ", header.node, " of ", header.num_nodes,
                                       ", and the directory of node ", owner.node, " of ", owner.num_nodes));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<LogBegin> FindLogBegin(FileSystem& files, const std::string& directory) {
  const StatusOr<std::vector<uint64_t>> segments = ListSegments(files, directory);
  if (!segments.ok()) return segments.status();
  DamageList damages(/*salvage=*/false);
  const StatusOr<Entry> first = ReadEntry(files, directory, segments->front(), &damages);
  if (!first.ok()) return first.status();
  return LogBegin{.segment = segments->front(),
                  .closed_epoch = first->plan.header_valid ? first->plan.header.closed_epoch : 0};
}

std::string SegmentMissingBefore(const std::string& directory, const LogBegin& begin) {
  if (begin.segment <= 1) return absl::StrCat("a part of the log of ", directory, " is missing");
  return absl::StrCat(directory, "/", SegmentName(begin.segment - 1), " is missing");
}

StatusOr<SegmentChain> ReadSegmentChain(FileSystem& files, const std::string& directory, const ReadOptions& options,
                                        const LogFacts& facts, DamageList* damages) {
  const EndNote* const note = facts.note.has_value() ? &*facts.note : nullptr;
  StatusOr<std::vector<uint64_t>> segments = ListSegments(files, directory);
  if (absl::IsNotFound(segments.status()) && note != nullptr && note->segment != 0) {
    GANNET_RETURN_IF_ERROR(CheckLastBegun(directory, *note, SegmentChain{}, damages));
  }
  if (!segments.ok()) return segments.status();
  std::erase_if(*segments, [&](uint64_t segment) { return segment < options.from_segment; });
  const uint64_t first = segments->empty() ? options.from_segment + 1 : segments->front();
  if (options.from_segment != 0) GANNET_RETURN_IF_ERROR(CheckMissing(directory, options.from_segment, first, damages));

  std::vector<Entry> entries;
  for (const uint64_t segment : *segments) {
    StatusOr<Entry> entry = ReadEntry(files, directory, segment, damages);
    if (!entry.ok()) return entry.status();
    entries.push_back(*std::move(entry));
  }
  GANNET_RETURN_IF_ERROR(CheckDatabase(facts.database, &entries, damages));
  if (facts.owner.has_value()) GANNET_RETURN_IF_ERROR(CheckOwner(*facts.owner, entries, damages));
  GANNET_RETURN_IF_ERROR(Link(directory, &entries, damages));
  GANNET_RETURN_IF_ERROR(CheckEmptyTail(files, entries, damages));

  SegmentChain chain;
  chain.segments = entries.size();
  if (!entries.empty()) {
    chain.first_segment = entries.front().plan.segment;
    chain.last_segment = entries.back().plan.segment;
  }
  for (Entry& entry : entries) {
    if (!entry.torn && !entry.foreign) chain.plans.push_back(std::move(entry.plan));
  }
  for (size_t i = 0; i < chain.plans.size(); ++i) {
    if (chain.plans[i].header_valid) continue;
    GuessHeader(&chain.plans[i], i == 0 ? nullptr : &chain.plans[i - 1],
                i + 1 == chain.plans.size() ? nullptr : &chain.plans[i + 1]);
  }
  if (options.from_segment == 0 && !chain.plans.empty() && chain.plans.front().header.first_batch > 1) {
    const SegmentPlan& oldest = chain.plans.front();
    GANNET_RETURN_IF_ERROR(
        damages->Found(oldest.segment > 1 ? directory + "/" + SegmentName(oldest.segment - 1) : oldest.path, 0,
                       absl::StrCat("this segment is missing, and possibly older ones: the log begins with ",
                                    SegmentName(oldest.segment), ", but not with its first batch")));
  }
  if (options.from_segment != 0 && chain.plans.empty() && !entries.empty()) {
    GANNET_RETURN_IF_ERROR(
        damages->Found(entries.front().plan.path, 0, "no segment has a header, but a checkpoint needs them"));
  }
  const bool ends_foreign = !entries.empty() && entries.back().foreign;  // and that has been reported
  if (note != nullptr && !ends_foreign) GANNET_RETURN_IF_ERROR(CheckLastBegun(directory, *note, chain, damages));
  GANNET_RETURN_IF_ERROR(CheckRun(directory, facts.run, chain, damages));
  LimitEpochs(&chain.plans);
  return chain;
}

}  // namespace gannet::log
