#include "index/xstore/xstore.h"

#include "absl/strings/str_cat.h"
#include "index/xstore/owner/xstore_of.h"

namespace gannet::index {
namespace xstore {
namespace {

template <int W>
StatusOr<std::unique_ptr<XStore>> CreateOf(IndexService* service, const XStoreOptions& options) {
  StatusOr<std::unique_ptr<Tree<W>>> tree = Tree<W>::Create(service, options.key_kind);
  if (!tree.ok()) return tree.status();
  return std::make_unique<XStoreOf<W>>(std::move(*tree), options);
}

}  // namespace
}  // namespace xstore

StatusOr<std::unique_ptr<XStore>> XStore::Create(IndexService* service, IndexId id, const XStoreOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kMaxKeyBytes));
  if (options.keys_per_sub_model < 1) return absl::InvalidArgumentError("keys_per_sub_model must be at least 1");
  if (options.trainers < 1 || options.trainers > kMostXStoreTrainers) {
    return absl::InvalidArgumentError(
        absl::StrCat("trainers must be from 1 to ", kMostXStoreTrainers, ", not ", options.trainers));
  }
  StatusOr<std::unique_ptr<XStore>> index = xstore::WithWordsOf(
      options.key_kind, options.max_key_bytes, [&]<int W>() { return xstore::CreateOf<W>(service, options); });
  if (!index.ok()) return index.status();
  GANNET_RETURN_IF_ERROR(service->Add(id, index->get()));
  return index;
}

}  // namespace gannet::index
