#include "lab/scenario/check/commits.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"

namespace gannet::scenario {
namespace {

// A removal with an unknown outcome.
struct Removal {
  OperationId op;
  KeyIndex key;
  uint32_t victim;  // the write that it may have removed
};

// Facts about a key of such removals, from committed transactions.
struct KeyFacts {
  uint64_t last_absence = 0;      // invocation of the last transaction that found it absent
  std::vector<uint32_t> present;  // writes that are not removals
  bool blind = false;             // a transaction wrote it without reading it first
  bool guessed = false;           // some of these facts come from transactions that are committed by a guess
};

class CommitFinder {
 public:
  CommitFinder(const History& history, const WriteIndex& index, Choices* choices)
      : history_(history), index_(index), choices_(choices), walk_(history, index) {
    result_.committed.resize(history.size());
    result_.guessed.resize(history.size());
    result_.absence_uncertain.resize(index.num_keys());
    result_.applied_by.resize(history.size(), kNever);
  }

  Commits Find(std::vector<Anomaly>* anomalies) {
    for (OperationId op = 0; op < history_.size(); ++op) {
      if (history_.operation(op).outcome == Outcome::kOk) Commit(op);
    }
    CommitSeen();
    CollectRemovals();
    result_.unknown_removals = !removals_.empty();
    while (!removals_.empty() && AdoptRemovals()) CommitSeen();
    for (const Removal& removal : removals_) {
      const uint32_t victim = RootOf(removal.victim);
      const bool possible = !result_.committed[removal.op] && victim != kNone && !overwritten_[victim];
      if (possible) result_.absence_uncertain[removal.key] = 1;
    }
    Collect(anomalies);
    return std::move(result_);
  }

 private:
  void Commit(OperationId op) {
    result_.committed[op] = 1;
    pending_.push_back(op);
    if (history_.operation(op).outcome != Outcome::kOk) ++result_.info_committed;
  }

  void CommitSeen() {
    while (!pending_.empty()) {
      const OperationId op = pending_.back();
      pending_.pop_back();
      const uint64_t completed = CompletionOf(history_.operation(op));
      Apply(op, completed);
      for (const Access& access : history_.accesses(op)) {
        if (access.kind != AccessKind::kRead && access.kind != AccessKind::kScanRow) continue;
        const uint32_t write = access.id == kAbsent ? kNone : index_.FindWrite(access.id);
        if (write == kNone || index_.write(write).abandoned) continue;
        const OperationId writer = index_.write(write).op;
        if (history_.operation(writer).outcome != Outcome::kInfo) continue;
        if (!result_.committed[writer]) {
          Commit(writer);
          result_.guessed[writer] = result_.guessed[op];
        }
        Apply(writer, completed);
      }
    }
  }

  void Apply(OperationId op, uint64_t time) { result_.applied_by[op] = std::min(result_.applied_by[op], time); }

  void CollectRemovals() {
    for (OperationId op = 0; op < history_.size(); ++op) {
      if (history_.operation(op).outcome != Outcome::kInfo || result_.committed[op]) continue;
      std::vector<Anomaly> wrong;
      walk_.Walk(op, &wrong);
      const auto visible = [&](const ExternalRead& read) { return read.write == kNone || Visible(read.write); };
      if (!wrong.empty() || !std::ranges::all_of(walk_.reads(), visible)) continue;  // it cannot have committed
      for (const KeyWrite& write : walk_.writes()) {
        if (write.read == kNone) continue;
        unknown_updates_[write.write] = write.read;
        if (index_.write(write.write).remove) removals_.push_back({op, write.key, write.read});
      }
    }
  }

  // True if other transactions may see the write: neither its transaction nor its attempt failed, and it is its
  // transaction's last write of the key.
  bool Visible(uint32_t write) const {
    const IndexedWrite& made = index_.write(write);
    if (made.abandoned || history_.operation(made.op).outcome == Outcome::kFail) return false;
    for (uint32_t next = write + 1; next < index_.num_writes() && index_.write(next).op == made.op; ++next) {
      if (index_.write(next).key == made.key) return false;
    }
    return true;
  }

  // The last committed write below a chain of writes with unknown outcomes. kNone: the key was absent below them.
  uint32_t RootOf(uint32_t write) const {
    for (size_t steps = 0; steps <= unknown_updates_.size(); ++steps) {  // a wrong history may contain a circle
      if (result_.committed[index_.write(write).op]) return write;
      const auto under = unknown_updates_.find(write);
      if (under == unknown_updates_.end()) return kNone;
      write = under->second;
    }
    return kNone;
  }

  // Removals that may still be adopted, by victim.
  std::map<uint32_t, std::vector<OperationId>> Candidates() const {
    std::map<uint32_t, std::vector<OperationId>> candidates;
    for (const Removal& removal : removals_) {
      const uint32_t victim = RootOf(removal.victim);
      if (!result_.committed[removal.op] && victim != kNone) candidates[victim].push_back(removal.op);
    }
    return candidates;
  }

