#include "txn/schema/table_options.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "index/registry.h"
#include "log/format/utf8.h"
#include "txn/store/options.h"

namespace gannet::txn {
namespace {

constexpr size_t kMaxTableNameBytes = 255;

// Names, for a message about keys that are too long for a kind of index, the kinds that take keys of `max_key_bytes`.
// Empty if none does.
std::string KindsForKeysOf(size_t max_key_bytes) {
  std::string kinds;
  for (const std::string_view name : index::IndexKindNames()) {
    const index::IndexTraits& traits = index::FindIndexKind(name)->traits;
    if (traits.max_key_bytes < max_key_bytes) continue;
    absl::StrAppend(&kinds, kinds.empty() ? "; kinds that take such keys: " : ", ",
                    absl::string_view(name.data(), name.size()), traits.ordered ? "" : " (no order)");
  }
  return kinds;
}

}  // namespace

// The manifest is JSON and keeps names unchanged; reports and dumps print them.
Status CheckTableName(const std::string& name) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the table's name '", absl::CHexEscape(name.substr(0, kMaxTableNameBytes)), "' ", what));
  };
  if (name.empty()) return absl::InvalidArgumentError("TableOptions::name is empty: every table has a name");
  if (name.size() > kMaxTableNameBytes) {
    return wrong(absl::StrCat("... has ", name.size(), " bytes, at most ", kMaxTableNameBytes));
  }
  if (!log::IsUtf8(name)) return wrong("is not UTF-8");
  if (std::ranges::any_of(name, [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); })) {
    return wrong("has a control character");
  }
  return absl::OkStatus();
}

Status CheckTable(const TableOptions& options, int data_nodes) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("table '", options.name, "': ", what));
  };
  GANNET_RETURN_IF_ERROR(CheckTableName(options.name));
  if (options.payload_bytes > kMaxPayloadBytes) {
    return wrong(absl::StrCat("payload_bytes is ", options.payload_bytes, ", at most ", kMaxPayloadBytes));
  }
  if (options.key_kind == index::KeyKind::kInteger && options.max_key_bytes != index::kIntegerKeyBytes) {
    return wrong("max_key_bytes is for byte keys; leave it at 8 for integer keys");
  }
  // A number that was cast to an enum, possibly of a newer version: the log would have changes that no recovery
  // accepts.
  if (index::FindIndexKind(options.index) == nullptr) {
    return wrong(absl::StrCat("index is ", static_cast<int>(options.index), ", which is not an IndexKind"));
  }
  if (const auto own = index::ReadOwnOptions(index::EntryOf(options.index), options.index_options); !own.ok()) {
    return wrong(absl::StrCat("index_options: ", own.status().message()));
  }
  if (options.key_kind != index::KeyKind::kInteger && options.key_kind != index::KeyKind::kBytes) {
    return wrong(absl::StrCat("key_kind is ", static_cast<int>(options.key_kind), ", which is not a KeyKind"));
  }
  const index::IndexKindEntry& kind = index::EntryOf(options.index);
  if (const Status fits = CheckKeyForm(options.key_form, options.key_kind, kind.traits.spatial); !fits.ok()) {
    return wrong(fits.message());
  }
  if (options.max_key_bytes == 0 || options.max_key_bytes > kind.traits.max_key_bytes) {
    return wrong(absl::StrCat("max_key_bytes is ", options.max_key_bytes, ", from 1 to ", kind.traits.max_key_bytes,
                              " with an index of kind ", kind.name,
                              options.max_key_bytes == 0 ? "" : KindsForKeysOf(options.max_key_bytes)));
  }
  if (!log::IsUtf8(options.application) || options.application.size() > kMaxApplicationBytes) {
    return wrong(absl::StrCat("application has ", options.application.size(), " bytes: give at most ",
                              kMaxApplicationBytes, ", of UTF-8"));
  }
  if (options.placement.ranges != nullptr) {
    const Status fits = options.placement.ranges->Check(options.key_kind, options.max_key_bytes, data_nodes);
    if (!fits.ok()) return wrong(fits.message());
  } else if (!options.placement.replicated &&
             (options.placement.owner == nullptr || options.placement.range_owner == nullptr)) {
    return wrong("placement has no owner or range_owner function");
  }
  return absl::OkStatus();
}

Status CheckNewTable(const TableOptions& options, int data_nodes) {
  GANNET_RETURN_IF_ERROR(CheckTable(options, data_nodes));
  if (!options.placement.unknown) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("table '", options.name, "': placement is Placement::Unknown; say which node owns which key"));
}

StatusOr<TableOptions> CompleteOptions(TableOptions options) {
  const index::IndexKindEntry& kind = index::EntryOf(options.index);
  StatusOr<index::OwnOptions> own = index::ReadOwnOptions(kind, options.index_options);
  if (!own.ok()) return own.status();
  const StatusOr<IndexRights> rights = index::RightsFor(kind, options.index_rights);
  if (!rights.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("table '", options.name, "': ", rights.status().message()));
  }
  options.index_options = std::move(own->text);
  options.index_rights = *rights;
  return options;
}

}  // namespace gannet::txn
