#include "txn/durable/backup.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "base/stop.h"
#include "log/checkpoint/checkpoint.h"
#include "log/format/identity.h"
#include "log/format/segment_format.h"
#include "log/manifest/manifest.h"
#include "log/segment/end_note.h"
#include "txn/durable/catalog.h"
#include "txn/durable/checkpointer.h"
#include "txn/durable/data_directory.h"
#include "txn/durable/file_copy.h"
#include "txn/node/local_node.h"

namespace gannet::txn {
namespace {

constexpr int kAttempts = 5;
constexpr int kThreads = 2;

// The segments from `first` on, newest first.
StatusOr<std::vector<std::string>> SegmentsFrom(log::FileSystem& files, const std::string& directory, uint64_t first) {
  StatusOr<std::vector<std::string>> names = files.List(directory);
  if (!names.ok()) return names.status();
  std::erase_if(*names, [first](const std::string& name) {
    return log::SegmentOfName(name).value_or(0) < first || !log::SegmentOfName(name).has_value();
  });
  std::ranges::sort(*names, std::ranges::greater());  // fixed digits: names sort as numbers
  return names;
}

Status CopyCheckpoint(log::FileSystem& files, const NodeData& node, const std::string& to,
                      const std::atomic<bool>* stop) {
  if (node.manifest.checkpoints.empty()) return absl::OkStatus();
  const log::CheckpointDescription& checkpoint = node.manifest.checkpoints.front();
  const std::string source = log::CheckpointDirectory(node.path, checkpoint.id);
  const std::string target = log::CheckpointDirectory(to, checkpoint.id);
  GANNET_RETURN_IF_ERROR(files.MakeDirectory(target));
  for (const log::CheckpointFile& file : checkpoint.files) {
    GANNET_RETURN_IF_ERROR(CopyFileBackwards(files, source + "/" + file.name, target + "/" + file.name, stop));
  }
  return files.SyncDirectory(target);
}

Status CopyLog(log::FileSystem& files, const NodeData& node, const std::string& to, const std::atomic<bool>* stop) {
  // With several nodes the whole log is copied: an older checkpoint of another node may need the decisions in it.
  const auto& checkpoints = node.manifest.checkpoints;
  const bool all = checkpoints.empty() || node.manifest.num_nodes > 1;
  const StatusOr<std::vector<std::string>> segments =
      SegmentsFrom(files, node.path, all ? 0 : checkpoints.front().first_segment);
  if (!segments.ok()) return segments.status();
  for (const std::string& name : *segments) {
    GANNET_RETURN_IF_ERROR(
        CopyFileBackwards(files, absl::StrCat(node.path, "/", name), absl::StrCat(to, "/", name), stop));
  }
  return absl::OkStatus();
}

// The place where the log ended when its copy began, so that a segment missing from the copy is noticed. Call it before
// the log is copied.
StatusOr<std::optional<log::EndNote>> FindEndNote(log::FileSystem& files, const NodeData& node) {
  const StatusOr<log::EndNote> note = log::ReadEndNote(files, node.path);
  if (note.ok()) return *note;
  if (absl::IsNotFound(note.status()) && !node.manifest.log_end) return std::nullopt;
  return note.status();
}

// Records where the copy of each log ends, so that nothing before that may be missing from now on. While the source is
// in use, its LOG-END is not the end of the copy.
Status NoteEnds(log::FileSystem& files, std::vector<NodeData>* nodes, const Verification& verification,
                const std::string& to) {
  for (size_t i = 0; i < nodes->size(); ++i) {
    log::Manifest& manifest = (*nodes)[i].manifest;
    const std::string target = NodeDirectory(to, manifest.node, static_cast<int>(nodes->size()));
    const log::LogEnd& end = verification.nodes[i].log.end;
    if (end.segment == 0 || !end.has_header) continue;
    log::EndNoteFile file(&files, target);
    GANNET_RETURN_IF_ERROR(file.Write({.segment = end.segment,
                                       .offset = end.offset,
                                       .next_batch = end.next_batch,
                                       .run = end.run,
                                       .closed_epoch = end.recovered_epoch,
                                       .node = manifest.node,
                                       .num_nodes = manifest.num_nodes,
                                       .database = log::Identity::FromText(manifest.database),
                                       .run_identity = end.run_identity}));
    if (manifest.log_end) continue;
    manifest.log_end = true;
    GANNET_RETURN_IF_ERROR(log::WriteManifest(files, target, manifest));
  }
  return absl::OkStatus();
}

// The logs may have rows of tables that were created after the manifests were read. A table is in the manifest before a
// log has a row of it, so after the logs were copied the manifests name all of them. Tables may have been dropped, too:
// they stay in the copy, because a program may have moved their rows by transactions that the copied logs do not have.
// In the same way an index may have become complete by entries that they do not have, so it is complete only if it was
// so before. NotFound: the copy cannot have the tables of both moments.
Status TakeNewTables(log::FileSystem& files, const std::string& from, std::vector<NodeData>* nodes) {
  StatusOr<std::vector<NodeData>> now = ReadDataDirectory(files, from);
  if (!now.ok()) return now.status();
  for (size_t i = 0; i < nodes->size() && i < now->size(); ++i) {
    log::Manifest& before = (*nodes)[i].manifest;
    log::Manifest& after = (*now)[i].manifest;
    for (log::TableDescription& table : after.tables) {
      const log::TableDescription* const was = TableById(before, table.id);
      if (was == nullptr && table.id < before.next_table) {
        return absl::NotFoundError(absl::StrFormat("table '%s' was dropped, and that was taken back", table.name));
      }
      if (table.secondary.has_value()) {
        table.secondary->complete &= was != nullptr && was->secondary.has_value() && was->secondary->complete;
      }
    }
    for (log::TableDescription& table : before.tables) {
      if (TableById(after, table.id) != nullptr) continue;
      if (std::ranges::find(after.tables, table.name, &log::TableDescription::name) != after.tables.end()) {
        return absl::NotFoundError(absl::StrFormat("table '%s' was dropped, and another has its name", table.name));
      }
      Sometimes<"backup: a table is dropped meanwhile">();
      if (table.secondary.has_value()) table.secondary->complete = false;
      after.tables.push_back(std::move(table));
    }
    std::ranges::sort(after.tables, {}, &log::TableDescription::id);
    before.tables = std::move(after.tables);
    before.next_table = after.next_table;
    before.catalog_generation = after.catalog_generation;
    LeaveOutUnknown(&before);
  }
  return absl::OkStatus();
}

// Writes the manifests of a copy, makes all of it durable, and verifies it. DataLoss: it is damaged.
StatusOr<Verification> FinishCopy(log::FileSystem& files, const std::vector<NodeData>& nodes, const std::string& to,
                                  bool is_new, const std::atomic<bool>* stop) {
  for (const NodeData& node : nodes) {
    const std::string target = NodeDirectory(to, node.manifest.node, static_cast<int>(nodes.size()));
    GANNET_RETURN_IF_ERROR(log::WriteManifest(files, target, node.manifest));
  }
  GANNET_RETURN_IF_ERROR(files.SyncDirectory(to));
  if (is_new) GANNET_RETURN_IF_ERROR(files.SyncDirectory(ParentOf(to)));
  StatusOr<Verification> verification = VerifyDataDirectory(files, to, kThreads, stop);
  if (verification.ok() && !verification->problems.empty())
    return absl::DataLossError(ToText(verification->problems.front()));
  return verification;
}

// NotFound if a file vanished; DataLoss if the copy is damaged.
StatusOr<Verification> TryToBackUp(log::FileSystem& files, const std::string& from, const std::string& to, bool is_new,
                                   const std::atomic<bool>* stop) {
  StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, from);
  if (!nodes.ok()) return nodes.status();
  const int num_nodes = static_cast<int>(nodes->size());
  GANNET_RETURN_IF_ERROR(files.MakeDirectory(to));
  for (const NodeData& node : *nodes) {
    const std::string target = NodeDirectory(to, node.manifest.node, num_nodes);
    GANNET_RETURN_IF_ERROR(files.MakeDirectory(target));
    GANNET_RETURN_IF_ERROR(CopyCheckpoint(files, node, target, stop));
  }
  for (NodeData& node : *nodes) {
    const std::string target = NodeDirectory(to, node.manifest.node, num_nodes);
    const StatusOr<std::optional<log::EndNote>> note = FindEndNote(files, node);
    if (!note.ok()) return note.status();
    GANNET_RETURN_IF_ERROR(CopyLog(files, node, target, stop));
    if (note->has_value()) GANNET_RETURN_IF_ERROR(log::EndNoteFile(&files, target).Write(**note));
    node.manifest.log_end = note->has_value();
    // The older checkpoint and its part of the log were left out.
    if (node.manifest.checkpoints.size() > 1) node.manifest.checkpoints.resize(1);
  }
  GANNET_RETURN_IF_ERROR(TakeNewTables(files, from, &*nodes));
  StatusOr<Verification> verification = FinishCopy(files, *nodes, to, is_new, stop);
  if (verification.ok()) GANNET_RETURN_IF_ERROR(NoteEnds(files, &*nodes, *verification, to));
  return verification;
}

// The part of one node in a copy of what salvage got. *manifest is written when all parts are there.
Status WriteSalvaged(log::FileSystem& files, const LocalNode& local, const std::string& target,
                     const std::atomic<bool>* stop, log::Manifest* manifest) {
  manifest->version = log::kManifestVersion;
  manifest->started = false;  // no log yet: everything is in the checkpoint, which ends before the first epoch
  manifest->run.clear();
  manifest->log_end = false;
  for (log::TableDescription& table : manifest->tables) {
    if (table.secondary.has_value()) table.secondary->complete = false;
  }
  GANNET_RETURN_IF_ERROR(files.MakeDirectory(target));
  const auto writer = log::CheckpointWriter::Create(&files, target, log::Identity::FromText(manifest->database),
                                                    /*id=*/1, /*bytes_per_second=*/0);
  if (!writer.ok()) return writer.status();
  for (const Table* table : local.tables) {
    GANNET_RETURN_IF_ERROR((*writer)->BeginTable(table->id()));
    GANNET_RETURN_IF_ERROR(
        WriteTable(local, *table, writer->get(), [stop] { return CheckStop(stop, "rows were written"); }));
  }
  log::CheckpointDescription all{.first_segment = 1, .wall_nanos = WallNanos()};
  GANNET_RETURN_IF_ERROR((*writer)->Finish(&all));
  manifest->checkpoints = {std::move(all)};
  return absl::OkStatus();
}

StatusOr<Verification> TryToSalvage(log::FileSystem& files, std::vector<NodeData> nodes, const std::string& to,
                                    bool is_new,
                                    absl::FunctionRef<Status(const std::function<Status(const LocalNode&)>&)> recover,
                                    const std::atomic<bool>* stop) {
  const int num_nodes = static_cast<int>(nodes.size());
  const std::string identity = log::Identity::Random().ToText();
  GANNET_RETURN_IF_ERROR(files.MakeDirectory(to));
  GANNET_RETURN_IF_ERROR(recover([&](const LocalNode& local) {
    log::Manifest& manifest = nodes[local.id()].manifest;
    manifest.database = identity;
    return WriteSalvaged(files, local, NodeDirectory(to, manifest.node, num_nodes), stop, &manifest);
  }));
  return FinishCopy(files, nodes, to, is_new, stop);
}

bool IsThere(log::FileSystem& files, const std::string& directory) {
  return files.List(directory).ok();
}

// `to` must be a new or an empty directory, and must not lie in `from`: the copy would be a part of what it copies.
Status CheckTarget(log::FileSystem& files, const std::string& from, const std::string& to) {
  const StatusOr<bool> empty = IsAbsentOrEmpty(files, to);
  if (!empty.ok()) return empty.status();
  if (!*empty) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is not empty; name a new directory, or remove its content", to));
  }
  namespace fs = std::filesystem;
  if (!IsThere(files, to)) {
    const std::string parent = ParentOf(to);
    if (!IsThere(files, parent)) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: there is no directory %s to make it in", to, parent));
    }
  }
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(to, error).lexically_relative(fs::weakly_canonical(from, error));
  if (error || inside.empty() || *inside.begin() == "..") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s lies in %s; name a directory outside of it", to, from));
}

