// A claim: the state word of a leaf says that one node, the holder, may use its copy of the leaf without a verb (DEX,
// VLDB'24, section 4: a node that is private to a compute server). Everybody else reads the leaf as any leaf.
//
//   state word of a claimed leaf   | lock 0 | absent 0 | node: the holder | channel 127 | version |
//
// A copy is good for as long as three looks succeed (claim_holder.h): at the copy itself, at a word of the holder's
// board, and at the clock. So a change by another node first ends the claim:
//
//   - Only the holder and the owner change a claimed leaf. Other nodes leave a change to the owner.
//   - The owner adds 1 to a word of the holder's board, in the holder's memory. When that has completed, no copy is
//     good any more; then the owner locks the leaf by a CAS that expects the very word of the claim (claim_boards.h).
//   - The holder's threads, before they lock the leaf, see to it that its copy is good for nothing (leaf_channel.h,
//     LeafWatch), and then lock it as any client does. Their change may publish the claim anew, with the next version.
//   - If the owner has lost the holder, it cannot change the board. A copy is good only while the lease of the claim
//     lasts, so the owner waits until that has ended by the holder's clock, too, and then ends all claims of this node.
//
// A claim is a CAS from what was READ to the claim with the next version. So no claim's word ever returns, as no state
// word does: who saw a word, and sees it again, knows that the leaf was the same in between.
//
// The owner's CPU reads its own leaves, and needs no claim. (A client on the owner's node may claim, as any client. If
// the owner then changes the leaf, that publishes a claim for which there is no copy.)
//
// A kept leaf is one that its holder has locked, and does not unlock until its copy is evicted or handed back (DEX,
// section 4: private nodes, and 5.1: dirty pages). Only for loads without transactions (ClaimHolder::set_keeping).
//
//   state word of a kept leaf      | lock 1 | absent 0 | node: the holder | channel 127 | version |
//
//   - The holder's threads read the copy, and change it under its latch. With write-through, each change goes to the
//     owner's memory before it is acknowledged, and the leaf stays locked; with write-back, a copy's changes go there
//     together, when the leaf is unlocked. What was not written back is lost if the holder or its connection is.
//   - The copy is good while the lease of the claim lasts; no word of the board counts, because nobody else can change
//     what is locked. Others wait, as for any lock; but the owner's threads do not (LeafIsKept).
//   - If the owner has lost the holder, it repairs the leaf when it ends the holder's claims, not with the other locks.
//
// docs/models/dex_lease.pml is a model of all this, and leaves out one rule in each of its cases that must fail.
#pragma once

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "index/lock_word.h"
#include "rdma/global_address.h"

namespace gannet::index::shared_leaf {

// No channel has this number.
inline constexpr uint16_t kClaimChannel = 0x7f;

constexpr bool IsClaimed(uint64_t state) {
  return !IsLocked(state) && !IsAbsent(state) && LockOwnerChannel(state) == kClaimChannel;
}
constexpr rdma::NodeId HolderOf(uint64_t claim) {
  return LockOwnerNode(claim);
}
constexpr bool IsClaimedBy(rdma::NodeId node, uint64_t state) {
  return IsClaimed(state) && HolderOf(state) == node;
}
// The word by which `node` claims a leaf that has the unlocked word `state`.
constexpr uint64_t ClaimOf(uint64_t state, rdma::NodeId node) {
  return NextState(state, false) | OwnerBits(node, kClaimChannel);
}
constexpr bool IsKept(uint64_t state) {
  return IsLocked(state) && !rdma::IsLineBusy(state) && LockOwnerChannel(state) == kClaimChannel;
}
constexpr bool IsKeptBy(rdma::NodeId node, uint64_t state) {
  return IsKept(state) && LockOwnerNode(state) == node;
}
// The word by which `node` keeps a leaf that has the unlocked word `state` for everybody else.
constexpr uint64_t KeptOf(uint64_t state, rdma::NodeId node) {
  return Locked(state, OwnerBits(node, kClaimChannel));
}
// The error of an access to a kept leaf that must not wait, because nobody unlocks it for that. Returned to its
// holder's threads if they go by verbs: its cache has the leaf, or will have it, or the leaf is being unlocked.
// Returned to the owner's threads for any kept leaf: only the holder's cache has what the leaf says.
inline Status LeafIsKept(rdma::GlobalAddress leaf, uint64_t state) {
  return absl::FailedPreconditionError(
      absl::StrCat("node ", LockOwnerNode(state), " keeps the leaf at ", leaf.ToString()));
}
inline bool IsLeafKept(const Status& status) {
  return absl::IsFailedPrecondition(status);
}
static_assert(!IsLocked(ClaimOf(1, 5)) && IsClaimedBy(5, ClaimOf(1, 5)) && VersionOf(ClaimOf(1, 5)) == 2);
static_assert(!IsClaimed(KeptOf(ClaimOf(1, 5), 5)) && IsKeptBy(5, KeptOf(ClaimOf(1, 5), 5)));

}  // namespace gannet::index::shared_leaf
