#include "index/dex/cache/inner_copy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

namespace gannet::index::dex {
namespace {

using shared_leaf::ByteKeys;
using shared_leaf::IntegerKeys;

constexpr size_t BytesOfLinks(size_t children) {
  return RoundUp(children * sizeof(uint32_t), kWordBytes);
}

// Byte keys.
constexpr size_t kMostBody = BytesOf(FrameSize::k768) - sizeof(FrameHead);

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}
// What most separators have in common. The first one of a level is empty, so it does not count.
std::string_view PrefixOf(std::span<const std::string_view> separators) {
  if (separators.size() < 2) return {};
  return separators[1].substr(0, CommonPrefix(separators[1], separators.back()));
}

// Writes keys as | bytes in common with the prefix | number of the others | these |. Without a place: counts the bytes.
class KeyWriter {
 public:
  explicit KeyWriter(std::byte* at = nullptr) : at_(at) {}

  void PutPrefix(std::string_view prefix) {
    prefix_ = prefix;
    PutByte(prefix.size());
    PutBytes(prefix);
  }
  void PutKey(std::string_view key) {
    const size_t common = CommonPrefix(prefix_, key);
    PutByte(common);
    PutByte(key.size() - common);
    PutBytes(key.substr(common));
  }
  // A separator has the whole prefix.
  void PutRest(std::string_view separator) {
    PutByte(separator.size() - prefix_.size());
    PutBytes(separator.substr(prefix_.size()));
  }
  void PutByte(size_t byte) {
    if (at_ != nullptr) at_[size_] = static_cast<std::byte>(byte);
    ++size_;
  }
  size_t size() const { return size_; }

 private:
  void PutBytes(std::string_view bytes) {
    // An empty key may have no address, which memcpy must not get.
    if (at_ != nullptr) bytes.copy(reinterpret_cast<char*>(at_ + size_), bytes.size());
    size_ += bytes.size();
  }

  std::byte* const at_;
  size_t size_ = 0;
  std::string_view prefix_;
};

class KeyReader {
 public:
  explicit KeyReader(const std::byte* at) : at_(at) {}

  void TakePrefix() {
    const size_t size = TakeByte();
    std::memcpy(key_.data(), at_, size);
    prefix_size_ = size;
    at_ += size;
  }
  shared_leaf::ByteKey TakeKey() { return TakeKeyAfter(TakeByte()); }
  shared_leaf::ByteKey TakeRest() { return TakeKeyAfter(prefix_size_); }
  size_t TakeByte() { return static_cast<size_t>(*at_++); }

 private:
  shared_leaf::ByteKey TakeKeyAfter(size_t common) {
    std::array<char, kShortKeyBytes> key;
    std::memcpy(key.data(), key_.data(), common);
    const size_t size = TakeByte();
    std::memcpy(key.data() + common, at_, size);
    at_ += size;
    return shared_leaf::ByteKey(std::string_view(key.data(), common + size));
  }

  const std::byte* at_;
  std::array<char, kShortKeyBytes> key_;  // the prefix
  size_t prefix_size_ = 0;
};

// The keys of a node: its separators in their order, and the high fence, if there is one.
void PutKeys(std::span<const std::string_view> separators, const std::optional<shared_leaf::ByteKey>& high,
             KeyWriter* writer) {
  writer->PutPrefix(PrefixOf(separators));
  writer->PutByte(high.has_value() ? 1 : 0);
  if (high.has_value()) writer->PutKey(high->view());
  writer->PutKey(separators[0]);
  for (const std::string_view separator : separators.subspan(1)) writer->PutRest(separator);
}

}  // namespace

template <>
struct InnerBody<IntegerKeys>::Decoded {
  std::array<uint64_t, IntegerKeys::kSlots> separators;
  uint64_t high = 0;
  size_t size = 0;

  uint64_t separator(size_t i) const { return separators[i]; }
  bool EndsBefore(const Point& point) const { return point > high; }
};

template <>
struct InnerBody<ByteKeys>::Decoded {
  std::array<shared_leaf::ByteKey, ByteKeys::kSlots> separators;
  std::optional<shared_leaf::ByteKey> high;
  size_t size = 0;

