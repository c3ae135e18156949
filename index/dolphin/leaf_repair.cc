#include "index/dolphin/leaf_repair.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/mutant.h"
#include "index/backoff.h"
#include "index/shared_leaf/change/leaf_keys.h"
#include "index/shared_leaf/claim/claim.h"

namespace gannet::index::dolphin {
namespace {

// Stores a line of a leaf whose exclusive side is held: readers meet a busy line, then one with the new number.
void StoreLine(std::byte* line, const SlotLine& content) {
  StoreWord(line, rdma::kLineBusy);
  for (size_t i = 0; i < content.words.size(); ++i) StoreWord(line + (1 + i) * kWordBytes, content.words[i]);
  StoreWord(line, content.number);
}

uint64_t LoadAt(const std::byte* leaf, size_t offset) {
  return LoadWord(leaf + offset);
}

}  // namespace

template <class Keys>
StatusOr<uint64_t> LeafRepair<Keys>::Atomic(rdma::Operation operation) const {
  if (fabric_->capabilities().cpu_coherent_atomics) {
    std::byte* const word = At(operation.remote);
    return operation.verb == rdma::Verb::kFetchAndAdd ? FetchAndAddWord(word, operation.operand)
                                                      : CompareAndSwapWord(word, operation.expected, operation.operand);
  }
  rdma::Channel* const channel = channel_;
  const Status posted = worker_->BlockOn([](rdma::Channel* by, rdma::Operation* one) -> coro::Task<Status> {
    const Status status = co_await by->Post({one, 1});
    co_return status;
  }(channel, &operation));
  if (!posted.ok()) return posted;
  return operation.result;
}

template <class Keys>
Status LeafRepair<Keys>::StoreState(rdma::GlobalAddress leaf, uint64_t state) const {
  const uint64_t before = LoadWord(At(leaf));
  const StatusOr<uint64_t> found = Atomic(rdma::Operation::CompareAndSwap(leaf, before, state));
  if (!found.ok() || *found == before) return found.status();
  return absl::DataLossError(absl::StrCat("the state of the leaf at ", leaf.ToString(), " is ", absl::Hex(*found),
                                          " and not ", absl::Hex(before), ": a client has changed it"));
}

template <class Keys>
bool LeafRepair<Keys>::IsLockedBy(rdma::NodeId node, uint64_t state) const {
  return IsLocked(state) && !rdma::IsLineBusy(state) && LockOwnerNode(state) == node;
}

template <class Keys>
bool LeafRepair<Keys>::Drain(rdma::GlobalAddress leaf) const {
  Patience patience(patience_nanos_);
  do {
    uint64_t holders = LoadAt(At(leaf), kHoldersOffset);
    for (int id = 0; id < fabric_->num_nodes(); ++id) {
      const auto node = static_cast<rdma::NodeId>(id);
      if (!fabric_->Alive(node)) holders &= ~HolderBit(node);
    }
    if (holders == 0) return true;
  } while (patience.Pause());
  return false;
}

template <class Keys>
uint64_t LeafRepair<Keys>::NextVersion(rdma::GlobalAddress leaf) const {
  uint64_t version = VersionOf(LoadWord(At(leaf)));
  for (size_t line = 1; line < schema_->leaf_bytes() / kLineBytes; ++line) {
    const uint64_t number = LoadWord(At(leaf) + line * kLineBytes);
    if (!rdma::IsLineBusy(number)) version = std::max(version, VersionOf(number));
  }
  return VersionOf(version + 1);
}

template <class Keys>
typename Keys::Leaf LeafRepair<Keys>::Load(rdma::GlobalAddress leaf) const {
  Leaf content{};
  for (size_t at = 0; at < schema_->leaf_bytes(); at += kWordBytes) {
    const uint64_t word = LoadAt(At(leaf), at);
    std::memcpy(reinterpret_cast<std::byte*>(&content) + at, &word, kWordBytes);
  }
  content.SetShape(schema_->shape_lines());
  return content;
}

// The head is one line, and a change writes it once: it has the range from before the change, or that from after it.
template <class Keys>
bool LeafRepair<Keys>::Peek(rdma::NodeId client, rdma::GlobalAddress leaf, typename Keys::Image* image) const {
  if (!blocks_->MayHave(leaf)) return false;
  const uint64_t state = LoadWord(At(leaf));
  if (!IsLocked(state) || rdma::IsLineBusy(state)) return false;
  const rdma::NodeId holder = LockOwnerNode(state);
  if (holder != client && (holder >= fabric_->num_nodes() || fabric_->Alive(holder))) return false;
  *image = Keys::View(Load(leaf));
  return true;
}

template <class Keys>
typename Keys::Leaf LeafRepair<Keys>::WhatStays(rdma::GlobalAddress leaf) const {
  Leaf content = Load(leaf);
  uint64_t stay = content.used();
  if constexpr (Keys::kKeysElsewhere) {
    shared_leaf::LeafCopyOf<Keys> place{.address = leaf, .image = Keys::View(content)};
    shared_leaf::LoadOwnKeys(*blocks_, *schema_, &place, stay);
    stay = place.keys.known;
  }
  for (int slot = 0; slot < content.slots(); ++slot) {
    if ((stay >> slot & 1) == 0) content.Clear(slot);
  }
  content.head.number = rdma::VersionWord(NextVersion(leaf));
  return content;
}

// The head comes last but for the state word. Only its number is new: the change either has its range or not.
template <class Keys>
Status LeafRepair<Keys>::MakeWhole(rdma::GlobalAddress leaf, const Leaf& content) const {
  std::byte* const at = At(leaf);
  if (GANNET_MUTANT(kOnlyUnlocks)) {
    const uint64_t number = LoadAt(at, kLineBytes);
    return StoreState(leaf, UnlockedState(NextState(LoadWord(at), false), number));
  }
  const uint64_t number = content.head.number;
  for (size_t i = 0; i < content.LinesIn(Part::kWhole); ++i) {
    StoreLine(at + (2 + i) * kLineBytes, {.number = number, .words = content.lines[i].words});
  }
  StoreWord(at + kLineBytes, number);
  return StoreState(leaf, StateOfNumber(VersionOf(number)));
}

// This takes the exclusive side like a client, in the name of the owner.
template <class Keys>
StatusOr<bool> LeafRepair<Keys>::MendReserved(rdma::GlobalAddress leaf) const {
  std::byte* const at = At(leaf);
  const uint64_t name = OwnerBits(channel_->node(), shared_leaf::kClaimChannel);
  Patience patience(patience_nanos_);
  uint64_t state;
  for (;;) {
    state = LoadWord(at);
    if (IsAbsent(state)) return true;
    if (!IsLocked(state)) {
      const StatusOr<uint64_t> found = Atomic(rdma::Operation::CompareAndSwap(leaf, state, Locked(state, name)));
      if (!found.ok()) return found.status();
      if (*found == state) break;
    } else if (!rdma::IsLineBusy(state) && !fabric_->Alive(LockOwnerNode(state))) {
      return true;  // its own repair does this
    }
    if (!patience.Pause()) return false;
  }
  // The generation is that of the number, and both stay.
  const uint64_t number = LoadAt(at, kLineBytes);
  const bool is_alone = Drain(leaf);
  if constexpr (!Keys::kKeysElsewhere) {
    for (int slot = 0; is_alone && slot < schema_->slots(); ++slot) {
      std::byte* const word = at + KeyOffset(slot);
      if (IsReservedWord(LoadWord(word))) StoreWord(word, kGone);
    }
  }
  // Others who are still inside may raise the word at any time.
  for (uint64_t locked = LoadWord(at);;) {
    const uint64_t next = is_alone ? NextState(locked, false) : locked;
    const StatusOr<uint64_t> found = Atomic(rdma::Operation::CompareAndSwap(leaf, locked, UnlockedState(next, number)));
    if (!found.ok()) return found.status();
    if (*found == locked) return is_alone;
    locked = *found;
  }
}

template <class Keys>
Status LeafRepair<Keys>::RepairAfter(rdma::NodeId client, const ForEachLinked& for_each_linked) {
  absl::flat_hash_set<uint64_t> linked;
  const Status walked = for_each_linked([&linked](rdma::GlobalAddress leaf) { linked.insert(leaf.offset()); });
  const auto is_linked = [&](rdma::GlobalAddress at) { return !walked.ok() || linked.contains(at.offset()); };
  std::vector<rdma::GlobalAddress> touched;
  std::vector<rdma::GlobalAddress> locked;
  std::vector<rdma::GlobalAddress> all;
  blocks_->ForEach([&all](rdma::GlobalAddress at) { all.push_back(at); });
  for (const rdma::GlobalAddress at : all) {
    const uint64_t holders = LoadAt(At(at), kHoldersOffset);
    if ((holders & HolderBit(client)) != 0) {
      touched.push_back(at);
      const uint64_t bits = GANNET_MUTANT(kClearsAllBits) ? holders : HolderBit(client);
      GANNET_RETURN_IF_ERROR(Atomic(rdma::Operation::FetchAndAdd(at + kHoldersOffset, ~bits + 1)).status());
    }
    if (IsLockedBy(client, LoadWord(At(at)))) locked.push_back(at);
  }
  for (const rdma::GlobalAddress at : locked) {
    if (!is_linked(at)) GANNET_RETURN_IF_ERROR(StoreState(at, NextVersion(at) | kAbsentBit));
  }
  size_t left = 0;
  std::vector<std::pair<rdma::GlobalAddress, Leaf>> whole;
  for (const rdma::GlobalAddress at : locked) {
    if (!is_linked(at)) continue;
    if (Drain(at)) {
      whole.emplace_back(at, WhatStays(at));
    } else {
      ++left;
    }
  }
  if (left == 0 || !Keys::kKeysElsewhere) {
    for (const auto& [at, content] : whole) GANNET_RETURN_IF_ERROR(MakeWhole(at, content));
  } else {
    left += whole.size();
  }
  for (const rdma::GlobalAddress at : touched) {
    if (GANNET_MUTANT(kReservedStay) || IsLockedBy(client, LoadWord(At(at)))) continue;
    const StatusOr<bool> mended = MendReserved(at);
    if (!mended.ok()) return mended.status();
    left += *mended ? 0 : 1;
  }
  blocks_->Sweep(client, is_linked);
  if (left == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(left, " leaves stay in use; repair them again later"));
}

template class LeafRepair<IntegerKeys>;
template class LeafRepair<ByteKeys>;

}  // namespace gannet::index::dolphin