// Removes what a copy to `to` has made. A directory that `was_there` stays, empty.
Status RemoveCopy(log::FileSystem& files, const std::string& to, bool was_there) {
  if (!files.List(to).ok()) return absl::OkStatus();
  GANNET_RETURN_IF_ERROR(EmptyTree(files, to));
  if (was_there) return absl::OkStatus();
  files.Remove(to + "/LOCK").IgnoreError();  // of a restore
  return files.Remove(to);
}

// Returns `stopped`, with a note on what remains of the copy.
Status Stopped(log::FileSystem& files, const Status& stopped, const std::string& to, bool was_there) {
  const Status removed = RemoveCopy(files, to, was_there);
  if (!removed.ok()) {
    return absl::CancelledError(
        absl::StrFormat("%s; %s is incomplete, and cannot be removed: %s", stopped.message(), to, removed.message()));
  }
  return absl::CancelledError(
      absl::StrFormat("%s; %s is %s", stopped.message(), to, was_there ? "empty again" : "removed"));
}

}  // namespace

StatusOr<Verification> BackUp(log::FileSystem& files, const std::string& from, const std::string& to,
                              const std::atomic<bool>* stop) {
  if (const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, from); !nodes.ok()) return nodes.status();
  GANNET_RETURN_IF_ERROR(CheckTarget(files, from, to));
  const bool was_there = IsThere(files, to);
  StatusOr<Verification> result = absl::InternalError("not tried");
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    result = TryToBackUp(files, from, to, /*is_new=*/!was_there, stop);
    if (result.ok()) return result;
    if (absl::IsCancelled(result.status())) return Stopped(files, result.status(), to, was_there);
    GANNET_RETURN_IF_ERROR(RemoveCopy(files, to, was_there));
    if (!absl::IsNotFound(result.status()) && !absl::IsDataLoss(result.status())) return result.status();
  }
  return absl::Status(result.status().code(),
                      absl::StrFormat("no sound copy of %s in %d attempts (gannet verify says what is wrong there, and "
                                      "gannet backup --salvage saves what is left if no process uses it); the last "
                                      "one: %s",
                                      from, kAttempts, result.status().message()));
}

