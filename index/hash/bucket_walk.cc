#include "index/hash/bucket_walk.h"

namespace gannet::index::hash {

void BucketWalk::Restart(const Geometry& geometry) {
  head_ = geometry.segments[name_.segment()] + name_.IndexInSegment(geometry.initial) * kLineBytes;
  next_ = head_;
  candidates_ = 0;
  length_ = 0;
}

BucketWalk::Step BucketWalk::TakeHead(const std::byte* line, Geometry* geometry) {
  version_ = LoadWord(line);
  if ((version_ & rdma::kLockBit) != 0) return Step::kAgain;
  const uint64_t link = LoadLink(line);
  const int depth = DepthOf(link);
  if (depth > kMaxDepth) return Step::kUnknown;
  if (!IsHome(hash_, name_, depth)) {
    const BucketName heir = Descend(hash_, name_);
    if (geometry->segments[heir.segment()] == 0) return Step::kUnknown;
    // Buckets split in the order of their numbers, so this split shows a lower bound of the table's size.
    const uint64_t count = heir.place + geometry->initial * heir.path + 1;
    const int level = heir.segment() - 1;
    if (count > geometry->size.count()) geometry->size = {count, level};
    name_ = heir;
    Restart(*geometry);
    return Step::kRead;
  }
  ambiguous_ = (link & kAmbiguous) != 0;
  return Collect(line, link);
}

BucketWalk::Step BucketWalk::TakeOverflow(const std::byte* line, const Geometry& geometry) {
  // Another stamp means that the chain changed after its head was read. Another mark means that the bucket has left the
  // chain.
  const uint64_t link = LoadLink(line);
  if (LoadWord(line) != version_ || (link & kLinkFlags) != kOverflowMark) {
    Restart(geometry);
    return Step::kAgain;
  }
  return Collect(line, link);
}

BucketWalk::Step BucketWalk::Collect(const std::byte* line, uint64_t link) {
  for (uint32_t matches = MatchTag(line, hash_.tag()); matches != 0; matches &= matches - 1) {
    if (candidates_ == kMaxCandidates) return Step::kLong;
    const uint64_t record = RecordOffsetOf(LoadSlot(line, std::countr_zero(matches)));
    if (record == 0) return Step::kUnknown;
    offsets_[candidates_++] = record;
  }
  // Without ambiguity a tag occurs once in the chain, so the rest of it cannot hold the key.
  if (candidates_ > 0 && !ambiguous_) return candidates_ == 1 ? Step::kFound : Step::kVerify;
  if (NextOf(link) != 0) {
    if (++length_ >= kUsualChain) return Step::kLong;
    next_ = NextOf(link);
    return Step::kRead;
  }
  if (candidates_ == 0) return Step::kAbsent;
  return candidates_ == 1 ? Step::kFound : Step::kVerify;
}

}  // namespace gannet::index::hash
