#include "cli/tpcc/directory.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string_view>

#include "absl/strings/str_format.h"
#include "cli/common/data_directory.h"

namespace gannet::cli {

namespace {

// XStore is not named: it was the only kind when the first directories were made.
constexpr std::string_view kOrderedIndex = " ordered_index=";
// Rights are not named if they are the most that the kind allows.
constexpr std::string_view kIndexRights = " index_rights=";

// The value of a name in the note; empty if the name is not there.
std::string_view Noted(std::string_view application, std::string_view name) {
  const size_t at = application.find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = application.substr(at + name.size());
  return rest.substr(0, rest.find(' '));
}

// These take the kind and the rights out of the note. InvalidArgument if this program does not know them.
StatusOr<index::IndexKind> OrderedIndexOf(std::string_view application) {
  const std::string_view noted = Noted(application, kOrderedIndex);
  if (noted.empty()) return index::IndexKind::kXStore;
  return index::IndexKindOf(noted);
}

StatusOr<index::IndexRights> IndexRightsIn(std::string_view application, index::IndexKind ordered_index) {
  const std::string_view noted = Noted(application, kIndexRights);
  if (noted.empty()) return index::RightsFor(index::EntryOf(ordered_index), {});
  const StatusOr<index::IndexRights> rights = index::IndexRightsOf(noted);
  if (!rights.ok()) return rights.status();
  return index::RightsFor(index::EntryOf(ordered_index), *rights);
}

}  // namespace

std::string TpccApplication(int warehouses, uint64_t seed, index::IndexKind ordered_index,
                            index::IndexRights index_rights) {
  std::string note = absl::StrFormat("tpcc warehouses=%d seed=%d", warehouses, seed);
  if (ordered_index != index::IndexKind::kXStore) {
    note.append(kOrderedIndex).append(index::EntryOf(ordered_index).name);
  }
  if (index_rights != *index::RightsFor(index::EntryOf(ordered_index), {})) {
    note.append(kIndexRights).append(index::NameOf(index_rights));
  }
  return note;
}

StatusOr<TpccDirectory> LookIntoTpccDirectory(const std::string& directory) {
  const std::shared_ptr<log::FileSystem> files = DiskFiles();
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(*files, directory);
  if (absl::IsNotFound(nodes.status())) {
    const StatusOr<bool> unfinished = txn::IsUnfinished(*files, directory);
    if (!unfinished.ok()) return unfinished.status();
    if (*unfinished) return TpccDirectory{};
    const StatusOr<bool> empty = IsAbsentOrEmpty(*files, directory);
    if (!empty.ok()) return empty.status();
    if (*empty) return TpccDirectory{};
    return absl::InvalidArgumentError(
        "has files, but no database; name the directory of a database, or a new or an empty one with --create");
  }
  if (!nodes.ok()) return nodes.status();
  const std::string& application = nodes->front().manifest.application;
  TpccDirectory found{.nodes = static_cast<int>(nodes->size())};
  if (std::sscanf(application.c_str(), "tpcc warehouses=%d seed=%" SCNu64, &found.warehouses, &found.seed) != 2) {
    return absl::InvalidArgumentError(
        absl::StrFormat("has a database%s, not one of TPC-C; name another directory",
                        application.empty() ? "" : absl::StrFormat(" of '%s'", application)));
  }
  const StatusOr<index::IndexKind> ordered_index = OrderedIndexOf(application);
  if (!ordered_index.ok()) return ordered_index.status();
  found.ordered_index = *ordered_index;
  const StatusOr<index::IndexRights> rights = IndexRightsIn(application, *ordered_index);
  if (!rights.ok()) return rights.status();
  found.index_rights = *rights;
  // The first checkpoint keeps the load; each node takes it when all have loaded.
  const auto with_rows =
      std::ranges::count_if(*nodes, [](const NodeData& node) { return !node.manifest.checkpoints.empty(); });
  if (with_rows != 0 && with_rows != std::ssize(*nodes)) {
    return absl::InvalidArgumentError("has a load that only some nodes finished; remove it, or name another directory");
  }
  found.loaded = with_rows != 0;
  return found;
}

}  // namespace gannet::cli
