#include "index/xstore/xstore.h"

#include "absl/strings/str_cat.h"
#include "index/xstore/tree.h"

namespace gannet::index {
namespace xstore {
namespace {

// The index for keys of W words.
template <int W>
class XStoreOf final : public XStore {
 public:
  explicit XStoreOf(std::unique_ptr<Tree<W>> tree) : tree_(std::move(tree)) {}

  FindResult Find(const Key& key) override { return tree_->Find(Encode<W>(key)); }
  void FindMany(std::span<const Key> keys, std::span<FindResult> results) override { tree_->FindMany(keys, results); }
  StatusOr<Change> Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                          rdma::GlobalAddress* existing) override {
    return tree_->Insert(context, Encode<W>(key), record, existing);
  }
  StatusOr<Change> Remove(Context& context, const Key& key, rdma::GlobalAddress record) override {
    return tree_->Remove(context, Encode<W>(key), record);
  }
  Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override {
    return tree_->Replace(Encode<W>(key), from, to);
  }
  Status Scan(const ScanRange& range, ScanResult* result) override {
    const KeyWords<W> from = EncodeFrom<W>(range.from);
    const KeyWords<W> to = EncodeTo<W>(range.to);
    if (range.limit == 0 || to < from) return absl::OkStatus();
    if (range.reverse) {
      tree_->ScanReverse(from, to, range.limit, result);
    } else {
      tree_->ScanForward(from, to, range.limit, result);
    }
    return absl::OkStatus();
  }
  Status BulkLoad(Context& context, std::span<const Entry> entries, double fill) override {
    return tree_->BulkLoad(context, entries, fill);
  }
  Statistics statistics() override { return tree_->statistics(); }
  Status CheckStructure() override { return tree_->CheckStructure(); }
  ModelStatistics model_statistics() override { return {}; }

 private:
  std::unique_ptr<Tree<W>> tree_;
};

template <int W>
StatusOr<std::unique_ptr<XStore>> CreateOf(IndexService* service, const XStoreOptions& options) {
  StatusOr<std::unique_ptr<Tree<W>>> tree = Tree<W>::Create(service, options.key_kind);
  if (!tree.ok()) return tree.status();
  return std::make_unique<XStoreOf<W>>(std::move(*tree));
}

StatusOr<std::unique_ptr<XStore>> CreateAny(IndexService* service, const XStoreOptions& options) {
  if (options.key_kind == KeyKind::kInteger || options.max_key_bytes <= CapacityOf(1))
    return CreateOf<1>(service, options);
  if (options.max_key_bytes <= CapacityOf(3)) return CreateOf<3>(service, options);
  if (options.max_key_bytes <= CapacityOf(5)) return CreateOf<5>(service, options);
  return CreateOf<9>(service, options);
}

}  // namespace
}  // namespace xstore

StatusOr<std::unique_ptr<XStore>> XStore::Create(IndexService* service, IndexId id, const XStoreOptions& options) {
  if (options.max_key_bytes < 1 || options.max_key_bytes > kMaxKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("keys of an index have 1 to ", kMaxKeyBytes, " bytes, not ", options.max_key_bytes));
  }
  if (options.keys_per_sub_model < 1) return absl::InvalidArgumentError("keys_per_sub_model must be at least 1");
  StatusOr<std::unique_ptr<XStore>> index = xstore::CreateAny(service, options);
  if (!index.ok()) return index.status();
  GANNET_RETURN_IF_ERROR(service->Add(id, index->get()));
  return index;
}

}  // namespace gannet::index
