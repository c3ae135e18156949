// The functions of BasicLeafIndex, for the sources that instantiate it.
#pragma once

#include <algorithm>

#include "index/shared_leaf/basic_leaf_index.h"

namespace gannet::index::shared_leaf {

template <class Keys>
BasicLeafIndex<Keys>::BasicLeafIndex(IndexService* service, const Schema& schema,
                                     const std::optional<LeafFormat>& format, IndexRights rights,
                                     absl::Duration patience, const char* name)
    : service_(service),
      schema_(schema),
      blocks_(format.has_value() ? LeafBlocks(&service->fabric(), &service->node(), *format, rights)
                                 : LeafBlocks(&service->fabric(), &service->node(), schema.fence_lines(), rights)),
      leaves_(&service->node(), &blocks_, &schema_, static_cast<uint64_t>(absl::ToInt64Nanoseconds(patience)), this,
              name) {}

template <class Keys>
BasicLeafIndex<Keys>::~BasicLeafIndex() {
  rdma::SlabCache slab(&service_->slab());
  blocks_.Close(slab);
}

template <class Keys>
Status BasicLeafIndex<Keys>::MakeFirst(Context& context) {
  const StatusOr<FreeBlock> block = blocks_.Take(context);
  if (!block.ok()) return block.status();
  StoreNode(*block, 0, {}, Keys::kLeast, std::nullopt, {});
  first_ = block->address;
  return absl::OkStatus();
}

template <class Keys>
Status BasicLeafIndex<Keys>::CheckEmpty() const {
  LeafCopy first;
  GANNET_RETURN_IF_ERROR(this->Locate(Keys::At(Keys::kLeast), &first));
  if (first.address != first_ || !Keys::IsLast(first.image) || first.image.template count<Entry>() != 0) {
    return absl::FailedPreconditionError("a bulk load needs an empty index");
  }
  return absl::OkStatus();
}

template <class Keys>
StatusOr<std::unique_ptr<PartedLoad>> BasicLeafIndex<Keys>::BeginLoad(Context& context, LoadRuns entries, double fill,
                                                                      size_t most_parts) {
  GANNET_RETURN_IF_ERROR(CheckFill(fill));
  GANNET_RETURN_IF_ERROR(CheckEmpty());
  std::unique_ptr<Load> load = NewLoad(std::move(entries), fill, most_parts);
  GANNET_RETURN_IF_ERROR(load->Begin(context));
  return load;
}

template <class Keys>
Status BasicLeafIndex<Keys>::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  const StatusOr<std::unique_ptr<PartedLoad>> load = BeginLoad(context, LoadRuns(entries), fill, 1);
  return load.ok() ? (*load)->Run(context) : load.status();
}

template <class Keys>
std::vector<size_t> BasicLeafIndex<Keys>::Load::RunsOf(const LoadRuns& entries, std::span<const FirstLeaf> firsts) {
  LoadRuns::Reader reader(entries);
  std::vector<size_t> runs;
  for (const FirstLeaf& first : firsts) {
    size_t low = runs.empty() ? 0 : runs.back();
    for (size_t high = runs.empty() ? 0 : entries.size(); low < high;) {
      const size_t middle = low + (high - low) / 2;
      if (Keys::KeyFrom(reader[middle].key) < first.low) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    runs.push_back(low);
  }
  return runs;
}

template <class Keys>
BasicLeafIndex<Keys>::Load::~Load() {
  if (finished_) return;
  for (size_t n = 0; n < blocks_.size(); ++n) {
    if (!blocks_[n].address.is_null() && !IsFirst(n)) index_->blocks_.Discard(blocks_[n]);
  }
}

template <class Keys>
Status BasicLeafIndex<Keys>::Load::Take(Context& context, FreeBlock* block) {
  const StatusOr<FreeBlock> taken = index_->blocks_.Take(context);
  if (!taken.ok()) return taken.status();
  *block = *taken;
  return absl::OkStatus();
}

// The blocks of the parts' first leaves are taken at the beginning: then each part can link its last leaf.
template <class Keys>
Status BasicLeafIndex<Keys>::Load::Begin(Context& context) {
  for (size_t part = 0; part < parts() && makes_leaves_; ++part) {
    const size_t n = shape_.FirstLeaf(part);
    if (!IsFirst(n)) GANNET_RETURN_IF_ERROR(Take(context, &blocks_[n]));
  }
  return absl::OkStatus();
}

template <class Keys>
Status BasicLeafIndex<Keys>::Load::Build(Context& context, size_t part) {
  const size_t first = shape_.FirstLeaf(part);
  const size_t end = shape_.EndLeaf(part);
  GANNET_RETURN_IF_ERROR(shape_.CheckOrder(entries_, part));
  LoadRuns::Reader entries(entries_);
  for (size_t i = shape_.Begin(first); i < shape_.End(end - 1); ++i) {
    GANNET_RETURN_IF_ERROR(Keys::CheckLength(index_->schema_, entries[i].key));
  }
  if (!makes_leaves_) return absl::OkStatus();
  for (size_t n = first + 1; n < end; ++n) {
    if (!IsFirst(n)) GANNET_RETURN_IF_ERROR(Take(context, &blocks_[n]));
  }
  for (size_t n = first; n < end; ++n) {
    if (!IsFirst(n)) StoreLeaf(n, &entries);
  }
  return absl::OkStatus();
}

template <class Keys>
Statistics BasicLeafIndex<Keys>::statistics() {
  Statistics statistics;
  statistics.registered_bytes = blocks_.bytes();
  const Status walked = ForEachNode([&statistics](const LeafCopy& place) {
    if (place.image.level() == 0) {
      ++statistics.nodes;
      statistics.keys += static_cast<uint64_t>(place.image.template count<Entry>());
    }
    statistics.height = std::max(statistics.height, place.image.level() + 1);
  });
  if (!walked.ok()) statistics.height = 0;  // of a damaged index: what the walk has met
  return statistics;
}

}  // namespace gannet::index::shared_leaf
