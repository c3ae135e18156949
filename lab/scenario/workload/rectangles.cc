#include "lab/scenario/workload/rectangles.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "lab/scenario/check/serializability.h"
#include "lab/scenario/workload/judged_transaction.h"
#include "txn/database.h"

namespace gannet::scenario {
namespace {

using index::Rectangle;
using index::RectangleKey;
using index::RectangleKeyBytes;
using txn::Transaction;

constexpr char kName[] = "rectangles";
constexpr uint32_t kTable = 0;   // its number in the history
constexpr uint32_t kRectangleLoader = 0;  // its client number

// Rectangles that can exist, by ScenarioOptions::keys.
constexpr uint64_t kPlacesPerKey = 4;  // of one id
constexpr uint64_t kMostPlaces = 1024;
constexpr uint64_t kWorld = 64;  // coordinates are whole numbers up to about this, so that many edges touch

constexpr uint64_t kMostInWave = 32;

enum class RectangleStepKind : uint8_t {
  kGet,
  kGetMany,
  kUpdate,
  kPut,
  kInsert,
  kRemove,
  kMove,
  kClaim,  // inserts a rectangle if none overlaps it
  kSearch,
  kSearchKeys,   // without payloads
  kUpdateFound,  // all that a search finds
  kRemoveFound,
  kNearest,
};

struct RectangleStep {
  RectangleStepKind kind = RectangleStepKind::kGet;
  uint64_t key = 0;
  uint64_t to = 0;        // kGetMany: the last; kMove: the new place
  Rectangle window = {};  // of searches
  size_t count = 0;       // kNearest, to the window's lower left corner
};

// A point, or a rectangle that is mostly small, with its lower left corner at (x, y).
Rectangle DrawBoxAt(double x, double y, Random* random) {
  const uint64_t most = random->OneIn(12) ? kWorld / 2 : 6;
  if (random->OneIn(4)) return Rectangle::Point(x, y);
  const auto width = static_cast<double>(random->Below(most));
  const auto height = static_cast<double>(random->Below(most));
  return {x, y, x + width, y + height};
}

double DrawCoordinate(uint64_t most, Random* random) {
  return static_cast<double>(random->Below(most));
}

Rectangle DrawWindow(Random* random) {
  if (random->OneIn(10)) return Rectangle::Everything();
  const double x = DrawCoordinate(kWorld, random);
  Rectangle window = DrawBoxAt(x, DrawCoordinate(kWorld, random), random);
  window.max_x += DrawCoordinate(kWorld / 3, random);
  window.max_y += DrawCoordinate(kWorld / 3, random);
  return window;
}

}  // namespace

class RectangleTransaction final : public JudgedTransaction {
 public:
  RectangleTransaction(Rectangles* workload, txn::Session& session)
      : JudgedTransaction(&workload->history_, workload->control_),
        workload_(workload),
        table_(session.database().FindTable(kName)) {}

  std::vector<RectangleStep>& steps() { return steps_; }

 private:
  using RectangleRow = Rectangles::RectangleRow;

  size_t num_steps() const override { return steps_.size(); }
  coro::Task<Status> Do(Transaction& transaction, Draft& draft, size_t number) override {
    const RectangleStep& step = steps_[number];
    if (number == 0) inserted_unread_ = false;
    switch (step.kind) {
      case RectangleStepKind::kGet:
        co_return co_await Get(transaction, draft, step.key);
      case RectangleStepKind::kGetMany:
        co_return co_await GetMany(transaction, draft, step);
      case RectangleStepKind::kInsert:
        co_return Insert(transaction, draft, step.key);
      case RectangleStepKind::kUpdate:
      case RectangleStepKind::kPut:
      case RectangleStepKind::kRemove:
        co_return co_await Change(transaction, draft, step.kind, step.key);
      case RectangleStepKind::kMove:
        co_return co_await Move(transaction, draft, step);
      case RectangleStepKind::kClaim:
        co_return co_await Claim(transaction, draft, step);
      case RectangleStepKind::kSearch:
      case RectangleStepKind::kSearchKeys:
      case RectangleStepKind::kUpdateFound:
      case RectangleStepKind::kRemoveFound:
        co_return co_await Search(transaction, draft, step);
      case RectangleStepKind::kNearest:
        co_return co_await Nearest(transaction, draft, step);
    }
    co_return absl::OkStatus();
  }