  const shared_leaf::ByteKey& separator(size_t i) const { return separators[i]; }
  bool EndsBefore(const Point& point) const {
    if (!high.has_value()) return false;
    return point.below ? high->view() < point.key.view() : high->view() <= point.key.view();
  }
};

// The separators of the children, which the node has.
template <class Keys, class Children>
std::span<const std::string_view> SeparatorsOf(const shared_leaf::LeafCopyOf<Keys>& node, const Children& children,
                                               std::array<std::string_view, Keys::kSlots>* separators) {
  for (size_t i = 0; i < children.size; ++i) {
    (*separators)[i] = Keys::KeyAt(node.image, node.keys, children.slots[i]).view();
  }
  return std::span(*separators).first(children.size);
}

template <class Keys>
typename InnerBody<Keys>::Children InnerBody<Keys>::ChildrenOf(const PageCache& cache, const LeafCopy& node) {
  using Entry = typename Keys::Entry;
  Children children;
  for (uint64_t used = node.image.template used<Entry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    if (Keys::Knows(node.keys, slot)) children.slots[children.size++] = static_cast<uint8_t>(slot);
  }
  const auto separator = [&](uint8_t slot) -> decltype(auto) { return Keys::KeyAt(node.image, node.keys, slot); };
  std::sort(children.slots.begin(), children.slots.begin() + static_cast<ptrdiff_t>(children.size),
            [&](uint8_t a, uint8_t b) { return separator(a) < separator(b); });
  size_t kept = 0;
  for (size_t i = 0; i < children.size; ++i) {
    const rdma::GlobalAddress child =
        Keys::TargetOf(node.image.template entry<Entry>(children.slots[i]), node.address.node());
    const std::optional<ChildLink> link =
        child.node() == node.address.node() ? cache.LinkTo(child) : std::optional<ChildLink>();
    if (!link.has_value()) continue;
    children.slots[kept] = children.slots[i];
    children.links[kept++] = *link;
  }
  children.size = kept;
  if constexpr (Keys::kKeysElsewhere) {
    if (kept == 0) return children;
    KeyWriter writer;
    std::array<std::string_view, Keys::kSlots> separators;
    PutKeys(SeparatorsOf<Keys>(node, children, &separators), shared_leaf::NextLowOf<Keys>(node.image), &writer);
    children.bytes = BytesOfLinks(kept) + writer.size();
  } else {
    children.bytes = BytesOfLinks(kept) + (1 + kept) * kWordBytes;
  }
  return children;
}

template <class Keys>
std::optional<FrameSize> InnerBody<Keys>::SizeFor(const Children& children) {
  if (children.size == 0) return std::nullopt;
  for (const FrameSize size : {FrameSize::k192, FrameSize::k256, FrameSize::k384, FrameSize::k512, FrameSize::k768}) {
    if (sizeof(FrameHead) + children.bytes <= BytesOf(size)) return size;
  }
  return std::nullopt;
}

template <class Keys>
void InnerBody<Keys>::Store(const LatchedFrame& frame, const LeafCopy& node, const Children& children) {
  std::byte* const body = frame.body();
  for (size_t i = 0; i < children.size; ++i) PageCache::StoreLink(body, i, children.links[i]);
  if constexpr (Keys::kKeysElsewhere) {
    std::array<std::byte, RoundUp(kMostBody, kWordBytes)> bytes{};
    KeyWriter writer(bytes.data());
    std::array<std::string_view, Keys::kSlots> separators;
    PutKeys(SeparatorsOf<Keys>(node, children, &separators), shared_leaf::NextLowOf<Keys>(node.image), &writer);
    for (size_t i = 0; i < writer.size(); i += kWordBytes) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + i, kWordBytes);
      StoreWord(body + BytesOfLinks(children.size) + i, word);
    }
  } else {
    std::byte* const keys = body + BytesOfLinks(children.size);
    StoreWord(keys, node.image.head.high);
    for (size_t i = 0; i < children.size; ++i) {
      StoreWord(keys + (1 + i) * kWordBytes, Keys::KeyAt(node.image, node.keys, children.slots[i]));
    }
  }
}

