#include "tests/index/record_helper.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "index/key_wire.h"

namespace gannet::index {
namespace {

template <class T>
T Must(StatusOr<T> result) {
  GANNET_CHECK(result.ok(), "%s", result.status().ToString());
  return std::move(*result);
}

void Must(const Status& status) {
  GANNET_CHECK(status.ok(), "%s", status.ToString());
}

constexpr uint64_t kDead = 1;  // in a test record's state word

coro::Task<Status> ReadInto(rdma::Channel* channel, rdma::GlobalAddress from, void* to, uint32_t size) {
  co_return co_await channel->Read(from, to, size);
}

}  // namespace

IndexCluster::IndexCluster(const Options& options)
    : made_(rdma::MakeTestFabric({.num_nodes = 2,
                                  .bytes_per_node = options.bytes_per_node,
                                  .adversarial = options.adversarial,
                                  .seed = options.seed})),
      outer_(options.wrap != nullptr ? options.wrap(made_.fabric.get()) : nullptr),
      fabric_(outer_ != nullptr ? outer_.get() : made_.fabric.get()),
      connect_(options.connect) {
  if (made_.join != nullptr) client_process_ = std::make_unique<ClientProcess>(made_.join, connect_);
  Open(client_process_ != nullptr ? std::vector<rdma::NodeId>{0} : std::vector<rdma::NodeId>{0, 1});
  if (client_process_ != nullptr) client_process_->AwaitReady();
}

IndexCluster::IndexCluster(std::unique_ptr<rdma::Fabric> fabric, Connector connect)
    : made_{.fabric = std::move(fabric), .kill = nullptr}, fabric_(made_.fabric.get()), connect_(std::move(connect)) {
  Open({1});
}

void IndexCluster::Open(const std::vector<rdma::NodeId>& here) {
  here_ = here;
  for (const rdma::NodeId id : here_) members_[id].node = Must(fabric_->Attach(id));
  Must(fabric_->WaitForAll(absl::Seconds(60)));
  for (const rdma::NodeId id : here_) {
    Member& member = members_[id];
    member.slab = std::make_unique<rdma::SlabAllocator>(member.node.get());
    member.epochs = Must(rdma::EpochManager::Create(fabric_, member.node.get(), member.slab.get()));
    member.service = std::make_unique<IndexService>(member.node.get(), member.slab.get(), member.epochs.get());
  }
  for (const rdma::NodeId id : here_) epoch_channels_[id] = Must(members_[id].node->OpenChannel());
}

IndexCluster::~IndexCluster() {
  client_process_.reset();
  for (const rdma::NodeId id : here_) members_[id].epochs->Stop();
  for (const rdma::NodeId id : here_) members_[id].node->Shutdown();
  for (auto& channel : epoch_channels_) channel.reset();
  for (Member& member : members_) {
    member.service.reset();
    member.epochs.reset();
    member.slab.reset();
    member.node.reset();
  }
}

void IndexCluster::Serve() {
  Must(owner().node->Serve(1));
}

void IndexCluster::StartEpochs() {
  for (const rdma::NodeId id : here_) Must(members_[id].epochs->Start());
  if (client_process_ != nullptr) client_process_->StartEpochs();
}

void IndexCluster::PassGracePeriod() {
  for (int round = 0; round < 4; ++round) {
    for (const rdma::NodeId id : here_) Must(members_[id].epochs->Advance(epoch_channels_[id].get()));
    if (client_process_ != nullptr) client_process_->Advance();
  }
}

void IndexCluster::Kill(rdma::NodeId node) {
  made_.kill(node);
}

OwnerThread::OwnerThread(IndexCluster* cluster)
    : cluster_(cluster),
      slab_(std::make_unique<rdma::SlabCache>(cluster->owner().slab.get())),
      epoch_(Must(rdma::EpochManager::Participant::Join(cluster->owner().epochs.get()))),
      context_{slab_.get(), epoch_.get()} {}

rdma::GlobalAddress OwnerThread::NewRecord(const Key& key, uint32_t payload_bytes) {
  const size_t bytes = RecordBytes(key.size(), payload_bytes);
  std::byte* record = Must(slab_->Allocate(bytes));
  const uint64_t state = (LoadWord(record) | kDead) + 1;
  const uint16_t incarnation = static_cast<uint16_t>(LoadMeta(record).incarnation + 1);
  rdma::BeginWrite(record, bytes / kLineBytes);
  StoreHeader(
      record,
      {.key_bytes = static_cast<uint16_t>(key.size()), .payload_bytes = payload_bytes, .incarnation = incarnation},
      key);
  rdma::EndWrite(record, bytes / kLineBytes, state);
  return cluster_->owner().node->AddressOf(record);
}

void OwnerThread::RetireRecord(rdma::GlobalAddress address) {
  std::byte* record = cluster_->At(address);
  StoreWord(record, LoadWord(record) | kDead);
  const RecordMeta meta = LoadMeta(record);
  epoch_->Retire(record, RecordBytes(meta.key_bytes, meta.payload_bytes), slab_.get());
}

ClientThread::ClientThread(IndexCluster* cluster) : cluster_(cluster) {
  if (cluster->client_process() != nullptr) {
    wire_ = cluster->client_process()->Take();
    wire_->Command(Ask::kOpen);
    return;
  }
  channel_ = Must(cluster->client().node->OpenChannel());
  epoch_ = Must(rdma::EpochManager::Participant::Join(cluster->client().epochs.get()));
  worker_.AddPoller([this] { return channel_->Poll(); });
}

StatusOr<FindResult> ClientThread::AskForResult(Ask what, const Key& key, const FindResult* settle) {
  const auto put = [&](rdma::WireWriter& writer) {
    if (settle != nullptr) PutFound(writer, *settle);
    PutKey(writer, key);
  };
  rdma::WireReader answer = wire_->AskFor(what, put);
  GANNET_RETURN_IF_ERROR(GetStatus(answer));
  return GetFound(answer);
}

StatusOr<std::unique_ptr<RemoteIndex>> ClientThread::Connect(IndexId id) {
  if (wire_ == nullptr) return cluster_->connector()(channel_.get(), id);
  rdma::WireReader answer = wire_->AskFor(Ask::kConnect, [id](rdma::WireWriter& writer) { writer.PutU16(id); });
  GANNET_RETURN_IF_ERROR(GetStatus(answer));
  return ProxyOf(wire_.get());
}

void ClientThread::Enter() {
  if (wire_ != nullptr) return wire_->Command(Ask::kEnter);
  epoch_->Enter();
}

void ClientThread::Leave() {
  if (wire_ != nullptr) return wire_->Command(Ask::kLeave);
  epoch_->Leave();
}

StatusOr<FindResult> ClientThread::Find(RemoteIndex* index, const Key& key) {
  if (wire_ != nullptr) return AskForResult(Ask::kFind, key, nullptr);
  StatusOr<FindResult> found = Await(index->Find(key));
  if (!found.ok()) return found;
  return Settle(index, key, *found);
}

StatusOr<FindResult> ClientThread::Settle(RemoteIndex* index, const Key& key, FindResult result) {
  if (wire_ != nullptr) return AskForResult(Ask::kSettle, key, &result);
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (result.record.is_null()) return result;
    alignas(kLineBytes) std::array<std::byte, HeaderReadBytes(kMaxKeyBytes)> image;
    const Status status = Await(
        ReadInto(channel_.get(), result.record, image.data(), static_cast<uint32_t>(HeaderReadBytes(key.size()))));
    GANNET_RETURN_IF_ERROR(status);
    if (RecordHoldsKey(image.data(), key) && (LoadWord(image.data()) & kDead) == 0) return result;
    if (!result.from_cache) {
      result.record = {};
      return result;
    }
    index->Forget(key);
    StatusOr<FindResult> again = Await(index->Find(key));
    if (!again.ok()) return again;
    result = *again;
  }
  return absl::InternalError("the index's cache gives the same stale address again and again");
}

bool ClientThread::Valid(const Witness& witness) {
  if (wire_ != nullptr) {
    const auto put = [&](rdma::WireWriter& writer) {
      writer.PutAddress(witness.word);
      writer.PutU64(witness.seen);
    };
    return wire_->AskFor(Ask::kValid, put).GetU8() != 0;
  }
  uint64_t word = 0;
  Must(Await(ReadInto(channel_.get(), witness.word, &word, sizeof word)));
  return IsSameSet(word, witness.seen);
}

}  // namespace gannet::index
