#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "lab/scenario/crash/load.h"

namespace gannet::scenario::crash {
namespace {

class LoadJudge final : public CounterJudge {
 public:
  explicit LoadJudge(const CrashOptions& options) : CounterJudge(options) {}

  void NewDirectory() override {
    CounterJudge::NewDirectory();
    parts_.clear();
    operations_.clear();
  }
  std::string Verdict() const override {
    return absl::StrFormat("loads of a node's part of a table: %d begun, %d saved by a checkpoint, %d gone in a crash",
                           begun_, saved_, gone_);
  }

 private:
  using Part = std::pair<uint64_t, uint64_t>;  // table, node
  struct PartState {
    std::set<uint32_t> begun;
    uint32_t there = 0;                    // the load that must be there; 0: none
    std::string because;                   // why
    std::map<uint64_t, uint32_t> changed;  // by key: the last operation that is in the database
  };
  struct Touched {
    Part part;
    uint64_t key;
    uint32_t load;
  };

  Status TakeOther(const Message& message) override {
    const Part part{message.a, message.b};
    const auto load = static_cast<uint32_t>(message.number);
    switch (message.kind) {
      case MessageKind::kTouches:
        operations_[{message.worker, message.number}] = {
            {message.a, NodeOfLoadRow(message.b, options_.nodes)}, message.b, static_cast<uint32_t>(message.c)};
        return absl::OkStatus();
      case MessageKind::kLoadBegun:
        ++begun_;
        parts_[part].begun.insert(load);
        return absl::OkStatus();
      case MessageKind::kLoadSaved:
        ++saved_;
        MustBeThere(part, load, "a checkpoint was taken after it");
        return absl::OkStatus();
      default:
        return CounterJudge::TakeOther(message);
    }
  }

  void MustBeThere(const Part& part, uint32_t load, std::string because) {
    PartState& state = parts_[part];
    if (state.there != 0) return;
    state.there = load;
    state.because = std::move(because);
  }

  // Notes the rows changed by the operations that are there; the parts of these rows must be there, too.
  void Follow(const State& state) {
    for (const auto& [name, touched] : operations_) {
      const auto& [worker, number] = name;
      const auto counter = state.counters.find(worker);
      if (counter == state.counters.end() || number > counter->second || touched.load == 0) continue;
      MustBeThere(touched.part, touched.load,
                  absl::StrFormat("operation %d of worker %d changed its row %d", number, worker, touched.key));
      parts_[touched.part].changed[touched.key] = static_cast<uint32_t>(number);
    }
    operations_.clear();
  }

  Status CheckRows(const State& state) override {
    Follow(state);
    std::map<Part, std::map<uint64_t, LoadRow>> found;
    for (const auto& [key, content] : state.rows) {
      const auto& [table, worker, row] = key;
      found[{table, NodeOfLoadRow(row, options_.nodes)}][row] = LoadRow::Of(content);
    }
    for (auto& [part, known] : parts_) GANNET_RETURN_IF_ERROR(CheckPart(part, found[part], &known));
    for (const auto& [part, rows] : found) {
      if (!rows.empty() && !parts_.contains(part)) return Wrong(part, "was never loaded, but has rows");
    }
    return absl::OkStatus();
  }

  Status CheckPart(const Part& part, const std::map<uint64_t, LoadRow>& rows, PartState* known) {
    if (rows.empty()) {
      if (known->there != 0) {
        return Wrong(part, absl::StrFormat("is empty, but load %d must be there: %s", known->there, known->because));
      }
      gone_ += known->begun.size();
      known->begun.clear();
      return absl::OkStatus();
    }
    uint64_t expected = 0;
    for (uint64_t key = 0; key < kLoadRows; ++key) {
      expected += NodeOfLoadRow(key, options_.nodes) == part.second ? 1 : 0;
    }
    if (rows.size() != expected) {
      return Wrong(part, absl::StrFormat("has %d of the %d rows of a load", rows.size(), expected));
    }
    const uint32_t load = rows.begin()->second.load;
    if (!known->begun.contains(load) || (known->there != 0 && known->there != load)) {
      return Wrong(part, absl::StrFormat("has rows of load %d, which should not be there", load));
    }
    known->there = load;
    known->because = "it was recovered before";
    for (const auto& [key, row] : rows) {
      const auto changed = known->changed.find(key);
      const uint32_t number = changed == known->changed.end() ? 0 : changed->second;
      if (row.load == load && row.number == number) continue;
      return Wrong(part, absl::StrFormat("has row %d of load %d after operation %d; it should be of load %d after "
                                         "operation %d",
                                         key, row.load, row.number, load, number));
    }
    return absl::OkStatus();
  }

  static Status Wrong(const Part& part, const std::string& what) {
    return absl::DataLossError(absl::StrFormat("node %d's part of table %d %s", part.second, part.first, what));
  }

  std::map<Part, PartState> parts_;
  std::map<std::pair<uint32_t, uint64_t>, Touched> operations_;  // by worker and number: not known to be there
  uint64_t begun_ = 0;
  uint64_t saved_ = 0;
  uint64_t gone_ = 0;
};

}  // namespace

std::unique_ptr<Judge> MakeLoadJudge(const CrashOptions& options) {
  return std::make_unique<LoadJudge>(options);
}

}  // namespace gannet::scenario::crash