  absl::flat_hash_map<KeyIndex, KeyFacts> CollectFacts() {
    overwritten_.assign(index_.num_writes(), 0);
    absl::flat_hash_map<KeyIndex, KeyFacts> facts;
    for (const Removal& removal : removals_) facts[removal.key];
    for (OperationId op = 0; op < history_.size(); ++op) {
      if (!result_.committed[op]) continue;
      walk_.Walk(op, nullptr);
      for (const ExternalRead& read : walk_.reads()) {
        if (read.write != kNone) continue;
        const auto fact = facts.find(read.key);
        if (fact == facts.end()) continue;
        fact->second.guessed |= result_.guessed[op] != 0;
        fact->second.last_absence = std::max(fact->second.last_absence, history_.operation(op).invoked);
      }
      for (const KeyWrite& write : walk_.writes()) {
        if (write.read != kNone) overwritten_[write.read] = 1;
        const auto fact = facts.find(write.key);
        if (fact == facts.end()) continue;
        fact->second.guessed |= result_.guessed[op] != 0;
        fact->second.blind |= !write.has_read;
        if (write.read != kNone) under_[write.write] = write.read;
        if (!index_.write(write.write).remove) fact->second.present.push_back(write.write);
      }
    }
    return facts;
  }

  // True if the key was present before `time`, by the chain of updates that ends with `write`.
  bool PresentBefore(uint32_t write, uint64_t time) const {
    for (size_t steps = 0; steps <= under_.size(); ++steps) {  // a wrong history may contain a circle
      if (result_.applied_by[index_.write(write).op] < time) return true;
      const auto under = under_.find(write);
      if (under == under_.end()) return false;
      write = under->second;
    }
    return false;
  }

  // One round: adopts at most one removal for each write that must have been removed. Returns false if there is none.
  bool AdoptRemovals() {
    const auto candidates = Candidates();
    absl::flat_hash_map<KeyIndex, KeyFacts> facts = CollectFacts();
    bool adopted = false;
    for (const auto& [victim, removers] : candidates) {
      if (overwritten_[victim]) continue;
      KeyFacts& fact = facts[index_.write(victim).key];
      std::erase_if(fact.present, [&](uint32_t write) { return overwritten_[write] != 0; });
      const bool forced = !fact.blind && PresentBefore(victim, fact.last_absence);
      // If several writes are present at the end, all but one were removed.
      if (!forced && (fact.present.size() < 2 || Latest(fact.present) == victim)) continue;
      overwritten_[victim] = 1;
      // A conclusion from a guess is a guess.
      adopted |= Adopt(removers, /*guess=*/!forced || fact.guessed || removers.size() > 1);
    }
    return adopted;
  }

  uint32_t Latest(const std::vector<uint32_t>& writes) const {
    return *std::ranges::max_element(
        writes, {}, [&](uint32_t write) { return history_.operation(index_.write(write).op).invoked; });
  }

  bool Adopt(const std::vector<OperationId>& removers, bool guess) {
    const OperationId chosen = removers[choices_->Pick(removers.size())];
    if (result_.committed[chosen]) return false;
    Commit(chosen);
    result_.guessed[chosen] = guess;
    return true;
  }

  void Collect(std::vector<Anomaly>* anomalies) {
    for (OperationId op = 0; op < history_.size(); ++op) {
      if (!result_.committed[op]) continue;
      std::vector<Anomaly>* found = result_.guessed[op] ? &result_.doubts : anomalies;
      walk_.Walk(op, found);
      for (const ExternalRead& read : walk_.reads()) {
        if (read.write != kNone) CheckRead(read, found);
      }
      result_.reads.insert(result_.reads.end(), walk_.reads().begin(), walk_.reads().end());
      result_.writes.insert(result_.writes.end(), walk_.writes().begin(), walk_.writes().end());
    }
    std::vector<uint8_t> last(index_.num_writes());
    for (const KeyWrite& write : result_.writes) last[write.write] = 1;
    for (const ExternalRead& read : result_.reads) {
      if (read.write == kNone || last[read.write]) continue;
      CheckIntermediate(read, result_.guessed[read.op] ? &result_.doubts : anomalies);
    }
  }

  void CheckRead(const ExternalRead& read, std::vector<Anomaly>* anomalies) const {
    const IndexedWrite& write = index_.write(read.write);
    if (!write.abandoned && history_.operation(write.op).outcome != Outcome::kFail) return;
    anomalies->push_back(
        {AnomalyKind::kAbortedRead,
         {read.op, write.op},
         absl::StrFormat("T%u read key %s as the write %u of T%u, %s", read.op, index_.key(read.key).ToString(),
                         write.id, write.op, write.abandoned ? "in an attempt that was rolled back" : "which failed")});
  }

  void CheckIntermediate(const ExternalRead& read, std::vector<Anomaly>* anomalies) const {
    const IndexedWrite& write = index_.write(read.write);
    if (write.abandoned || !result_.committed[write.op]) return;
    anomalies->push_back({AnomalyKind::kIntermediateRead,
                          {read.op, write.op},
                          absl::StrFormat("T%u read key %s as the write %u, which T%u itself then overwrote", read.op,
                                          index_.key(read.key).ToString(), write.id, write.op)});
  }

  const History& history_;
  const WriteIndex& index_;
  Choices* choices_;
  TransactionWalk walk_;
  Commits result_;
  std::vector<OperationId> pending_;
  std::vector<Removal> removals_;
  absl::flat_hash_map<uint32_t, uint32_t> unknown_updates_;  // write -> the write that it overwrote
  absl::flat_hash_map<uint32_t, uint32_t> under_;            // the same for committed writes of keys with removals
  std::vector<uint8_t> overwritten_;                         // by write: overwritten by a committed one
};

}  // namespace

Commits FindCommits(const History& history, const WriteIndex& index, Choices* choices,
                    std::vector<Anomaly>* anomalies) {
  return CommitFinder(history, index, choices).Find(anomalies);
}

}  // namespace gannet::scenario
