// PartedLoad: a bulk load of one large index by several threads.
//
//   PartedLoader* loader = PartedLoader::Of(&index);            null: this kind has only LocalIndex::BulkLoad
//   auto load = loader->BeginLoad(context, LoadRuns(runs), fill, most_parts);
//   (*load)->Build(context, part);        every part once, by any threads at the same time
//   (*load)->Finish(context);             by one thread, after all of them have succeeded
//
// A part is a run of neighbouring leaves. How many there are, and which entries are in which leaf, does not depend on
// the number of parts: the index becomes what LocalIndex::BulkLoad makes of the same entries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "index/index.h"

namespace gannet::index {

// The entries of a load, in key order, in several arrays: the threads that prepared them need not copy them together.
// The arrays belong to the caller. Several threads may read it.
class LoadRuns {
 public:
  explicit LoadRuns(std::span<const LoadEntry> entries) { Add(entries); }
  explicit LoadRuns(const std::vector<std::span<const LoadEntry>>& runs) {
    for (const std::span<const LoadEntry> run : runs) Add(run);
  }

  size_t size() const { return size_; }

  // Access to entries by their number in the whole. Fast for neighbours. One thread.
  class Reader {
   public:
    explicit Reader(const LoadRuns& runs) : runs_(&runs) {}
    const LoadEntry& operator[](size_t i) {
      if (i - begin_ >= run_.size()) Seek(i);  // also if i < begin_
      return run_[i - begin_];
    }

   private:
    void Seek(size_t i) {
      const auto after = std::upper_bound(runs_->begins_.begin(), runs_->begins_.end(), i);
      const auto run = static_cast<size_t>(after - runs_->begins_.begin()) - 1;
      run_ = runs_->runs_[run];
      begin_ = runs_->begins_[run];
    }

    const LoadRuns* runs_;
    std::span<const LoadEntry> run_;
    size_t begin_ = 0;  // number of its first entry
  };

 private:
  void Add(std::span<const LoadEntry> run) {
    if (run.empty()) return;
    runs_.push_back(run);
    begins_.push_back(size_);
    size_ += run.size();
  }

  std::vector<std::span<const LoadEntry>> runs_;  // none is empty
  std::vector<size_t> begins_;                    // the numbers of their first entries
  size_t size_ = 0;
};

// InvalidArgument if `fill` (LocalIndex::BulkLoad) is out of its range.
inline Status CheckFill(double fill) {
  if (fill > 0 && fill <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("fill must be in (0, 1], not ", fill));
}

// Says which entries are in which leaf, and which leaves in which part.
class LoadShape {
 public:
  // `slots`: of a leaf. `runs`: the entries with which runs of leaves begin, in order, the first one with entry 0. Each
  // run has at least one leaf, which is empty if the run has no entries. No runs: all leaves are one, without empty
  // ones.
  LoadShape(const LoadRuns& entries, double fill, int slots, size_t most_parts, std::vector<size_t> runs = {})
      : entries_(entries.size()),
        per_leaf_(std::clamp<size_t>(static_cast<size_t>(std::lround(fill * slots)), 1, static_cast<size_t>(slots))),
        run_begins_(std::move(runs)) {
    const size_t least = run_begins_.empty() ? 0 : 1;
    if (run_begins_.empty()) run_begins_.push_back(0);
    for (size_t run = 0; run < run_begins_.size(); ++run) {
      run_leaves_.push_back(leaves_);
      leaves_ += std::max((EndOfRun(run) - run_begins_[run] + per_leaf_ - 1) / per_leaf_, least);
    }
    parts_ = entries_ == 0 ? 0 : std::min(std::max<size_t>(most_parts, 1), leaves_);
  }

  size_t leaves() const { return leaves_; }
  size_t parts() const { return parts_; }
  size_t FirstLeaf(size_t part) const { return part * leaves_ / parts_; }
  size_t EndLeaf(size_t part) const { return FirstLeaf(part + 1); }
  size_t FirstLeafOfRun(size_t run) const { return run_leaves_[run]; }
  // The entries of a leaf.
  size_t Begin(size_t leaf) const {
    const size_t run = RunOf(leaf);
    return std::min(run_begins_[run] + (leaf - run_leaves_[run]) * per_leaf_, EndOfRun(run));
  }
  size_t End(size_t leaf) const { return std::min(Begin(leaf) + per_leaf_, EndOfRun(RunOf(leaf))); }

  // InvalidArgument if the entries of the part, with the one before, are not in strictly ascending order.
  Status CheckOrder(const LoadRuns& entries, size_t part) const {
    LoadRuns::Reader reader(entries);
    const size_t end = End(EndLeaf(part) - 1);
    for (size_t i = std::max<size_t>(Begin(FirstLeaf(part)), 1); i < end; ++i) {
      const Key before = reader[i - 1].key;
      if (before < reader[i].key) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("entry ", i, " is not above the one before: sort them, each once"));
    }
    return absl::OkStatus();
  }

 private:
  size_t EndOfRun(size_t run) const { return run + 1 < run_begins_.size() ? run_begins_[run + 1] : entries_; }
  // There are few.
  size_t RunOf(size_t leaf) const {
    size_t run = run_leaves_.size() - 1;
    while (run_leaves_[run] > leaf) --run;
    return run;
  }

  size_t entries_;
  size_t per_leaf_;
  std::vector<size_t> run_begins_;  // entries
  std::vector<size_t> run_leaves_;  // the first leaf of each
  size_t leaves_ = 0;
  size_t parts_ = 0;
};

// A load that is destroyed without a successful Finish leaves the index empty and gives back all memory that it took.
class PartedLoad {
 public:
  virtual ~PartedLoad() = default;

  // Number of parts: at most the number that was asked for, and at most one for each leaf; 0 if there are no entries.
  virtual size_t parts() const = 0;
  // Thread-safe for different parts. ResourceExhausted: no memory. InvalidArgument: the entries of the part, with the
  // one before, are not in strictly ascending order.
  virtual Status Build(Context& context, size_t part) = 0;
  virtual Status Finish(Context& context) = 0;

  // All of it, by this thread.
  Status Run(Context& context) {
    for (size_t part = 0; part < parts(); ++part) GANNET_RETURN_IF_ERROR(Build(context, part));
    return Finish(context);
  }
};

// A face of those indexes that can be loaded in parts.
class PartedLoader {
 public:
  virtual ~PartedLoader() = default;

  // Null if `index` can be loaded only by LocalIndex::BulkLoad.
  static PartedLoader* Of(LocalIndex* index) { return dynamic_cast<PartedLoader*>(index); }

  // The index is empty, as for BulkLoad, and nobody changes it until the load has ended. It must outlive the load.
  virtual StatusOr<std::unique_ptr<PartedLoad>> BeginLoad(Context& context, LoadRuns entries, double fill,
                                                          size_t most_parts) = 0;
};

}  // namespace gannet::index
