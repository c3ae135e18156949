#include "index/shared_leaf/change/change_calls.h"

#include <array>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/change_wire.h"
#include "index/key_wire.h"
#include "index/service_method.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "rdma/rpc.h"

namespace gannet::index::shared_leaf {
namespace {

// Index, kind and length of the key, key, two addresses.
constexpr size_t kRequestBytes = 2 + 1 + 4 + kShortKeyBytes + 16;
// A change of shared leaves lists at most three words: those of a split root.
constexpr size_t kResponseBytes = ChangeBytes(8);
// Repetitions of a Replace of any record, while other threads map the key to other records.
constexpr int kMostTries = 1000;

Status Malformed() {
  return absl::InvalidArgumentError("a malformed request to change an index");
}

Status TooLong(const Key& key) {
  return absl::InvalidArgumentError(
      absl::StrCat("a key of ", key.size(), " bytes: an index has keys of at most ", kShortKeyBytes));
}

// The common beginning of the three requests. The caller of ReadAsked has a guard.
struct Asked {
  LocalIndex* index = nullptr;
  Key key{};
};

StatusOr<Asked> ReadAsked(IndexService* service, rdma::WireReader& reader) {
  const IndexId id = reader.GetU16();
  Asked asked{.index = service->Find(id)};
  bool valid = false;
  asked.key = GetKey(reader, &valid);
  if (!valid) return Malformed();
  auto* const lender = dynamic_cast<BlockLender*>(asked.index);
  if (lender == nullptr) {
    return absl::NotFoundError(absl::StrCat("node ", service->node().id(), " has no index ", id, " of shared leaves"));
  }
  const LeafBlocks& blocks = lender->blocks();
  if (asked.key.kind() != blocks.key_kind() || asked.key.size() > kShortKeyBytes) return Malformed();
  return asked;
}

StatusOr<size_t> ServeChange(IndexService* service, rdma::MethodId method, std::span<const std::byte> request,
                             std::span<std::byte> response) {
  rdma::WireReader reader(request);
  IndexService::Guard guard(service);
  const StatusOr<Asked> asked = ReadAsked(service, reader);
  if (!asked.ok()) return asked.status();
  const rdma::GlobalAddress record = reader.GetAddress();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  if (record.is_null()) return Malformed();
  const StatusOr<Change> change = method == kCallInsert
                                      ? asked->index->Insert(guard.context(), asked->key, record, nullptr)
                                      : asked->index->Remove(guard.context(), asked->key, record);
  if (!change.ok()) return change.status();
  rdma::WireWriter writer(response);
  PutChange(writer, *change);
  return writer.Finish();
}

Status ReplaceAny(LocalIndex* index, const Key& key, rdma::GlobalAddress to) {
  Status replaced;
  for (int i = 0; i < kMostTries; ++i) {
    const rdma::GlobalAddress from = index->Find(key).record;
    if (from.is_null()) return absl::NotFoundError(absl::StrCat("the key ", key.ToString(), " is not in the index"));
    replaced = index->Replace(key, from, to);
    if (!absl::IsNotFound(replaced)) return replaced;
  }
  return absl::UnavailableError(absl::StrCat("the record of the key ", key.ToString(), " changes all the time"));
}

StatusOr<size_t> ServeReplace(IndexService* service, std::span<const std::byte> request) {
  rdma::WireReader reader(request);
  const IndexService::Guard guard(service);
  const StatusOr<Asked> asked = ReadAsked(service, reader);
  if (!asked.ok()) return asked.status();
  const rdma::GlobalAddress from = reader.GetAddress();
  const rdma::GlobalAddress to = reader.GetAddress();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  if (to.is_null()) return Malformed();
  GANNET_RETURN_IF_ERROR(from.is_null() ? ReplaceAny(asked->index, asked->key, to)
                                        : asked->index->Replace(asked->key, from, to));
  return 0;
}

Status ServeEndClaims(BlockLender* index, Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  std::array<WordChange, kMostClaims> claims;
  size_t n = 0;
  for (; request.remaining() > 0 && n < claims.size(); ++n) {
    claims[n].word = request.GetAddress();
    claims[n].before = request.GetU64();
  }
  GANNET_RETURN_IF_ERROR(request.Finish());
  GANNET_RETURN_IF_ERROR(index->EndClaims(std::span(claims).first(n)));
  for (size_t i = 0; i < n; ++i) response.PutU64(claims[i].after);
  return absl::OkStatus();
}

}  // namespace

void RegisterChangeCalls(IndexService* service) {
  if (!service->MayRegister(kCallInsert)) return;
  for (const rdma::MethodId method : {kCallInsert, kCallRemove}) {
    service->node().Handle(
        method, [service, method](rdma::NodeId, std::span<const std::byte> request, std::span<std::byte> response) {
          return ServeChange(service, method, request, response);
        });
  }
  ServeIndexMethod<BlockLender>(service, kEndClaims, "shared-leaf", ServeEndClaims);
  service->node().Handle(kCallReplace, [service](rdma::NodeId, std::span<const std::byte> request,
                                                 std::span<std::byte>) { return ServeReplace(service, request); });
}

coro::Task<StatusOr<Change>> ChangeCalls::Call(rdma::MethodId method, Key key, rdma::GlobalAddress record) {
  std::array<std::byte, kRequestBytes> request;
  std::array<std::byte, kResponseBytes> response;
  rdma::WireWriter writer(request);
  writer.PutU16(index_);
  PutKey(writer, key);
  writer.PutAddress(record);
  if (!writer.ok()) co_return TooLong(key);
  const StatusOr<size_t> bytes = co_await channel_->Call(owner_, method, writer.written(), response, timeout_);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  Change change;
  if (!GetChange(reader, &change) || !reader.Finish().ok()) {
    co_return absl::DataLossError(absl::StrCat("node ", owner_, " sent a malformed change"));
  }
  co_return std::move(change);
}

coro::Task<Status> ChangeCalls::Replace(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  std::array<std::byte, kRequestBytes> request;
  rdma::WireWriter writer(request);
  writer.PutU16(index_);
  PutKey(writer, key);
  writer.PutAddress(from);
  writer.PutAddress(to);
  if (!writer.ok()) co_return TooLong(key);
  const StatusOr<size_t> bytes =
      co_await channel_->Call(owner_, kCallReplace, writer.written(), std::span<std::byte>(), timeout_);
  co_return bytes.status();
}

coro::Task<Status> ChangeCalls::EndClaims(std::span<WordChange> claims) {
  std::array<std::byte, 2 + 16 * kMostClaims> request;
  std::array<std::byte, 8 * kMostClaims> response;
  rdma::WireWriter writer(request);
  writer.PutU16(index_);
  for (const WordChange& claim : claims) {
    writer.PutAddress(claim.word);
    writer.PutU64(claim.before);
  }
  GANNET_CHECK(writer.ok(), "%d claims to end by one call", claims.size());
  const StatusOr<size_t> bytes = co_await channel_->Call(owner_, kEndClaims, writer.written(), response, timeout_);
  if (!bytes.ok()) co_return bytes.status();
  rdma::WireReader reader(std::span<const std::byte>(response).first(*bytes));
  for (WordChange& claim : claims) claim.after = reader.GetU64();
  if (!reader.Finish().ok()) {
    co_return absl::DataLossError(absl::StrCat("node ", owner_, " sent a malformed answer about claims"));
  }
  co_return absl::OkStatus();
}

}  // namespace gannet::index::shared_leaf
