#include "index/dolphin/ternary_lock.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/backoff.h"

namespace gannet::index::dolphin {

using shared_leaf::IsUnknownOutcome;

Status DamagedLeaf(rdma::GlobalAddress leaf) {
  return absl::DataLossError(absl::StrCat("a client has damaged the leaf at ", leaf.ToString()));
}

template <class Keys>
TernaryLock<Keys>::TernaryLock(shared_leaf::LeafChannel* leaves, size_t shape_lines, HolderBook* book,
                               IndexRights rights)
    : leaves_(leaves),
      shape_lines_(shape_lines),
      book_(book),
      rights_(rights),
      bit_(HolderBit(leaves->channel()->node())) {
  GANNET_CHECK(leaves->channel()->node() < 64, "node %d has no bit", leaves->channel()->node());
  GANNET_CHECK(shape_lines > 0 && shape_lines <= Leaf::kMostShapeLines, "leaves of %d lines", shape_lines);
}

template <class Keys>
coro::Task<Status> TernaryLock<Keys>::ReadOnce(std::span<const rdma::GlobalAddress> leaves, For use,
                                               std::span<Leaf> images, std::span<LeafLook> looks) {
  GANNET_CHECK(leaves.size() <= kMostReads, "%d READs of leaves", leaves.size());
  std::array<rdma::Operation, 2 * kMostReads> reads;
  std::array<uint64_t, kMostReads> states;
  const bool reads_states = use == For::kWitness && rights_ == IndexRights::kOwnerOnly;
  const bool adds = use == For::kWitness && !reads_states;
  if (reads_states) {
    for (size_t i = 0; i < leaves.size(); ++i) reads[i] = rdma::Operation::Read(leaves[i], &states[i], kWordBytes);
    const Status status = co_await leaves_->Post(std::span(reads).first(leaves.size()));
    GANNET_CO_RETURN_IF_ERROR(status);
  }
  size_t n = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (adds) reads[n++] = rdma::Operation::FetchAndAdd(leaves[i], 0);
    reads[n++] = ReadOf(leaves[i], Part::kWhole, &images[i]);
  }
  const Status status = co_await leaves_->Post(std::span(reads).first(n));
  GANNET_CO_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!GANNET_MUTANT(kStateInRead)) {
      if (adds) images[i].lock.state = reads[2 * i].result;
      if (reads_states) images[i].lock.state = states[i];
    }
    looks[i] = LookAtLeaf(&images[i], shape_lines_, Part::kWhole);
  }
  co_return absl::OkStatus();
}

template <class Keys>
coro::Task<StatusOr<LeafLook>> TernaryLock<Keys>::Read(rdma::GlobalAddress leaf, For use, Leaf* image) {
  GANNET_CO_RETURN_IF_ERROR(leaves_->CheckAddress(leaf));
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    LeafLook look = LeafLook::kDead;
    const Status status = co_await ReadOnce({&leaf, 1}, use, {image, 1}, {&look, 1});
    GANNET_CO_RETURN_IF_ERROR(status);
    if (look == LeafLook::kWhole || look == LeafLook::kDead) co_return look;
    leaves_->channel()->CountRetry();
    if (!patience.Pause()) {
      co_return absl::UnavailableError(absl::StrCat("the leaf at ", leaf.ToString(), " stays locked by node ",
                                                    LockOwnerNode(image->lock.state), "; try again"));
    }
  }
}

template <class Keys>
coro::Task<StatusOr<LeafLook>> TernaryLock<Keys>::Enter(rdma::GlobalAddress leaf, Part part, Stay* stay) {
  GANNET_CO_RETURN_IF_ERROR(leaves_->CheckAddress(leaf));
  stay->leaf = leaf;
  stay->connection = leaves_->Connection();
  if (!book_->Enter(leaf, stay->connection)) {
    Sometimes<"dolphin: a coroutine waits for another one of its node">();
    co_return LeafLook::kLocked;
  }
  std::array<rdma::Operation, 2> operations = {rdma::Operation::FetchAndAdd(leaf + kHoldersOffset, bit_),
                                               ReadOf(leaf, part, &stay->image)};
  if (GANNET_MUTANT(kLookFirst)) std::swap(operations[0], operations[1]);
  for (rdma::Operation& operation : operations) operation.connection = stay->connection;
  const Status status = co_await leaves_->Post(operations);
  if (!status.ok() && !IsUnknownOutcome(status)) {
    book_->Leave(leaf);
    co_return status;
  }
  if (!status.ok()) {
    // If this fails, too, the stay is left to the repair, and the book keeps it for this connection.
    const StatusOr<uint64_t> holders = co_await leaves_->ReadWord(leaf + kHoldersOffset, stay->connection);
    if (!holders.ok()) co_return holders.status();
    if ((*holders & bit_) == 0) {
      book_->Leave(leaf);
      co_return LeafLook::kTorn;
    }
    const Status back = co_await TurnBack(*stay);
    GANNET_CO_RETURN_IF_ERROR(back);
    co_return LeafLook::kTorn;
  }
  const LeafLook look = LookAtLeaf(&stay->image, shape_lines_, part);
  if (look == LeafLook::kWhole) co_return look;
  Sometimes<"dolphin: a client turns back from a leaf">();
  const Status back = co_await TurnBack(*stay);
  GANNET_CO_RETURN_IF_ERROR(back);
  co_return look;
}