  RectangleKeyBytes KeyOf(uint64_t number) const { return RectangleKeyBytes(workload_->places_[number]); }

  void Saw(Draft& draft, uint64_t number, const RectangleRow& row) {
    const std::optional<WriteId> id = row.id();
    if (id.has_value()) return draft.Read({kTable, number}, *id);
    control().broken = absl::StrCat("a torn row: rectangle ", number, " has words of writes ", row.words[0], " to ",
                                    row.words[row.words.size() - 1]);
  }

  coro::Task<Status> Get(Transaction& transaction, Draft& draft, uint64_t number) {
    RectangleRow row;
    const RectangleKeyBytes key = KeyOf(number);
    Status status = co_await transaction.Get(*table_, key.view(), &row);
    if (status.ok()) Saw(draft, number, row);
    if (absl::IsNotFound(status)) draft.Read({kTable, number}, kAbsent);
    co_return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

  coro::Task<Status> GetMany(Transaction& transaction, Draft& draft, const RectangleStep& step) {
    std::vector<RectangleRow> rows(step.to - step.key + 1);
    std::vector<RectangleKeyBytes> keys;
    std::vector<txn::GetRequest> requests;
    keys.reserve(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      keys.push_back(KeyOf(step.key + i));
      requests.push_back(txn::GetRequest::Of(*table_, keys[i].view(), &rows[i]));
    }
    Status status = co_await transaction.GetMany(requests);
    if (!status.ok()) co_return status;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (requests[i].status.ok()) {
        Saw(draft, step.key + i, rows[i]);
      } else if (absl::IsNotFound(requests[i].status)) {
        draft.Read({kTable, step.key + i}, kAbsent);
      } else {
        co_return requests[i].status;
      }
    }
    co_return absl::OkStatus();
  }

  // Inserts without reading first. The commit returns AlreadyExists, or the insert itself does if this transaction has
  // inserted the key before. In the second case nothing was written, and a careless body continues.
  Status Insert(Transaction& transaction, Draft& draft, uint64_t number) {
    const WriteId id = history().NextWriteId();
    const RectangleKeyBytes key = KeyOf(number);
    Status inserted = transaction.Insert(*table_, key.view(), RectangleRow::Of(id));
    if (inserted.ok()) draft.Insert({kTable, number}, id);
    inserted_unread_ = true;
    return inserted;
  }

  // Reads, and then updates, removes or (kPut) inserts.
  coro::Task<Status> Change(Transaction& transaction, Draft& draft, RectangleStepKind kind, uint64_t number) {
    const RowKey name{kTable, number};
    RectangleRow row;
    const RectangleKeyBytes key = KeyOf(number);
    StatusOr<txn::RecordHandle> handle = co_await transaction.GetForUpdate(*table_, key.view(), &row);
    if (absl::IsNotFound(handle.status())) {
      draft.Read(name, kAbsent);
      if (kind != RectangleStepKind::kPut) co_return absl::OkStatus();
      const WriteId id = history().NextWriteId();
      draft.Write(name, id);
      co_return transaction.Insert(*table_, key.view(), RectangleRow::Of(id));
    }
    if (!handle.ok()) co_return handle.status();
    Saw(draft, number, row);
    co_return ChangeRow(transaction, draft, number, *handle, kind == RectangleStepKind::kRemove);
  }

  Status ChangeRow(Transaction& transaction, Draft& draft, uint64_t number, txn::RecordHandle handle, bool remove) {
    const WriteId id = history().NextWriteId();
    if (remove) {
      draft.Remove({kTable, number}, id);
      return transaction.Remove(handle);
    }
    draft.Write({kTable, number}, id);
    return transaction.Update(handle, RectangleRow::Of(id));
  }

