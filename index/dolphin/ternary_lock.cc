#include "index/dolphin/ternary_lock.h"

#include <array>
#include <span>
#include <utility>

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

TernaryLock::TernaryLock(shared_leaf::LeafChannel* leaves, size_t key_lines, HolderBook* book)
    : leaves_(leaves), key_lines_(key_lines), book_(book), bit_(HolderBit(leaves->channel()->node())) {
  GANNET_CHECK(leaves->channel()->node() < 64, "node %d has no bit", leaves->channel()->node());
  GANNET_CHECK(key_lines > 0 && key_lines <= kMostKeyLines, "leaves of %d key lines", key_lines);
}

coro::Task<StatusOr<LeafLook>> TernaryLock::Read(rdma::GlobalAddress leaf, For use, LeafImage* image) {
  GANNET_CO_RETURN_IF_ERROR(leaves_->CheckAddress(leaf));
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    std::array<rdma::Operation, 2> reads = {rdma::Operation::FetchAndAdd(leaf, 0), ReadOf(leaf, Part::kWhole, image)};
    const std::span<rdma::Operation> posted = use == For::kWitness ? std::span(reads) : std::span(reads).subspan(1);
    const Status status = co_await leaves_->channel()->Post(posted);
    GANNET_CO_RETURN_IF_ERROR(status);
    if (use == For::kWitness && !GANNET_MUTANT(kStateInRead)) image->lock.state = reads[0].result;
    const LeafLook look = LookAtLeaf(image, key_lines_, Part::kWhole);
    if (look == LeafLook::kWhole || look == LeafLook::kDead) co_return look;
    leaves_->channel()->CountRetry();
    if (!patience.Pause()) {
      co_return absl::UnavailableError(absl::StrCat("the leaf at ", leaf.ToString(), " stays locked by node ",
                                                    LockOwnerNode(image->lock.state), "; try again"));
    }
  }
}

coro::Task<StatusOr<LeafLook>> TernaryLock::Enter(rdma::GlobalAddress leaf, Part part, Stay* stay) {
  GANNET_CO_RETURN_IF_ERROR(leaves_->CheckAddress(leaf));
  stay->leaf = leaf;
  stay->connection = leaves_->Connection();
  if (!book_->Enter(leaf, stay->connection)) {
    SometimesInTests<"dolphin: a coroutine waits for another one of its node">();
    co_return LeafLook::kLocked;
  }
  std::array<rdma::Operation, 2> operations = {rdma::Operation::FetchAndAdd(leaf + kHoldersOffset, bit_),
                                               ReadOf(leaf, part, &stay->image)};
  if (GANNET_MUTANT(kLookFirst)) std::swap(operations[0], operations[1]);
  for (rdma::Operation& operation : operations) operation.connection = stay->connection;
  const Status status = co_await leaves_->channel()->Post(operations);
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
  const LeafLook look = LookAtLeaf(&stay->image, key_lines_, part);
  if (look == LeafLook::kWhole) co_return look;
  SometimesInTests<"dolphin: a client turns back from a leaf">();
  const Status back = co_await TurnBack(*stay);
  GANNET_CO_RETURN_IF_ERROR(back);
  co_return look;
}

coro::Task<Status> TernaryLock::TurnBack(const Stay& stay) {
  const StatusOr<Left> left = co_await Leave(stay, {});
  co_return left.status();
}

coro::Task<StatusOr<std::optional<uint64_t>>> TernaryLock::Reserve(const Stay& stay, int slot, uint64_t key_word) {
  const uint64_t reserved = GANNET_MUTANT(kNoReservation) ? key_word : key_word | kReservedBit;
  rdma::Operation cas[] = {rdma::Operation::CompareAndSwap(stay.leaf + KeyOffset(slot), 0, reserved)};
  cas[0].connection = stay.connection;
  const Status status = co_await leaves_->channel()->Post(cas);
  if (status.ok()) co_return std::optional<uint64_t>(cas[0].result);
  if (!IsUnknownOutcome(status)) co_return status;
  co_return std::optional<uint64_t>();
}