template <class Keys>
coro::Task<Status> TernaryLock<Keys>::TurnBack(const Stay& stay) {
  const StatusOr<Left> left = co_await Leave(stay, {});
  co_return left.status();
}

template <class Keys>
coro::Task<Status> TernaryLock<Keys>::Reserve(const Stay& stay,
                                              std::span<Reservation> reservations) requires(!Keys::kKeysElsewhere) {
  absl::InlinedVector<rdma::Operation, 1> operations;
  for (const Reservation& one : reservations) {
    const uint64_t reserved = GANNET_MUTANT(kNoReservation) ? one.key_word : one.key_word | kReservedBit;
    operations.push_back(rdma::Operation::CompareAndSwap(stay.leaf + stay.image.key_offset(one.slot), 0, reserved));
    operations.back().connection = stay.connection;
  }
  const Status status = co_await leaves_->Post({operations.data(), operations.size()});
  if (!status.ok() && !IsUnknownOutcome(status)) co_return status;
  for (size_t i = 0; status.ok() && i < operations.size(); ++i) reservations[i].found = operations[i].result;
  co_return absl::OkStatus();
}

template <class Keys>
coro::Task<StatusOr<typename TernaryLock<Keys>::Left>> TernaryLock<Keys>::Leave(const Stay& stay,
                                                                                std::span<const Departure> departures) {
  using Do = typename Departure::Do;
  const uint64_t deadline = NowNanos() + leaves_->patience_nanos();
  const Departure* const cas = departures.size() == 1 && departures[0].is_cas() ? departures.data() : nullptr;
  const bool raises = std::ranges::any_of(departures, [](const Departure& one) { return one.what != Do::kUpdate; });
  absl::InlinedVector<bool, 4> with_words(departures.size(), true);
  Fate fate = Fate::kNone;  // of a CAS that an earlier posting made, or made perhaps; of values that it wrote perhaps
  if (GANNET_MUTANT(kRaiseFirst) && raises) {
    rdma::Operation early[] = {rdma::Operation::FetchAndAdd(stay.leaf, 1)};
    const Status raised = co_await leaves_->channel()->Post(early);
    GANNET_CO_RETURN_IF_ERROR(raised);
  }
  Backoff backoff;
  for (;;) {
    // Of one change at most: two words, the state word, the bit.
    absl::InlinedVector<rdma::Operation, 4> operations;
    size_t raise_at = 0;
    const auto leave = [&] {
      operations.push_back(rdma::Operation::FetchAndAdd(stay.leaf + kHoldersOffset, ~bit_ + 1));
    };
    const auto write = [&](const uint64_t& word, size_t at) {
      operations.push_back(rdma::Operation::Write(&word, stay.leaf + at, kWordBytes));
    };
    if (GANNET_MUTANT(kBitFirst)) leave();
    const size_t cas_at = operations.size();
    for (size_t i = 0; i < departures.size(); ++i) {
      const Departure& one = departures[i];
      if (!with_words[i]) continue;
      if (one.is_cas()) {
        operations.push_back(rdma::Operation::CompareAndSwap(stay.leaf + one.at, one.expected, one.word));
        continue;
      }
      write(one.word, one.at);
      if (one.what == Do::kFill) write(one.key_word, one.key_at);
    }
    if (raises && !GANNET_MUTANT(kRaiseFirst)) {
      raise_at = operations.size();
      operations.push_back(rdma::Operation::FetchAndAdd(stay.leaf, 1));
    }
    if (!GANNET_MUTANT(kBitFirst)) leave();
    for (rdma::Operation& operation : operations) operation.connection = stay.connection;
    const Status status = co_await leaves_->Post({operations.data(), operations.size()});
    if (status.ok()) {
      book_->Leave(stay.leaf);
      if (fate == Fate::kUnknown) co_return Left{.is_known = false};
      Left left;
      if (raises) left.before = UnlockedState(operations[raise_at].result, stay.image.head.number);
      left.is_done =
          cas != nullptr && with_words[0] ? operations[cas_at].result == cas->expected : fate != Fate::kRefused;
      co_return left;
    }
    if (!IsUnknownOutcome(status) || leaves_->IsOver(stay.connection, deadline)) co_return status;
    Sometimes<"dolphin: the posting of a client that leaves has failed">();
    backoff.Pause();
    // The bit goes last. As long as it is set, the words may or may not be there.
    const StatusOr<uint64_t> holders = co_await leaves_->ReadWord(stay.leaf + kHoldersOffset, stay.connection);
    if (!holders.ok()) co_return holders.status();
    const bool is_inside = (*holders & bit_) != 0;
    if (!is_inside) book_->Leave(stay.leaf);  // all of it is done
    const auto is_update = [](const Departure& one) { return one.what == Do::kUpdate; };
    if (cas != nullptr && cas->what == Do::kInsert && fate == Fate::kNone) {
      const StatusOr<Fate> found = co_await FateOf(stay, *cas, is_inside);
      if (!found.ok()) co_return found.status();
      fate = *found;
    } else if ((cas != nullptr && cas->what == Do::kSwap) ||
               (is_inside && std::ranges::any_of(departures, is_update))) {
      // It is not known what the CAS has found, or whether a value was written. Others may have changed the word since:
      // it is not changed twice.
      fate = Fate::kUnknown;
    }
    if (!is_inside) {
      co_return Left{.is_done = fate != Fate::kRefused, .is_known = fate != Fate::kUnknown};
    }
    for (size_t i = 0; i < departures.size(); ++i) {
      const Departure& one = departures[i];
      if (one.what == Do::kFill) {
        // As long as the slot is reserved for this insert, nothing was published, and nobody else changes it.
        const StatusOr<uint64_t> word = co_await leaves_->ReadWord(stay.leaf + one.key_at, stay.connection);
        if (!word.ok()) co_return word.status();
        with_words[i] = *word == (one.key_word | kReservedBit) || GANNET_MUTANT(kRepeatWords);
      } else if (one.what != Do::kVoid) {  // nobody else changes a slot that is void
        with_words[i] = one.is_cas() && fate == Fate::kNone;
      }
    }
  }
}

