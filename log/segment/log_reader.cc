#include "log/segment/log_reader.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/share_work.h"
#include "log/file/aligned_buffer.h"
#include "log/file/damage.h"
#include "log/format/identity.h"
#include "log/manifest/manifest.h"
#include "log/segment/end_note.h"
#include "log/segment/segment_chain.h"
#include "log/segment/segment_scanner.h"

namespace gannet::log {

namespace {

// The content of the last segment may be in the page cache, or in the disk's cache, only. A sync is not enough: a sync
// of its writer may have failed, and the writer may have died before it could write to another segment. After a failed
// sync the bytes may be readable and count as written, and yet be lost at a power cut. So this writes them again. Only
// the last batch needs it, because each batch is durable before the next one is begun. Another reader that does the
// same writes the same bytes. (The segment is not reused during this: all nodes must have recovered before a checkpoint
// is complete.)
Status WriteLastBatchAgain(FileSystem* files, const SegmentPlan& plan, const SegmentResult& result) {
  if (result.last_batch_offset == 0) return absl::OkStatus();
  StatusOr<std::unique_ptr<File>> file = files->Open(plan.path, OpenMode::kReuse);
  if (!file.ok()) return file.status();
  AlignedBuffer batch(result.end_offset - result.last_batch_offset);
  const StatusOr<size_t> read = (*file)->Read(result.last_batch_offset, batch.span());
  if (!read.ok()) return read.status();
  if (*read != batch.size()) return absl::DataLossError(absl::StrCat(plan.path, " became shorter while it was read"));
  return (*file)->WriteDurably(result.last_batch_offset, batch.span());
}

// Called before the segments are listed: a log that runs at the same time only gets longer.
StatusOr<LogFacts> FindFacts(FileSystem& files, const std::string& directory, const Manifest* known,
                             DamageList* damages) {
  LogFacts facts;
  const StatusOr<Manifest> manifest = known == nullptr ? ReadManifest(files, directory) : StatusOr<Manifest>(*known);
  if (!manifest.ok() && !absl::IsNotFound(manifest.status())) return manifest.status();
  if (manifest.ok()) {
    facts.owner = LogFacts::Owner{.node = manifest->node, .num_nodes = manifest->num_nodes};
    facts.database = Identity::FromText(manifest->database);
    facts.run = Identity::FromText(manifest->run);
  }
  const StatusOr<EndNote> note = ReadEndNote(files, directory);
  const std::string path = absl::StrCat(directory, "/", kEndNoteName);
  if (note.ok()) {
    if (const std::string other = OtherDatabase(note->database, facts.database); !other.empty()) {
      GANNET_RETURN_IF_ERROR(damages->Found(path, 0, other));
      return facts;
    }
    facts.note = *note;
    // A log that has not begun yet may have a note without an owner.
    const bool foreign = facts.owner.has_value() && note->segment != 0 &&
                         (note->node != facts.owner->node || note->num_nodes != facts.owner->num_nodes);
    if (!foreign) return facts;
    GANNET_RETURN_IF_ERROR(damages->Found(
        path, 0,
        absl::StrCat("it is of node ", note->node, " of ", note->num_nodes, ", and the directory of node ",
                     facts.owner->node, " of ", facts.owner->num_nodes)));
    return facts;
  }
  if (absl::IsNotFound(note.status())) {
    if (!manifest.ok() || !manifest->log_end) return facts;
    GANNET_RETURN_IF_ERROR(
        damages->Found(path, 0, "this file is missing, and without it the end of the log may be missing, too"));
    return facts;
  }
  if (!damages->salvage() || absl::IsInvalidArgument(note.status())) return note.status();
  GANNET_RETURN_IF_ERROR(damages->Found(path, 0, std::string(note.status().message())));
  return facts;
}

// Checks that the log's last segment reaches as far as the note says.
Status CheckEnd(const EndNote& note, const SegmentPlan& plan, const SegmentResult& result, DamageList* damages) {
  if (!plan.last || plan.segment != note.segment || result.end_offset >= note.offset) return absl::OkStatus();
  return damages->Found(plan.path, result.end_offset,
                        absl::StrCat("the log ends here, but ", kEndNoteName, " says that it reached offset ",
                                     note.offset, " and batch ", note.next_batch - 1));
}

// Checks that the log closed the epoch that the note says. A later run is not checked: what it recovered may be less.
// (A missing segment has been reported already.)
Status CheckClosed(const std::string& directory, const EndNote& note, const LogEnd& end, DamageList* damages) {
  if (end.segment < note.segment || end.run != note.run || end.recovered_epoch >= note.closed_epoch)
    return absl::OkStatus();
  return damages->Found(directory + "/" + SegmentName(end.segment), end.offset,
                        absl::StrCat("the log closed only epoch ", end.recovered_epoch, ", but ", kEndNoteName,
                                     " says that it closed ", note.closed_epoch));
}

// Scans the segments of a chain with several threads; the first error ends all of them.
class ParallelScan {
 public:
  ParallelScan(FileSystem* files, const SegmentChain* chain, const ReadOptions& options, DamageList* damages,
               const EndNote* note, const TransactionVisitor* visit)
      : files_(files),
        chain_(chain),
        note_(note),
        make_durable_(options.make_durable),
        damages_(damages),
        visit_(visit),
        batch_end_(&options.batch_end),
        results_(chain->plans.size()) {}