coro::Task<StatusOr<TernaryLock::Left>> TernaryLock::Leave(const Stay& stay, const Departure& departure) {
  using Do = Departure::Do;
  const rdma::GlobalAddress key_at = stay.leaf + KeyOffset(departure.slot);
  const rdma::GlobalAddress target_at = stay.leaf + TargetOffset(key_lines_, departure.slot);
  const uint64_t deadline = NowNanos() + leaves_->patience_nanos();
  const bool raises = departure.what != Do::kNothing && departure.what != Do::kUpdate;
  bool with_words = true;
  bool is_known = true;
  Backoff backoff;
  for (;;) {
    // At most: two words, the state word, the bit.
    std::array<rdma::Operation, 4> operations;
    size_t n = 0;
    size_t raise_at = 0;
    const auto leave = [&] { operations[n++] = rdma::Operation::FetchAndAdd(stay.leaf + kHoldersOffset, ~bit_ + 1); };
    const auto raise = [&] {
      raise_at = n;
      operations[n++] = rdma::Operation::FetchAndAdd(stay.leaf, 1);
    };
    if (GANNET_MUTANT(kBitFirst)) leave();
    if (GANNET_MUTANT(kRaiseFirst) && raises) raise();
    if (with_words) {
      switch (departure.what) {
        case Do::kInsert:
          operations[n++] = rdma::Operation::Write(&departure.target, target_at, kWordBytes);
          operations[n++] = rdma::Operation::Write(&departure.key_word, key_at, kWordBytes);
          break;
        case Do::kUpdate:
          operations[n++] = rdma::Operation::Write(&departure.target, target_at, kWordBytes);
          break;
        case Do::kRemove:
          operations[n++] = rdma::Operation::CompareAndSwap(key_at, departure.key_word, kGone);
          break;
        case Do::kReplace:
          operations[n++] = rdma::Operation::CompareAndSwap(target_at, departure.from, departure.target);
          break;
        case Do::kNothing:
          break;
      }
    }
    if (raises && !GANNET_MUTANT(kRaiseFirst)) raise();
    if (!GANNET_MUTANT(kBitFirst)) leave();
    const std::span<rdma::Operation> posting = std::span(operations).first(n);
    for (rdma::Operation& operation : posting) operation.connection = stay.connection;
    const Status status = co_await leaves_->channel()->Post(posting);
    if (status.ok()) {
      book_->Leave(stay.leaf);
      if (!is_known) break;
      Left left;
      if (raises) left.before = UnlockedState(operations[raise_at].result, stay.image.head.number);
      if (departure.what == Do::kRemove || departure.what == Do::kReplace) {
        left.is_done = operations[0].result == operations[0].expected;
      }
      co_return left;
    }
    if (!IsUnknownOutcome(status) || leaves_->IsOver(stay.connection, deadline)) co_return status;
    SometimesInTests<"dolphin: the posting of a client that leaves has failed">();
    backoff.Pause();
    // The bit goes last. As long as it is set, the words may or may not be there.
    const StatusOr<uint64_t> holders = co_await leaves_->ReadWord(stay.leaf + kHoldersOffset, stay.connection);
    if (!holders.ok()) co_return holders.status();
    if ((*holders & bit_) == 0) {
      book_->Leave(stay.leaf);
      // All of it is done. What a CAS has found is not known.
      is_known = is_known && departure.what != Do::kRemove && departure.what != Do::kReplace;
      if (!is_known) break;
      co_return Left();
    }
    if (departure.what == Do::kInsert) {
      // As long as the slot is reserved for this insert, nothing was published, and nobody else changes it.
      const StatusOr<uint64_t> word = co_await leaves_->ReadWord(key_at, stay.connection);
      if (!word.ok()) co_return word.status();
      with_words = *word == (departure.key_word | kReservedBit) || GANNET_MUTANT(kRepeatWords);
    } else if (departure.what != Do::kNothing) {
      // Others may have changed the word since: it is not changed twice.
      with_words = false;
      is_known = false;
    }
  }
  co_return absl::UnavailableError(
      absl::StrCat("it is not known what became of a change of the leaf at ", stay.leaf.ToString()));
}

