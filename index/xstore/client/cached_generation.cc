#include "index/xstore/client/cached_generation.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace gannet::index::xstore {
namespace {

uint64_t BytesOfTop(const TopModel& top, const std::vector<uint32_t>& directory) {
  return top.bytes() + directory.capacity() * sizeof(uint32_t);
}

// If not all sub-models fit, none is kept.
XCacheMode ModeThatFits(XCacheMode mode, size_t max_bytes, uint64_t bytes_of_top, uint32_t sub_models) {
  return sub_models * kCachedSubModelBytes + bytes_of_top > max_bytes ? XCacheMode::kTopOnly : mode;
}

}  // namespace

CachedGeneration::CachedGeneration(XCacheMode mode, size_t max_bytes, uint64_t number, TopModel top,
                                   std::vector<uint32_t> directory)
    : number_(number),
      top_(std::move(top)),
      directory_(std::move(directory)),
      max_bytes_(max_bytes),
      mode_(ModeThatFits(mode, max_bytes, BytesOfTop(top_, directory_), top_.sub_models())),
      slots_(mode_ == XCacheMode::kTopOnly ? 0 : top_.sub_models()),
      own_bytes_(BytesOfTop(top_, directory_) + slots_.size() * sizeof(Slot)),
      tables_(mode_ == XCacheMode::kWhole ? max_bytes_ - own_bytes_ : 0) {}

bool CachedGeneration::FindModel(uint32_t sub_model, SubModel* model, uint32_t* table) const {
  return mode_ == XCacheMode::kModelOnly && ReadSlot(slots_[sub_model], [&](const SubModel& found, uint32_t block) {
           *model = found;
           *table = block;
         });
}

// Gives the slot an odd version, and returns the word that has it. The next one comes with the end of the write.
uint64_t CachedGeneration::BeginWrite(Slot& slot) {
  const uint64_t writing = After(LoadWord(&slot.place), 0, 0);
  StoreWord(&slot.place, writing);
  if (writing >> kVersionShift == kLastLowerVersion) StoreWord(&slot.errors, LoadWord(&slot.errors) + kUpperVersion);
  return writing;
}

// The slot is not empty, or `table` is its place from now on.
void CachedGeneration::Write(Slot& slot, const SubModel& model, uint32_t table, std::span<const uint64_t> entries) {
  const uint64_t writing = BeginWrite(slot);
  const uint64_t version = LoadWord(&slot.errors) / kUpperVersion * kUpperVersion;
  StoreWord(&slot.errors, version | kUsed | uint64_t{model.spread} << 16 | uint64_t{model.over} << 8 | model.under);
  StoreWord(&slot.line,
            uint64_t{std::bit_cast<uint32_t>(model.intercept)} << 32 | std::bit_cast<uint32_t>(model.slope));
  if (!entries.empty()) {
    uint64_t* const words = tables_.At(table);
    for (size_t i = 0; i < entries.size(); ++i) StoreWord(words + i, entries[i]);
  }
  StoreWord(&slot.place, After(writing, model.size, table));
}

void CachedGeneration::Drop(Slot& slot) {
  StoreWord(&slot.place, After(BeginWrite(slot), 0, 0));
}

bool CachedGeneration::MayEvict(uint32_t sub_model, bool must) {
  Slot& slot = slots_[sub_model];
  const uint64_t errors = LoadWord(&slot.errors);
  if (!must && (errors & kUsed) != 0) {
    StoreWord(&slot.errors, errors & ~kUsed);
    return false;
  }
  Drop(slot);
  return true;
}

// True if Write would change nothing. Many answers of the owner bring what is cached, and a write would disturb the
// readers.
bool CachedGeneration::Has(const Slot& slot, const SubModel& model, uint32_t table,
                           std::span<const uint64_t> entries) const {
  const uint64_t place = LoadWord(&slot.place);
  if (TableIn(place) != table || ModelFrom(LoadWord(&slot.line), LoadWord(&slot.errors), place) != model) return false;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (LoadWord(tables_.At(table) + i) != entries[i]) return false;
  }
  return true;
}

void CachedGeneration::PutModel(uint32_t sub_model, const SubModel& model, uint32_t table) {
  if (mode_ != XCacheMode::kModelOnly) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && !Has(slots_[sub_model], model, table, {})) Write(slots_[sub_model], model, table, {});
}

void CachedGeneration::PutTable(uint32_t sub_model, const SubModel& model, std::span<const uint64_t> table) {
  if (mode_ != XCacheMode::kWhole || table.size() != model.size) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  Slot& slot = slots_[sub_model];
  const uint64_t old = LoadWord(&slot.place);
  if (SizeIn(old) == model.size) {
    if (!Has(slot, model, TableIn(old), table)) Write(slot, model, TableIn(old), table);
    return;
  }
  if (SizeIn(old) != 0) {
    Drop(slot);
    tables_.Free(TableIn(old));
  }
  const auto place =
      tables_.Allocate(sub_model, model.size, [this](uint32_t other, bool must) { return MayEvict(other, must); });
  if (place.has_value()) Write(slot, model, *place, table);
}

void CachedGeneration::FillFrom(const CachedGeneration& other) {
  std::vector<uint64_t> entries;
  for (uint32_t i = 0; i < other.slots_.size(); ++i) {
    SubModel model;
    uint32_t block = 0;
    const auto copy = [&](const CachedTable& table) {
      model = table.model();
      entries.resize(model.size);
      for (uint32_t n = 0; n < model.size; ++n) entries[n] = table.word(n);
    };
    if (other.FindTable(i, copy)) {
      PutTable(i, model, entries);
    } else if (other.FindModel(i, &model, &block)) {
      PutModel(i, model, block);
    }
  }
}

}  // namespace gannet::index::xstore
