// XStore at the owner: answers to clients.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "index/record_of_peer.h"
#include "index/service_method.h"
#include "index/xstore/owner/xstore_of.h"

namespace gannet::index {
namespace xstore {

template <int W>
Status XStoreOf<W>::ServeDescribe(rdma::WireReader& request, rdma::WireWriter& response,
                                  const std::shared_ptr<Trainer>& trainer) {
  GANNET_RETURN_IF_ERROR(request.Finish());
  models_.Start(trainer);
  response.PutU8(W);
  response.PutU8(static_cast<uint8_t>(tree_->kind()));
  const std::shared_ptr<const Model<W>> model = models_.model();
  response.PutU64(model == nullptr ? 0 : model->generation());
  if (model == nullptr) return absl::OkStatus();
  model->top().Encode(response);
  response.PutU32(static_cast<uint32_t>(model->directory().size()));
  for (const uint32_t block : model->directory()) response.PutU32(block);
  return absl::OkStatus();
}

// The leaf of a hint, by this owner's own table; null if the hint is not valid here.
template <int W>
Leaf<W> XStoreOf<W>::LeafOf(const Model<W>* model, const PositionHint& hint) const {
  if (model == nullptr || hint.generation != model->generation() || hint.sub_model >= model->sub_models()) {
    return Leaf<W>();
  }
  const SubModelLine line = model->LineOf(hint.sub_model);
  if (hint.leaf >= line.model.size) return Leaf<W>();
  const std::byte* entry = model->TableAt(line.table) + uint64_t{hint.leaf} * kWordBytes;
  return tree_->LeafAt(TableEntry::Unpack(LoadWord(entry)).leaf);
}

template <int W>
void XStoreOf<W>::PutRefresh(rdma::WireWriter& writer, const Model<W>* model, const KeyWords<W>& key) const {
  constexpr size_t kLineWords = 5;
  const size_t reserve = kMaxKeysPerFind * 32;  // for the rest of the response
  if (model == nullptr || writer.room() < reserve + 64) {
    writer.PutU8(0);
    return;
  }
  writer.PutU8(1);
  const SubModelLine line = model->LineOf(model->top().Locate(key).sub_model);
  alignas(kWordBytes) std::byte image[kLineBytes] = {};
  line.Store(image);
  for (size_t i = 0; i < kLineWords; ++i) writer.PutU64(LoadWord(image + i * kWordBytes));
  const size_t size = line.model.size;
  if (size > kMaxRefreshEntries || writer.room() < reserve + size * kWordBytes) {
    writer.PutU32(0);
    return;
  }
  writer.PutU32(line.model.size);
  for (size_t i = 0; i < size; ++i) writer.PutU64(LoadWord(model->TableAt(line.table) + i * kWordBytes));
}

template <int W>
Status XStoreOf<W>::ServeFind(rdma::WireReader& request, rdma::WireWriter& response) {
  const size_t count = request.GetU8();
  if (count > kMaxKeysPerFind) return absl::InvalidArgumentError(absl::StrCat("a kFind with ", count, " keys"));
  const std::shared_ptr<const Model<W>> model = models_.model();
  response.PutU64(model == nullptr ? 0 : model->generation());
  for (size_t i = 0; i < count; ++i) {
    const PositionHint hint = PositionHint::Get(request);
    const KeyWords<W> key = GetKey<W>(request);
    if (!request.ok()) break;
    const FindResult found = tree_->Find(key, LeafOf(model.get(), hint));
    response.PutAddress(found.record);
    if (found.record.is_null()) PutWitness(response, found.witness);
    PutRefresh(response, model.get(), key);
  }
  return request.Finish();
}

template <int W>
Status XStoreOf<W>::ServeInsert(Context& context, rdma::WireReader& request, rdma::WireWriter& response) {
  const PositionHint hint = PositionHint::Get(request);
  const KeyWords<W> key = GetKey<W>(request);
  const rdma::GlobalAddress record = request.GetAddress();
  GANNET_RETURN_IF_ERROR(request.Finish());
  OwnedKey decoded;
  Decode(key, tree_->kind(), &decoded);
  if (!IsKey(key, tree_->kind())) return absl::InvalidArgumentError("a client inserts an invalid key");
  if (!IsRecordOfKey(tree_->service().node(), record, decoded.view())) {
    return absl::InvalidArgumentError("a client inserts a key with a record that does not hold it");
  }
  const std::shared_ptr<const Model<W>> model = models_.model();
  const StatusOr<Change> change = tree_->Insert(context, key, record, nullptr, LeafOf(model.get(), hint));
  if (!change.ok()) return change.status();
  PutChange(response, *change);
  return absl::OkStatus();
}

template <int W>
Status XStoreOf<W>::ServeRemove(Context& context, rdma::WireReader& request, rdma::WireWriter& response) {
  const PositionHint hint = PositionHint::Get(request);
  const KeyWords<W> key = GetKey<W>(request);
  const rdma::GlobalAddress record = request.GetAddress();
  GANNET_RETURN_IF_ERROR(request.Finish());
  const std::shared_ptr<const Model<W>> model = models_.model();
  const StatusOr<Change> change = tree_->Remove(context, key, record, LeafOf(model.get(), hint));
  if (!change.ok()) return change.status();
  PutChange(response, *change);
  return absl::OkStatus();
}

template <int W>
Status XStoreOf<W>::ServeScan(rdma::WireReader& request, rdma::WireWriter& response) {
  const bool reverse = request.GetU8() != 0;
  const KeyWords<W> from = GetKey<W>(request);
  const KeyWords<W> to = GetKey<W>(request);
  const uint64_t limit = request.GetU64();
  GANNET_RETURN_IF_ERROR(request.Finish());
  if (limit == 0 || to < from) return absl::InvalidArgumentError("an empty scan needs no answer");
  const size_t here = std::min<uint64_t>(limit, kMaxScanEntries<W>);
  ScanResult result;
  KeyWords<W> next{};
  const bool more = ScanSome(from, to, reverse, here, kMaxScanLeaves, &result, &next) && result.entries.size() < limit;
  const std::shared_ptr<const Model<W>> model = models_.model();
  response.PutU64(model == nullptr ? 0 : model->generation());
  response.PutU8(more ? 1 : 0);
  PutKey(response, next);
  response.PutU32(static_cast<uint32_t>(result.entries.size()));
  for (const Entry& entry : result.entries) {
    PutKey(response, Encode<W>(entry.key.view()));
    response.PutAddress(entry.record);
  }
  response.PutU32(static_cast<uint32_t>(result.witnesses.size()));
  for (const Witness& witness : result.witnesses) PutWitness(response, witness);
  return absl::OkStatus();
}

#define GANNET_INSTANTIATE(W) template class XStoreOf<W>;
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)

}  // namespace xstore