coro::Task<StatusOr<bool>> TernaryLock::Lock(rdma::GlobalAddress leaf, uint64_t state, uint64_t of_blocks,
                                             LeafImage* image) {
  const uint64_t connection = leaves_->Connection();
  if (of_blocks != 0 && of_blocks != connection) co_return false;
  const shared_leaf::LeafLock lock(leaf, state, leaves_->owner_bits());
  if (!leaves_->NoteLock(lock, connection)) co_return false;
  std::array<rdma::Operation, 3> operations = {lock.Lock(), rdma::Operation::FetchAndAdd(leaf + kHoldersOffset, 0),
                                               ReadOf(leaf, Part::kWhole, image)};
  for (rdma::Operation& operation : operations) operation.connection = connection;
  Status posted = co_await leaves_->channel()->Post(operations);
  bool is_read = posted.ok();
  const StatusOr<bool> taken = co_await leaves_->TakeLock(operations[0], std::move(posted));
  if (!taken.ok() || !*taken) co_return taken;
  const uint64_t deadline = NowNanos() + leaves_->patience_nanos();
  uint64_t locked = operations[0].operand;
  Backoff backoff;
  for (int looks = 1;; ++looks) {
    if (is_read) {
      image->head.shape = key_lines_;
      locked = image->lock.state;
      if (operations[1].result == 0 || GANNET_MUTANT(kNoDrain)) {
        if (IsOfOneNumber(*image, state, Part::kWhole)) co_return true;
        const Status back = co_await Release(leaf, locked, state);
        GANNET_CO_RETURN_IF_ERROR(back);
        co_return DamagedLeaf(leaf);
      }
    }
    if (looks >= kDrainLooks) {
      SometimesInTests<"dolphin: the exclusive side is given back, because others stay">();
      const Status back = co_await Release(leaf, locked, state);
      GANNET_CO_RETURN_IF_ERROR(back);
      co_return false;
    }
    SometimesInTests<"dolphin: the exclusive side waits for those who are inside">();
    backoff.Pause();
    const Status again = co_await leaves_->channel()->Post(std::span(operations).subspan(1));
    // If the lock cannot be given back either, it is left to the repair.
    if (!again.ok() && (!IsUnknownOutcome(again) || leaves_->IsOver(connection, deadline))) co_return again;
    is_read = again.ok();
  }
}

coro::Task<StatusOr<bool>> TernaryLock::LockAsItIs(rdma::GlobalAddress leaf, uint64_t connection, LeafImage* image) {
  GANNET_CO_RETURN_IF_ERROR(leaves_->CheckAddress(leaf));
  const StatusOr<uint64_t> state = co_await leaves_->ReadWord(leaf, connection);
  if (!state.ok()) co_return state.status();
  if (IsLocked(*state) || IsAbsent(*state)) co_return false;
  const StatusOr<bool> locked = co_await Lock(leaf, *state, connection, image);
  co_return locked;
}

coro::Task<Status> TernaryLock::GiveBack(rdma::GlobalAddress leaf, const LeafImage& image) {
  const Status status = co_await Release(leaf, image.lock.state, GenerationOf(image.head.number));
  co_return status;
}

// Nodes that are inside may raise the state word at any time. Then the CAS fails, and is made again.
coro::Task<Status> TernaryLock::Release(rdma::GlobalAddress leaf, uint64_t locked, uint64_t generation_of) {
  const uint64_t connection = leaves_->ConnectionOf(leaf);
  const uint64_t deadline = NowNanos() + leaves_->patience_nanos();
  Backoff backoff;
  for (;;) {
    rdma::Operation cas[] = {rdma::Operation::CompareAndSwap(
        leaf, locked, (locked & (kAbsentBit | kVersionMask)) | (generation_of & kStructureBits))};
    cas[0].connection = connection;
    const Status status = co_await leaves_->channel()->Post(cas);
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

}  // namespace gannet::index::dolphin