  // A taxi drives to another place.
  coro::Task<Status> Move(Transaction& transaction, Draft& draft, const RectangleStep& step) {
    Status removed = co_await Change(transaction, draft, RectangleStepKind::kRemove, step.key);
    if (!removed.ok()) co_return removed;
    co_return co_await Change(transaction, draft, RectangleStepKind::kPut, step.to);
  }

  // Puts the numbers of the rows into found_.
  Status NumberRows() {
    found_.clear();
    for (size_t i = 0; i < rows_.size(); ++i) {
      const auto at = workload_->numbers_.find(std::string(rows_.key(i).bytes()));
      if (at == workload_->numbers_.end()) return Impossible("a search found a key that nobody inserted");
      found_.push_back(at->second);
    }
    return absl::OkStatus();
  }

  // Records that a search covered a rectangle: it was absent, or made by write `id`.
  void Covered(Draft& draft, uint64_t number, std::optional<WriteId> id) {
    draft.BeginScan({.table = kTable, .from = number, .to = number});
    if (id.has_value()) draft.Row(number, *id);
    draft.EndScan();
  }
  void CoveredRows(Draft& draft) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const auto row = rows_.As<RectangleRow>(i);
      if (row.id().has_value()) {
        Covered(draft, found_[i], row.id());
      } else {
        control().broken = absl::StrCat("a torn row in a search: rectangle ", found_[i]);
      }
    }
  }
  // The rectangles of which covers(place) is true, and which the search did not return.
  template <class Covers>
  void CoveredAbsences(Draft& draft, const Covers& covers) {
    std::vector<uint64_t> sorted = found_;
    std::ranges::sort(sorted);
    for (uint64_t number = 0; number < workload_->places_.size(); ++number) {
      if (std::ranges::binary_search(sorted, number) || !covers(workload_->places_[number].box)) continue;
      Covered(draft, number, std::nullopt);
    }
  }

  coro::Task<Status> Search(Transaction& transaction, Draft& draft, const RectangleStep& step) {
    const bool changes = step.kind == RectangleStepKind::kUpdateFound || step.kind == RectangleStepKind::kRemoveFound;
    const txn::ScanOptions options{.keys_only = step.kind == RectangleStepKind::kSearchKeys, .for_update = changes};
    Status status = co_await transaction.Search(*table_, step.window, &rows_, options);
    if (!status.ok()) co_return status;
    status = NumberRows();
    if (!status.ok()) co_return status;
    bool twice = false;
    for (size_t i = 0; i < found_.size(); ++i) {
      if (!step.window.Meets(workload_->places_[found_[i]].box)) {
        co_return Impossible("a search found a rectangle that does not meet its window");
      }
      if (i == 0) continue;
      twice |= found_[i] == found_[i - 1];
      if (rows_.key(i) < rows_.key(i - 1)) co_return Impossible("the rows of a search are not in order");
    }
    // A key that this transaction inserted without reading it first may be in the index, too. Then it will not commit.
    if (twice && !inserted_unread_) co_return Impossible("a search found a rectangle twice");
    if (!options.keys_only) CoveredRows(draft);
    CoveredAbsences(draft, [&](const Rectangle& box) { return step.window.Meets(box); });
    for (size_t i = 0; changes && !twice && i < rows_.size(); ++i) {
      status = ChangeRow(transaction, draft, found_[i], rows_.handle(i), step.kind == RectangleStepKind::kRemoveFound);
      if (!status.ok()) co_return status;
    }
    co_return absl::OkStatus();
  }

  // Two claims of rectangles that overlap read only absences of each other. So if both committed, only the words of the
  // nodes could have told.
  coro::Task<Status> Claim(Transaction& transaction, Draft& draft, RectangleStep step) {
    step.window = workload_->places_[step.key].box;
    Status searched = co_await Search(transaction, draft, step);
    if (!searched.ok() || !rows_.empty()) co_return searched;
    const WriteId id = history().NextWriteId();
    draft.Write({kTable, step.key}, id);
    const RectangleKeyBytes key = KeyOf(step.key);
    co_return transaction.Insert(*table_, key.view(), RectangleRow::Of(id));
  }

  coro::Task<Status> Nearest(Transaction& transaction, Draft& draft, const RectangleStep& step) {
    const index::NearestQuery query{.x = step.window.min_x, .y = step.window.min_y, .count = step.count};
    Status status = co_await transaction.Nearest(*table_, query, &rows_);
    if (!status.ok()) co_return status;
    status = NumberRows();
    if (!status.ok()) co_return status;
    const auto distance = [&](const Rectangle& box) { return box.SquaredDistance(query.x, query.y); };
    double farthest = 0;
    for (const uint64_t number : found_) {
      const double next = distance(workload_->places_[number].box);
      if (next < farthest) co_return Impossible("the nearest rectangles are not in the order of their distances");
      farthest = next;
    }
    if (found_.size() > query.count) co_return Impossible("more rectangles are nearest than were asked for");
    CoveredRows(draft);
    // If several are equally distant, any of them may be left out.
    const bool all = found_.size() < query.count;
    CoveredAbsences(draft, [&](const Rectangle& box) { return all || distance(box) < farthest; });
    co_return absl::OkStatus();
  }

  Rectangles* workload_;
  const txn::Table* table_;
  std::vector<RectangleStep> steps_;
  txn::ScanRows rows_;
  std::vector<uint64_t> found_;   // the numbers of rows_
  bool inserted_unread_ = false;  // by this attempt: a key that it did not read first
};