void RegisterXStoreMethods(IndexService* service) {
  using xstore::RpcTarget;
  const auto handle = [service](rdma::MethodId id, auto method) {
    ServeIndexMethod<RpcTarget>(service, id, "XStore", method);
  };
  handle(xstore::kDescribe, [service](RpcTarget* target, Context&, rdma::WireReader& reader, rdma::WireWriter& writer) {
    return target->ServeDescribe(reader, writer, service->trainer());
  });
  handle(xstore::kFind, [](RpcTarget* target, Context&, rdma::WireReader& reader, rdma::WireWriter& writer) {
    return target->ServeFind(reader, writer);
  });
  handle(xstore::kInsert, [](RpcTarget* target, Context& context, rdma::WireReader& reader, rdma::WireWriter& writer) {
    return target->ServeInsert(context, reader, writer);
  });
  handle(xstore::kRemove, [](RpcTarget* target, Context& context, rdma::WireReader& reader, rdma::WireWriter& writer) {
    return target->ServeRemove(context, reader, writer);
  });
  handle(xstore::kScan, [](RpcTarget* target, Context&, rdma::WireReader& reader, rdma::WireWriter& writer) {
    return target->ServeScan(reader, writer);
  });
}
#undef GANNET_INSTANTIATE

}  // namespace gannet::index
