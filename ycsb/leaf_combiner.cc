#include "ycsb/leaf_combiner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "index/backoff.h"
#include "index/shared_leaf/leaf/leaf_draft.h"
#include "index/shared_leaf/leaf/leaf_split.h"
#include "index/shared_leaf/leaf/posting.h"

namespace gannet::ycsb {

using index::Change;
using index::Patience;
using index::VersionOf;
using index::WordChange;
using index::shared_leaf::FreeBlock;
using index::shared_leaf::LeafLook;
using index::shared_leaf::Posting;
using index::shared_leaf::Spread;
using Keys = index::shared_leaf::IntegerKeys;

namespace {

// Leaves to which one insert comes: the caches of clients are wrong about it, or it is split again and again.
constexpr int kMostTurns = 16;
// Blocks for a split are there before the lock is taken, for so many more entries than wait by then.
constexpr size_t kMayCome = 8;
constexpr size_t kMostNewLeaves = 4;  // of one split
// Inserts of one batch.
constexpr size_t kMostTogether = 96;

// The leaf has the key of an update, or lacks that of an insert.
bool Fits(const index::shared_leaf::LeafImage& image, const LeafCombiner::Entry& entry, bool is_update) {
  return (FindSlot(image, entry.key) >= 0) == is_update;
}

}  // namespace

coro::Task<StatusOr<rdma::GlobalAddress>> LeafCombiner::QueueFor(Request* request) {
  if (request->leaf.has_value()) co_return *request->leaf;
  const auto& key = request->entry.key;
  const rdma::GlobalAddress expected = index_->ExpectLeaf(key);
  if (expected.node() == leaves_->owner() && expected.offset() != 0 && expected.offset() % kLineBytes == 0) {
    co_return expected;
  }
  const Status located = co_await index_->LocateLeaf(key, &request->place);
  if (!located.ok()) co_return located;
  request->leaf = request->place.address;
  co_return *request->leaf;
}

coro::Task<StatusOr<bool>> LeafCombiner::ReadPlace(rdma::GlobalAddress leaf, Request* own) {
  LeafCopy* const place = &own->place;
  const auto& key = own->entry.key;
  place->address = leaf;
  const StatusOr<LeafLook> look = co_await index_->ReadExpected(key, leaf, own->turns == 0, &place->image);
  // A wrong address is what a stale or hostile hint may have.
  if (!look.ok() && !absl::IsInvalidArgument(look.status())) co_return look.status();
  if (look.ok() && *look == LeafLook::kWhole && place->image.level() == 0) {
    own->leaf = leaf;
    if (place->image.Covers(key)) co_return true;
    if (!Keys::BeginsBehind(place->image, Keys::At(key)) &&
        index_->NoteSplit(Keys::ChildEntry(Keys::NextLow(place->image), place->image.right())) &&
        index_->ExpectLeaf(key) != leaf) {
      co_return false;
    }
  }
  const Status located = co_await index_->LocateLeaf(key, place);
  if (!located.ok()) co_return located;
  own->leaf = place->address;
  co_return true;
}

void LeafCombiner::SendOthersAway(LeafQueues::Leader* lead, const LeafCopy& place) {
  lead->SendAway([&place](const LeafQueues::Waiter& waiter) {
    return place.image.Covers(static_cast<const Request&>(waiter).entry.key);
  });
}

coro::Task<StatusOr<std::optional<Change>>> LeafCombiner::Make(Entry entry, bool is_update) {
  Request request(worker_, entry, is_update);
  for (; request.turns < kMostTurns; ++request.turns) {
    const StatusOr<rdma::GlobalAddress> leaf = co_await QueueFor(&request);
    if (!leaf.ok()) co_return leaf.status();
    const LeafQueues::Turn turn = co_await queues_->Enter(*leaf, &request);
    Step step = Step::kDone;
    if (turn == LeafQueues::Turn::kAgain) {
      request.leaf.reset();
      step = Step::kAgain;
    } else if (turn == LeafQueues::Turn::kLeads) {
      LeafQueues::Leader lead(queues_, *leaf);
      const StatusOr<Step> led = co_await MakeAll(&lead, &request);
      if (!led.ok()) request.status = led.status();
      step = led.value_or(Step::kDone);
    }
    // The owner is to change what belongs to a leaf that another machine has claimed.
    if (index::shared_leaf::IsClaimedElsewhere(request.status)) break;
    if (!request.status.ok()) co_return request.status;
    if (step == Step::kAlone) break;
    if (step == Step::kDone) co_return std::optional<Change>(std::move(request.change));
  }
  co_return std::optional<Change>();
}

coro::Task<StatusOr<LeafCombiner::Step>> LeafCombiner::MakeAll(LeafQueues::Leader* lead, Request* own) {
  LeafCopy* const place = &own->place;
  const auto hand = [place](LeafQueues::Waiter& waiter) {
    auto& next = static_cast<Request&>(waiter);
    next.place.address = place->address;
    next.place.image = place->image;
    next.leaf = place->address;
  };
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    // What was handed on may be the image of a leaf that does not cover this key.
    if (own->leaf != lead->leaf() || !place->image.Covers(own->entry.key)) {
      const StatusOr<bool> read = co_await ReadPlace(lead->leaf(), own);
      if (!read.ok()) co_return read.status();
      if (!*read) {
        // All go on to the right of this leaf together, but those whose keys it covers: none waits until another one
        // has found its leaf.
        SendOthersAway(lead, *place);
        lead->Pass(hand);
        own->leaf.reset();
        co_return Step::kAgain;
      }
      if (own->leaf != lead->leaf()) co_return Step::kAgain;
    }
    const size_t waiting = lead->waiting();
    if (waiting > 0) {
      if (!Keys::IsLast(place->image)) {
        index_->NoteSplit(Keys::ChildEntry(Keys::NextLow(place->image), place->image.right()));
      }
      SendOthersAway(lead, *place);
    }
    std::vector<FreeBlock> blocks;
    for (size_t wanted = own->is_update ? 0 : LeavesFor(*place, waiting); blocks.size() < wanted;) {
      // It may take a call, so it comes before the lock.
      const StatusOr<FreeBlock> block = co_await blocks_->Take(/*connection=*/0);
      if (!block.ok() && blocks.empty()) co_return block.status();
      if (!block.ok()) break;
      if (!blocks.empty() && block->connection != blocks[0].connection) {
        for (const FreeBlock& other : blocks) blocks_->PutBack(other);
        blocks.clear();
      }
      blocks.push_back(*block);
    }
    const bool has_room = own->is_update || index_->RoomIn(*place) > 0 || !blocks.empty();
    if (!has_room || !Fits(place->image, own->entry, own->is_update)) {
      for (const FreeBlock& block : blocks) blocks_->PutBack(block);
      lead->Pass(hand);
      co_return Step::kAlone;
    }
    Draft draft(place->address, place->image, leaves_->owner_bits());
    const StatusOr<bool> locked = co_await leaves_->Lock(draft, blocks.empty() ? 0 : blocks[0].connection);
    if (locked.ok() && *locked) {
      Splits splits;
      const StatusOr<bool> done = co_await ChangeLocked(lead, own, &draft, blocks, &splits);
      if (!done.ok()) co_return done.status();
      const Step step = *done ? Step::kDone : Step::kAgain;
      if (!*done) own->leaf.reset();
      place->image = draft.image();
      if (splits.rights.empty()) {
        lead->Pass(hand);
      } else {
        lead->Disperse();  // most of them belong to the new leaves now
        co_await index_->editor().PublishSplit(0, std::move(splits.rights), splits.hint);
        co_await blocks_->Refill();
      }
      co_return step;
    }
    for (const FreeBlock& block : blocks) blocks_->PutBack(block);
    if (!locked.ok()) co_return locked.status();
    own->leaf.reset();
    if (!patience.Pause()) {
      co_return absl::UnavailableError(
          absl::StrCat("the leaf at ", place->address.ToString(), " stays locked, or changes all the time; try again"));
    }
  }
}

