#include "index/dolphin/inner_node.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "rdma/versioned.h"

namespace gannet::index::dolphin {
namespace {

constexpr uint64_t ShapeOf(NodeType type, size_t prefix_bytes) {
  return type | uint64_t{prefix_bytes} << 8;
}

// Bit n: an entry for "byte + 1" = n was met.
class Bytes {
 public:
  bool Add(int byte) {
    uint64_t& word = words_[static_cast<size_t>(byte) / 64];
    const uint64_t bit = uint64_t{1} << (byte % 64);
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }

 private:
  std::array<uint64_t, kMostByte / 64 + 1> words_{};
};

}  // namespace

ByteKey LowOf(std::string_view prefix, uint64_t entry) {
  std::array<char, kShortKeyBytes> bytes;
  size_t size = prefix.size();
  std::memcpy(bytes.data(), prefix.data(), size);
  if (ByteOf(entry) > 0) bytes[size++] = static_cast<char>(ByteOf(entry) - 1);
  // A client that does not keep the rules may have written more.
  if (TypeOf(entry) == kLeafType && MoreOf(entry) > 0 && size < bytes.size())
    bytes[size++] = static_cast<char>(MoreOf(entry) - 1);
  return ByteKey(std::string_view(bytes.data(), size));
}

void NodeImage::Make(const NodeRef& ref, size_t prefix_lines, uint64_t last_word, std::string_view prefix) {
  GANNET_CHECK(prefix.size() <= (prefix_lines == 0 ? kHeadPrefixBytes : kMostPrefix), "a prefix of %d bytes",
               prefix.size());
  Expect(ref, prefix_lines);
  prefix_ = ByteKey(prefix);
  const uint64_t state = NextState(last_word, /*absent=*/false);
  std::fill_n(words_.begin(), size() / kWordBytes, 0);
  for (size_t line = 0; line < size() / kLineBytes; ++line) words_[line * 8] = rdma::VersionWord(state);
  words_[0] = state;
  words_[kShapeOffset / kWordBytes] = ShapeOf(ref.type, prefix.size());
  const size_t first = std::min(prefix.size(), kHeadPrefixBytes);
  if (first > 0) std::memcpy(data() + kPrefixOffset, prefix.data(), first);
  if (first < prefix.size()) {
    std::memcpy(data() + kLineBytes + kWordBytes, prefix.data() + first, prefix.size() - first);
  }
  for (int slot = 0; slot < slots(); ++slot) set_word(slot, free_word());
}

LeafLook NodeImage::Look() {
  if (IsLocked(state())) return LeafLook::kTorn;  // it is busy
  if (IsAbsent(state())) return LeafLook::kDead;
  const uint64_t shape = words_[kShapeOffset / kWordBytes];
  const size_t bytes = shape >> 8;
  bool agree = state() == VersionOf(state()) && (shape & 0xff) == ref_.type &&
               bytes <= (prefix_lines_ == 0 ? kHeadPrefixBytes : kMostPrefix);
  const uint64_t number = rdma::VersionWord(state());
  for (size_t line = 1; line < size() / kLineBytes; ++line) agree &= words_[line * 8] == number;
  if (!agree) return LeafLook::kTorn;
  std::array<char, kHeadPrefixBytes + kLinePrefixBytes> prefix;
  std::memcpy(prefix.data(), data() + kPrefixOffset, kHeadPrefixBytes);
  std::memcpy(prefix.data() + kHeadPrefixBytes, data() + kLineBytes + kWordBytes, kLinePrefixBytes);
  prefix_ = ByteKey(std::string_view(prefix.data(), bytes));
  return LeafLook::kWhole;
}

int NodeImage::SlotOf(int byte) const {
  const auto has_it = [&](int slot) { return IsEntry(word(slot)) && ByteOf(word(slot)) == byte; };
  if (ref_.type == kLargestNode) return has_it(byte) ? byte : -1;
  for (int slot = 0; slot < slots(); ++slot) {
    if (has_it(slot)) return slot;
  }
  return -1;
}

int NodeImage::FreeSlot(int byte) const {
  if (ref_.type == kLargestNode) return byte;
  for (int slot = 0; slot < slots(); ++slot) {
    if (!IsEntry(word(slot))) return slot;
  }
  return -1;
}

int NodeImage::Has(int byte) const {
  int has = 0;
  for (int slot = 0; slot < slots(); ++slot) has += IsEntry(word(slot)) && ByteOf(word(slot)) == byte ? 1 : 0;
  return has;
}

int NodeImage::count() const {
  Bytes met;
  int count = 0;
  for (int slot = 0; slot < slots(); ++slot) {
    const uint64_t entry = word(slot);
    if (!IsEntry(entry) || (ref_.type == kLargestNode && ByteOf(entry) != slot)) continue;
    count += met.Add(ByteOf(entry)) ? 1 : 0;
  }
  return count;
}

bool NodeImage::Add(uint64_t entry) {
  const int slot = FreeSlot(ByteOf(entry));
  if (slot < 0) return false;
  set_word(slot, entry);
  return true;
}

void NodeImage::AddAll(const NodeImage& from) {
  from.ForEach([this](uint64_t entry) {
    GANNET_CHECK(Add(entry), "a node of %d entries has no room for byte %d", slots(), ByteOf(entry));
  });
}

// A node dies before its block is written again. So if its state is the same before and after, all is of one life.
LeafLook LoadNode(const std::byte* memory, NodeImage* image) {
  for (size_t at = 0; at < image->size(); at += kWordBytes) {
    const uint64_t word = LoadWord(memory + at);
    std::memcpy(image->data() + at, &word, kWordBytes);
  }
  PreemptionPoint();
  const LeafLook look = image->Look();
  return look == LeafLook::kWhole && LoadWord(memory) != image->state() ? LeafLook::kDead : look;
}

void StoreNode(const NodeImage& image, std::byte* memory) {
  for (size_t at = kWordBytes; at < image.size(); at += kWordBytes) {
    uint64_t word;
    std::memcpy(&word, image.data() + at, kWordBytes);
    StoreWord(memory + at, word);
  }
  StoreWord(memory, image.state());
}

ByteKey ArtKeyOf(uint64_t key) {
  std::array<char, sizeof key> bytes;
  size_t size = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(key >> (56 - 8 * i) & 0xff);
    if (bytes[i] != 0) size = i + 1;
  }
  return ByteKey(std::string_view(bytes.data(), size));
}

uint64_t IntegerOf(std::string_view bytes) {
  uint64_t key = 0;
  for (size_t i = 0; i < sizeof key; ++i) {
    key = key << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0);
  }
  return key;
}

}  // namespace gannet::index::dolphin
