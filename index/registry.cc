#include "index/registry.h"

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace gannet::index {

#define GANNET_INDEX_ENTRY(enumerator, entry) IndexKindEntry entry();
GANNET_INDEX_KINDS(GANNET_INDEX_ENTRY)
#undef GANNET_INDEX_ENTRY

namespace {

// The entries by number. This is a deque, so that entries keep their places.
std::deque<IndexKindEntry>& Entries() {
#define GANNET_INDEX_ENTRY(enumerator, entry) entry(),
  static std::deque<IndexKindEntry> entries = {GANNET_INDEX_KINDS(GANNET_INDEX_ENTRY)};
#undef GANNET_INDEX_ENTRY
  return entries;
}

}  // namespace

StatusOr<IndexKind> RegisterIndexKind(IndexKindEntry entry) {
  if (entry.name.empty() || entry.create == nullptr || entry.connect == nullptr || entry.register_methods == nullptr ||
      entry.bytes_per_key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the entry of index kind '", entry.name, "' is not complete"));
  }
  if (FindIndexKind(entry.name) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat("there is an index kind '", entry.name, "' already"));
  }
  Entries().push_back(std::move(entry));
  return static_cast<IndexKind>(Entries().size() - 1);
}

const IndexKindEntry* FindIndexKind(IndexKind kind) {
  const auto number = static_cast<size_t>(kind);
  return number < Entries().size() ? &Entries()[number] : nullptr;
}

const IndexKindEntry* FindIndexKind(std::string_view name) {
  for (const IndexKindEntry& entry : Entries()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const IndexKindEntry& EntryOf(IndexKind kind) {
  const IndexKindEntry* const entry = FindIndexKind(kind);
  GANNET_CHECK(entry != nullptr, "%d is no IndexKind", static_cast<int>(kind));
  return *entry;
}

StatusOr<IndexRights> RightsFor(const IndexKindEntry& kind, std::optional<IndexRights> asked) {
  const IndexRights most = kind.traits.client_writes ? IndexRights::kClients : IndexRights::kOwnerOnly;
  const IndexRights rights = asked.value_or(most);
  if (rights != IndexRights::kOwnerOnly && rights != IndexRights::kClients) {
    return absl::InvalidArgumentError(
        absl::StrCat("index_rights is ", static_cast<int>(rights), ", which is not an IndexRights"));
  }
  if (rights == IndexRights::kClients && most != IndexRights::kClients) {
    return absl::InvalidArgumentError(absl::StrCat("clients cannot change an index of kind ", kind.name,
                                                   "; leave the rights out, or choose ",
                                                   KindsWith(&IndexTraits::client_writes)));
  }
  return rights;
}

std::string KindsWith(bool IndexTraits::*property) {
  std::vector<std::string> names;
  for (const IndexKindEntry& entry : Entries()) {
    if (entry.traits.*property) names.push_back(entry.name);
  }
  if (names.empty()) return "none";
  const std::string last = std::move(names.back());
  names.pop_back();
  return names.empty() ? last : absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

IndexTraits TraitsOf(const IndexKindEntry& kind, IndexRights rights) {
  IndexTraits traits = kind.traits;
  traits.client_writes = traits.client_writes && rights == IndexRights::kClients;
  return traits;
}

std::string_view NameOf(IndexRights rights) {
  return rights == IndexRights::kOwnerOnly ? "owner" : "clients";
}

StatusOr<IndexRights> IndexRightsOf(std::string_view name) {
  for (const IndexRights rights : {IndexRights::kOwnerOnly, IndexRights::kClients}) {
    if (name == NameOf(rights)) return rights;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(name), "' are no rights; there are owner and clients"));
}

StatusOr<IndexKind> IndexKindOf(std::string_view name) {
  for (size_t number = 0; number < Entries().size(); ++number) {
    if (Entries()[number].name == name) return static_cast<IndexKind>(number);
  }
  std::string known;
  for (const IndexKindEntry& entry : Entries()) absl::StrAppend(&known, known.empty() ? "" : ", ", entry.name);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no index kind '", std::string(name), "'; there are ", known));
}

StatusOr<OwnOptions> ReadOwnOptions(const IndexKindEntry& entry, std::string_view text) {
  if (entry.read_options != nullptr) return entry.read_options(text);
  if (text.empty()) return OwnOptions{};
  return absl::InvalidArgumentError(
      absl::StrCat("an index of kind ", entry.name, " has no options of its own: leave out '", std::string(text), "'"));
}

std::vector<std::string_view> IndexKindNames() {
  std::vector<std::string_view> names;
  for (const IndexKindEntry& entry : Entries()) names.push_back(entry.name);
  return names;
}

void RegisterAllIndexMethods(IndexService* service) {
  for (const IndexKindEntry& entry : Entries()) entry.register_methods(service);
}

}  // namespace gannet::index
