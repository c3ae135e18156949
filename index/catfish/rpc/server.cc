// Catfish at the owner: answers to clients.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/catfish/rpc/messages.h"
#include "index/catfish/tree.h"
#include "index/change_wire.h"
#include "index/key_wire.h"
#include "index/service_method.h"

namespace gannet::index {
namespace catfish {
namespace {

// The key of a request: the index takes any bytes, but only in its kind.
StatusOr<Key> GetByteKey(rdma::WireReader& request) {
  bool valid = false;
  const Key key = GetKey(request, &valid);
  if (!valid || key.kind() != KeyKind::kBytes) return absl::InvalidArgumentError("a request without a whole byte key");
  return key;
}

Status ServeDescribe(CatfishTree* tree, Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  GANNET_RETURN_IF_ERROR(request.Finish());
  const KeyWords& words = tree->key_words();
  PutDescription(response, {.node_entries = tree->options().node_entries,
                            .offloading = tree->options().offloading,
                            .root = static_cast<uint64_t>(tree->arena().root - tree->arena().memory),
                            .key_words = words.AddressOf(0).offset(),
                            .key_word_count = static_cast<uint32_t>(words.count()),
                            .seed = words.seed()});
  return absl::OkStatus();
}

Status ServeFind(CatfishTree* tree, Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  const StatusOr<Key> key = GetByteKey(request);
  if (!key.ok()) return key.status();
  GANNET_RETURN_IF_ERROR(request.Finish());
  const FindResult found = tree->Find(*key);
  response.PutAddress(found.record);
  if (found.record.is_null()) PutWitness(response, found.witness);
  return absl::OkStatus();
}

Status ServeChange(CatfishTree* tree, Context& context, bool insert, rdma::WireReader& request,
                   rdma::WireWriter& response) {
  const StatusOr<Key> key = GetByteKey(request);
  if (!key.ok()) return key.status();
  const rdma::GlobalAddress record = request.GetAddress();
  GANNET_RETURN_IF_ERROR(request.Finish());
  rdma::Node& node = tree->node();
  if (record.node() != node.id() || record.marked() || record.offset() % kLineBytes != 0 ||
      record.offset() < node.writable_offset() || record.offset() >= node.memory().size()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no record at ", record.ToString()));
  }
  const StatusOr<Change> change =
      insert ? tree->Insert(context, *key, record, nullptr) : tree->Remove(context, *key, record);
  if (!change.ok()) return change.status();
  PutChange(response, *change);
  return absl::OkStatus();
}

Status ServeSearch(CatfishTree* tree, Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  WindowQuery query;
  query.window = GetRectangle(request);
  query.at_one_moment = request.GetU8() != 0;
  std::optional<ScanPosition> position = GetPosition(request);
  GANNET_RETURN_IF_ERROR(request.Finish());
  ScanResult result;
  GANNET_RETURN_IF_ERROR(tree->SearchStep(query, kMostEntriesInMessage, kMostWitnessesInMessage, &position, &result));
  PutPosition(response, position);
  PutResult(response, result);
  return absl::OkStatus();
}

// So many entries the owner looks for on behalf of a client. One that wants more searches everything, step by step, and
// takes the memory for that itself.
constexpr uint64_t kMostNearest = 1 << 20;

double ReachOf(const NearestQuery& query, const ScanResult& result) {
  if (result.entries.size() < query.count) return std::numeric_limits<double>::infinity();
  const StatusOr<RectangleKey> last = DecodeRectangleKey(result.entries.back().key.view());
  GANNET_CHECK(last.ok(), "a key of an R-tree: %s", last.status().ToString());
  return last->box.SquaredDistance(query.x, query.y);
}

Status ServeNearest(CatfishTree* tree, Context&, rdma::WireReader& request, rdma::WireWriter& response) {
  NearestQuery query;
  query.x = GetNumber(request);
  query.y = GetNumber(request);
  query.count = request.GetU64();
  GANNET_RETURN_IF_ERROR(request.Finish());
  if (query.count > kMostNearest) {
    response.PutU8(0);
    PutNumber(response, std::numeric_limits<double>::infinity());
    return absl::OkStatus();
  }
  ScanResult result;
  GANNET_RETURN_IF_ERROR(tree->Nearest(query, &result));
  const bool fits =
      result.entries.size() <= kMostEntriesInMessage && result.witnesses.size() <= kMostWitnessesInMessage;
  response.PutU8(fits ? 1 : 0);
  if (fits) {
    PutResult(response, result);
  } else {
    PutNumber(response, ReachOf(query, result));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace catfish

void RegisterCatfishMethods(IndexService* service) {
  using catfish::CatfishTree;
  const auto handle = [service](rdma::MethodId id, auto method) {
    ServeIndexMethod<CatfishTree>(service, id, "catfish", method);
  };
  handle(catfish::kDescribe, catfish::ServeDescribe);
  handle(catfish::kFind, catfish::ServeFind);
  handle(catfish::kInsert,
         [](CatfishTree* tree, Context& context, rdma::WireReader& request, rdma::WireWriter& response) {
           return catfish::ServeChange(tree, context, true, request, response);
         });
  handle(catfish::kRemove,
         [](CatfishTree* tree, Context& context, rdma::WireReader& request, rdma::WireWriter& response) {
           return catfish::ServeChange(tree, context, false, request, response);
         });
  handle(catfish::kSearch, catfish::ServeSearch);
  handle(catfish::kNearest, catfish::ServeNearest);
}

}  // namespace gannet::index