// As long as this node is inside, its slot goes from free to an entry, to entries with the same tag that replace it, to
// removed, and is not freed. So a free slot shows that the CAS had no effect, and an entry with another tag that it
// found the slot in use. A removed one, or another entry with the same tag, may have been this one before.
template <class Keys>
coro::Task<StatusOr<typename TernaryLock<Keys>::Fate>> TernaryLock<Keys>::FateOf(const Stay& stay,
                                                                                 const Departure& insert,
                                                                                 bool is_inside) {
  const StatusOr<uint64_t> word = co_await leaves_->ReadWord(stay.leaf + insert.at, stay.connection);
  if (!word.ok()) co_return word.status();
  if (is_inside && (*word == insert.expected || GANNET_MUTANT(kRepeatWords))) co_return Fate::kNone;
  // The record is that of this insert: wherever its entry is, the CAS has put it there.
  if (*word == insert.word) {
    SometimesInTests<"dolphin: an insert whose posting has failed finds its entry">();
    co_return Fate::kDone;
  }
  const bool has_other_tag = *word != kGone && TaggedEntry{*word}.tag() != TaggedEntry{insert.word}.tag();
  co_return is_inside&& has_other_tag ? Fate::kRefused : Fate::kUnknown;
}

template <class Keys>
coro::Task<StatusOr<bool>> TernaryLock<Keys>::Lock(rdma::GlobalAddress leaf, uint64_t state, uint64_t of_blocks,
                                                   Leaf* image) {
  const uint64_t connection = leaves_->Connection();
  if (of_blocks != 0 && of_blocks != connection) co_return false;
  const shared_leaf::LeafLock lock(leaf, state, leaves_->owner_bits());
  if (!leaves_->NoteLock(lock, connection)) co_return false;
  std::array<rdma::Operation, 3> operations = {lock.Lock(), rdma::Operation::FetchAndAdd(leaf + kHoldersOffset, 0),
                                               ReadOf(leaf, Part::kWhole, image)};
  for (rdma::Operation& operation : operations) operation.connection = connection;
  Status posted = co_await leaves_->Post(operations);
  bool is_read = posted.ok();
  const StatusOr<bool> taken = co_await leaves_->TakeLock(operations[0], std::move(posted));
  if (!taken.ok() || !*taken) co_return taken;
  const uint64_t deadline = NowNanos() + leaves_->patience_nanos();
  uint64_t locked = operations[0].operand;
  Backoff backoff;
  for (int looks = 1;; ++looks) {
    if (is_read) {
      image->SetShape(shape_lines_);
      locked = image->lock.state;
      if (operations[1].result == 0 || GANNET_MUTANT(kNoDrain)) {
        if (IsOfOneNumber(*image, state, Part::kWhole)) co_return true;
        const Status back = co_await Release(leaf, locked, state);
        GANNET_CO_RETURN_IF_ERROR(back);
        co_return DamagedLeaf(leaf);
      }
    }
    if (looks >= kDrainLooks) {
      Sometimes<"dolphin: the exclusive side is given back, because others stay">();
      const Status back = co_await Release(leaf, locked, state);
      GANNET_CO_RETURN_IF_ERROR(back);
      co_return false;
    }
    Sometimes<"dolphin: the exclusive side waits for those who are inside">();
    backoff.Pause();
    const Status again = co_await leaves_->Post(std::span(operations).subspan(1));
    // If the lock cannot be given back either, it is left to the repair.
    if (!again.ok() && (!IsUnknownOutcome(again) || leaves_->IsOver(connection, deadline))) co_return again;
    is_read = again.ok();
  }
}

