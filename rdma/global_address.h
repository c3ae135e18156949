// GlobalAddress: 64 bits that name a byte in some node's registered memory.
//
//   63   62          48 47                                 0
//  +----+--------------+------------------------------------+
//  |mark| node (15)    | offset in the node's memory (48)   |
//  +----+--------------+------------------------------------+
//
// `mark` is free for use by an index that caches (DEX section 5.2: "swizzled"). The value 0 is null: offset 0 of every
// node's memory is its header, never an object. Trivially copyable, so it can be stored in remote memory and swapped by
// CAS.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gannet::rdma {

using NodeId = uint16_t;
inline constexpr NodeId kMaxNodes = 1 << 15;

class GlobalAddress {
 public:
  static constexpr uint64_t kOffsetBits = 48;
  static constexpr uint64_t kOffsetMask = (uint64_t{1} << kOffsetBits) - 1;
  static constexpr uint64_t kMark = uint64_t{1} << 63;

  constexpr GlobalAddress() = default;
  constexpr GlobalAddress(NodeId node, uint64_t offset)
      : bits_((uint64_t{node} << kOffsetBits) | (offset & kOffsetMask)) {}
  static constexpr GlobalAddress FromBits(uint64_t bits) {
    GlobalAddress address;
    address.bits_ = bits;
    return address;
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr NodeId node() const { return static_cast<NodeId>((bits_ & ~kMark) >> kOffsetBits); }
  constexpr uint64_t offset() const { return bits_ & kOffsetMask; }
  constexpr bool is_null() const { return (bits_ & ~kMark) == 0; }
  constexpr bool marked() const { return (bits_ & kMark) != 0; }
  constexpr GlobalAddress WithMark(bool mark) const { return FromBits(mark ? bits_ | kMark : bits_ & ~kMark); }

  constexpr GlobalAddress operator+(uint64_t bytes) const { return FromBits(bits_ + bytes); }
  friend constexpr bool operator==(GlobalAddress, GlobalAddress) = default;
  friend constexpr auto operator<=>(GlobalAddress, GlobalAddress) = default;

  template <class H>
  friend H AbslHashValue(H state, GlobalAddress address) {
    return H::combine(std::move(state), address.bits_);
  }

  // "node:0xoffset", for messages.
  std::string ToString() const;

 private:
  uint64_t bits_ = 0;
};

static_assert(sizeof(GlobalAddress) == 8);

}  // namespace gannet::rdma

template <>
struct std::hash<gannet::rdma::GlobalAddress> {
  size_t operator()(gannet::rdma::GlobalAddress address) const { return address.bits() * 0x9e3779b97f4a7c15ull; }
};
