#include "ycsb/server.h"

#include <any>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/stop.h"
#include "rdma/versioned.h"
#include "ycsb/record.h"
#include "ycsb/value.h"

namespace gannet::ycsb {
namespace {

constexpr uint64_t kProgressInterval = 1 << 17;
constexpr uint64_t kFixedBytes = uint64_t{64} << 20;
constexpr const char* kLoading = "keys were loaded";

}  // namespace

uint64_t BytesNeeded(const ServerOptions& options) {
  const double index = index::EntryOf(options.index).bytes_per_key(options.fill);
  const auto record = static_cast<double>(rdma::SlabAllocator::BlockBytes(RecordBytes(options.value_bytes)));
  const double both = options.values_in_entries ? index : record + index;
  return kFixedBytes + static_cast<uint64_t>(static_cast<double>(options.expected_keys) * both);
}

StatusOr<std::unique_ptr<Server>> Server::Create(rdma::Fabric* fabric, rdma::NodeId id, const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server(options));
  GANNET_RETURN_IF_ERROR(server->Open(fabric, id));
  return server;
}

Status Server::Open(rdma::Fabric* fabric, rdma::NodeId id) {
  if (!fabric->capabilities().line_consistent) {
    return absl::FailedPreconditionError(
        "the bench runs on cards, shared memory and the simulation: a device made of software has no speed to measure");
  }
  auto node = fabric->Attach(id);
  if (!node.ok()) return node.status();
  node_ = *std::move(node);
  cpu_atomics_ = fabric->capabilities().cpu_coherent_atomics;
  slab_ = std::make_unique<rdma::SlabAllocator>(node_.get());
  auto epochs = rdma::EpochManager::Create(fabric, node_.get(), slab_.get());
  if (!epochs.ok()) return epochs.status();
  epochs_ = *std::move(epochs);
  service_ = std::make_unique<index::IndexService>(node_.get(), slab_.get(), epochs_.get());
  const index::IndexKindEntry& kind = index::EntryOf(options_.index);
  std::any own = index::XStoreOptions{.fixed_sub_models = options_.sub_models, .trainers = options_.trainers};
  if (!options_.index_options.empty()) {
    StatusOr<index::OwnOptions> read = index::ReadOwnOptions(kind, options_.index_options);
    if (!read.ok()) return read.status();
    own = std::move(read->options);
  }
  auto created =
      kind.create(service_.get(), kIndex,
                  {.expected_keys = options_.expected_keys, .rights = options_.index_rights, .own = std::move(own)});
  if (!created.ok()) return created.status();
  index_ = *std::move(created);
  if (kind.traits.learned) xstore_ = static_cast<index::XStore*>(index_.get());
  kind.register_methods(service_.get());
  RegisterCalls();
  return OpenLog();
}

Status Server::OpenLog() {
  if (options_.durability == DurabilityMode::kNone) return absl::OkStatus();
  index::IndexService::Guard guard(service_.get());
  const StatusOr<std::byte*> word = guard.context().slab->AllocateReadOnly(kLineBytes);
  if (!word.ok()) return word.status();
  durable_epoch_ = node_->AddressOf(*word);
  auto log = WriteLog::Create(options_.disk.get(), absl::StrCat("/server", node_->id()), *word);
  if (!log.ok()) return log.status();
  write_log_ = *std::move(log);
  return absl::OkStatus();
}

Server::~Server() {
  if (node_ != nullptr) node_->Shutdown();
  if (epochs_ != nullptr) epochs_->Stop();
}

StatusOr<rdma::GlobalAddress> Server::MakeRecord(index::Context& context, uint64_t key,
                                                 std::span<const std::byte> value, uint64_t* state) {
  const StatusOr<txn::NewRecord> made = txn::MakeLockedRecord(*context.slab, kTable, key, value, 0);
  if (!made.ok()) return made.status();
  Charge(Cost::kRecordLine, RecordLines(options_.value_bytes));
  *state = made->state;
  return node_->AddressOf(made->block);
}

