#include "log/log_reader.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "log/damage.h"
#include "log/file/aligned_buffer.h"
#include "log/segment_chain.h"
#include "log/segment_scanner.h"
#include "rdma/base/thread.h"

namespace gannet::log {

namespace {

// What was read of the last segment may be in the page cache, or the disk's, only. To sync it is not enough: perhaps
// its writer did that, it failed, and the writer died before it could go to another segment. After a failed sync the
// bytes may be there to read and count as written, and be gone with the power. So they are written again. One batch is
// durable before the next is begun: it is the last one only. Whoever else does the same writes the same bytes. (Nobody
// gives the segment another use meanwhile: before a checkpoint is complete, all nodes must have recovered.)
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

// Scans the segments of a chain with several threads; the first error ends them all.
class ParallelScan {
 public:
  ParallelScan(FileSystem* files, const SegmentChain* chain, const ReadOptions& options, DamageList* damages,
               const TransactionVisitor* visit)
      : files_(files),
        chain_(chain),
        make_durable_(options.make_durable),
        damages_(damages),
        visit_(visit),
        results_(chain->plans.size()) {}

  StatusOr<std::vector<SegmentResult>> Run(int threads) {
    const int useful = std::clamp<int>(threads, 1, std::max<int>(1, static_cast<int>(results_.size())));
    std::vector<Thread> others;
    for (int thread = 1; thread < useful; ++thread) others.emplace_back("log reader", [this, thread] { Work(thread); });
    Work(0);
    for (Thread& other : others) other.join();
    if (!status_.ok()) return status_;
    return std::move(results_);
  }

 private:
  void Work(int thread) {
    while (!stop_.load(std::memory_order_relaxed)) {
      const size_t next = next_.fetch_add(1, std::memory_order_relaxed);
      if (next >= results_.size()) return;
      StatusOr<SegmentResult> result = Scan(chain_->plans[next], thread);
      if (result.ok()) {
        results_[next] = *result;
        continue;
      }
      stop_.store(true, std::memory_order_relaxed);
      const std::lock_guard lock(mutex_);
      if (status_.ok()) status_ = result.status();
    }
  }

  StatusOr<SegmentResult> Scan(const SegmentPlan& plan, int thread) {
    StatusOr<std::unique_ptr<File>> file = files_->Open(plan.path, OpenMode::kRead);
    if (!file.ok()) return file.status();
    SegmentScanner scanner(&plan, file->get(), damages_, thread, visit_);
    StatusOr<SegmentResult> result = scanner.Scan();
    if (result.ok() && plan.last && make_durable_) {
      GANNET_RETURN_IF_ERROR((*file)->Sync());
      GANNET_RETURN_IF_ERROR(WriteLastBatchAgain(files_, plan, *result));
    }
    return result;
  }

  FileSystem* const files_;
  const SegmentChain* const chain_;
  const bool make_durable_;
  DamageList* const damages_;
  const TransactionVisitor* const visit_;
  std::vector<SegmentResult> results_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  Status status_;
};

LogEnd FindEnd(const SegmentChain& chain, const std::vector<SegmentResult>& results) {
  LogEnd end;
  end.segment = chain.last_segment;
  end.offset = kSegmentHeaderBytes;
  for (size_t i = 0; i < results.size(); ++i) {
    const SegmentHeader& header = chain.plans[i].header;
    // A new run begins with what was recovered, however much more an older one closed.
    if (header.run != end.run) end.recovered_epoch = header.recovered_epoch;
    end.run = header.run;
    end.recovered_epoch = std::max({end.recovered_epoch, header.closed_epoch, results[i].closed_epoch});
    end.last_epoch = std::max({end.last_epoch, header.closed_epoch, results[i].last_epoch});
    end.next_batch = results[i].next_batch;
    if (chain.plans[i].segment == chain.last_segment) end.offset = results[i].end_offset;
  }
  return end;
}

LogSummary Summarize(const SegmentChain& chain, const std::vector<SegmentResult>& results) {
  LogSummary summary;
  summary.end = FindEnd(chain, results);
  summary.first_segment = chain.first_segment;
  summary.segments = chain.segments;
  for (size_t i = 0; i < results.size(); ++i) {
    const SegmentResult& result = results[i];
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
  const StatusOr<SegmentChain> chain = ReadSegmentChain(files, directory, options, &damages);
  if (!chain.ok()) return chain.status();
  ParallelScan scan(&files, &*chain, options, &damages, &visit);
  const StatusOr<std::vector<SegmentResult>> results = scan.Run(options.threads);
  if (!results.ok()) return results.status();
  LogSummary summary = Summarize(*chain, *results);
  summary.damages = damages.TakeSorted();
  return summary;
}

}  // namespace gannet::log
