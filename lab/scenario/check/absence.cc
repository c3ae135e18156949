#include "lab/scenario/check/absence.h"

#include <algorithm>
#include <utility>

namespace gannet::scenario {
namespace {

// The presences of one key, from its version order.
struct Timeline {
  struct Presence {
    OperationId insert;
    OperationId remove;  // kNone: the key stays present
    uint32_t first;      // position of the insert
  };
  std::vector<Presence> presences;
  // Monotonic bounds for binary search. inserted_by: no later insert was complete before this time. remove_invoked: no
  // earlier removal was invoked after this time.
  std::vector<uint64_t> inserted_by;
  std::vector<uint64_t> remove_invoked;
  bool guessed = false;

  size_t last_gap() const {
    return presences.empty() || presences.back().remove != kNone ? presences.size() : presences.size() - 1;
  }
};

class AbsencePlacer {
 public:
  AbsencePlacer(const History& history, const WriteIndex& index, const Commits& commits, const VersionOrder& order,
                DependencyGraph* graph)
      : history_(history), index_(index), commits_(commits), order_(order), graph_(graph) {}

  std::vector<LooseAbsence> Place() {
    std::vector<ExternalRead> reads;
    for (const ExternalRead& read : commits_.reads) {
      if (read.write == kNone) reads.push_back(read);
    }
    std::ranges::stable_sort(reads, {}, &ExternalRead::key);
    KeyIndex key = kNone;
    for (const ExternalRead& read : reads) {
      if (std::exchange(key, read.key) != read.key) timeline_ = MakeTimeline(read.key);
      PlaceRead(read);
    }
    return std::move(loose_);
  }

 private:
  Timeline MakeTimeline(KeyIndex key) const {
    Timeline timeline;
    timeline.guessed = commits_.absence_uncertain[key] != 0;
    bool present = false;
    const std::span<const Version> versions = order_.ordered(key);
    for (uint32_t i = 0; i < versions.size(); ++i) {
      const IndexedWrite& write = index_.write(versions[i].write);
      timeline.guessed |= versions[i].guessed || !commits_.Certain(write.op);
      // An operation that both inserts and removes the key is a presence of its own, too.
      if (!present) timeline.presences.push_back({write.op, kNone, i});
      present = !write.remove;
      if (!present) timeline.presences.back().remove = write.op;
    }
    const size_t n = timeline.presences.size();
    timeline.inserted_by.resize(n);
    timeline.remove_invoked.resize(n);
    uint64_t earliest = kNever;
    for (size_t i = n; i-- > 0;) {
      earliest = std::min(earliest, commits_.applied_by[timeline.presences[i].insert]);
      timeline.inserted_by[i] = earliest;
    }
    uint64_t latest = 0;
    for (size_t i = 0; i < n; ++i) {
      const OperationId remove = timeline.presences[i].remove;
      latest = std::max(latest, remove == kNone ? kNever : history_.operation(remove).invoked);
      timeline.remove_invoked[i] = latest;
    }
    return timeline;
  }

  void PlaceRead(const ExternalRead& read) {
    if (read.own_write != kNone && order_.position(read.own_write) != kNone) return PlaceBeforeOwnWrite(read);
    const Operation& reader = history_.operation(read.op);
    const auto& inserted_by = timeline_.inserted_by;
    const auto& remove_invoked = timeline_.remove_invoked;
    // Gap g comes after g presences.
    const auto low = static_cast<size_t>(std::ranges::lower_bound(inserted_by, reader.invoked) - inserted_by.begin());
    const auto high =
        static_cast<size_t>(std::ranges::upper_bound(remove_invoked, CompletionOf(reader)) - remove_invoked.begin());
    const size_t last = std::min(high, timeline_.last_gap());
    if (low >= last) {
      const size_t gap = std::min(low, timeline_.last_gap());
      After(read, gap);
      Before(read, gap);
      return;
    }
    After(read, low);
    Before(read, last);
    for (size_t i = low; i < last; ++i) {
      const Timeline::Presence& presence = timeline_.presences[i];
      if (presence.insert == presence.remove) continue;
      loose_.push_back({read.op, presence.insert, presence.remove, read.key, read.by_scan, Guessed(read)});
    }
  }

  // The key must have been absent just before the transaction's own write.
  void PlaceBeforeOwnWrite(const ExternalRead& read) {
    const uint32_t position = order_.position(read.own_write);
    if (position == 0) return;
    const Version& before = order_.ordered(read.key)[position - 1];
    if (index_.write(before.write).remove) return;
    const auto after = std::ranges::upper_bound(timeline_.presences, position - 1, {}, &Timeline::Presence::first);
    Before(read, static_cast<size_t>(after - timeline_.presences.begin()) - 1);
  }

  bool Guessed(const ExternalRead& read) const { return timeline_.guessed || !commits_.Certain(read.op); }

  void After(const ExternalRead& read, size_t gap) {
    if (gap == 0) return;
    Add(timeline_.presences[gap - 1].remove, read.op, EdgeKind::kWriteRead, read);
  }

  void Before(const ExternalRead& read, size_t gap) {
    if (gap < timeline_.presences.size()) {
      return Add(read.op, timeline_.presences[gap].insert, EdgeKind::kReadWrite, read);
    }
    for (const Version& version : order_.tail(read.key)) {
      Add(read.op, index_.write(version.write).op, EdgeKind::kReadWrite, read);
    }
  }

  void Add(OperationId from, OperationId to, EdgeKind kind, const ExternalRead& read) {
    graph_->Add({.from = from,
                 .to = to,
                 .key = read.key,
                 .kind = kind,
                 .guessed = Guessed(read),
                 .absence = true,
                 .by_scan = read.by_scan});
  }

  const History& history_;
  const WriteIndex& index_;
  const Commits& commits_;
  const VersionOrder& order_;
  DependencyGraph* graph_;
  Timeline timeline_;
  std::vector<LooseAbsence> loose_;
};

}  // namespace

std::vector<LooseAbsence> PlaceAbsences(const History& history, const WriteIndex& index, const Commits& commits,
                                        const VersionOrder& order, DependencyGraph* graph) {
  return AbsencePlacer(history, index, commits, order, graph).Place();
}

}  // namespace gannet::scenario
