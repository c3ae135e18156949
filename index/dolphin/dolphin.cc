// Dolphin's place among the kinds: its construction and its calls.
#include "index/dolphin/dolphin.h"

#include "absl/strings/str_cat.h"
#include "index/dolphin/dolphin_index.h"
#include "index/dolphin/remote_dolphin.h"
#include "index/shared_leaf/leaf_index.h"

namespace gannet::index {

StatusOr<std::unique_ptr<LocalIndex>> CreateDolphin(IndexService* service, IndexId id, KeyKind key_kind,
                                                    const DolphinOptions& options) {
  if (options.key_lines == 0 || options.key_lines > dolphin::kMostKeyLines) {
    return absl::InvalidArgumentError(
        absl::StrCat("a leaf has 1 to ", dolphin::kMostKeyLines, " key lines, not ", options.key_lines));
  }
  StatusOr<std::unique_ptr<LocalIndex>> index;
  if (key_kind == KeyKind::kInteger) {
    index = dolphin::DolphinIndex<dolphin::IntegerKeys>::Create(service, id, {options.key_lines}, options);
  } else {
    GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kShortKeyBytes));
    index = dolphin::DolphinIndex<dolphin::ByteKeys>::Create(service, id,
                                                             {KeyedHash::DrawSeed(), options.max_key_bytes}, options);
  }
  if (!index.ok()) return index.status();
  // A node of very many tables has no channel for each.
  dynamic_cast<shared_leaf::AnyLeafIndex&>(**index).MakeEditor().IgnoreError();
  GANNET_RETURN_IF_ERROR(service->Add(id, index->get()));
  return index;
}

void RegisterDolphinMethods(IndexService* service) {
  shared_leaf::RegisterLeafMethods(service, dolphin::kDescribe, "dolphin");
}

StatusOr<std::unique_ptr<RemoteIndex>> ConnectDolphin(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                      const DolphinClientOptions& options) {
  if (channel->node() >= dolphin::kMostNodes) {
    return absl::InvalidArgumentError(absl::StrCat("node ", channel->node(),
                                                   " cannot use an index of the kind dolphin, ",
                                                   "which is for nodes 0 to ", dolphin::kMostNodes - 1));
  }
  if (options.key_kind == KeyKind::kInteger) {
    return std::make_unique<dolphin::RemoteDolphin<dolphin::IntegerKeys>>(channel, owner, id, options);
  }
  GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kShortKeyBytes));
  return std::make_unique<dolphin::RemoteDolphin<dolphin::ByteKeys>>(channel, owner, id, options);
}

}  // namespace gannet::index