Status Server::Load(const KeySpace& space, uint64_t first, uint64_t end, const std::function<void(uint64_t)>& progress,
                    const std::atomic<bool>* stop) {
  max_inserts_.store(space.max_inserts(), std::memory_order_relaxed);
  index::IndexService::Guard guard(service_.get());
  std::vector<index::LoadEntry> entries;
  entries.reserve(end - first);
  std::vector<std::byte> value(options_.value_bytes);
  for (uint64_t rank = first; rank < end; ++rank) {
    GANNET_RETURN_IF_ERROR(CheckStop(stop, kLoading));
    const uint64_t key = space.LoadedKey(rank);
    MakeValue(key, NumberFor(options_.values_in_entries, 0), value);
    if (options_.values_in_entries) {
      entries.push_back({index::Key(key), EntryOfValue(value)});
    } else {
      uint64_t state = 0;
      const StatusOr<rdma::GlobalAddress> record = MakeRecord(guard.context(), key, value, &state);
      if (!record.ok()) return record.status();
      StoreWord(At(*record), txn::NextState(state, false));
      entries.push_back({index::Key(key), *record});
    }
    if (progress && (rank - first) % kProgressInterval == 0) progress(rank - first);
  }
  GANNET_RETURN_IF_ERROR(CheckStop(stop, kLoading));
  Status loaded = index_->BulkLoad(guard.context(), entries, options_.fill);
  if (loaded.ok() && progress) progress(end - first);
  return loaded;
}

Status Server::Start(int threads) {
  GANNET_RETURN_IF_ERROR(epochs_->Start());
  if (write_log_ != nullptr) GANNET_RETURN_IF_ERROR(write_log_->Start(threads));
  return node_->Serve(threads);
}

ServerReport Server::Report() {
  ServerReport report{.index = index_->statistics(), .memory = memory(), .model = std::nullopt};
  if (xstore_ != nullptr) report.model = xstore_->model_statistics();
  return report;
}

void Server::FillLocations(LocationCache* cache) {
  index::IndexService::Guard guard(service_.get());
  index::WalkPosition position;
  std::vector<rdma::GlobalAddress> records;
  for (bool more = true; more;) {
    records.clear();
    more = index_->Walk(&position, &records);
    for (const rdma::GlobalAddress record : records) {
      cache->Put(index::LoadKey(At(record), index::KeyKind::kInteger).integer(), record);
    }
  }
}

// Walk has no keys to tell.
StatusOr<Server::Contents> Server::CheckEntries() {
  constexpr size_t kAtOnce = 1000;
  index::IndexService::Guard guard(service_.get());
  Contents contents;
  std::array<std::byte, kWordBytes> value;
  index::ScanResult found;
  index::ScanRange range{.from = 0, .to = UINT64_MAX, .limit = kAtOnce};
  do {
    found.Clear();
    GANNET_RETURN_IF_ERROR(index_->Scan(range, &found));
    for (const index::Entry& entry : found.entries) {
      const uint64_t key = entry.key.integer();
      CopyValue(entry.record, value);
      if (!IsValueOf(key, value)) {
        return absl::DataLossError(absl::StrCat("the entry of key ", key, " holds a value that is not its key's"));
      }
      range.from = key + 1;
    }
    contents.records += found.entries.size();
  } while (found.entries.size() == kAtOnce);
  return contents;
}

StatusOr<Server::Contents> Server::Check() {
  GANNET_RETURN_IF_ERROR(index_->CheckStructure());
  if (options_.values_in_entries) return CheckEntries();
  index::IndexService::Guard guard(service_.get());
  Contents contents;
  index::WalkPosition position;
  std::vector<rdma::GlobalAddress> records;
  std::vector<std::byte> value(options_.value_bytes);
  for (bool more = true; more;) {
    records.clear();
    more = index_->Walk(&position, &records);
    for (const rdma::GlobalAddress address : records) {
      const std::byte* record = At(address);
      const uint64_t key = index::LoadKey(record, index::KeyKind::kInteger).integer();
      uint64_t state = 0;
      if (!rdma::TryReadLocal(record, kValueOffset, value, &state) || !IsValueOf(key, value)) {
        return absl::DataLossError(absl::StrCat("the record of key ", key, " at ", address.ToString(),
                                                " is locked, or holds a value that is not its key's"));
      }
      ++contents.records;
      contents.updates += txn::VersionOf(state) - 1;
    }
  }
  return contents;
}

}  // namespace gannet::ycsb
