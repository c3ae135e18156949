#include "txn/durable/durability.h"

#include "log/checkpoint.h"
#include "log/file/pmem_file_system.h"
#include "log/file/posix_file_system.h"
#include "txn/durable/data_directory.h"
#include "txn/durable/recovery.h"
#include "txn/durable/table_rebuilder.h"
#include "txn/session_internal.h"

namespace gannet::txn {

namespace {

constexpr absl::Duration kCloseWithin = absl::Seconds(10);

}  // namespace

StatusOr<std::unique_ptr<Durability>> Durability::Open(DatabaseState* state) {
  const DatabaseOptions& options = state->options;
  std::unique_ptr<Durability> durability(new Durability(state));
  durability->files_ = options.files;
  if (durability->files_ == nullptr) {
    if (options.medium == LogMedium::kPmem) {
      durability->files_ = std::make_shared<log::PmemFileSystem>();
    } else {
      durability->files_ = std::make_shared<log::PosixFileSystem>();
    }
  }
  StatusOr<HeldDirectory> held =
      TakeDataDirectory(*durability->files_, options.directory, state->node->id(), state->fabric->num_nodes(),
                        options.create_if_missing, options.application);
  if (!held.ok()) return held.status();
  durability->directory_ = std::move(held->path);
  durability->lock_ = std::move(held->lock);
  return durability;
}

Durability::~Durability() {
  Stop().IgnoreError();
}

uint64_t Durability::NextTransactionId() {
  return log::TransactionIdOf(state_->node->id(), transaction_ids_.fetch_add(1, std::memory_order_relaxed) + 1);
}

Status Durability::NoteTables() {
  StatusOr<log::Manifest> manifest = log::ReadManifest(*files_, directory_);
  if (!manifest.ok()) return manifest.status();
  if (!state_->options.application.empty()) manifest->application = state_->options.application;
  manifest->tables.clear();
  for (const std::unique_ptr<Table>& table : state_->tables) manifest->tables.push_back(DescribeTable(*table));
  return WriteIdentified(*files_, state_->options.directory, *std::move(manifest));
}

// The log has its first segment, and no epoch has become durable yet (data_directory.h). From now on it is not whole
// without its LOG-END.
Status Durability::NoteStarted() {
  StatusOr<log::Manifest> manifest = log::ReadManifest(*files_, directory_);
  if (!manifest.ok()) return manifest.status();
  if (manifest->started && manifest->log_end) return absl::OkStatus();
  manifest->started = true;
  manifest->log_end = true;
  return log::WriteManifest(*files_, directory_, *manifest);
}

Status Durability::Start(std::unique_ptr<EpochWords> words) {
  words_ = std::move(words);
  const DatabaseOptions& options = state_->options;
  log::LogEnd end;
  GANNET_RETURN_IF_ERROR(Recover(*state_, *files_, options.directory, &end, &recovery_));
  GANNET_RETURN_IF_ERROR(NoteTables());
  StatusOr<std::unique_ptr<log::Log>> log =
      log::Log::Create(files_.get(), directory_, end,
                       {.group_commit = options.group_commit,
                        .segment_bytes = options.log_segment_bytes,
                        .buffer_bytes = options.log_buffer_bytes,
                        .large_buffer_bytes = options.log_large_buffer_bytes,
                        .preallocate_bytes = options.log_preallocate_bytes,
                        .node = state_->node->id(),
                        .num_nodes = static_cast<uint16_t>(state_->fabric->num_nodes())});
  if (!log.ok()) return log.status();
  log_ = *std::move(log);
  state_->loads.AnnounceIn(words_.get());
  GANNET_RETURN_IF_ERROR(NoteStarted());
  const bool alone = state_->fabric->num_nodes() == 1;
  GANNET_RETURN_IF_ERROR(words_->Start(log_->current_epoch()));
  GANNET_RETURN_IF_ERROR(log_->Start(alone ? nullptr : words_.get()));
  checkpointer_ =
      std::make_unique<Checkpointer>(state_, files_.get(), log_.get(), words_.get(), directory_,
                                     recovery_.older_checkpoint_id == 0 ? uint64_t{0} : recovery_.checkpoint_id);
  if (options.checkpoint_every > absl::ZeroDuration() && options.durability != DurabilityMode::kNone) {
    checkpointer_->Start(options.checkpoint_every);
  }
  return absl::OkStatus();
}

Status Durability::Stop() {
  if (stopped_) return absl::OkStatus();
  stopped_ = true;
  if (log_ == nullptr) {  // never started
    lock_.reset();
    return absl::OkStatus();
  }
  if (checkpointer_ != nullptr) checkpointer_->Stop();
  Status together;
  if (state_->fabric->num_nodes() > 1) together = words_->CloseTogether(kCloseWithin);
  const Status status = log_->Stop();
  lock_.reset();  // nothing is written any more: another database may open the directory
  return status.ok() ? together : status;
}

}  // namespace gannet::txn
