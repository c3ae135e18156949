#include "index/xstore/client/cached_model.h"

#include <algorithm>

#include "index/xstore/model/sub_model_line.h"

namespace gannet::index::xstore {

void CachedModel::Reset(uint64_t generation, TopModel top, std::vector<uint32_t> directory) {
  generation_ = generation;
  top_ = std::move(top);
  directory_ = std::move(directory);
  DropAllTables();
  tables_ = {};
  slots_ = {};
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
  *table = std::span<const uint64_t>(tables_).subspan(slots_[sub_model].table, slots_[sub_model].size);
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
    if (!AllocateTable(model.size, &at)) return;
    slot.table = at;
  }
  Store(sub_model, model, slot.table);
  std::copy(table.begin(), table.end(), tables_.begin() + slot.table);
}

void CachedModel::FreeTable(Slot& slot) {
  if (slot.size == 0) return;
  holes_[slot.size].push_back(slot.table);
  hole_bytes_ += sizeof(uint32_t);
  slot.size = 0;
}

bool CachedModel::AllocateTable(uint32_t size, uint32_t* at) {
  auto hole = holes_.find(size);
  if (hole == holes_.end() && tables_.size() - tables_used_ < size && !GrowTables(size)) {
    // Full, possibly of holes of other sizes: start again with no tables.
    DropAllTables();
    if (tables_.size() < size) return false;
    hole = holes_.end();
  }
  if (hole != holes_.end()) {
    *at = hole->second.back();
    hole->second.pop_back();
    hole_bytes_ -= sizeof(uint32_t);
    if (hole->second.empty()) holes_.erase(hole);
    return true;
  }
  *at = static_cast<uint32_t>(tables_used_);
  tables_used_ += size;
  return true;
}

// Grows by a sixteenth at a time, because reserved memory counts as cache, too.
bool CachedModel::GrowTables(uint32_t size) {
  const size_t wanted = tables_.size() + std::max<size_t>({size, tables_.size() / 16, 64});
  const uint64_t others = bytes() - tables_.size() * sizeof(uint64_t);
  const size_t allowed = others > options_.max_bytes ? 0 : (options_.max_bytes - others) / sizeof(uint64_t);
  const size_t target = std::min({wanted, allowed, size_t{UINT32_MAX}});
  if (target < tables_used_ + size) return false;
  tables_.reserve(target);
  tables_.resize(target);
  return true;
}

void CachedModel::DropAllTables() {
  if (mode_ == XCacheMode::kWhole) {
    for (Slot& slot : slots_) slot.size = 0;
  }
  tables_used_ = 0;
  holes_.clear();
  hole_bytes_ = 0;
}

uint64_t CachedModel::bytes() const {
  return top_.bytes() + directory_.capacity() * sizeof(uint32_t) + slots_.capacity() * sizeof(Slot) +
         tables_.capacity() * sizeof(uint64_t) + hole_bytes_;
}

}  // namespace gannet::index::xstore
