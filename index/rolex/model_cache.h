// ModelCache: a client's way to the models that the clients of its process have cached (shared_models.h). What is
// missing there, or old, it fetches from the owner, by verbs. Not thread-safe; coroutines of the channel's worker may
// use it at once.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/rolex/directory.h"
#include "index/rolex/editor.h"
#include "index/rolex/shared_models.h"
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

  ModelCache(rdma::Channel* channel, rdma::NodeId owner, IndexId id, absl::Duration call_timeout,
             std::shared_ptr<SharedModels> models)
      : channel_(channel),
        owner_(owner),
        id_(id),
        call_timeout_(call_timeout),
        models_(std::move(models)),
        view_(models_.get()) {}

  // By what is cached; false if the model for `key` is not.
  bool Find(uint64_t key, Lead* lead) const;
  // Appends the leaves from the one for `key` on, in the direction of a scan, as far as the model is cached; at most
  // `most`.
  void FindRun(uint64_t key, bool reverse, size_t most, std::vector<rdma::GlobalAddress>* leaves) const;

  coro::Task<StatusOr<rdma::GlobalAddress>> LeadTo(uint64_t key, int attempt) override;
  void NoteLeaf(const Synonym& leaf) override;
  coro::Task<StatusOr<rdma::GlobalAddress>> SynonymsFor(uint64_t key) override;
  rdma::GlobalAddress queue() const override;

  bool knows_directory() const;
  uint64_t bytes() const { return models_->bytes(); }

 private:
  using Reading = SharedModels::Reading;
  using Changing = SharedModels::Changing;

  std::shared_ptr<KnownModel> ModelFor(uint64_t key) const;
  coro::Task<Status> Describe();
  coro::Task<Status> FetchTop();
  coro::Task<StatusOr<std::vector<DirectoryEntry>>> FetchPage(uint64_t pointer);
  // The model for `key`, through the directory as it is now. `old`: generation of the one that is known to be retired;
  // 0 if none is.
  coro::Task<Status> FetchModel(uint64_t key, uint64_t old);
  // Brings the model for `key` and its synonyms up to date.
  coro::Task<Status> Refresh(uint64_t key);
  coro::Task<Status> FetchSynonyms(std::shared_ptr<KnownModel> known, uint64_t used);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  IndexId id_;
  absl::Duration call_timeout_;
  const std::shared_ptr<SharedModels> models_;
  mutable SharedModels::View view_;
};

}  // namespace gannet::index::rolex
