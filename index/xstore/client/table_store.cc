#include "index/xstore/client/table_store.h"

#include <algorithm>
#include <utility>

namespace gannet::index::xstore {

std::optional<uint32_t> TableStore::Allocate(uint32_t sub_model, uint32_t entries, Evict evict) {
  const uint32_t words = entries + 1;
  uint32_t place = 0;
  if (room() >= words || Grow(words)) {
    place = PlaceOf(chunks_.size() - 1, end_);
    end_ += words;
  } else {
    if (words > largest_) return std::nullopt;
    CloseLast();
    place = MakePlace(words, evict);
  }
  SetHeader(place, {.words = words, .sub_model = sub_model});
  return place + 1;
}

void TableStore::Free(uint32_t place) {
  Header header = HeaderAt(place - 1);
  header.sub_model = kFree;
  SetHeader(place - 1, header);
}

// The room that is left in the last chunk becomes a free place.
void TableStore::CloseLast() {
  if (room() > 0) SetHeader(PlaceOf(chunks_.size() - 1, end_), {.words = room()});
  if (!chunks_.empty()) end_ = chunks_.back().words;
}

// Adds a chunk with at least `words` words. The store grows by a sixteenth at a time, because reserved memory counts as
// cache, too.
bool TableStore::Grow(uint32_t words) {
  const uint64_t used = bytes() + kChunkBytes;
  const uint64_t allowed = used > max_bytes_ ? 0 : (max_bytes_ - used) / kWordBytes;
  const uint64_t wanted = std::max<uint64_t>({words, bytes() / kWordBytes / 16, kLeastChunkWords});
  const auto size = static_cast<uint32_t>(std::min<uint64_t>({wanted, allowed, kMostChunkWords}));
  if (size < words || chunks_.size() == kMostChunks) return false;
  CloseLast();
  chunks_.push_back({std::make_unique_for_overwrite<uint64_t[]>(size), size});
  Publish(chunks_.back().memory.get());
  end_ = 0;
  largest_ = std::max(largest_, size);
  bytes_.store(bytes() + size * kWordBytes + kChunkBytes, std::memory_order_relaxed);
  return true;
}

// A reader gets the place of a table in this chunk only later, so it finds the entry of the directory written.
void TableStore::Publish(uint64_t* chunk) {
  const size_t n = chunks_.size() - 1;
  if (n == directory_size_) {
    directory_size_ = std::max<size_t>(2, 2 * n);
    auto longer = std::make_unique<uint64_t*[]>(directory_size_);
    if (n > 0) std::copy_n(directories_.back().get(), n, longer.get());
    directories_.push_back(std::move(longer));
  }
  directories_.back()[n] = chunk;
  directory_.store(directories_.back().get(), std::memory_order_release);
}

// Drops tables until a place of `words` words is free, and returns it. A chunk is at least as long. After the first
// round tables are marked as used only if readers have used them since; from the third round on, all tables go. So the
// hand needs at most five rounds.
uint32_t TableStore::MakePlace(uint32_t words, Evict evict) {
  uint32_t begin = hand_;  // of the free place before the hand
  for (int rounds = 0; hand_ - begin < words;) {
    if (hand_ == chunks_[hand_chunk_].words) {
      hand_chunk_ = (hand_chunk_ + 1) % chunks_.size();
      rounds += hand_chunk_ == 0 ? 1 : 0;
      begin = hand_ = 0;
    }
    const Header header = HeaderAt(PlaceOf(hand_chunk_, hand_));
    hand_ += header.words;
    if (header.sub_model == kFree || evict(header.sub_model, rounds > 2)) {
      SetHeader(PlaceOf(hand_chunk_, begin), {.words = hand_ - begin});
    } else {
      begin = hand_;
    }
  }
  if (hand_ - begin > words) {
    SetHeader(PlaceOf(hand_chunk_, begin + words), {.words = hand_ - begin - words});
    hand_ = begin + words;
  }
  return PlaceOf(hand_chunk_, begin);
}

}  // namespace gannet::index::xstore
