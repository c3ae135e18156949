#include "index/hash/hash_rpc.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "index/change_wire.h"
#include "index/hash/hash_index.h"
#include "index/key_wire.h"
#include "index/record_of_peer.h"

namespace gannet::index {
namespace hash {
namespace {

Status Malformed(const char* what) {
  return absl::DataLossError(absl::StrCat("the owner of a hash index sent a malformed ", what));
}

bool IsNullOrOf(rdma::GlobalAddress address, rdma::NodeId owner) {
  return address == rdma::GlobalAddress() || (address.node() == owner && !address.marked());
}

bool IsSane(const Geometry& geometry) {
  const TableSize size = geometry.size;
  if (geometry.initial == 0 || geometry.initial >> 32 != 0 || size.level() > kMaxDepth) return false;
  if (size.count() < geometry.initial << size.level() || size.count() >> 1 >= geometry.initial << size.level()) {
    return false;
  }
  const int segments = size.level() + (size.count() > geometry.initial << size.level() ? 2 : 1);
  for (int i = 0; i < segments; ++i) {
    const uint64_t offset = geometry.segments[i];
    if (offset == 0 || offset % kLineBytes != 0 || offset > rdma::GlobalAddress::kOffsetMask) return false;
  }
  return true;
}

}  // namespace

void PutDescription(rdma::WireWriter* writer, const Description& description) {
  writer->PutU8(static_cast<uint8_t>(description.key_kind));
  writer->PutU16(static_cast<uint16_t>(description.max_key_bytes));
  writer->PutU64(description.geometry.initial);
  writer->PutU64(description.geometry.size.word());
  for (const uint64_t segment : description.geometry.segments) writer->PutU64(segment);
  for (const uint64_t word : description.seed) writer->PutU64(word);
}

StatusOr<Description> GetDescription(std::span<const std::byte> response) {
  rdma::WireReader reader(response);
  Description description;
  const uint8_t kind = reader.GetU8();
  description.key_kind = static_cast<KeyKind>(kind);
  description.max_key_bytes = reader.GetU16();
  description.geometry.initial = reader.GetU64();
  description.geometry.size = TableSize::FromWord(reader.GetU64());
  for (uint64_t& segment : description.geometry.segments) segment = reader.GetU64();
  for (uint64_t& word : description.seed) word = reader.GetU64();
  const bool known_kind = kind <= static_cast<uint8_t>(KeyKind::kBytes);
  if (!reader.Finish().ok() || !known_kind || description.max_key_bytes > kMaxKeyBytes ||
      !IsSane(description.geometry)) {
    return Malformed("description");
  }
  return description;
}

void PutFindResult(rdma::WireWriter* writer, const FindResult& result) {
  writer->PutAddress(result.record);
  PutWitness(*writer, result.witness);
}

StatusOr<FindResult> GetFindResult(std::span<const std::byte> response, rdma::NodeId owner) {
  rdma::WireReader reader(response);
  FindResult result;
  result.record = reader.GetAddress();
  result.witness = GetWitness(reader);
  if (!reader.Finish().ok() || !IsNullOrOf(result.record, owner) || !IsNullOrOf(result.witness.word, owner) ||
      result.record.is_null() == result.witness.word.is_null()) {
    return Malformed("result of a find");
  }
  return result;
}

StatusOr<Change> GetChange(std::span<const std::byte> response, rdma::NodeId owner) {
  rdma::WireReader reader(response);
  Change change;
  const bool valid = index::GetChange(reader, &change) && reader.Finish().ok() && !change.empty();
  const auto is_foreign = [owner](const WordChange& word) { return !IsNullOrOf(word.word, owner); };
  if (!valid || std::ranges::any_of(change.words(), is_foreign)) return Malformed("change");
  return change;
}

}  // namespace hash

namespace {

// The beginning of every request.
struct Target {
  HashIndex* index = nullptr;
  Key key;
};

// The caller has a guard.
StatusOr<HashIndex*> GetIndex(IndexService* service, rdma::WireReader* reader) {
  const IndexId id = reader->GetU16();
  if (!reader->ok()) return absl::InvalidArgumentError("a request without an index number");
  auto* index = dynamic_cast<HashIndex*>(service->Find(id));
  if (index == nullptr) return absl::NotFoundError(absl::StrCat("no hash index has the number ", id, " here"));
  return index;
}

StatusOr<Target> GetTarget(IndexService* service, rdma::WireReader* reader) {
  StatusOr<HashIndex*> index = GetIndex(service, reader);
  if (!index.ok()) return index.status();
  bool valid = false;
  const Target target{*index, GetKey(*reader, &valid)};
  if (!valid) return absl::InvalidArgumentError("a request without a whole key");
  const HashOptions& options = target.index->options();
  if (target.key.kind() != options.key_kind || target.key.size() > options.max_key_bytes) {
    return absl::InvalidArgumentError("the key is not of the index's kind, or too long");
  }
  return target;
}

// Returns the address of a record of this node that holds the key, or an error.
StatusOr<rdma::GlobalAddress> GetRecord(IndexService* service, rdma::WireReader* reader, const Key& key) {
  const rdma::GlobalAddress record = reader->GetAddress();
  GANNET_RETURN_IF_ERROR(reader->Finish());
  if (!IsRecordOfKey(service->node(), record, key)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no record of key ", key.ToString(), " at ", record.ToString()));
  }
  return record;
}

StatusOr<size_t> HandleDescribe(IndexService* service, std::span<const std::byte> request,
                                std::span<std::byte> response) {
  rdma::WireReader reader(request);
  const IndexService::Guard guard(service);
  StatusOr<HashIndex*> index = GetIndex(service, &reader);
  if (!index.ok()) return index.status();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  rdma::WireWriter writer(response);
  const HashOptions& options = (*index)->options();
  hash::PutDescription(&writer, {(*index)->geometry(), (*index)->seed(), options.key_kind, options.max_key_bytes});
  return writer.Finish();
}

StatusOr<size_t> HandleFind(IndexService* service, std::span<const std::byte> request, std::span<std::byte> response) {
  rdma::WireReader reader(request);
  IndexService::Guard guard(service);
  const StatusOr<Target> target = GetTarget(service, &reader);
  if (!target.ok()) return target.status();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  rdma::WireWriter writer(response);
  hash::PutFindResult(&writer, target->index->Find(target->key));
  return writer.Finish();
}

StatusOr<size_t> HandleChange(IndexService* service, bool insert, std::span<const std::byte> request,
                              std::span<std::byte> response) {
  rdma::WireReader reader(request);
  IndexService::Guard guard(service);
  const StatusOr<Target> target = GetTarget(service, &reader);
  if (!target.ok()) return target.status();
  const StatusOr<rdma::GlobalAddress> record = GetRecord(service, &reader, target->key);
  if (!record.ok()) return record.status();
  const StatusOr<Change> change = insert ? target->index->Insert(guard.context(), target->key, *record, nullptr)
                                         : target->index->Remove(guard.context(), target->key, *record);
  if (!change.ok()) return change.status();
  rdma::WireWriter writer(response);
  PutChange(writer, *change);
  return writer.Finish();
}

}  // namespace

void RegisterHashMethods(IndexService* service) {
  using Request = std::span<const std::byte>;
  using Response = std::span<std::byte>;
  rdma::Node& node = service->node();
  node.Handle(hash::kDescribe, [service](rdma::NodeId, Request request, Response response) {
    return HandleDescribe(service, request, response);
  });
  node.Handle(hash::kFind, [service](rdma::NodeId, Request request, Response response) {
    return HandleFind(service, request, response);
  });
  node.Handle(hash::kInsert, [service](rdma::NodeId, Request request, Response response) {
    return HandleChange(service, true, request, response);
  });
  node.Handle(hash::kRemove, [service](rdma::NodeId, Request request, Response response) {
    return HandleChange(service, false, request, response);
  });
}

}  // namespace gannet::index