  StatusOr<std::vector<SegmentResult>> Run(int threads) {
    GANNET_RETURN_IF_ERROR(ShareWork("log reader", results_.size(), threads, [this](size_t i, int thread) {
      const StatusOr<SegmentResult> result = Scan(chain_->plans[i], thread);
      if (result.ok()) results_[i] = *result;
      return result.status();
    }));
    return std::move(results_);
  }

 private:
  StatusOr<SegmentResult> Scan(const SegmentPlan& plan, int thread) {
    StatusOr<std::unique_ptr<File>> file = files_->Open(plan.path, OpenMode::kRead);
    if (!file.ok()) return file.status();
    SegmentScanner scanner(&plan, file->get(), damages_, thread, visit_, batch_end_);
    StatusOr<SegmentResult> result = scanner.Scan();
    if (result.ok() && note_ != nullptr) GANNET_RETURN_IF_ERROR(CheckEnd(*note_, plan, *result, damages_));
    if (result.ok() && plan.last && make_durable_) {
      GANNET_RETURN_IF_ERROR((*file)->Sync());
      GANNET_RETURN_IF_ERROR(WriteLastBatchAgain(files_, plan, *result));
    }
    return result;
  }

  FileSystem* const files_;
  const SegmentChain* const chain_;
  const EndNote* const note_;
  const bool make_durable_;
  DamageList* const damages_;
  const TransactionVisitor* const visit_;
  const std::function<Status(int thread)>* const batch_end_;
  std::vector<SegmentResult> results_;
};

LogEnd FindEnd(const SegmentChain& chain, const std::vector<SegmentResult>& results) {
  LogEnd end;
  end.has_header = !chain.plans.empty() && chain.plans.back().segment == chain.last_segment;
  end.segment = chain.last_segment;
  end.offset = kSegmentHeaderBytes;
  for (size_t i = 0; i < results.size(); ++i) {
    const SegmentHeader& header = chain.plans[i].header;
    // A new run begins with the epoch that was recovered, even if an older run closed more.
    if (header.run != end.run) end.recovered_epoch = header.recovered_epoch;
    end.run = header.run;
    end.run_identity = header.run_identity;
    end.recovered_epoch = std::max({end.recovered_epoch, header.closed_epoch, results[i].closed_epoch});
    end.last_epoch = std::max({end.last_epoch, header.closed_epoch, results[i].last_epoch});
    end.next_batch = results[i].next_batch;
    if (chain.plans[i].segment == chain.last_segment) end.offset = results[i].end_offset;
  }
  return end;
}

void AddToRuns(const SegmentHeader& header, uint64_t closed_epoch, std::vector<LogRun>* runs) {
  if (runs->empty() || runs->back().number != header.run) {
    if (!runs->empty()) runs->back().closed = header.recovered_epoch > runs->back().recovered_epoch;
    runs->push_back({.number = header.run, .identity = header.run_identity, .recovered_epoch = header.recovered_epoch});
  }
  runs->back().closed |= std::max(header.closed_epoch, closed_epoch) > header.recovered_epoch;
}

LogSummary Summarize(const SegmentChain& chain, const std::vector<SegmentResult>& results) {
  LogSummary summary;
  summary.end = FindEnd(chain, results);
  summary.first_segment = chain.first_segment;
  summary.segments = chain.segments;
  for (size_t i = 0; i < results.size(); ++i) {
    const SegmentResult& result = results[i];
    AddToRuns(chain.plans[i].header, result.closed_epoch, &summary.runs);
    summary.batches += result.batches;
    summary.transactions += result.transactions;
    summary.changes += result.changes;
    summary.bytes_read += result.bytes_read;
    if (result.batches != 0) summary.last_batch_wall_nanos = result.last_wall_nanos;
    if (!result.torn) continue;
    summary.torn_tail = true;
    summary.torn_tail_place = absl::StrCat(chain.plans[i].path, " at offset ", result.end_offset);
  }
  return summary;
}

}  // namespace

StatusOr<LogSummary> ReadLog(FileSystem& files, const std::string& directory, const ReadOptions& options,
                             const TransactionVisitor& visit) {
  DamageList damages(options.salvage);
  const StatusOr<LogFacts> facts = FindFacts(files, directory, options.manifest, &damages);
  if (!facts.ok()) return facts.status();
  const EndNote* const note = facts->note.has_value() ? &*facts->note : nullptr;
  const StatusOr<SegmentChain> chain = ReadSegmentChain(files, directory, options, *facts, &damages);
  if (absl::IsNotFound(chain.status())) {
    LogSummary nothing;
    nothing.damages = damages.TakeSorted();
    if (!nothing.damages.empty()) return nothing;
  }
  if (!chain.ok()) return chain.status();
  ParallelScan scan(&files, &*chain, options, &damages, note, &visit);
  const StatusOr<std::vector<SegmentResult>> results = scan.Run(options.threads);
  if (!results.ok()) return results.status();
  LogSummary summary = Summarize(*chain, *results);
  if (note != nullptr) GANNET_RETURN_IF_ERROR(CheckClosed(directory, *note, summary.end, &damages));
  summary.damages = damages.TakeSorted();
  return summary;
}

}  // namespace gannet::log
