#include "index/own_locations.h"

#include <mutex>

#include "base/sometimes.h"

namespace gannet::index {
namespace {

constexpr uint64_t kFirstBytes = 4096;
constexpr int64_t kWrongCounts = 2;  // an entry that was wrong speaks against growth as much as so many for it

}  // namespace

OwnLocations::OwnLocations(uint16_t table, KeyKind kind, rdma::NodeId node, std::byte* memory,
                           std::shared_ptr<LocationBudget> budget)
    : table_(table),
      kind_(kind),
      node_(node),
      memory_(memory),
      hash_(KeyedHash::DrawSeed()),
      budget_(std::move(budget)) {}

OwnLocations::~OwnLocations() {
  delete sets_.load(std::memory_order_acquire);
}

uint64_t OwnLocations::bytes() const {
  const Sets* const sets = sets_.load(std::memory_order_acquire);
  return sets == nullptr ? 0 : sets->bytes();
}

bool OwnLocations::Sets::NoteReplaced(bool was_right) {
  if (!was_right) {
    if (lost_.load(std::memory_order_relaxed) > 0) lost_.fetch_sub(kWrongCounts, std::memory_order_relaxed);
    return false;
  }
  const int64_t lost = lost_.fetch_add(1, std::memory_order_relaxed) + 1;
  return lost > static_cast<int64_t>(places() / 8) && filled_.load(std::memory_order_relaxed) >= places() / 8 * 7;
}

bool OwnLocations::IsRight(const Sets& sets, const Set& set, uint64_t tag, uint32_t number) const {
  const std::byte* const at = memory_ + AddressOf(number).offset();
  const uint64_t state = LoadWord(at);
  if (!IsPresent(state & ~rdma::kLockBit) || LoadMeta(at).table != table_) return false;
  const OwnedKey key = LoadKey(at, kind_);
  const uint64_t hash = HashOf(key.view());
  return LoadWord(at) == state && TagOf(hash) == tag && &sets.Of(hash) == &set;
}

void OwnLocations::Remember(uint64_t hash, rdma::GlobalAddress record, rdma::EpochManager::Participant& participant) {
  if (record.offset() / kLineBytes > UINT32_MAX) return;
  Sets* sets = sets_.load(std::memory_order_acquire);
  if (sets == nullptr) {
    Grow(nullptr, participant);
    sets = sets_.load(std::memory_order_acquire);
    if (sets == nullptr) return;
  }
  const auto number = static_cast<uint32_t>(record.offset() / kLineBytes);
  Set& set = sets->Of(hash);
  const uint64_t tag = TagOf(hash);
  const auto tag_at = [&](int i) {
    return set.tags[static_cast<size_t>(i / kTagsInWord)].load(std::memory_order_relaxed) >> i % kTagsInWord * 8 & 0xff;
  };
  int place = -1;
  for (int i = 0; i < kTags; ++i) {
    const uint64_t other = tag_at(i);
    const uint32_t at = set.records[static_cast<size_t>(i)].load(std::memory_order_relaxed);
    if (other == tag && at == number) return;
    if (other == 0 && place < 0) place = i;
    if (other == tag && !IsRight(*sets, set, tag, at)) {  // it was this key's, perhaps
      place = i;
      break;
    }
  }
  bool grow = false;
  if (place < 0) {
    place = static_cast<int>((hash >> 40) % kTags);
    const bool was_right =
        IsRight(*sets, set, tag_at(place), set.records[static_cast<size_t>(place)].load(std::memory_order_relaxed));
    grow = sets->NoteReplaced(was_right);
  }
  std::atomic<uint64_t>& tags = set.tags[static_cast<size_t>(place / kTagsInWord)];
  const int shift = place % kTagsInWord * 8;
  uint64_t seen = tags.load(std::memory_order_relaxed);
  if ((seen >> shift & 0xff) == 0) sets->NoteFilled();
  // Two threads may mix what they write here. Then a lookup finds another key at the record, or does not look there.
  set.records[static_cast<size_t>(place)].store(number, std::memory_order_relaxed);
  tags.compare_exchange_strong(seen, (seen & ~(uint64_t{0xff} << shift)) | tag << shift, std::memory_order_relaxed);
  if (grow) [[unlikely]]
    Grow(sets, participant);
}

void OwnLocations::Grow(Sets* old, rdma::EpochManager::Participant& participant) {
  const std::unique_lock lock(grow_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || sets_.load(std::memory_order_relaxed) != old) return;
  const uint64_t bytes = old == nullptr ? kFirstBytes : 2 * old->bytes();
  if (!budget_->Take(bytes)) {
    Sometimes<"own locations: the budget is used up">();
    if (old != nullptr) old->NoteNoGrowth();
    return;
  }
  Sometimes<"own locations: the cache grows">();
  sets_.store(new Sets(bytes, budget_), std::memory_order_release);
  if (old != nullptr) participant.RetireWith([old] { delete old; });
}

}  // namespace gannet::index
