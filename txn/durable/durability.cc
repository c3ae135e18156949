#include "txn/durable/durability.h"

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/file/pmem_file_system.h"
#include "log/file/posix_file_system.h"
#include "log/format/identity.h"
#include "log/manifest/manifest.h"
#include "log/segment/end_note.h"
#include "txn/durable/backup.h"
#include "txn/durable/data_directory.h"
#include "txn/durable/manifest_file.h"
#include "txn/durable/recovery.h"
#include "txn/durable/start_together.h"
#include "txn/node/local_node.h"
#include "txn/store/event.h"

namespace gannet::txn {

namespace {

constexpr absl::Duration kCloseWithin = absl::Seconds(10);

}  // namespace

Durability::Durability(const LocalNode* local, std::unique_ptr<EpochWords> words, std::byte* removals)
    : local_(local),
      words_(std::move(words)),
      removals_(removals, local->node.AddressOf(removals), /*kept=*/IsLogged()) {}

bool Durability::IsLogged() const {
  return !local_->options.directory.empty() && local_->options.durability != DurabilityMode::kNone;
}

bool Durability::has_unlogged() const {
  return local_->options.durability == DurabilityMode::kNone || loads_.any();
}

StatusOr<std::unique_ptr<Durability>> Durability::Open(const LocalNode* local, std::unique_ptr<EpochWords> words,
                                                       std::byte* removals, Catalog* catalog) {
  std::unique_ptr<Durability> durability(new Durability(local, std::move(words), removals));
  if (!local->options.directory.empty()) GANNET_RETURN_IF_ERROR(durability->TakeDirectory(catalog));
  return durability;
}

Status Durability::TakeDirectory(Catalog* catalog) {
  const DatabaseOptions& options = local_->options;
  files_ = options.files;
  if (files_ == nullptr) {
    if (options.medium == LogMedium::kPmem) {
      files_ = std::make_shared<log::PmemFileSystem>();
    } else {
      files_ = std::make_shared<log::PosixFileSystem>();
    }
  }
  StatusOr<HeldDirectory> held = TakeDataDirectory(*files_, options.directory, local_->id(), local_->fabric.num_nodes(),
                                                   options.create_if_missing, options.application);
  if (!held.ok()) return held.status();
  StatusOr<Catalog> tables = CatalogOf(held->nodes);
  if (!tables.ok()) return tables.status();
  *catalog = *std::move(tables);
  directory_ = std::move(held->path);
  lock_ = std::move(held->lock);
  manifest_ =
      std::make_unique<ManifestFile>(local_, files_.get(), directory_, std::move(held->nodes[local_->id()].manifest));
  return absl::OkStatus();
}

Durability::~Durability() {
  Stop().IgnoreError();
}

uint64_t Durability::NextTransactionId() {
  return log::TransactionIdOf(local_->id(), transaction_ids_.fetch_add(1, std::memory_order_relaxed) + 1);
}

void Durability::TellOfHealth(const Status& health) const {
  if (health.ok()) {
    Tell(local_->options, EventLevel::kInfo, directory_, ": the log can be written again");
  } else {
    Tell(local_->options, EventLevel::kError, directory_, ": the log cannot be written: ", health.ToString());
  }
}

// A full disk has no room for a manifest. Unless there is a new table, the manifest is not needed; nor is that of a
// node whose generation is behind: another node's manifest has the tables, and gets the new ones.
Status Durability::NoteTables(uint32_t next_table, uint64_t generation) {
  bool more_tables = false;
  std::shared_ptr<void> lock;  // until the manifest is written
  const Status written = manifest_->Change([&](log::Manifest* manifest) -> Status {
    const size_t tables_before = manifest->tables.size();
    const bool is_behind = manifest->catalog_generation < generation;
    if (!local_->options.application.empty()) manifest->application = local_->options.application;
    manifest->tables.clear();
    for (Table* table : local_->tables) manifest->tables.push_back(DescribeTable(*table));
    manifest->next_table = next_table;
    manifest->catalog_generation = generation;
    if (generation > 0) LeaveOutUnknown(manifest);
    more_tables = !is_behind && manifest->tables.size() != tables_before;
    return GiveIdentity(*files_, local_->options.directory, manifest, &lock);
  });
  if (!absl::IsResourceExhausted(written)) return written;
  if (!more_tables) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(directory_, ": no room to note the new tables: ", written.message(),
                                                   ". With the tables that were there it can be opened"));
}

Status Durability::NoteCatalog(const Catalog& catalog) {
  return has_directory() ? manifest_->Note(catalog) : absl::OkStatus();
}

