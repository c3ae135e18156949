// ModelCache: what a client has cached of an owner's directory and models, and of their synonym tables. All of it is a
// hint, so nothing expires; what turns out to be old is fetched again. Not thread-safe; coroutines of the channel's
// worker may use it at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/rolex/directory.h"
#include "index/rolex/editor.h"
#include "index/rolex/model.h"
#include "index/rolex/synonyms.h"
#include "rdma/fabric.h"

namespace gannet::index::rolex {

inline constexpr rdma::MethodId kDescribe = kRolexMethods;  // index (2) -> offsets of the root (8) and the queues (8)

class ModelCache final : public Guide {
 public:
  // Where a lookup begins.
  struct Lead {
    rdma::GlobalAddress leaf;
    int line = LineHint::kUnknown;
  };

  ModelCache(rdma::Channel* channel, rdma::NodeId owner, IndexId id, absl::Duration call_timeout)
      : channel_(channel), owner_(owner), id_(id), call_timeout_(call_timeout) {}

  // By what is cached; false if the model for `key` is not.
  bool Find(uint64_t key, Lead* lead) const;
  // Appends the leaves from the one for `key` on, in the direction of a scan, as far as the model is cached; at most
  // `most`.
  void FindRun(uint64_t key, bool reverse, size_t most, std::vector<rdma::GlobalAddress>* leaves) const;

  coro::Task<StatusOr<rdma::GlobalAddress>> LeadTo(uint64_t key, int attempt) override;
  void NoteLeaf(const Synonym& leaf) override;
  coro::Task<StatusOr<rdma::GlobalAddress>> SynonymsFor(uint64_t key) override;
  rdma::GlobalAddress queue() const override { return {owner_, queue_}; }

  bool knows_directory() const { return !top_.empty(); }
  uint64_t bytes() const;

 private:
  struct Entry {
    Model model;
    uint64_t pointer = 0;  // of the directory, that led to it
    uint64_t used = 0;     // slots of the synonym table that were fetched
    // By low fence: leaves that are not in the model's table.
    absl::btree_map<uint64_t, uint64_t> synonyms;
  };
  using Models = absl::btree_map<uint64_t, std::shared_ptr<Entry>>;

  Entry* FindModel(uint64_t key) const;
  coro::Task<Status> Describe();
  coro::Task<Status> FetchTop();
  coro::Task<StatusOr<std::vector<DirectoryEntry>>> FetchPage(uint64_t pointer);
  // The model for `key`, through the directory as it is now.
  coro::Task<Status> FetchModel(uint64_t key);
  // Brings the model for `key` and its synonyms up to date.
  coro::Task<Status> Refresh(uint64_t key);
  coro::Task<Status> FetchSynonyms(std::shared_ptr<Entry> entry, uint64_t used);
  void Install(Model model, uint64_t pointer);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  IndexId id_;
  absl::Duration call_timeout_;
  uint64_t root_ = 0;
  uint64_t queue_ = 0;
  std::vector<DirectoryEntry> top_;
  std::vector<std::vector<DirectoryEntry>> pages_;  // of top_; empty: not fetched
  Models models_;
  uint64_t bytes_ = 0;
};

}  // namespace gannet::index::rolex