// The changes of one batch, with the leader's own as the first. The others are answered when this goes, also if the
// leader's coroutine is destroyed while it waits for the posting.
struct LeafCombiner::Batch {
  Batch(LeafQueues::Leader* of, Request* own) : lead(of), leader(own) {
    all.push_back({own->entry, own->is_update});
    lead->Take(kMostTogether, [this](const LeafQueues::Waiter& waiter) {
      const auto& request = static_cast<const Request&>(waiter);
      all.push_back({request.entry, request.is_update});
    });
  }
  ~Batch() {
    if (all[0].is_made) leader->change = std::move(all[0].change);
    lead->Answer([this](size_t number, LeafQueues::Waiter& waiter) -> std::optional<LeafQueues::Turn> {
      Write& one = all[number + 1];
      if (one.waits_again) return std::nullopt;
      if (!one.is_made) return LeafQueues::Turn::kAgain;
      auto& request = static_cast<Request&>(waiter);
      request.status = outcome;
      request.change = std::move(one.change);
      return LeafQueues::Turn::kAnswered;
    });
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  struct Write {
    Entry entry;
    bool is_update = false;
    bool is_made = false;
    bool waits_again = false;
    Change change{};
  };

  LeafQueues::Leader* lead;
  Request* leader;
  std::vector<Write> all;
  Status outcome = absl::UnavailableError("the client that was making this change has been stopped");
};

size_t LeafCombiner::LeavesFor(const LeafCopy& place, size_t waiting) const {
  if (!index_->MaySplit(place)) return 0;
  const size_t used = static_cast<size_t>(place.image.count<Entry>());
  return std::min((used + waiting + kMayCome) / Keys::kSlots, kMostNewLeaves);
}

coro::Task<StatusOr<bool>> LeafCombiner::ChangeLocked(LeafQueues::Leader* lead, Request* own, Draft* draft,
                                                      std::span<const FreeBlock> blocks, Splits* splits) {
  using Write = Batch::Write;
  constexpr size_t kSlots = Keys::kSlots;
  const LeafCopy& place = own->place;
  SendOthersAway(lead, place);  // which have come while the lock was taken
  Batch batch(lead, own);
  // Those that the leaf covers and does not have, by their keys. Of equal keys the first remains, of which the leader's
  // is one.
  std::vector<Write*> fit;
  for (Write& one : batch.all) {
    if (!one.is_update && place.image.Covers(one.entry.key) && Fits(place.image, one.entry, false)) fit.push_back(&one);
  }
  const auto key = [](const Write* one) -> decltype(auto) { return one->entry.key; };
  std::ranges::stable_sort(fit, {}, key);
  fit.erase(std::ranges::unique(fit, {}, key).begin(), fit.end());

  const auto used = static_cast<size_t>(place.image.count<Entry>());
  const size_t room = index_->RoomIn(place);
  const bool is_split = !blocks.empty() && fit.size() > room && used + std::min(fit.size(), kSlots) > kSlots;
  // Takes as many as there is room for, from the first one on; the leader's is among them.
  const size_t most = is_split ? (1 + blocks.size()) * kSlots - used : room;
  if (fit.size() > most) {
    // fit.size(): the leader updates a value.
    const auto leader = static_cast<size_t>(std::ranges::find(fit, batch.all.data()) - fit.begin());
    const bool is_last = leader < fit.size() && leader >= most;
    const auto first = fit.begin() + static_cast<ptrdiff_t>(is_last ? leader + 1 - most : 0);
    for (Write* const one : fit) one->waits_again = true;
    fit = {first, first + static_cast<ptrdiff_t>(most)};
    for (Write* const one : fit) one->waits_again = false;
  }

  Posting posting;
  std::vector<Write*> added;
  const uint64_t before = draft->unlocked();
  Change of_new_leaves;
  if (is_split) {
    std::vector<Entry> entries;
    for (const Write* const one : fit) entries.push_back(one->entry);
    std::vector<Draft> fresh;
    for (const FreeBlock& block : blocks) {
      fresh.emplace_back(block.address, block.word, place.image.level(), leaves_->owner_bits());
    }
    draft->SkipVersions(entries.size() - 1);
    const Spread spread = AppendSpread(place.image, entries, draft, fresh, &posting);
    added.assign(fit.begin(), fit.begin() + static_cast<ptrdiff_t>(spread.added));
    for (size_t i = spread.added; i < fit.size(); ++i) fit[i]->waits_again = true;
    for (size_t i = 0; i < spread.leaves; ++i) {
      splits->rights.push_back(Keys::ChildEntry(Keys::LowOf(fresh[i].image()), blocks[i].address));
      // This is not AddCreated, for the reason in LeafChanger::Split.
      of_new_leaves.AddChanged(blocks[i].address, blocks[i].word, fresh[i].unlocked());
    }
  }
  for (size_t i = splits->rights.size(); i < blocks.size(); ++i) blocks_->PutBack(blocks[i]);
  for (Write& one : batch.all) {
    if (!one.is_update || !place.image.Covers(one.entry.key) || !Fits(place.image, one.entry, true)) continue;
    one.waits_again = !splits->rights.empty();
    if (one.waits_again) continue;
    draft->Replace(FindSlot(place.image, one.entry.key), one.entry);  // the last one of a key stays
    one.is_made = true;
  }
  if (splits->rights.empty()) {
    for (Write* const one : fit) {
      if (draft->Add(one->entry) >= 0) added.push_back(one);
    }
    if (!added.empty()) draft->SkipVersions(added.size() - 1);
    draft->AppendChange(&posting);
  }
  // Each has a version of its own; the last one has those that remain.
  for (size_t i = 0; i < added.size(); ++i) {
    added[i]->is_made = true;
    const uint64_t after = i + 1 == added.size() ? draft->unlocked() : VersionOf(before + i + 1);
    added[i]->change.AddChanged(place.address, VersionOf(before + i), after);
  }
  for (const WordChange& word : of_new_leaves.words()) added[0]->change.AddChanged(word.word, word.before, word.after);

  if (!splits->rights.empty()) splits->hint = index_->editor().HintOf(splits->rights);
  if (splits->hint.has_value()) posting.Add(*splits->hint);
  batch.outcome = co_await leaves_->Commit(draft->address(), &posting);
  if (!batch.outcome.ok()) co_return batch.outcome;
  if (splits->hint.has_value()) splits->hint = posting.operations().back();
  for (const Entry& right : splits->rights) index_->NoteSplit(right);
  co_return batch.all[0].is_made;
}

}  // namespace gannet::ycsb
