#include "index/xstore/client/cached_model.h"

#include <algorithm>

#include "index/xstore/model/sub_model_line.h"

namespace gannet::index::xstore {

void CachedModel::Reset(uint64_t generation, TopModel top, std::vector<uint32_t> directory) {
  generation_ = generation;
  top_ = std::move(top);
  directory_ = std::move(directory);
  DropAllTables();
  // Assigning {} would keep their memory, which counts.
  tables_ = std::vector<uint64_t>();
  slots_ = std::vector<Slot>();
  mode_ = options_.mode;
  // If not all sub-models fit, none is kept.
  if (top_.sub_models() * sizeof(Slot) + bytes() > options_.max_bytes) mode_ = XCacheMode::kTopOnly;
  if (mode_ != XCacheMode::kTopOnly) slots_ = std::vector<Slot>(top_.sub_models());
}

uint64_t CachedModel::LineOffset(uint32_t sub_model) const {
  return (uint64_t{directory_[sub_model / kLinesPerBlock]} + sub_model % kLinesPerBlock) * kLineBytes;
}

SubModel CachedModel::ModelOf(const Slot& slot) {
  return {.slope = slot.slope,
          .intercept = slot.intercept,
          .under = slot.under,
          .over = slot.over,
          .spread = static_cast<uint8_t>(slot.spread),
          .size = slot.size};
}

bool CachedModel::FindModel(uint32_t sub_model, SubModel* model, uint32_t* table) const {
  if (mode_ != XCacheMode::kModelOnly || slots_[sub_model].size == 0) return false;
  *model = ModelOf(slots_[sub_model]);
  *table = slots_[sub_model].table;
  return true;
}

bool CachedModel::FindTable(uint32_t sub_model, SubModel* model, std::span<const uint64_t>* table) const {
  if (mode_ != XCacheMode::kWhole || slots_[sub_model].size == 0) return false;
  *model = ModelOf(slots_[sub_model]);
  const size_t at = slots_[sub_model].table;
  if (Header header = HeaderAt(at - 1); header.used == 0) {
    header.used = 1;
    SetHeader(at - 1, header);
  }
  *table = std::span<const uint64_t>(tables_).subspan(at, slots_[sub_model].size);
  return true;
}

void CachedModel::Store(uint32_t sub_model, const SubModel& model, uint32_t table) {
  Slot& slot = slots_[sub_model];
  slot.slope = model.slope;
  slot.intercept = model.intercept;
  slot.under = model.under;
  slot.over = model.over;
  slot.spread = model.spread;
  slot.size = model.size & 0xffffff;
  slot.table = table;
}

void CachedModel::PutModel(uint32_t sub_model, const SubModel& model, uint32_t table) {
  if (mode_ == XCacheMode::kModelOnly) Store(sub_model, model, table);
}

void CachedModel::PutTable(uint32_t sub_model, const SubModel& model, std::span<const uint64_t> table) {
  if (mode_ != XCacheMode::kWhole || table.size() != model.size) return;
  Slot& slot = slots_[sub_model];
  if (slot.size != model.size) {
    FreeTable(slot);
    uint32_t at = 0;
    if (!AllocateTable(sub_model, model.size, &at)) return;
    slot.table = at;
  }
  Store(sub_model, model, slot.table);
  std::copy(table.begin(), table.end(), tables_.begin() + slot.table);
}

void CachedModel::FreeTable(Slot& slot) {
  if (slot.size == 0) return;
  Header header = HeaderAt(slot.table - 1);
  header.sub_model = kFree;
  SetHeader(slot.table - 1, header);
  slot.size = 0;
}

bool CachedModel::AllocateTable(uint32_t sub_model, uint32_t size, uint32_t* at) {
  const size_t words = size_t{1} + size;
  size_t place = tables_end_;
  if (tables_.size() - tables_end_ >= words || GrowTables(words)) {
    tables_end_ += words;
  } else {
    if (words > tables_.size()) return false;
    place = MakePlace(words);
  }
  SetHeader(place, {.words = static_cast<uint32_t>(words), .sub_model = sub_model, .used = 1});
  *at = static_cast<uint32_t>(place + 1);
  return true;
}

// Grows by a sixteenth at a time, because reserved memory counts as cache, too.
bool CachedModel::GrowTables(size_t words) {
  const size_t wanted = tables_.size() + std::max<size_t>({words, tables_.size() / 16, 64});
  const uint64_t others = bytes() - tables_.size() * sizeof(uint64_t);
  const size_t allowed = others > options_.max_bytes ? 0 : (options_.max_bytes - others) / sizeof(uint64_t);
  const size_t target = std::min({wanted, allowed, size_t{UINT32_MAX}});
  if (target < tables_end_ + words) return false;
  tables_.reserve(target);
  tables_.resize(target);
  return true;
}

// Drops tables until a place of `words` words is free, and returns it. tables_ is at least as long. The hand needs at
// most three rounds: after the first, no table is marked as used.
size_t CachedModel::MakePlace(size_t words) {
  if (tables_end_ < tables_.size()) {
    SetHeader(tables_end_, {.words = static_cast<uint32_t>(tables_.size() - tables_end_)});
    tables_end_ = tables_.size();
  }
  size_t begin = hand_;  // of the free place before the hand
  while (hand_ - begin < words) {
    if (hand_ == tables_end_) begin = hand_ = 0;
    Header header = HeaderAt(hand_);
    const size_t next = hand_ + header.words;
    if (header.sub_model != kFree && header.used != 0) {
      header.used = 0;
      SetHeader(hand_, header);
      begin = next;
    } else if (header.sub_model != kFree) {
      slots_[header.sub_model].size = 0;
    }
    hand_ = next;
    if (begin != hand_) SetHeader(begin, {.words = static_cast<uint32_t>(hand_ - begin)});
  }
  if (hand_ - begin > words) {
    SetHeader(begin + words, {.words = static_cast<uint32_t>(hand_ - begin - words)});
    hand_ = begin + words;
  }
  return begin;
}

void CachedModel::DropAllTables() {
  if (mode_ == XCacheMode::kWhole) {
    for (Slot& slot : slots_) slot.size = 0;
  }
  tables_end_ = hand_ = 0;
}

uint64_t CachedModel::bytes() const {
  return top_.bytes() + directory_.capacity() * sizeof(uint32_t) + slots_.capacity() * sizeof(Slot) +
         tables_.capacity() * sizeof(uint64_t);
}

}  // namespace gannet::index::xstore
