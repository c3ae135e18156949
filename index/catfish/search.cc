// CatfishTree: searches by the owner's CPU.
#include <algorithm>
#include <limits>
#include <mutex>
#include <queue>
#include <shared_mutex>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/catfish/tree.h"

namespace gannet::index::catfish {
namespace {

// Attempts of a search without a lock.
constexpr int kFreeAttempts = 4;
// Attempts under the shared lock, of a search that only the exclusive one makes succeed for sure.
constexpr int kSharedAttempts = 4;

using KeyOrder = std::array<uint64_t, RectangleKey::kWords>;

index::Entry EntryOf(const KeyOrder& words, uint64_t target) {
  const RectangleKey key{{NumberOf(words[0]), NumberOf(words[1]), NumberOf(words[2]), NumberOf(words[3])}, words[4]};
  return {OwnedKey(RectangleKeyBytes(key).view()), rdma::GlobalAddress::FromBits(target)};
}

void AppendEntry(const Entry& entry, ScanResult* result) {
  const RectangleKeyBytes key({entry.box, entry.id});
  result->entries.push_back({OwnedKey(key.view()), rdma::GlobalAddress::FromBits(entry.target)});
}

KeyOrder NextOf(KeyOrder order) {
  for (auto word = order.rbegin(); word != order.rend() && ++*word == 0;) ++word;
  return order;
}

ScanPosition PositionAt(const KeyOrder& order) {
  ScanPosition position;
  std::ranges::copy(order, position.words.begin());
  return position;
}

// Keeps one entry of each key, of those from `first` on.
void RemoveDuplicates(std::vector<index::Entry>* entries, size_t first) {
  const auto begin = entries->begin() + static_cast<ptrdiff_t>(first);
  std::sort(begin, entries->end(),
            [](const index::Entry& a, const index::Entry& b) { return a.key.view() < b.key.view(); });
  entries->erase(std::unique(begin, entries->end(),
                             [](const index::Entry& a, const index::Entry& b) { return a.key.view() == b.key.view(); }),
                 entries->end());
}

}  // namespace

template <class Meets, class Take>
bool CatfishTree::Traverse(const Meets& meets, std::vector<Witness>* seen, const Take& take) const {
  struct Pending {
    uint64_t offset;
    int level;  // -1: any
  };
  absl::InlinedVector<Pending, 64> pending = {{root_offset(), -1}};
  NodeCopy copy;
  while (!pending.empty()) {
    const Pending next = pending.back();
    pending.pop_back();
    Copy(next.offset, &copy);
    if (copy.head.dead || (next.level >= 0 && copy.head.level != next.level)) {
      Sometimes<"catfish: a traversal at the owner meets a node that left the tree">();
      return false;
    }
    if (seen != nullptr && !(copy.head.level > 0 && GANNET_MUTANT(kLeafWitnesses)))
      seen->push_back({AddressAt(next.offset), copy.state});
    for (const Entry& entry : copy.entries()) {
      if (!meets(entry.box)) continue;
      if (copy.head.level > 0) {
        pending.push_back({entry.target, copy.head.level - 1});
      } else if (!take(entry)) {
        return true;
      }
    }
  }
  return true;
}

bool CatfishTree::Unchanged(std::span<const Witness> witnesses) const {
  return std::ranges::all_of(witnesses, [this](const Witness& witness) {
    return LoadWord(arena_.memory + witness.word.offset()) == witness.seen;
  });
}

template <class Attempt>
void CatfishTree::Settle(bool strict, const Attempt& attempt) {
  for (int i = 0; i < kFreeAttempts; ++i) {
    if (attempt()) return;
  }
  Sometimes<"catfish: a search at the owner takes the structure lock">();
  for (int i = 0; !strict || i < kSharedAttempts; ++i) {
    const std::shared_lock shared(structure_);
    if (attempt()) return;
  }
  const std::unique_lock exclusive(structure_);
  while (!attempt()) {
  }
}

rdma::GlobalAddress CatfishTree::Lookup(const RectangleKey& key, bool* consistent) const {
  rdma::GlobalAddress found;
  *consistent = Traverse([&](const Rectangle& box) { return box.Contains(key.box); }, nullptr,
                         [&](const Entry& entry) {
                           if (entry.id != key.id || entry.box != key.box) return true;
                           found = rdma::GlobalAddress::FromBits(entry.target);
                           return false;
                         });
  return found;
}

// A key that is found was in the tree at some moment of the traversal. A miss counts if the key's word is unchanged, so
// that it was neither inserted nor removed meanwhile, and if the traversal met no dead node, so that it would have met
// the key (tree.h).
FindResult CatfishTree::Find(const Key& key) {
  const size_t number = key_words_.NumberOf(key);
  const StatusOr<RectangleKey> decoded = DecodeRectangleKey(key);
  FindResult result{.record = {}, .witness = {key_words_.AddressOf(number), 0}};
  if (!decoded.ok()) {
    result.witness.seen = key_words_.Await(number);
    return result;
  }
  for (int attempt = 0;; ++attempt) {
    const uint64_t word = key_words_.Await(number);
    bool consistent = false;
    if (attempt < kFreeAttempts) {
      result.record = Lookup(*decoded, &consistent);
    } else {
      const std::shared_lock shared(structure_);
      result.record = Lookup(*decoded, &consistent);
    }
    if (!result.record.is_null()) return {.record = result.record};
    if (!consistent || !key_words_.Is(number, word)) continue;
    result.witness.seen = word;
    return result;
  }
}

void CatfishTree::FindMany(std::span<const Key> keys, std::span<FindResult> results) {
  for (size_t i = 0; i < keys.size(); ++i) results[i] = Find(keys[i]);
}

Status CatfishTree::Search(const WindowQuery& query, ScanResult* result) {
  GANNET_RETURN_IF_ERROR(CheckRectangle(query.window));
  const size_t entries = result->entries.size();
  const size_t witnesses = result->witnesses.size();
  bool same = false;
  Settle(query.at_one_moment, [&] {
    result->entries.resize(entries);
    result->witnesses.resize(witnesses);
    const bool consistent = Traverse([&](const Rectangle& box) { return query.window.Meets(box); }, &result->witnesses,
                                     [&](const Entry& entry) {
                                       AppendEntry(entry, result);
                                       return true;
                                     });
    same = consistent && Unchanged(std::span(result->witnesses).subspan(witnesses));
    return query.at_one_moment ? same : consistent;
  });
  // An entry that moved meanwhile may have been met at both places.
  if (same) return absl::OkStatus();
  Sometimes<"catfish: the tree changes during a search at the owner">();
  RemoveDuplicates(&result->entries, entries);
  return absl::OkStatus();
}

// Looks at nodes by the smallest key that they can contain, and keeps the smallest keys. A node's rectangle tells the
// least x and y of a key below, and, by its greatest x, which keys can not be below.
//
// The witnesses cover the keys between the positions. For a key there, every rectangle that contains the key's one
// meets the window, can contain a key as small, and reaches as far to the right as the position from which the step
// began. So a node with such a rectangle was looked at, and the argument of catfish.h holds for these nodes.
Status CatfishTree::TakeStep(const WindowQuery& query, size_t limit, size_t most_witnesses,
                             std::optional<ScanPosition>* position, ScanResult* result, bool* consistent) const {
  using Least = std::array<uint64_t, 2>;  // of the keys below a node: x and y
  struct Pending {
    Least least;
    uint64_t offset;
    int level;
    bool operator<(const Pending& other) const { return least > other.least; }  // the smallest on top
  };
  using Found = std::pair<KeyOrder, uint64_t>;
  const auto least_of = [](const KeyOrder& order) { return Least{order[0], order[1]}; };
  KeyOrder from{};
  if (position->has_value()) std::copy_n((*position)->words.begin(), from.size(), from.begin());
  position->reset();
  std::priority_queue<Pending> pending;
  std::priority_queue<Found> found;  // the greatest on top
  pending.push({Least{}, root_offset(), -1});
  bool more = false;
  std::optional<Least> stopped_before;
  size_t looked_at = 0;
  NodeCopy copy;
  while (!pending.empty()) {
    const Pending next = pending.top();
    if (found.size() == limit && next.least > least_of(found.top().first)) {
      more = true;
      break;
    }
    if (looked_at++ == most_witnesses) {
      stopped_before = next.least;
      break;
    }
    pending.pop();
    Copy(next.offset, &copy);
    *consistent = !copy.head.dead && (next.level < 0 || copy.head.level == next.level);
    if (!*consistent) return absl::OkStatus();
    result->witnesses.push_back({AddressAt(next.offset), copy.state});
    for (const Entry& entry : copy.entries()) {
      if (!query.window.Meets(entry.box) || OrderedWord(entry.box.max_x) < from[0]) continue;
      if (copy.head.level > 0) {
        pending.push({{OrderedWord(entry.box.min_x), OrderedWord(entry.box.min_y)}, entry.target, copy.head.level - 1});
        continue;
      }
      const KeyOrder order = RectangleKey{entry.box, entry.id}.Words();
      if (order < from) continue;
      found.emplace(order, entry.target);
      if (found.size() <= limit) continue;
      found.pop();
      more = true;
    }
  }
  if (stopped_before.has_value()) {
    // Keys from here on may lie in nodes that were not looked at.
    const KeyOrder next{(*stopped_before)[0], (*stopped_before)[1]};
    if (next <= from) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a step of a search would need more than ", most_witnesses, " nodes: take a smaller window"));
    }
    while (!found.empty() && found.top().first >= next) found.pop();
    *position = PositionAt(next);
  } else if (more) {
    *position = PositionAt(NextOf(found.top().first));
  }
  const size_t first = result->entries.size();
  for (; !found.empty(); found.pop()) result->entries.push_back(EntryOf(found.top().first, found.top().second));
  std::reverse(result->entries.begin() + static_cast<ptrdiff_t>(first), result->entries.end());
  return absl::OkStatus();
}