template <class Keys>
void TernaryLock<Keys>::AppendLock(const shared_leaf::LeafLock& lock, uint64_t connection, Leaf* image,
                                   std::vector<rdma::Operation>* operations) const {
  for (rdma::Operation operation : {lock.Lock(), rdma::Operation::FetchAndAdd(lock.address() + kHoldersOffset, 0),
                                    ReadOf(lock.address(), Part::kWhole, image)}) {
    operation.connection = connection;
    operations->push_back(operation);
  }
}

template <class Keys>
bool TernaryLock<Keys>::IsAlone(const shared_leaf::LeafLock& lock, uint64_t found, Leaf* image) const {
  image->SetShape(shape_lines_);
  return found == 0 && IsOfOneNumber(*image, lock.unlocked(), Part::kWhole);
}

template <class Keys>
coro::Task<StatusOr<bool>> TernaryLock<Keys>::LockAsItIs(rdma::GlobalAddress leaf, uint64_t connection, Leaf* image) {
  GANNET_CO_RETURN_IF_ERROR(leaves_->CheckAddress(leaf));
  const StatusOr<uint64_t> state = co_await leaves_->ReadWord(leaf, connection);
  if (!state.ok()) co_return state.status();
  if (IsLocked(*state) || IsAbsent(*state)) co_return false;
  const StatusOr<bool> locked = co_await Lock(leaf, *state, connection, image);
  co_return locked;
}

template <class Keys>
coro::Task<Status> TernaryLock<Keys>::GiveBack(rdma::GlobalAddress leaf, const Leaf& image) {
  const Status status = co_await Release(leaf, image.lock.state, GenerationOf(image.head.number));
  co_return status;
}

// Nodes that are inside may raise the state word at any time. Then the CAS fails, and is made again.
template <class Keys>
coro::Task<Status> TernaryLock<Keys>::Release(rdma::GlobalAddress leaf, uint64_t locked, uint64_t generation_of) {
  const uint64_t connection = leaves_->ConnectionOf(leaf);
  const uint64_t deadline = NowNanos() + leaves_->patience_nanos();
  Backoff backoff;
  for (;;) {
    rdma::Operation cas[] = {rdma::Operation::CompareAndSwap(
        leaf, locked, (locked & (kAbsentBit | kVersionMask)) | (generation_of & kStructureBits))};
    cas[0].connection = connection;
    const Status status = co_await leaves_->Post(cas);
    StatusOr<uint64_t> found = cas[0].result;
    if (!status.ok()) {
      if (!IsUnknownOutcome(status) || leaves_->IsOver(connection, deadline)) co_return status;
      found = co_await leaves_->ReadWord(leaf, connection);
      if (!found.ok()) co_return found.status();
    } else if (*found == locked) {
      break;
    }
    if (!leaves_->IsOurs(*found)) break;  // an earlier CAS has released it
    locked = *found;
    backoff.Pause();
  }
  leaves_->NoteReleased(leaf);
  co_return absl::OkStatus();
}

template class TernaryLock<IntegerKeys>;
template class TernaryLock<ByteKeys>;

}  // namespace gannet::index::dolphin