template <>
bool InnerBody<IntegerKeys>::Decode(const Frames& frames, const FrameLook& look, const Place& place, Decoded* decoded) {
  decoded->size = std::min<size_t>(place.children, IntegerKeys::kSlots);
  const std::byte* const keys = look.body() + BytesOfLinks(decoded->size);
  decoded->high = LoadWord(keys);
  for (size_t i = 0; i < decoded->size; ++i) decoded->separators[i] = LoadWord(keys + (1 + i) * kWordBytes);
  return frames.Unchanged(look);
}

template <>
bool InnerBody<ByteKeys>::Decode(const Frames& frames, const FrameLook& look, const Place& place, Decoded* decoded) {
  std::array<std::byte, kMostBody> bytes;
  decoded->size = std::min<size_t>(place.children, ByteKeys::kSlots);
  const size_t links = BytesOfLinks(decoded->size);
  for (size_t i = 0; links + i < kMostBody; i += kWordBytes) {
    const uint64_t word = LoadWord(look.body() + links + i);
    std::memcpy(bytes.data() + i, &word, kWordBytes);
  }
  // From here on the bytes are those that Store wrote.
  if (!frames.Unchanged(look)) return false;
  KeyReader reader(bytes.data());
  reader.TakePrefix();
  decoded->high.reset();
  if (reader.TakeByte() != 0) decoded->high = reader.TakeKey();
  if (decoded->size > 0) decoded->separators[0] = reader.TakeKey();
  for (size_t i = 1; i < decoded->size; ++i) decoded->separators[i] = reader.TakeRest();
  return true;
}

// Searches the copy where it is.
template <>
ChildFound InnerBody<IntegerKeys>::Find(const Frames& frames, const FrameLook& look, const Place& place,
                                        const Point& point) {
  const size_t size = std::min<size_t>(place.children, IntegerKeys::kSlots);
  const std::byte* const keys = look.body() + BytesOfLinks(size);
  const bool ends_before = point > LoadWord(keys);
  size_t at = 0;
  while (at < size && LoadWord(keys + (1 + at) * kWordBytes) <= point) ++at;
  const ChildLink link = at == 0 ? ChildLink() : PageCache::LoadLink(look.body(), at - 1);
  if (!frames.Unchanged(look)) return {ChildFound::Is::kChanged};
  if (at == 0 || ends_before) return {ChildFound::Is::kElsewhere};
  return {ChildFound::Is::kChild, link};
}

template <class Keys>
ChildFound InnerBody<Keys>::Find(const Frames& frames, const FrameLook& look, const Place& place, const Point& point) {
  Decoded decoded;
  if (!Decode(frames, look, place, &decoded)) return {ChildFound::Is::kChanged};
  size_t at = 0;
  while (at < decoded.size && Keys::IsAtMost(decoded.separator(at), point)) ++at;
  if (at == 0 || decoded.EndsBefore(point)) return {ChildFound::Is::kElsewhere};
  const ChildLink link = PageCache::LoadLink(look.body(), at - 1);
  if (!frames.Unchanged(look)) return {ChildFound::Is::kChanged};
  return {ChildFound::Is::kChild, link};
}

template <class Keys>
size_t InnerBody<Keys>::FindFrom(const Frames& frames, const FrameLook& look, const Place& place, const Point& point,
                                 const Key& to, bool reverse, std::span<ChildLink> links, double* skipped) {
  *skipped = 0;
  Decoded decoded;
  if (!Decode(frames, look, place, &decoded)) return 0;
  size_t at = 0;
  while (at < decoded.size && Keys::IsAtMost(decoded.separator(at), point)) ++at;
  if (at == 0 || decoded.EndsBefore(point)) return 0;
  size_t n = 0;
  for (size_t child = at - 1; n < links.size(); reverse ? --child : ++child) {
    if (child >= decoded.size) break;  // also below 0
    if (!reverse && child >= at && to < decoded.separator(child)) break;
    links[n++] = PageCache::LoadLink(look.body(), child);
  }
  if (!reverse && at < decoded.size)
    *skipped = Keys::ShareBefore(decoded.separator(at - 1), point, decoded.separator(at));
  return frames.Unchanged(look) ? n : 0;
}

template class InnerBody<IntegerKeys>;
template class InnerBody<ByteKeys>;

}  // namespace gannet::index::dex
