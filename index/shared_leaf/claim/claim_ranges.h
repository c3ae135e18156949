// ClaimRanges: which node is to claim, or keep, which leaves of an index (claim.h): the logical partitions of DEX
// (VLDB'24, section 4). The owner of the index has them, in memory. They are advice: a node that goes by older ones, or
// by none, takes more verbs, and nothing else.
//
//   kSetRanges    index (2), ranges   -> nothing
//   kReadRanges   index (2)           -> ranges
//
// Ranges: of each, the first key and the node (2).
//
// An owner that is given other ranges raises a word of each board that it has been told (ClaimBoards::RaiseRanges). A
// client asks for the ranges of an index when it first READs a leaf, and again when it READs one and that word, or the
// connection, is another than before: the owner may have lost what it was given. So a node that claims all that it uses
// does not notice new ranges, until the node that has its leaves now ends these claims (logical repartitioning, 8.3).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"
#include "rdma/fabric.h"
#include "rdma/rpc.h"

namespace gannet::index::shared_leaf {

inline constexpr rdma::MethodId kSetRanges = kBlockMethods + 6;
inline constexpr rdma::MethodId kReadRanges = kBlockMethods + 7;

// InvalidArgument: the ranges do not begin at ascending keys of this kind and of at most `max_key_bytes`, or name a
// node that is none of `nodes`, or one message cannot have them all. `text` writes keys for the message.
Status CheckRanges(const std::vector<ClaimRange>& ranges, KeyKind keys, size_t max_key_bytes, int nodes,
                   const std::function<std::string(const Key&)>& text = &Key::ToString);

// The owner's side, for one index. Thread-safe.
class ClaimRanges {
 public:
  // CheckRanges has found nothing.
  void Set(std::vector<ClaimRange> ranges);
  std::vector<ClaimRange> Get() const;

 private:
  mutable Mutex mutex_;
  std::vector<ClaimRange> ranges_;
};

// The ranges in a message; those that are read go up to its end.
void PutRanges(rdma::WireWriter& writer, const std::vector<ClaimRange>& ranges);
Status GetRanges(rdma::WireReader& reader, std::vector<ClaimRange>* ranges);

// A client's side. `ranges`: CheckRanges has found nothing.
coro::Task<Status> SetRanges(rdma::Channel* channel, rdma::NodeId owner, IndexId index, std::vector<ClaimRange> ranges,
                             absl::Duration timeout);
coro::Task<StatusOr<std::vector<ClaimRange>>> ReadRanges(rdma::Channel* channel, rdma::NodeId owner, IndexId index,
                                                         absl::Duration timeout);

}  // namespace gannet::index::shared_leaf
