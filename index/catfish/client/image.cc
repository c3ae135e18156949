#include "index/catfish/client/image.h"

namespace gannet::index::catfish {

Verdict JudgeImage(const std::byte* image, const NodeLayout& layout, int level, NodeCopy* copy) {
  if (!rdma::IsConsistentImage(image, layout.lines)) return Verdict::kAgain;
  copy->state = LoadWord(image);
  copy->head = NodeHead::Unpack(LoadWord(image + NodeLayout::kHeadPlace));
  const NodeHead& head = copy->head;
  if (head.dead || head.count > layout.capacity || head.level >= kMaxLevels) return Verdict::kStale;
  if (level >= 0 && head.level != level) return Verdict::kStale;
  rdma::CopyOut(image, NodeLayout::EntryAt(0), std::as_writable_bytes(std::span(copy->slots, head.count)));
  return Verdict::kNode;
}

bool IsNodeOffset(uint64_t offset, const NodeLayout& layout) {
  return offset != 0 && offset % kLineBytes == 0 && offset <= rdma::GlobalAddress::kOffsetMask - layout.bytes;
}

bool IsLeafEntry(const Entry& entry, rdma::NodeId owner) {
  const auto record = rdma::GlobalAddress::FromBits(entry.target);
  return CheckRectangle(entry.box).ok() && !record.is_null() && record.node() == owner && !record.marked();
}

}  // namespace gannet::index::catfish
