// READs of several pieces of memory. Pieces that lie close together come with one READ: rows that were inserted
// together mostly lie side by side, such as the lines of an order. A NIC performs a limited number of READs per second,
// so reading a gap costs less than another READ.
//
// One READ gives the same guarantees as several would: fabric.h promises nothing about the order of lines or of READs,
// and every device reads words whole. The exception is a device that may tear lines (line_consistent is false). There
// each object needs a READ of its own, because its first word is READ again after it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rdma/fabric.h"
#include "rdma/slab.h"
#include "txn/store/arena.h"

namespace gannet::txn {

class NeighbourReads {
 public:
  // A link of 100 Gb/s takes as long for a gap of two lines as its NIC takes for a READ.
  static constexpr size_t kMostGap = 2 * kLineBytes;
  static_assert(kMostGap < rdma::kReadBeyondBytes, "a READ must not go from one part of a heap into the next");
  // Limit for a READ of several pieces: a large one delays the READs behind it.
  static constexpr size_t kMostBytes = 2048;

  void Clear() { pieces_.clear(); }
  void Add(rdma::GlobalAddress address, uint32_t bytes) { pieces_.push_back({address, bytes, nullptr}); }
  size_t size() const { return pieces_.size(); }

  // Appends the READs of all pieces to *operations. Their memory is taken from `arena`.
  void AppendTo(std::vector<rdma::Operation>* operations, bool merge, Arena* arena) {
    order_.resize(pieces_.size());
    for (uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    if (merge) {
      std::sort(order_.begin(), order_.end(),
                [this](uint32_t a, uint32_t b) { return pieces_[a].address.bits() < pieces_[b].address.bits(); });
    }
    for (size_t first = 0; first < order_.size();) {
      const rdma::GlobalAddress from = pieces_[order_[first]].address;
      size_t end = first;
      size_t bytes = 0;
      do {
        const Piece& piece = pieces_[order_[end]];
        bytes = std::max<size_t>(bytes, piece.address.offset() - from.offset() + piece.bytes);
      } while (++end < order_.size() && merge && Joins(pieces_[order_[end]], from, bytes));
      std::byte* const image = arena->Allocate(bytes);
      operations->push_back(rdma::Operation::Read(from, image, static_cast<uint32_t>(bytes)));
      for (; first < end; ++first) {
        Piece& piece = pieces_[order_[first]];
        piece.image = image + (piece.address.offset() - from.offset());
      }
    }
  }

  // The content of the piece that was added as the `i`th. Valid after AppendTo and its READs.
  std::byte* image(size_t i) const { return pieces_[i].image; }
  uint32_t bytes(size_t i) const { return pieces_[i].bytes; }

 private:
  struct Piece {
    rdma::GlobalAddress address;
    uint32_t bytes;
    std::byte* image;
  };

  // True if `piece`, which does not lie before `from`, may come with the READ of the `bytes` from there on.
  static bool Joins(const Piece& piece, rdma::GlobalAddress from, size_t bytes) {
    if (piece.address.node() != from.node()) return false;
    const size_t at = piece.address.offset() - from.offset();
    return at <= bytes + kMostGap && at + piece.bytes <= kMostBytes;
  }

  std::vector<Piece> pieces_;
  std::vector<uint32_t> order_;
};

}  // namespace gannet::txn
