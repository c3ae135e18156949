#include "lab/scenario/check/version_order.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"

namespace gannet::scenario {

VersionOrder::VersionOrder(const History& history, const WriteIndex& index, const Commits& commits, Choices* choices,
                           std::vector<Anomaly>* anomalies)
    : history_(history),
      index_(index),
      commits_(commits),
      choices_(choices),
      anomalies_(anomalies),
      successor_(index.num_writes(), kNone),
      followed_(index.num_writes()),
      position_(index.num_writes(), kNone) {
  GroupByKey();
  FindLostUpdates();
  versions_.reserve(commits.writes.size());
  first_.reserve(index.num_keys() + 1);
  for (KeyIndex key = 0; key < index.num_keys(); ++key) {
    first_.push_back(versions_.size());
    tail_.push_back(versions_.size());
    OrderKey(std::span(by_key_).subspan(group_[key], group_[key + 1] - group_[key]));
    for (size_t i = first_[key]; i < tail_[key]; ++i) {
      position_[versions_[i].write] = static_cast<uint32_t>(i - first_[key]);
    }
  }
  first_.push_back(versions_.size());
}

void VersionOrder::GroupByKey() {
  group_.resize(index_.num_keys() + 1);
  for (const KeyWrite& write : commits_.writes) ++group_[write.key + 1];
  for (size_t i = 1; i < group_.size(); ++i) group_[i] += group_[i - 1];
  by_key_.resize(commits_.writes.size());
  std::vector<size_t> next = group_;
  for (uint32_t i = 0; i < commits_.writes.size(); ++i) by_key_[next[commits_.writes[i].key]++] = i;
}

void VersionOrder::OrderKey(std::span<const uint32_t> writes) {
  if (!OrderByVersion(writes)) OrderByReads(writes);
}

bool VersionOrder::OrderByVersion(std::span<const uint32_t> writes) {
  const auto version_of = [&](const Version& version) { return index_.write(version.write).version; };
  const size_t begin = versions_.size();
  for (const uint32_t i : writes) versions_.push_back({commits_.writes[i].write, false});
  const auto mine = std::span(versions_).subspan(begin);
  if (std::ranges::any_of(mine, [&](const Version& version) { return version_of(version) == 0; })) {
    versions_.resize(begin);
    return false;
  }
  std::ranges::stable_sort(mine, {}, version_of);
  const auto tail = std::ranges::find(mine, kLastUnordered, version_of);
  tail_.back() = begin + static_cast<size_t>(tail - mine.begin());
  for (size_t i = begin + 1; i < tail_.back(); ++i) {
    const IndexedWrite& a = index_.write(versions_[i - 1].write);
    const IndexedWrite& b = index_.write(versions_[i].write);
    if (a.version != b.version) continue;
    anomalies_->push_back({AnomalyKind::kDivergentVersions,
                           {a.op, b.op},
                           absl::StrFormat("T%u and T%u both wrote version %u of key %s", a.op, b.op, a.version,
                                           index_.key(a.key).ToString())});
  }
  return true;
}

void VersionOrder::OrderByReads(std::span<const uint32_t> writes) {
  CollectChains(writes);
  FindDoubleInserts(writes);
  SortChains(writes);
  for (size_t c = 0; c < chains_.size(); ++c) {
    const Chain& chain = chains_[c];
    // A chain that is never removed comes last.
    const bool last = c + 1 == chains_.size() && inserts_known_ && Stays(chain);
    const bool guessed = c > 0 && !Forced(chains_[c - 1], chain) && !(last && !Stays(chains_[c - 1]));
    for (size_t i = chain.begin; i < chain.end; ++i) versions_.push_back({order_[i], guessed && i == chain.begin});
  }
  tail_.back() = versions_.size();
}

void VersionOrder::CollectChains(std::span<const uint32_t> writes) {
  order_.clear();
  chains_.clear();
  for (const uint32_t i : writes) {
    const KeyWrite& write = commits_.writes[i];
    if (write.read == kNone || successor_[write.read] != write.write) Follow(write.write);
  }
  // The remaining writes read from each other in a circle; the graph will report it.
  for (const uint32_t i : writes) Follow(commits_.writes[i].write);
}

void VersionOrder::Follow(uint32_t write) {
  if (followed_[write]) return;
  Chain chain{order_.size(), 0, kNever, 0};
  for (; write != kNone && !followed_[write]; write = successor_[write]) {
    followed_[write] = 1;
    order_.push_back(write);
    const OperationId op = index_.write(write).op;
    chain.applied_by = std::min(chain.applied_by, commits_.applied_by[op]);
    chain.invoked = std::max(chain.invoked, history_.operation(op).invoked);
  }
  chain.end = order_.size();
  chains_.push_back(chain);
}

// Chains follow each other as blocks. A must precede B if a write of A was complete before a write of B was invoked
// (Forced). If that holds for (A, B) and not for (B, A), then A has the smaller sum of both times. So sorting by the
// sum respects real time.
void VersionOrder::SortChains(std::span<const uint32_t> writes) {
  const auto sum = [](const Chain& chain) { return static_cast<unsigned __int128>(chain.applied_by) + chain.invoked; };
  std::ranges::stable_sort(chains_, {}, sum);
  inserts_known_ = InsertsAreKnown(writes);
  earliest_.assign(chains_.size() + 1, kNever);
  for (size_t c = chains_.size(); c-- > 0;) earliest_[c] = std::min(earliest_[c + 1], chains_[c].invoked);
  for (size_t c = 0; c + 1 < chains_.size(); ++c) ChooseNext(c);
}

// Moves one of the chains from `place` on, which no other of them must precede, to `place`.
void VersionOrder::ChooseNext(size_t place) {
  constexpr size_t kMaxCandidates = 8;
  candidates_.clear();
  const size_t end = std::min(chains_.size(), place + kMaxCandidates);
  for (size_t i = place; i < end; ++i) {
    bool free = true;
    for (size_t j = place; j < i && free; ++j) free = !Forced(chains_[j], chains_[i]);
    if (free) candidates_.push_back(i);
  }
  if (end < chains_.size() && earliest_[end] <= chains_[place].applied_by) exhaustive_ = false;
  const auto removed_end =
      std::stable_partition(candidates_.begin(), candidates_.end(), [&](size_t i) { return !Stays(chains_[i]); });
  const auto num_removed = static_cast<size_t>(removed_end - candidates_.begin());
  if (inserts_known_ && num_removed > 0) candidates_.resize(num_removed);
  const size_t chosen = candidates_[choices_->Pick(candidates_.size())];
  std::rotate(chains_.begin() + static_cast<ptrdiff_t>(place), chains_.begin() + static_cast<ptrdiff_t>(chosen),
              chains_.begin() + static_cast<ptrdiff_t>(chosen) + 1);
}

// True if each chain begins with an insert that found the key absent, without a guess.
bool VersionOrder::InsertsAreKnown(std::span<const uint32_t> writes) const {
  return std::ranges::all_of(writes, [&](uint32_t i) {
    const KeyWrite& write = commits_.writes[i];
    return write.has_read && Certain(write.write) && !commits_.absence_uncertain[write.key];
  });
}

void VersionOrder::FindLostUpdates() {
  for (const KeyWrite& write : commits_.writes) {
    if (write.read == kNone) continue;
    uint32_t& successor = successor_[write.read];
    if (successor == kNone) {
      successor = write.write;
    } else if (Certain(successor) && Certain(write.write)) {
      SayLostUpdate(successor, write.write,
                    absl::StrFormat("read it as the write %u", index_.write(write.read).id).c_str());
    }
  }
}

// A key is absent once at the beginning and once after each removal. If there are more inserts than that, they cannot
// all have found it absent.
void VersionOrder::FindDoubleInserts(std::span<const uint32_t> writes) {
  size_t absences = 1;
  std::vector<uint32_t> inserts;
  for (const uint32_t i : writes) {
    const KeyWrite& write = commits_.writes[i];
    if (!Certain(write.write) || commits_.absence_uncertain[write.key]) return;
    if (index_.write(write.write).remove) ++absences;
    if (write.has_read && write.read == kNone) inserts.push_back(write.write);
  }
  if (inserts.size() <= absences) return;
  const auto invoked = [&](uint32_t write) { return history_.operation(index_.write(write).op).invoked; };
  std::ranges::sort(inserts, {}, invoked);
  SayLostUpdate(inserts[inserts.size() - 2], inserts.back(), "found it absent, and too few removals explain that");
}

void VersionOrder::SayLostUpdate(uint32_t first, uint32_t second, const char* found) {
  const IndexedWrite& a = index_.write(first);
  const IndexedWrite& b = index_.write(second);
  anomalies_->push_back({AnomalyKind::kLostUpdate,
                         {a.op, b.op},
                         absl::StrFormat("T%u (write %u) and T%u (write %u) both wrote key %s, and both %s", a.op, a.id,
                                         b.op, b.id, index_.key(a.key).ToString(), found)});
}

}  // namespace gannet::scenario