StatusOr<Verification> BackUpSalvaged(log::FileSystem& files, const std::string& from, const std::string& to,
                                      absl::FunctionRef<Status(const std::function<Status(const LocalNode&)>&)> recover,
                                      const std::atomic<bool>* stop) {
  StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, from);
  if (!nodes.ok()) return nodes.status();
  GANNET_RETURN_IF_ERROR(CheckTarget(files, from, to));
  const bool was_there = IsThere(files, to);
  StatusOr<Verification> salvaged = TryToSalvage(files, *std::move(nodes), to, /*is_new=*/!was_there, recover, stop);
  if (absl::IsCancelled(salvaged.status())) return Stopped(files, salvaged.status(), to, was_there);
  if (!salvaged.ok()) GANNET_RETURN_IF_ERROR(RemoveCopy(files, to, was_there));
  return salvaged;
}

StatusOr<Verification> Restore(log::FileSystem& files, const std::string& backup, const std::string& to,
                               const std::atomic<bool>* stop) {
  GANNET_RETURN_IF_ERROR(CheckTarget(files, backup, to));
  const StatusOr<Verification> sound = VerifyDataDirectory(files, backup, kThreads, stop);
  if (absl::IsCancelled(sound.status())) {
    return absl::CancelledError(absl::StrFormat("%s; nothing was restored", sound.status().message()));
  }
  if (!sound.ok()) return sound.status();
  if (!sound->problems.empty()) {
    return absl::DataLossError(
        absl::StrFormat("the backup is damaged: %s; nothing was restored. gannet backup --salvage %s NEW makes a new "
                        "directory of what is left",
                        ToText(sound->problems.front()), backup));
  }
  const bool was_there = IsThere(files, to);
  GANNET_RETURN_IF_ERROR(files.MakeDirectory(to));
  const StatusOr<std::shared_ptr<void>> lock = files.Lock(to);
  if (!lock.ok()) return lock.status();
  StatusOr<Verification> restored = TryToBackUp(files, backup, to, /*is_new=*/!was_there, stop);
  if (restored.ok()) return restored;
  if (absl::IsCancelled(restored.status())) return Stopped(files, restored.status(), to, was_there);
  return absl::Status(restored.status().code(), absl::StrFormat("%s; the content of %s is incomplete: remove it",
                                                                restored.status().message(), to));
}

}  // namespace gannet::txn
