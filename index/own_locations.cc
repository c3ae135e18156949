#include "index/own_locations.h"

#include <algorithm>
#include <bit>
#include <mutex>

namespace gannet::index {
namespace {

constexpr uint64_t kLeastBytes = 4096;
constexpr uint64_t kUsuallyFilled = 9;  // places of a set
constexpr int64_t kWrongCounts = 2;     // an entry that was wrong speaks against growth as much as so many for it

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
  for (const std::atomic<Sets*>& part : parts_) delete part.load(std::memory_order_acquire);
}

uint64_t OwnLocations::bytes() const {
  uint64_t bytes = 0;
  for (const std::atomic<Sets*>& part : parts_) {
    if (const Sets* const sets = part.load(std::memory_order_acquire)) bytes += sets->bytes();
  }
  return bytes;
}

bool OwnLocations::Sets::NoteReplaced(bool was_right) {
  if (!was_right) {
    if (lost_.load(std::memory_order_relaxed) > 0) lost_.fetch_sub(kWrongCounts, std::memory_order_relaxed);
    return false;
  }
  const int64_t lost = lost_.fetch_add(1, std::memory_order_relaxed) + 1;
  return lost > static_cast<int64_t>(places() / 8) && filled() >= places() / 8 * 7;
}

// Threads may lose counts here, or look twice.
void OwnLocations::NoteSampled(bool held) {
  constexpr int64_t kLookAfter = 64;
  const int64_t followed = followed_.load(std::memory_order_relaxed) + 1;
  followed_.store(followed, std::memory_order_relaxed);
  if (followed <= 0) return;
  if (held) held_.store(held_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (followed < kLookAfter) return;
  const bool for_all = 2 * held_.load(std::memory_order_relaxed) >= followed;
  if (for_all != for_all_.load(std::memory_order_relaxed)) for_all_.store(for_all, std::memory_order_relaxed);
  followed_.store(0, std::memory_order_relaxed);
  held_.store(0, std::memory_order_relaxed);
}

bool OwnLocations::IsRight(const Sets& sets, const Set& set, uint64_t tag, uint32_t number) const {
  const std::byte* const at = memory_ + AddressOf(number).offset();
  const uint64_t state = LoadWord(at);
  if (!IsPresent(state & ~rdma::kLockBit) || LoadMeta(at).table != table_) return false;
  const OwnedKey key = LoadKey(at, kind_);
  const uint64_t hash = HashOf(key.view());
  return LoadWord(at) == state && TagOf(hash) == tag && PartOf(hash).load(std::memory_order_relaxed) == &sets &&
         &sets.Of(hash) == &set;
}

void OwnLocations::Remember(uint64_t hash, rdma::GlobalAddress record, rdma::EpochManager::Participant& participant) {
  if (!IsFor(hash) || record.offset() / kLineBytes > UINT32_MAX) return;
  std::atomic<Sets*>& part = PartOf(hash);
  Sets* sets = part.load(std::memory_order_acquire);
  if (sets == nullptr) {
    Grow(&part, nullptr, participant);
    sets = part.load(std::memory_order_acquire);
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
    Grow(&part, sets, participant);
}

// All other keys get the room that the sample takes now, times kSampledOf.
uint64_t OwnLocations::FirstBytesOf(const std::atomic<Sets*>& part) const {
  const Sets* const sample = parts_[1].load(std::memory_order_acquire);
  if (&part == &parts_[1] || sample == nullptr) return kLeastBytes;
  const uint64_t sets = sample->filled() * kSampledOf / kUsuallyFilled + 1;
  return std::max(kLeastBytes, std::bit_ceil(sets) * sizeof(Set));
}

void OwnLocations::Grow(std::atomic<Sets*>* part, Sets* old, rdma::EpochManager::Participant& participant) {
  const std::unique_lock lock(grow_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || part->load(std::memory_order_relaxed) != old) return;
  const uint64_t bytes = old == nullptr ? FirstBytesOf(*part) : 2 * old->bytes();
  if (!budget_->Take(bytes)) {
    if (old != nullptr) old->NoteNoGrowth();
    return;
  }
  auto* const sets = new Sets(bytes, budget_);
  part->store(sets, std::memory_order_release);
  if (part == &parts_[1] && old != nullptr) {
    followed_.store(-static_cast<int64_t>(sets->places() / 2), std::memory_order_relaxed);
    held_.store(0, std::memory_order_relaxed);
  }
  if (old != nullptr) participant.RetireWith([old] { delete old; });
}

}  // namespace gannet::index
