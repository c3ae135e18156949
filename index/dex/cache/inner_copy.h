// The copy of an inner node in a frame, decoded: links to the children in the order of their separators, and the keys.
// Of integer keys it takes 256 bytes, or 192 if there are at most 13 children; of byte keys as many as these need
// without their common prefix.
//
//   integer keys   | links | the last key that it covers | separators |
//   byte keys      | links | common prefix | is there a high fence | high fence | first separator | rests of the others
//   |
//
// It covers the keys from its first separator on. A separator that leads too far away (LinkTo) is left out, as one that
// is missing (blink.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "index/dex/cache/frames.h"
#include "index/dex/cache/page_cache.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"

namespace gannet::index::dex {

// What a look at a copy of an inner node found.
struct ChildFound {
  enum class Is : uint8_t {
    kChild,      // `link` leads to it
    kElsewhere,  // the copy does not cover the point
    kChanged,    // the frame was changed meanwhile
  } is = Is::kChanged;
  ChildLink link{};
};

template <class Keys>
class InnerBody {
 public:
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;

  // The children of a node, in the order of their separators.
  struct Children {
    std::array<uint8_t, Keys::kSlots> slots;
    std::array<ChildLink, Keys::kSlots> links;
    size_t size = 0;
    size_t bytes = 0;  // of the body
  };
  static Children ChildrenOf(const PageCache& cache, const LeafCopy& node);
  // Null: the body is too long for a frame, or the node has no children.
  static std::optional<FrameSize> SizeFor(const Children& children);
  static void Store(const LatchedFrame& frame, const LeafCopy& node, const Children& children);

  static ChildFound Find(const Frames& frames, const FrameLook& look, const Place& place, const Point& point);
  // Links to the child that covers `point` and to those behind it, up to `to`, or in reverse those before it. Returns
  // their number; 0 also if the frame was changed. *skipped: the share of the first one's range that lies before
  // `point`; 0 if that is not known.
  static size_t FindFrom(const Frames& frames, const FrameLook& look, const Place& place, const Point& point,
                         const Key& to, bool reverse, std::span<ChildLink> links, double* skipped);

 private:
  struct Decoded;
  static bool Decode(const Frames& frames, const FrameLook& look, const Place& place, Decoded* decoded);
};

}  // namespace gannet::index::dex
