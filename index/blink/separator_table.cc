#include "index/blink/separator_table.h"

#include <algorithm>

namespace gannet::index::blink {

SeparatorTable::Words::Words(const Point& point) : below_(point.below) {
  ByteKeys::PutCut({point.key, false}, key_);
}

bool SeparatorTable::IsAtMost(const std::array<Word, kKeyWords>& separator, const Words& point) {
  for (size_t i = 0; i < kKeyWords; ++i) {
    const uint64_t word = separator[i].load(std::memory_order_relaxed);
    if (word != point.key_[i]) return word < point.key_[i];
  }
  return !point.below_;
}

uint64_t SeparatorTable::ChildOf(uint64_t offset, uint64_t state, const Words& point, uint8_t* level) const {
  const Copy* const copy = copies_[IndexOf(offset)].load(std::memory_order_acquire);
  if (copy == nullptr || copy->state.load(std::memory_order_acquire) != state ||
      copy->offset.load(std::memory_order_relaxed) != offset) {
    return 0;
  }
  const uint64_t size = copy->size.load(std::memory_order_relaxed);
  *level = static_cast<uint8_t>(size >> 8);
  size_t first = 0;  // the entries before it lead to the point, or to its left
  size_t end = std::min<size_t>(size & 255, ByteKeys::kSlots);
  while (first < end) {
    const size_t middle = (first + end) / 2;
    if (IsAtMost(copy->key[middle], point)) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first == 0 ? 0 : copy->child[first - 1].load(std::memory_order_relaxed);
}

void SeparatorTable::Put(const LeafCopy& node) {
  const uint64_t used = node.image.used<ByteKeys::Entry>();
  if ((used & ~node.keys.known) != 0) return;
  std::atomic<Copy*>& at = copies_[IndexOf(node.address.offset())];
  Copy* copy = at.load(std::memory_order_acquire);
  if (copy == nullptr) {
    auto made = std::make_unique<Copy>();
    if (at.compare_exchange_strong(copy, made.get(), std::memory_order_acq_rel)) {
      copy = made.release();
      made_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  uint64_t state = copy->state.load(std::memory_order_relaxed);
  if (state == kBeingWritten || !copy->state.compare_exchange_strong(state, kBeingWritten)) return;
  std::array<int, ByteKeys::kSlots> slots;
  size_t n = 0;
  for (uint64_t left = used; left != 0; left &= left - 1) slots[n++] = std::countr_zero(left);
  const auto key = [&node](int slot) { return node.keys.of[static_cast<size_t>(slot)].view(); };
  std::sort(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(n), [&](int a, int b) { return key(a) < key(b); });
  copy->offset.store(node.address.offset(), std::memory_order_relaxed);
  copy->size.store(uint64_t{node.image.level()} << 8 | n, std::memory_order_relaxed);
  for (size_t i = 0; i < n; ++i) {
    std::array<uint64_t, kKeyWords> words;
    ByteKeys::PutCut({node.keys.of[static_cast<size_t>(slots[i])], false}, words);
    for (size_t w = 0; w < kKeyWords; ++w) copy->key[i][w].store(words[w], std::memory_order_relaxed);
    copy->child[i].store(node.image.entry<ByteKeys::Entry>(slots[i]).offset(), std::memory_order_relaxed);
  }
  copy->state.store(node.image.head.state, std::memory_order_release);
}

}  // namespace gannet::index::blink
