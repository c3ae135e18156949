#include "index/catfish/tree.h"

#include <mutex>
#include <shared_mutex>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::index {
namespace catfish {
namespace {

Status NoOrder() {
  return absl::UnimplementedError("a catfish index keeps no order of keys; search windows instead");
}

}  // namespace

CatfishTree::CatfishTree(IndexService* service, const CatfishOptions& options, const Arena& arena, KeyWords key_words)
    : service_(service), options_(options), shape_(options), arena_(arena), key_words_(std::move(key_words)) {}

StatusOr<std::unique_ptr<CatfishTree>> CatfishTree::Create(IndexService* service, IndexId id, uint64_t expected_keys,
                                                           const CatfishOptions& options) {
  rdma::Node& node = service->node();
  const size_t words = KeyWords::CountFor(expected_keys);
  StatusOr<std::byte*> word_memory = service->slab().AllocateExtent(words * kWordBytes);
  if (!word_memory.ok()) return word_memory.status();
  Arena arena{.memory = node.memory().data(),
              .owner = node.id(),
              .layout = NodeLayout(options.node_entries),
              .root = nullptr,
              .pool = std::make_shared<BlockPool>()};
  IndexService::Guard guard(service);
  StatusOr<std::byte*> root = arena.NewBlock(guard.context());
  if (!root.ok()) return root.status();
  arena.root = *root;
  arena.WriteNew(*root, 0, {});
  std::unique_ptr<CatfishTree> tree(
      new CatfishTree(service, options, arena, KeyWords(*word_memory, node.AddressOf(*word_memory), words)));
  GANNET_RETURN_IF_ERROR(service->Add(id, tree.get()));
  return tree;
}

void CatfishTree::ReleaseMemory() {
  service_->slab().FreeExtent(arena_.memory + key_words_.AddressOf(0).offset(), key_words_.count() * kWordBytes);
}

CatfishTree::~CatfishTree() {
  rdma::SlabCache slab(&service_->slab());
  arena_.pool->Close(slab);
  std::vector<uint64_t> nodes = {root_offset()};
  NodeCopy copy;
  while (!nodes.empty()) {
    const uint64_t offset = nodes.back();
    nodes.pop_back();
    Copy(offset, &copy);
    if (copy.head.level > 0) {
      for (const Entry& entry : copy.entries()) nodes.push_back(entry.target);
    }
    slab.Free(arena_.memory + offset, arena_.layout.bytes);
  }
}

void CatfishTree::Copy(uint64_t offset, NodeCopy* copy) const {
  const Node node = arena_.At(offset);
  for (Backoff backoff; !node.TryCopy(copy); backoff.Pause()) {
  }
  Charge(Cost::kIndexStep);
  ChargeEntries(*copy);
}

Status CatfishTree::Scan(const ScanRange&, ScanResult*) {
  return NoOrder();
}
Status CatfishTree::ScanStep(const ScanRange&, size_t, std::optional<ScanPosition>*, ScanResult*) {
  return NoOrder();
}

}  // namespace catfish

StatusOr<std::unique_ptr<LocalIndex>> CreateCatfish(IndexService* service, IndexId id, KeyKind key_kind,
                                                    size_t max_key_bytes, uint64_t expected_keys,
                                                    const CatfishOptions& options) {
  if (key_kind != KeyKind::kBytes || max_key_bytes < RectangleKey::kBytes || max_key_bytes > kShortKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a catfish index has byte keys of ", RectangleKey::kBytes,
                                                   " bytes (rectangle.h): choose byte keys and max_key_bytes from ",
                                                   RectangleKey::kBytes, " to ", kShortKeyBytes));
  }
  if (options.node_entries < kMinCatfishNodeEntries || options.node_entries > kMaxCatfishNodeEntries) {
    return absl::InvalidArgumentError(absl::StrCat("node_entries must be from ", kMinCatfishNodeEntries, " to ",
                                                   kMaxCatfishNodeEntries, ", not ", options.node_entries));
  }
  if (options.variant > CatfishVariant::kHilbert) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no variant ", static_cast<int>(options.variant), " of catfish"));
  }
  if (options.world.has_value()) GANNET_RETURN_IF_ERROR(CheckRectangle(*options.world));
  return catfish::CatfishTree::Create(service, id, expected_keys, options);
}

}  // namespace gannet::index