Status CatfishTree::SearchStep(const WindowQuery& query, size_t limit, size_t most_witnesses,
                               std::optional<ScanPosition>* position, ScanResult* result) {
  GANNET_RETURN_IF_ERROR(CheckRectangle(query.window));
  if (limit == 0) return absl::OkStatus();
  const size_t entries = result->entries.size();
  const size_t witnesses = result->witnesses.size();
  const std::optional<ScanPosition> from = *position;
  Status status;
  bool same = false;
  Settle(query.at_one_moment, [&] {
    result->entries.resize(entries);
    result->witnesses.resize(witnesses);
    *position = from;
    bool consistent = true;
    status = TakeStep(query, limit, most_witnesses, position, result, &consistent);
    same = consistent && Unchanged(std::span(result->witnesses).subspan(witnesses));
    return !status.ok() || (query.at_one_moment ? same : consistent);
  });
  if (!same) RemoveDuplicates(&result->entries, entries);
  return status;
}

ScanPosition CatfishTree::PositionBehind(const Key& key, bool reverse) const {
  const StatusOr<RectangleKey> decoded = DecodeRectangleKey(key);
  GANNET_CHECK(decoded.ok() && !reverse, "no search passes key %s", key.ToString());
  return PositionAt(NextOf(decoded->Words()));
}

