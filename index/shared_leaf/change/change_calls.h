// The calls by which clients have the owner of an index of shared leaves change it: if only the owner may
// (IndexRights::kOwnerOnly), or if another node has claimed the leaf (claim/claim.h). By the last, a node to whose
// range a leaf belongs has the claim of another one ended.
//
//   kCallInsert    index (2), key, record (8)    -> change
//   kCallRemove    the same                      -> change
//   kCallReplace   index (2), key, from (8; 0: any record), to (8)   -> nothing
//   kEndClaims     index (2), of each leaf: address (8), word (8)    -> of each leaf: word (8)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/time/time.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/service.h"
#include "rdma/fabric.h"

namespace gannet::index::shared_leaf {

inline constexpr rdma::MethodId kCallInsert = kBlockMethods + 1;
inline constexpr rdma::MethodId kCallRemove = kBlockMethods + 2;
inline constexpr rdma::MethodId kCallReplace = kBlockMethods + 3;
inline constexpr rdma::MethodId kEndClaims = kBlockMethods + 5;

inline constexpr size_t kMostClaims = 64;  // of one call

// Serves the clients of all indexes of `service` that are BlockLenders. Before Node::Serve; once is enough.
void RegisterChangeCalls(IndexService* service);

// A client's side. As the functions of RemoteIndex, with the errors of calls. Not thread-safe; coroutines of the
// channel's worker may use it at once.
class ChangeCalls {
 public:
  // `channel` must outlive this.
  ChangeCalls(rdma::Channel* channel, rdma::NodeId owner, IndexId index, absl::Duration timeout)
      : channel_(channel), owner_(owner), index_(index), timeout_(timeout) {}

  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record) { return Call(kCallInsert, key, record); }
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record) { return Call(kCallRemove, key, record); }
  coro::Task<Status> Replace(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to);
  // BlockLender::EndClaims. At most kMostClaims. If it fails, claims may have been ended.
  coro::Task<Status> EndClaims(std::span<WordChange> claims);

 private:
  coro::Task<StatusOr<Change>> Call(rdma::MethodId method, Key key, rdma::GlobalAddress record);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  IndexId index_;
  absl::Duration timeout_;
};

}  // namespace gannet::index::shared_leaf