class RectangleClient : public JudgedClient {
 public:
  RectangleClient(Rectangles* workload, txn::Session& session, uint32_t number)
      : JudgedClient(&session, workload->control_, number),
        workload_(workload),
        random_(Mix64(workload->seed_) + number),
        transaction_(workload, session) {}

  std::vector<RectangleStep>& steps() { return transaction_.steps(); }

 private:
  JudgedTransaction& transaction() override { return transaction_; }
  coro::Task<Status> RunOne() override {
    Plan();
    co_return co_await Execute();
  }

  uint64_t places() const { return workload_->places_.size(); }
  uint64_t DrawPlace() { return random_.Below(places()); }

  void Plan() {
    steps().clear();
    transaction_.EndPlainly();
    transaction_.AskAgain(workload_->DrawAttempts(&random_));
    if (random_.OneIn(workload_->many_keys_ ? 2 : 12)) return PlanWave();
    const size_t n = 1 + random_.Below(4);
    for (size_t i = 0; i < n; ++i) {
      const RectangleStep step = DrawStep();
      // The error AlreadyExists can be judged if the key was read before.
      if (step.kind == RectangleStepKind::kInsert && random_.OneIn(2)) steps().push_back({.key = step.key});
      steps().push_back(step);
    }
    transaction_.DrawEnding(&random_);
  }

  // Plans a wave: some rectangles that lie anywhere. The waves of all clients together visit all of them and remove
  // them, so that the tree shrinks; then they visit them again and insert them.
  void PlanWave() {
    const uint64_t length = std::min(kMostInWave, places() / 4);
    const uint64_t waves = (places() + length - 1) / length;
    const uint64_t wave = workload_->waves_++;
    const bool removes = wave / waves % 2 == 0;
    const uint64_t from = wave % waves * length;
    for (uint64_t number = from; number < std::min(from + length, places()); ++number) {
      steps().push_back({.kind = removes ? RectangleStepKind::kRemove : RectangleStepKind::kPut, .key = number});
    }
  }

