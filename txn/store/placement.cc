#include "txn/store/placement.h"

#include <algorithm>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/random.h"

namespace gannet::txn {
namespace {

const char* NameOf(index::KeyKind kind) {
  return kind == index::KeyKind::kInteger ? "an integer" : "a byte string";
}

// The whole key, also a long one, which Key::ToString shortens: ByRangeTexts reads it.
std::string TextOf(const index::Key& key) {
  if (key.kind() == index::KeyKind::kInteger) return key.ToString();
  return absl::StrCat("0x", absl::BytesToHexString(absl::string_view(key.bytes().data(), key.size())));
}

}  // namespace

KeyRanges::KeyRanges(std::span<const index::Key> starts) {
  if (starts.empty()) {
    status_ = absl::InvalidArgumentError("placement by range needs at least one start; use OnFirstNode for one owner");
    return;
  }
  kind_ = starts[0].kind();
  for (size_t i = 0; i < starts.size(); ++i) {
    const index::Key& start = starts[i];
    const auto wrong = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("start ", i, " of the placement by range ", what));
    };
    if (start.kind() != kind_) {
      status_ = wrong(absl::StrCat("is ", NameOf(start.kind()), ", and start 0 is ", NameOf(kind_)));
      return;
    }
    if (start.size() > index::kMaxKeyBytes) {
      status_ = wrong(absl::StrCat("has ", start.size(), " bytes; no key has more than ", index::kMaxKeyBytes));
      return;
    }
    if (i > 0 && !(starts[i - 1] < start)) {
      status_ = wrong(absl::StrCat("is ", start.ToString(), ", not greater than the one before it, ",
                                   starts[i - 1].ToString(), "; give them in ascending order, each once"));
      return;
    }
    texts_.push_back(TextOf(start));
    if (kind_ == index::KeyKind::kInteger) {
      integers_.push_back(start.integer());
    } else {
      bytes_.emplace_back(start);
    }
  }
}

Status KeyRanges::Check(index::KeyKind kind, size_t max_key_bytes, int num_nodes) const {
  GANNET_RETURN_IF_ERROR(status_);
  if (kind != kind_) {
    return absl::InvalidArgumentError(absl::StrCat("start 0 of the placement by range is ", NameOf(kind_),
                                                   "; the keys of the table are of the other kind"));
  }
  for (size_t i = 0; i < bytes_.size(); ++i) {
    if (bytes_[i].bytes().size() > max_key_bytes) {
      return absl::InvalidArgumentError(absl::StrCat("start ", i, " of the placement by range has ",
                                                     bytes_[i].bytes().size(),
                                                     " bytes; the keys of the table have at most ", max_key_bytes));
    }
  }
  if (std::ssize(texts_) >= num_nodes) {
    return absl::InvalidArgumentError(absl::StrCat("the placement by range has ", texts_.size() + 1,
                                                   " ranges, and the database has ", num_nodes,
                                                   " nodes that own rows: give at most ", num_nodes - 1, " starts"));
  }
  return absl::OkStatus();
}

// A key of the other kind has no owner. Any node finds that it does not fit the table.
rdma::NodeId KeyRanges::OwnerOf(const index::Key& key) const {
  if (key.kind() != kind_) [[unlikely]]
    return 0;
  if (kind_ == index::KeyKind::kInteger) {
    return static_cast<rdma::NodeId>(std::ranges::upper_bound(integers_, key.integer()) - integers_.begin());
  }
  const auto view = [](const index::OwnedKey& start) { return start.view(); };
  return static_cast<rdma::NodeId>(std::ranges::upper_bound(bytes_, key, std::less<index::Key>(), view) -
                                   bytes_.begin());
}

Placement Placement::OnFirstNode() {
  return {.owner = [](const index::Key&, int) -> rdma::NodeId { return 0; },
          .range_owner = [](const index::Key&, const index::Key&, int) { return 0; }};
}

Placement Placement::ByHash() {
  return {.owner = [](const index::Key& key, int num_nodes) -> rdma::NodeId {
            const uint64_t hash = key.kind() == index::KeyKind::kInteger
                                      ? Mix64(key.integer())
                                      : XXH3_64bits(key.bytes().data(), key.bytes().size());
            return static_cast<rdma::NodeId>(hash % static_cast<uint64_t>(num_nodes));
          },
          .range_owner = [](const index::Key&, const index::Key&, int) { return kSeveralNodes; }};
}

Placement Placement::ByRange(const std::vector<index::Key>& starts) {
  return {.ranges = std::make_shared<const KeyRanges>(starts)};
}

StatusOr<Placement> Placement::ByRangeTexts(std::span<const std::string> texts) {
  std::vector<std::string> bytes(texts.size());  // of byte keys
  std::vector<index::Key> starts;
  for (size_t i = 0; i < texts.size(); ++i) {
    uint64_t integer;
    if (absl::StartsWith(texts[i], "0x")) {
      const absl::string_view digits = absl::string_view(texts[i]).substr(2);
      if (digits.size() % 2 == 0 &&
          std::ranges::all_of(digits, [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); })) {
        bytes[i] = absl::HexStringToBytes(digits);
        starts.emplace_back(std::string_view(bytes[i]));
        continue;
      }
    } else if (absl::SimpleAtoi(texts[i], &integer)) {
      starts.emplace_back(integer);
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("'", absl::CHexEscape(texts[i]), "' is not the start of a range"));
  }
  return ByRange(starts);
}

Placement Placement::Unknown() {
  Placement placement = OnFirstNode();
  placement.unknown = true;
  return placement;
}

std::string_view Placement::name() const {
  if (replicated) return kReplicated;
  if (ranges != nullptr) return kPlacedByRange;
  if (unknown) return kPlacedByFunction;
  if (owner == OnFirstNode().owner) return kPlacedOnFirstNode;
  if (owner == ByHash().owner) return kPlacedByHash;
  return kPlacedByFunction;
}

Owners Placement::OwnersOf(const index::Key& from, const index::Key& to, int num_nodes) const {
  if (ranges != nullptr) return {.first = ranges->OwnerOf(from), .last = ranges->OwnerOf(to), .in_order = true};
  const int one = range_owner(from, to, num_nodes);
  if (one == kSeveralNodes) return {.first = 0, .last = static_cast<rdma::NodeId>(num_nodes - 1)};
  return {.first = static_cast<rdma::NodeId>(one), .last = static_cast<rdma::NodeId>(one)};
}

}  // namespace gannet::txn
