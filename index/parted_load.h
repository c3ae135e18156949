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
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

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

// Destroyed without a successful Finish, it leaves the index empty and gives back all memory that it took.
class PartedLoad {
 public:
  virtual ~PartedLoad() = default;

  // At most the number that was asked for, and at most one for each leaf; 0 if there are no entries.
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
