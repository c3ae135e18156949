// OwnLeaves: how the owner of an index of shared leaves reads and checks them by its CPU. The index adds the way to a
// leaf: a tree, or models.
//
// Leaves are not trusted (leaf.h): a walk is bounded, and a leaf to which there is no way is DataLoss. Thread-safe;
// clients and other threads may change leaves meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "index/backoff.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"

namespace gannet::index::shared_leaf {

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class OwnLeafFinder {
 public:
  // The leaf that covers the point, without keys that are not in its image. DataLoss: there is no way to it.
  virtual Status Locate(const typename Keys::Point& point, LeafCopyOf<Keys>* leaf) const = 0;

 protected:
  ~OwnLeafFinder() = default;
};

template <class Keys>
class OwnLeaves {
 public:
  using Key = typename Keys::Key;
  using Cut = typename Keys::Cut;
  using Point = typename Keys::Point;
  using Entry = typename Keys::Entry;
  using Image = typename Keys::Image;
  using Schema = typename Keys::Schema;
  using LeafCopy = LeafCopyOf<Keys>;
  using Visit = std::function<void(const LeafCopy&)>;

  // All must outlive this. `name` says in errors what kind of index it is.
  OwnLeaves(rdma::Node* node, LeafBlocks* blocks, const Schema* schema, uint64_t patience_nanos,
            const OwnLeafFinder<Keys>* finder, const char* name)
      : node_(node), blocks_(blocks), schema_(schema), patience_nanos_(patience_nanos), finder_(finder), name_(name) {}

  uint64_t patience_nanos() const { return patience_nanos_; }

  Status Locate(const Point& point, LeafCopy* leaf) const { return finder_->Locate(point, leaf); }
  // Reads a leaf, or an inner node of the same format, also if it is locked. kDead also if there is none at this
  // address, or if it cannot be read for as long as the patience lasts. A search has one patience for all that it
  // reads.
  LeafLook Read(rdma::GlobalAddress address, Image* image, Patience* patience) const;
  LeafLook Read(rdma::GlobalAddress address, Image* image) const {
    Patience patience(patience_nanos_);
    return Read(address, image, &patience);
  }
  // Whether a leaf that Read has found whole is locked by now, or has changed.
  bool IsLockedNow(const LeafCopy& leaf) const {
    return LoadWord(node_->memory().data() + leaf.address.offset()) != leaf.image.state();
  }
  // The low fence of the leaf at this offset; nullopt: there is none that is whole.
  std::optional<Key> LowAt(uint64_t offset) const;
  // Goes to the right sibling. False: there is none, or the right link leads elsewhere by now.
  bool GoRight(LeafCopy* leaf) const;
  // Reads the keys of the entries, as far as they are not in the image.
  void LoadKeys(LeafCopy* leaf) const;
  // Visits every leaf, from left to right, also locked ones. DataLoss: the walk has no end, or no way on.
  Status ForEach(const Visit& visit) const;
  // More leaves than an index has, even if some are added while it is walked.
  uint64_t Most() const { return 1000 + 4 * blocks_->bytes() / blocks_->leaf_bytes(); }
  Status EndlessError() const;

  // These are the methods of LocalIndex with the same names (index.h). If a leaf that they need is kept, Find returns
  // no record, and a witness that has seen the word of a kept leaf (claim.h); the scans return LeafIsKept.
  FindResult Find(const index::Key& key) const {
    LeafCopy leaf;
    return FindFrom(&leaf, key);
  }
  void FindMany(std::span<const index::Key> keys, std::span<FindResult> results) const;
  Status Scan(const ScanRange& range, ScanResult* result) const;
  Status ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                  ScanResult* result) const;
  static ScanPosition PositionBehind(const index::Key& key, bool reverse);
  bool Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) const;

  // Internal if the node is locked, does not begin at *low, or has a key twice, out of its fences, or that cannot be
  // read. Loads the keys, and sets *low to where the node to the right begins; nullopt: nowhere.
  Status Check(LeafCopy* node, std::optional<Key>* low) const;

 private:
  // Leaves of a scan after which their number is bounded.
  static constexpr size_t kManyLeaves = 1000;

  // Does what Find does. `leaf`: without an address, or as it was read in this call; afterwards that of the key.
  FindResult FindFrom(LeafCopy* leaf, const index::Key& key) const;
  // Scans from *next on, at most `limit` entries and `most_leaves` leaves. True: there may be more, from *next.
  StatusOr<bool> ScanSome(const Key& from, const Key& to, bool reverse, size_t limit, size_t most_leaves,
                          ScanResult* result, Cut* next) const;

  rdma::Node* node_;
  LeafBlocks* blocks_;
  const Schema* schema_;
  const uint64_t patience_nanos_;
  const OwnLeafFinder<Keys>* finder_;
  const char* name_;
};

}  // namespace gannet::index::shared_leaf