bool CatfishTree::TryNearest(const NearestQuery& query, ScanResult* result) const {
  struct Pending {
    double distance;  // all are squares
    uint64_t offset;
    int level;
    bool operator<(const Pending& other) const { return distance > other.distance; }  // the nearest on top
  };
  using Found = std::tuple<double, KeyOrder, uint64_t>;
  std::priority_queue<Pending> pending;
  std::priority_queue<Found> found;  // the farthest on top
  pending.push({0, root_offset(), -1});
  const size_t first_witness = result->witnesses.size();
  NodeCopy copy;
  while (!pending.empty()) {
    const Pending next = pending.top();
    // A node at the same distance is looked at, so that the witnesses cover that distance, too.
    if (found.size() == query.count && next.distance > std::get<0>(found.top())) break;
    pending.pop();
    Copy(next.offset, &copy);
    if (copy.head.dead || (next.level >= 0 && copy.head.level != next.level)) return false;
    result->witnesses.push_back({AddressAt(next.offset), copy.state});
    for (const Entry& entry : copy.entries()) {
      const double distance = entry.box.SquaredDistance(query.x, query.y);
      if (copy.head.level > 0) {
        pending.push({distance, entry.target, copy.head.level - 1});
        continue;
      }
      found.emplace(distance, RectangleKey{entry.box, entry.id}.Words(), entry.target);
      if (found.size() > query.count) found.pop();
    }
  }
  if (!Unchanged(std::span(result->witnesses).subspan(first_witness))) return false;
  const size_t first = result->entries.size();
  for (; !found.empty(); found.pop()) {
    result->entries.push_back(EntryOf(std::get<1>(found.top()), std::get<2>(found.top())));
  }
  std::reverse(result->entries.begin() + static_cast<ptrdiff_t>(first), result->entries.end());
  return true;
}

Status CatfishTree::Nearest(const NearestQuery& query, ScanResult* result) {
  GANNET_RETURN_IF_ERROR(CheckRectangle(Rectangle::Point(query.x, query.y)));
  if (query.count == 0) return absl::OkStatus();
  const size_t witnesses = result->witnesses.size();
  Settle(/*strict=*/true, [&] {
    result->witnesses.resize(witnesses);
    return TryNearest(query, result);
  });
  return absl::OkStatus();
}

// The walk is a search of everything, so it goes through the keys in their order.
bool CatfishTree::Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) {
  constexpr size_t kKeysPerStep = 1024;
  std::optional<ScanPosition> at = ScanPosition{position->next};
  ScanResult result;
  const Status status = SearchStep({.window = Rectangle::Everything()}, kKeysPerStep, SIZE_MAX, &at, &result);
  GANNET_CHECK(status.ok(), "a walk: %s", status.ToString());
  for (const index::Entry& entry : result.entries) records->push_back(entry.record);
  if (at.has_value()) position->next = at->words;
  return at.has_value();
}

Statistics CatfishTree::statistics() {
  Statistics statistics{.registered_bytes = arena_.pool->bytes() + key_words_.count() * kWordBytes};
  const std::shared_lock shared(structure_);
  NodeCopy copy;
  Copy(root_offset(), &copy);
  statistics.height = copy.head.level + 1;
  std::vector<Witness> seen;
  Traverse([](const Rectangle&) { return true; }, &seen,
           [&](const Entry&) {
             ++statistics.keys;
             return true;
           });
  statistics.nodes = seen.size();
  return statistics;
}

}  // namespace gannet::index::catfish