Status Durability::NoteCatalogNowOrLater(const Catalog& catalog) {
  return has_directory() ? manifest_->NoteNowOrLater(catalog) : absl::OkStatus();
}

// The log has its first segment, and no epoch has become durable yet (data_directory.h). From now on the log must have
// its LOG-END, and this run. On a full disk a database that has started before continues without writing this; a later
// start does.
Status Durability::NoteStarted(const log::Identity& run) {
  bool had_started = false;
  const Status written = manifest_->Change([&](log::Manifest* manifest) -> Status {
    had_started = manifest->started;
    const StatusOr<log::EndNote> note = log::ReadEndNote(*files_, directory_);
    if (!note.ok() || note->segment == 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat(directory_, ": no room for the first segment of a new database's log; free some space there"));
    }
    manifest->started = true;
    manifest->log_end = true;
    if (note->run_identity == run) manifest->run = run.ToText();  // else it begins when the disk has room
    return absl::OkStatus();
  });
  return absl::IsResourceExhausted(written) && had_started ? absl::OkStatus() : written;
}

// The manifests of other nodes are read again: such a node may still have been in its last run when this one was
// opened, and may have noted tables since then.
Status Durability::RecoverTables(uint64_t generation, log::LogEnd* end) {
  const std::string& directory = local_->options.directory;
  StatusOr<log::Manifest> own = manifest_->Read();
  if (!own.ok()) return own.status();
  const NodeData held{.path = directory_, .manifest = *std::move(own)};
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(*files_, directory, &held);
  if (!nodes.ok()) return nodes.status();
  const uint64_t now = nodes->front().manifest.catalog_generation;  // the same in all
  if (now != generation) {
    return absl::FailedPreconditionError(absl::StrCat(directory, " has tables of generation ", now,
                                                      ", and this database those of generation ", generation,
                                                      ": open it again"));
  }
  return Recover(*local_, *files_, directory, *nodes, end, &recovery_);
}

Status Durability::Start(absl::Duration wait_for_others, absl::FunctionRef<Status()> agree, uint32_t next_table,
                         uint64_t generation) {
  if (!has_directory()) {
    GANNET_RETURN_IF_ERROR(agree());
    words_->SetStage(EpochWords::Stage::kNoLog);
    return absl::OkStatus();
  }
  words_->SetStage(EpochWords::Stage::kReads);
  log::LogEnd end;
  Status recovered = RecoverTables(generation, &end);
  if (recovered.ok()) TellOfRecovery();
  if (recovered.ok()) recovered = agree();
  log::Identity run;
  GANNET_RETURN_IF_ERROR(
      StartTogether(local_->fabric, local_->node, *words_, recovered, wait_for_others, local_->options.stop, &run));
  manifest_->RemoveStrays().IgnoreError();  // what a program that died was making only takes room
  GANNET_RETURN_IF_ERROR(NoteTables(next_table, generation));
  return StartLog(end, run);
}

void Durability::TellOfRecovery() const {
  const RecoveryReport& report = recovery_;
  const DatabaseOptions& options = local_->options;
  for (const std::string& replaced : report.replaced) {
    Tell(options, EventLevel::kWarning, directory_, ": damaged, and made from checkpoint ", report.older_checkpoint_id,
         " and the log, so nothing is lost: ", replaced);
  }
  for (const std::string& damage : report.damages)
    Tell(options, EventLevel::kWarning, directory_, ": damaged, and left out: ", damage);
  if (report.log_segments == 0 && report.checkpoint_id == 0) return;  // a new database
  Tell(options, EventLevel::kInfo, directory_, ": recovered ", report.records, " records up to epoch ",
       report.recovered_epoch, ", from ",
       report.checkpoint_id == 0 ? "no checkpoint" : absl::StrCat("checkpoint ", report.checkpoint_id), " and ",
       report.transactions, " transactions with ", report.changes, " changes: log read in ",
       absl::StrFormat("%.3f s, tables made in %.3f s", report.log_seconds, report.load_seconds),
       report.torn_tail ? "; the last write was torn, as a crash leaves it" : "");
}

