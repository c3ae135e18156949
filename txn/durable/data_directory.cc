#include "txn/durable/data_directory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/thread.h"
#include "log/checkpoint/checkpoint.h"
#include "log/format/identity.h"
#include "log/format/segment_format.h"
#include "log/segment/end_note.h"
#include "txn/durable/catalog.h"

namespace gannet::txn {
namespace {

constexpr std::string_view kNodePrefix = "node-";
constexpr std::string_view kManifestName = "MANIFEST";
// Another node may be creating the database, on a slow disk.
constexpr uint64_t kLockWithinNanos = 30'000'000'000;

// Returns the manifest in a node's directory, as log::ReadManifest does.
using ManifestReader = absl::FunctionRef<StatusOr<log::Manifest>(const std::string& path)>;

// The content of one node's directory.
struct Part {
  std::string path;
  std::optional<log::Manifest> manifest{};
  std::string remains{};  // a file that only a node that has started makes; empty: none
  bool started() const { return !remains.empty() || (manifest.has_value() && manifest->started); }
  bool used() const { return !remains.empty() || manifest.has_value(); }
  // Name of the file that makes it `used`, for messages.
  std::string evidence() const { return remains.empty() ? absl::StrCat(path, "/MANIFEST") : remains; }
};

// True for the names in a directory in which the creation of a database has begun, or may begin.
bool IsLeftByCreation(std::string_view name) {
  return name == "MANIFEST.tmp" || name == "lost+found";
}

bool OnlyAStartedNodeMakes(std::string_view name) {
  return name == log::kEndNoteName || log::SegmentOfName(name).has_value() || log::IsCheckpointName(name) ||
         name.starts_with(log::kSpareSegmentPrefix);
}

StatusOr<Part> LookAt(const std::string& path, const std::vector<std::string>& names, ManifestReader read) {
  Part part{.path = path};
  for (const std::string& name : names) {
    if (part.remains.empty() && OnlyAStartedNodeMakes(name)) part.remains = absl::StrCat(path, "/", name);
    if (name != kManifestName) continue;
    StatusOr<log::Manifest> manifest = read(path);
    if (absl::IsNotFound(manifest.status())) {
      return absl::DataLossError(absl::StrCat(path, "/MANIFEST has a name, but no file: is it a link to nowhere? ",
                                              "Restore it from a backup"));
    }
    if (!manifest.ok()) return manifest.status();
    part.manifest = *std::move(manifest);
  }
  return part;
}

// The file system says of an empty name that there is no such file.
Status CheckName(const std::string& directory) {
  if (!directory.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("the name of the directory is empty; name a directory");
}

// An absent directory holds nothing.
StatusOr<std::vector<std::string>> ListIfThere(log::FileSystem& files, const std::string& path) {
  StatusOr<std::vector<std::string>> names = files.List(path);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>{};
  return names;
}

// The number of a node's directory.
std::optional<int> NodeOfName(std::string_view name) {
  int node = -1;
  if (!name.starts_with(kNodePrefix)) return std::nullopt;
  const std::string digits(name.substr(kNodePrefix.size()));
  if (!absl::SimpleAtoi(digits, &node) || node < 0 || absl::StrCat(node) != digits) return std::nullopt;
  return node;
}

// Everything in a directory that a node may have made.
struct Survey {
  std::string directory;
  Part root;                  // of a single node
  std::map<int, Part> nodes;  // of several nodes: those that have a directory
  bool several() const {
    return std::ranges::any_of(nodes, [](const auto& node) { return node.second.used(); });
  }
};

StatusOr<Survey> LookInto(log::FileSystem& files, const std::string& directory, ManifestReader read) {
  GANNET_RETURN_IF_ERROR(CheckName(directory));
  Survey survey{.directory = directory, .root = {}, .nodes = {}};
  const StatusOr<std::vector<std::string>> names = ListIfThere(files, directory);
  if (!names.ok()) return names.status();
  StatusOr<Part> root = LookAt(directory, *names, read);
  if (!root.ok()) return root.status();
  survey.root = *std::move(root);
  for (const std::string& name : *names) {
    const std::optional<int> node = NodeOfName(name);
    if (!node.has_value()) continue;
    const std::string path = absl::StrCat(directory, "/", name);
    const StatusOr<std::vector<std::string>> inside = ListIfThere(files, path);
    if (!inside.ok()) return inside.status();
    StatusOr<Part> part = LookAt(path, *inside, read);
    if (!part.ok()) return part.status();
    survey.nodes.emplace(*node, *std::move(part));
  }
  return survey;
}

// Number of the database's nodes, as far as it can be found out; 0: there is no manifest.
int NodesOf(const Survey& survey) {
  if (survey.root.used()) return 1;
  for (const auto& [node, part] : survey.nodes) {
    if (part.manifest.has_value()) return part.manifest->num_nodes;
  }
  return 0;
}

Status OtherShape(const std::string& directory, absl::string_view whose) {
  return absl::InvalidArgumentError(
      absl::StrCat(directory, " belongs to ", whose, "; open it with as many nodes, or name another directory"));
}

// The parts of all `num_nodes` nodes, including those that are not there.
StatusOr<std::vector<Part>> PartsOf(const Survey& survey, int num_nodes) {
  if (num_nodes == 1) {
    if (!survey.nodes.empty()) return OtherShape(survey.directory, "a cluster of several nodes");
    return std::vector<Part>{survey.root};
  }
  if (survey.root.used()) return OtherShape(survey.directory, "a single node");
  std::vector<Part> parts;
  for (int node = 0; node < num_nodes; ++node)
    parts.push_back({.path = NodeDirectory(survey.directory, node, num_nodes)});
  for (const auto& [node, part] : survey.nodes) {
    const bool other = part.manifest.has_value() && part.manifest->num_nodes != num_nodes;
    if (other) return OtherShape(survey.directory, absl::StrCat("a cluster of ", part.manifest->num_nodes, " nodes"));
    if (node < num_nodes) {
      parts[static_cast<size_t>(node)] = part;
    } else if (part.used()) {
      return OtherShape(survey.directory, absl::StrCat("a cluster with a node ", node));
    }
  }
  return parts;
}

Status CheckIdentity(const std::vector<Part>& parts) {
  const Part* identified = nullptr;  // the first that has an identity
  for (size_t node = 0; node < parts.size(); ++node) {
    const Part& part = parts[node];
    if (part.manifest->node != node || part.manifest->num_nodes != parts.size()) {
      return absl::DataLossError(absl::StrCat(part.path, "/MANIFEST is of node ", part.manifest->node, " of ",
                                              part.manifest->num_nodes, ", and not of node ", node, " of ",
                                              parts.size(), "; put each node's directory into its place"));
    }
    if (part.manifest->database.empty()) continue;
    if (identified == nullptr) identified = &part;
    if (part.manifest->database == identified->manifest->database) continue;
    return absl::DataLossError(absl::StrCat(part.path, " is of another database (", part.manifest->database, ") than ",
                                            identified->path, " (", identified->manifest->database,
                                            "); put the directories of one database together"));
  }
  return absl::OkStatus();
}

enum class Found { kNothing, kUnfinished, kDatabase };

// DataLoss: something is missing.
StatusOr<Found> Judge(const std::vector<Part>& parts) {
  const auto missing = std::ranges::find_if(parts, [](const Part& part) { return !part.manifest.has_value(); });
  if (missing == parts.end()) {
    GANNET_RETURN_IF_ERROR(CheckIdentity(parts));
    return Found::kDatabase;
  }
  // If the node has such a file itself, the message names that one.
  auto witness = missing->started() ? missing : std::ranges::find_if(parts, &Part::started);
  if (witness != parts.end()) {
    return absl::DataLossError(absl::StrCat(
        missing->path, "/MANIFEST is missing, but ", witness->evidence(), " says that there is or was a database of ",
        parts.size() == 1 ? "one node" : absl::StrCat(parts.size(), " nodes"),
        ". Nothing was changed. Mount missing file systems, or restore the directory from a backup"));
  }
  return std::ranges::any_of(parts, &Part::used) ? Found::kUnfinished : Found::kNothing;
}

struct Verdict {
  Found found = Found::kNothing;
  std::vector<Part> parts;
};

StatusOr<Verdict> JudgeOnce(log::FileSystem& files, const std::string& directory, int num_nodes, ManifestReader read) {
  const StatusOr<Survey> survey = LookInto(files, directory, read);
  if (!survey.ok()) return survey.status();
  if (num_nodes == 0) num_nodes = NodesOf(*survey);
  // Without any manifest the number is not known; the directories that are there give it.
  if (num_nodes == 0) num_nodes = survey->nodes.empty() ? 1 : std::max(2, survey->nodes.rbegin()->first + 1);
  StatusOr<std::vector<Part>> parts = PartsOf(*survey, num_nodes);
  if (!parts.ok()) return parts.status();
  const StatusOr<Found> found = Judge(*parts);
  if (!found.ok()) return found.status();
  return Verdict{.found = *found, .parts = *std::move(parts)};
}

// `num_nodes` 0: as many as the directory has. The parts are examined one after the other. During a creation, a part
// that was examined early may be missing although a node that was examined late has started. So a missing part counts
// only if it is still missing the second time: a node that had started by then did so after all parts were there.
StatusOr<Verdict> JudgeDirectory(log::FileSystem& files, const std::string& directory, int num_nodes,
                                 ManifestReader read) {
  StatusOr<Verdict> verdict = JudgeOnce(files, directory, num_nodes, read);
  return absl::IsDataLoss(verdict.status()) ? JudgeOnce(files, directory, num_nodes, read) : std::move(verdict);
}

StatusOr<Verdict> JudgeDirectory(log::FileSystem& files, const std::string& directory, int num_nodes) {
  return JudgeDirectory(files, directory, num_nodes,
                        [&files](const std::string& path) { return log::ReadManifest(files, path); });
}

// The nodes of a database.
std::vector<NodeData> DataOf(std::vector<Part> parts) {
  std::vector<NodeData> nodes;
  for (Part& part : parts) nodes.push_back({std::move(part.path), *std::move(part.manifest)});
  return nodes;
}

// `may_create`: the caller could have asked for a database to be created.
Status NoDatabase(const std::string& directory, Found found, bool may_create) {
  const char* what = found == Found::kUnfinished ? " holds no database: creating one was interrupted"
                                                 : " holds no database; check the path";
  return absl::NotFoundError(absl::StrCat(
      directory, what,
      may_create ? ", or set DatabaseOptions::create_if_missing (--create of the program) to create it there" : ""));
}

// The directory's name survives a crash, too.
Status MakeDurableDirectory(log::FileSystem& files, const std::string& path) {
  GANNET_RETURN_IF_ERROR(files.MakeDirectory(path));
  return files.SyncDirectory(ParentOf(path));
}

// Waits while another node holds the lock, which is not for long.
StatusOr<std::shared_ptr<void>> LockPatiently(log::FileSystem& files, const std::string& directory) {
  const uint64_t deadline = NowNanos() + kLockWithinNanos;
  for (;;) {
    StatusOr<std::shared_ptr<void>> lock = files.Lock(directory);
    if (!absl::IsFailedPrecondition(lock.status()) || NowNanos() > deadline) return lock;
    SleepForNanos(1'000'000);
  }
}

// The identity of a database that has these `parts`; empty if none of them has one.
std::string IdentityOf(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    if (part.manifest.has_value() && !part.manifest->database.empty()) return part.manifest->database;
  }
  return "";
}

// The identity that the log in `path` says; empty: none. An early manifest that was put back has none, although the
// files beside it have one, and these must stay readable.
std::string IdentityOfLog(log::FileSystem& files, const std::string& path) {
  const StatusOr<log::EndNote> note = log::ReadEndNote(files, path);
  return note.ok() && note->database.is_known() ? note->database.ToText() : "";
}

// The caller holds the lock of the directory, which exists.
Status Create(log::FileSystem& files, const std::vector<Part>& parts, const std::string& application) {
  std::string identity = IdentityOf(parts);
  if (identity.empty()) identity = log::Identity::Random().ToText();
  for (const Part& part : parts) {
    if (parts.size() > 1) GANNET_RETURN_IF_ERROR(MakeDurableDirectory(files, part.path));
  }
  for (size_t node = 0; node < parts.size(); ++node) {
    if (parts[node].manifest.has_value()) continue;
    const log::Manifest manifest{.database = identity,
                                 .started = false,
                                 .node = static_cast<uint16_t>(node),
                                 .num_nodes = static_cast<uint16_t>(parts.size()),
                                 .application = application};
    GANNET_RETURN_IF_ERROR(log::WriteManifest(files, parts[node].path, manifest));
  }
  return absl::OkStatus();
}

// InvalidArgument: the directory has files of others, among which those of a database would be hard to find.
Status CheckOwnDirectory(log::FileSystem& files, const std::string& directory) {
  StatusOr<std::vector<std::string>> names = ListIfThere(files, directory);
  if (!names.ok()) return names.status();
  std::erase_if(*names,
                [](const std::string& name) { return IsLeftByCreation(name) || name.starts_with(kNodePrefix); });
  if (names->empty()) return absl::OkStatus();
  constexpr size_t kMostNames = 3;
  const size_t named = std::min(names->size(), kMostNames);
  return absl::InvalidArgumentError(absl::StrCat(
      directory, " has other files (",
      absl::StrJoin(names->begin(), names->begin() + static_cast<ptrdiff_t>(named), ", "),
      names->size() > named ? ", ..." : "",
      "), and a database needs a directory of its own; nothing was made there; name a new or empty directory"));
}

// *lock gets the lock if the locked directory is the node's own.
Status CreateIfMissing(log::FileSystem& files, const std::string& directory, int num_nodes,
                       const std::string& application, std::shared_ptr<void>* lock) {
  // This comes before the lock, which makes a file. Another process may have created a database since the caller
  // looked.
  if (const Status own = CheckOwnDirectory(files, directory); !own.ok()) {
    const StatusOr<Verdict> now = JudgeDirectory(files, directory, num_nodes);
    if (!now.ok()) return now.status();
    if (now->found == Found::kNothing) return own;
  }
  GANNET_RETURN_IF_ERROR(MakeDurableDirectory(files, directory));
  StatusOr<std::shared_ptr<void>> all = num_nodes == 1 ? files.Lock(directory) : LockPatiently(files, directory);
  if (!all.ok()) return all.status();
  const StatusOr<Verdict> verdict = JudgeDirectory(files, directory, num_nodes);
  if (!verdict.ok()) return verdict.status();
  if (verdict->found != Found::kDatabase) GANNET_RETURN_IF_ERROR(Create(files, verdict->parts, application));
  if (num_nodes == 1) *lock = *std::move(all);
  return absl::OkStatus();
}

}  // namespace

std::string ParentOf(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

std::string NodeDirectory(const std::string& directory, int node, int num_nodes) {
  return num_nodes == 1 ? directory : absl::StrCat(directory, "/", std::string(kNodePrefix), node);
}

StatusOr<std::vector<NodeData>> ReadDataDirectory(log::FileSystem& files, const std::string& directory,
                                                  const NodeData* held) {
  const auto read = [&](const std::string& path) -> StatusOr<log::Manifest> {
    if (held != nullptr && path == held->path) return held->manifest;
    return log::ReadManifest(files, path);
  };
  StatusOr<Verdict> verdict = JudgeDirectory(files, directory, 0, read);
  if (!verdict.ok()) return verdict.status();
  if (verdict->found != Found::kDatabase) return NoDatabase(directory, verdict->found, /*may_create=*/false);
  std::vector<NodeData> nodes = DataOf(std::move(verdict->parts));
  GANNET_RETURN_IF_ERROR(TakeNewestCatalog(&nodes));
  return nodes;
}

StatusOr<bool> IsUnfinished(log::FileSystem& files, const std::string& directory) {
  const StatusOr<Verdict> verdict = JudgeDirectory(files, directory, 0);
  if (!verdict.ok()) return verdict.status();
  return verdict->found == Found::kUnfinished;
}

StatusOr<bool> IsAbsentOrEmpty(log::FileSystem& files, const std::string& directory) {
  GANNET_RETURN_IF_ERROR(CheckName(directory));
  const StatusOr<std::vector<std::string>> names = ListIfThere(files, directory);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (IsLeftByCreation(name)) continue;
    if (!name.starts_with(kNodePrefix)) return false;
    StatusOr<bool> empty = IsAbsentOrEmpty(files, absl::StrCat(directory, "/", name));
    if (!empty.ok() || !*empty) return empty;
  }
  return true;
}

StatusOr<HeldDirectory> TakeDataDirectory(log::FileSystem& files, const std::string& directory, int node, int num_nodes,
                                          bool create, const std::string& application) {
  HeldDirectory held{.path = NodeDirectory(directory, node, num_nodes)};
  const auto read = [&](const std::string& path) -> StatusOr<log::Manifest> {
    if (path == held.path && held.lock == nullptr) {
      StatusOr<std::shared_ptr<void>> lock = files.Lock(path);
      if (!lock.ok()) return lock.status();
      held.lock = *std::move(lock);
    }
    return log::ReadManifest(files, path);
  };
  StatusOr<Verdict> verdict = JudgeDirectory(files, directory, num_nodes, read);
  if (create && verdict.ok() && verdict->found != Found::kDatabase) {
    GANNET_RETURN_IF_ERROR(CreateIfMissing(files, directory, num_nodes, application, &held.lock));
    verdict = JudgeDirectory(files, directory, num_nodes, read);
  }
  if (!verdict.ok()) return verdict.status();
  if (verdict->found != Found::kDatabase) return NoDatabase(directory, verdict->found, /*may_create=*/true);
  held.nodes = DataOf(std::move(verdict->parts));
  return held;
}

Status GiveIdentity(log::FileSystem& files, const std::string& directory, log::Manifest* manifest,
                    std::shared_ptr<void>* lock) {
  if (manifest->database.empty() && manifest->num_nodes > 1) {
    StatusOr<std::shared_ptr<void>> all = LockPatiently(files, directory);
    if (!all.ok()) return all.status();
    *lock = *std::move(all);
    const StatusOr<Verdict> verdict = JudgeDirectory(files, directory, manifest->num_nodes);
    if (!verdict.ok()) return verdict.status();
    manifest->database = IdentityOf(verdict->parts);
    for (const Part& part : verdict->parts) {
      if (manifest->database.empty()) manifest->database = IdentityOfLog(files, part.path);
    }
  }
  const std::string path = NodeDirectory(directory, manifest->node, manifest->num_nodes);
  if (manifest->database.empty()) manifest->database = IdentityOfLog(files, path);
  if (manifest->database.empty()) manifest->database = log::Identity::Random().ToText();
  manifest->version = log::kManifestVersion;
  return absl::OkStatus();
}

}  // namespace gannet::txn