  RectangleStep DrawStep() {
    RectangleStep step{.key = DrawPlace(), .window = DrawWindow(&random_)};
    const uint64_t kind = random_.Below(100);
    if (kind < 10) {
      step.kind = RectangleStepKind::kGet;
    } else if (kind < 15) {
      step.kind = RectangleStepKind::kGetMany;
      step.to = std::min(places() - 1, step.key + random_.Below(6));
    } else if (kind < 30) {
      step.kind = RectangleStepKind::kPut;
    } else if (kind < 33) {
      step.kind = RectangleStepKind::kUpdate;
    } else if (kind < 40) {
      step.kind = RectangleStepKind::kInsert;
    } else if (kind < 47) {
      step.kind = RectangleStepKind::kRemove;
    } else if (kind < 57) {
      step.kind = RectangleStepKind::kMove;
      step.to = DrawPlace();
    } else if (kind < 67) {
      step.kind = RectangleStepKind::kClaim;
    } else if (kind < 85) {
      step.kind = RectangleStepKind::kSearch;
    } else if (kind < 88) {
      step.kind = RectangleStepKind::kSearchKeys;
    } else if (kind < 91) {
      step.kind = RectangleStepKind::kUpdateFound;
    } else if (kind < 93) {
      step.kind = RectangleStepKind::kRemoveFound;
    } else {
      step.kind = RectangleStepKind::kNearest;
      step.count = 1 + random_.Below(6);
    }
    return step;
  }

  Rectangles* workload_;
  Random random_;
  RectangleTransaction transaction_;
};

Rectangles::Rectangles(const ScenarioOptions& drawn, Control* control)
    : JudgedWorkload(drawn, control), index_options_(drawn.index_options), many_keys_(drawn.keys >= kManyKeys) {
  Random random(Mix64(drawn.seed) ^ 0x9ec7a);
  const uint64_t places = std::min(kMostPlaces, kPlacesPerKey * drawn.keys);
  // The places of one id lie near each other.
  double x = 0;
  double y = 0;
  while (places_.size() < places) {
    if (places_.size() % kPlacesPerKey == 0) {
      x = DrawCoordinate(kWorld, &random);
      y = DrawCoordinate(kWorld, &random);
    }
    const double to_right = DrawCoordinate(4, &random);
    const double up = DrawCoordinate(4, &random);
    const RectangleKey key{DrawBoxAt(x + to_right, y + up, &random), places_.size() / kPlacesPerKey};
    const RectangleKeyBytes bytes(key);
    if (!numbers_.emplace(bytes.view().bytes(), places_.size()).second) continue;
    places_.push_back(key);
  }
}

std::vector<txn::TableOptions> Rectangles::Tables() const {
  return {{.name = kName,
           .key_kind = index::KeyKind::kBytes,
           .max_key_bytes = RectangleKey::kBytes,
           .index = txn::IndexKind::kCatfish,
           .index_options = index_options_,
           .payload_bytes = sizeof(RectangleRow),
           .expected_rows = 64,
           .placement = placement_}};
}

// Every other rectangle is there from the beginning.
Status Rectangles::Load(txn::Session& session) {
  constexpr uint64_t kAtOnce = 16;
  RectangleClient loader(this, session, kRectangleLoader);
  for (uint64_t number = 0; number < places_.size();) {
    loader.steps().clear();
    for (uint64_t i = 0; i < kAtOnce && number < places_.size(); ++i, number += 2) {
      loader.steps().push_back({.kind = RectangleStepKind::kPut, .key = number});
    }
    GANNET_RETURN_IF_ERROR(loader.ExecuteNow());
  }
  return absl::OkStatus();
}

std::unique_ptr<Client> Rectangles::NewClient(txn::Session& session, uint32_t number) {
  return std::make_unique<RectangleClient>(this, session, number);
}

Status Rectangles::ReadAll(txn::Session& session, bool whole) {
  RectangleClient reader(this, session, UINT32_MAX);
  if (whole) {
    reader.steps() = {{.kind = RectangleStepKind::kSearch, .window = Rectangle::Everything()}};
    return reader.ExecuteNow();
  }
  for (uint64_t number = 0; number < places_.size(); ++number) {
    reader.steps() = {{.key = number}};
    const Status status = reader.ExecuteNow();
    if (!absl::IsUnavailable(status)) GANNET_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

bool Rectangles::CanGoOn(const std::function<bool(int node)>& lives) const {
  return std::ranges::any_of(places_, [&](const RectangleKey& key) {
    const RectangleKeyBytes bytes(key);
    return lives(placement_.OwnerOf(bytes.view(), owners_));
  });
}

}  // namespace gannet::scenario