Status Durability::StartLog(const log::LogEnd& end, const log::Identity& run) {
  const DatabaseOptions& options = local_->options;
  // A full disk may have had no room for the identity of a database of version 1. Then the log has none, either.
  const StatusOr<log::Manifest> manifest = manifest_->Read();
  if (!manifest.ok()) return manifest.status();
  StatusOr<std::unique_ptr<log::Log>> log =
      log::Log::Create(files_.get(), directory_, end,
                       {.group_commit = options.group_commit,
                        .segment_bytes = options.log_segment_bytes,
                        .buffer_bytes = options.log_buffer_bytes,
                        .large_buffer_bytes = options.log_large_buffer_bytes,
                        .preallocate_bytes = options.log_preallocate_bytes,
                        .keep_preallocated = options.log_keep_preallocated,
                        .node = local_->id(),
                        .num_nodes = static_cast<uint16_t>(local_->fabric.num_nodes()),
                        .database = log::Identity::FromText(manifest->database),
                        .run = run,
                        .on_health = [this](const Status& health) { TellOfHealth(health); }});
  if (!log.ok()) return log.status();
  log_ = *std::move(log);
  loads_.AnnounceIn(words_.get());
  GANNET_RETURN_IF_ERROR(NoteStarted(run));
  const bool alone = local_->fabric.num_nodes() == 1;
  GANNET_RETURN_IF_ERROR(words_->Start(log_->current_epoch()));
  GANNET_RETURN_IF_ERROR(log_->Start(alone ? nullptr : words_.get()));
  checkpointer_ = std::make_unique<Checkpointer>(
      local_, files_.get(), log_.get(), words_.get(), &loads_, manifest_.get(), directory_, run,
      recovery_.older_checkpoint_id == 0 ? uint64_t{0} : recovery_.checkpoint_id);
  const CheckpointTimes times{.every = options.checkpoint_every,
                              .log_multiple = options.checkpoint_log_multiple,
                              .log_least_bytes = options.checkpoint_log_least_bytes};
  if (times.any() && options.durability != DurabilityMode::kNone) checkpointer_->Start(times);
  return absl::OkStatus();
}

void Durability::NoteFailedStart(const Status& why) {
  if (has_directory()) words_->Refuse({local_->id(), why});
}

StatusOr<std::unique_ptr<CommitLog>> Durability::OpenCommitLog() {
  std::unique_ptr<log::LogWriter> writer;
  if (IsLogged()) {
    StatusOr<std::unique_ptr<log::LogWriter>> opened = log_->OpenWriter();
    if (!opened.ok()) return opened.status();
    writer = *std::move(opened);
  }
  return std::make_unique<CommitLog>(this, std::move(writer), local_->options.durability == DurabilityMode::kSync);
}

Status Durability::Checkpoint(const std::atomic<bool>* stop) {
  if (checkpointer_ == nullptr) {
    return absl::FailedPreconditionError("a checkpoint needs a database that was opened with a directory, and started");
  }
  return checkpointer_->Take(stop);
}

// The operating system's files read what any medium has written.
Status Durability::Backup(const std::string& to, const std::atomic<bool>* stop) {
  if (checkpointer_ == nullptr) {
    return absl::FailedPreconditionError("a backup needs a database that was opened with a directory, and started");
  }
  if (has_unlogged()) GANNET_RETURN_IF_ERROR(checkpointer_->Take(stop));
  const std::shared_ptr<log::FileSystem> files =
      local_->options.files != nullptr ? local_->options.files : std::make_shared<log::PosixFileSystem>();
  return checkpointer_->CopyAtRest(stop, [&] { return BackUp(*files, local_->options.directory, to, stop).status(); });
}

Status Durability::AppendForPeer(uint64_t epoch, std::span<const std::byte> part) {
  const rdma::NodeId self = local_->id();
  if (log_ == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("node ", self, " keeps no log; give every node a directory"));
  }
  if (loads_.any()) return UnsavedLoads::Refusal(self);
  Status appended = log_->AppendForPeer(epoch, part);
  // Too much for now: the transaction is run again. (A full disk is no conflict: health() reports it.)
  if (absl::IsResourceExhausted(appended) && log_->health().ok()) return Status(absl::StatusCode::kAborted, "");
  return appended;
}

Status Durability::Close(bool keep_unlogged) {
  Status status;
  if (checkpointer_ != nullptr && keep_unlogged && has_unlogged()) status = checkpointer_->Take(/*stop=*/nullptr);
  const Status stopped = Stop();
  return status.ok() ? stopped : status;
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
  // After a failed start nothing was committed here, and the other nodes may run for long.
  if (local_->fabric.num_nodes() > 1 && !words_->refuses()) {
    // Before any node stops, the last epoch must be durable (Log::Stop): a node that has stopped does not help to close
    // it. If it does not become durable, Log::Stop says why.
    together = words_->CloseTogether(*log_, kCloseWithin);
  }
  const Status status = log_->Stop();
  lock_.reset();  // nothing is written after this: another database may open the directory
  return status.ok() ? together : status;
}

}  // namespace gannet::txn
