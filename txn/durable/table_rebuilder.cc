#include "txn/durable/table_rebuilder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bulk_memory.h"
#include "base/share_work.h"
#include "base/stop.h"
#include "index/parted_load.h"
#include "txn/durable/redo_key.h"
#include "txn/node/local_node.h"
#include "txn/record/record.h"
#include "txn/store/arena.h"

namespace gannet::txn {
namespace {

constexpr const char* kMaking = "records were made";
// Keys whose lookups are in progress at the same time.
constexpr size_t kSlotsAtOnce = 32;

// Runs all of `work` on `threads` threads, until one fails.
Status RunAll(const std::vector<std::function<Status()>>& work, int threads) {
  return ShareWork("rebuild", work.size(), threads, [&work](size_t i, int) { return work[i](); });
}

// Calls take(key, entry) for the entries [begin, end) of a map. The key is valid during the call.
template <class Take>
Status ForKeys(const ChangeMap& map, size_t begin, size_t end, index::KeyKind kind, const Take& take) {
  constexpr size_t kAhead = 16;
  for (size_t i = begin; i < end; ++i) {
    if (kind == index::KeyKind::kBytes && i + kAhead < end && map.at(i + kAhead).used())
      Prefetch(map.at(i + kAhead).record());
    const ChangeMap::Entry& entry = map.at(i);
    if (!entry.used()) continue;
    if (kind == index::KeyKind::kInteger) {
      GANNET_RETURN_IF_ERROR(take(Key(entry.number), entry));
    } else {
      const index::OwnedKey key = index::LoadKey(entry.record(), kind);
      GANNET_RETURN_IF_ERROR(take(key.view(), entry));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool TableRebuilder::IsSuperseded(const Table& table, const HashedKey& key, const log::CheckpointRecord& record) const {
  const ChangeMap::Entry* latest = changes_->Find(table, key);
  if (latest == nullptr) return false;
  // In epochs that the checkpoint may have seen, the version decides. Changes of later epochs are newer, those of
  // earlier ones are in it.
  if (latest->epoch > checkpoint_.end_epoch) return true;
  return latest->epoch >= checkpoint_.begin_epoch && latest->version >= record.version;
}

template <class Take>
Status TableRebuilder::TakeUnchanged(const Table& table, std::span<const log::CheckpointRecord> records,
                                     const Take& take) {
  GANNET_RETURN_IF_ERROR(CheckStop(local_->options.stop, kMaking));
  std::vector<HashedKey> keys;
  keys.reserve(records.size());
  for (const log::CheckpointRecord& record : records) {
    GANNET_RETURN_IF_ERROR(CheckFits(table, directory_, record.key.size(), record.payload.size()));
    keys.push_back(changes_->Hashed(KeyFromRedo(table.options().key_kind, record.key)));
    changes_->PrefetchFor(table, keys.back());
    table.local_index().PrefetchFor(keys.back().key);
  }
  for (size_t i = 0; i < records.size(); ++i) {
    if (!IsSuperseded(table, keys[i], records[i])) GANNET_RETURN_IF_ERROR(take(keys[i].key, records[i]));
  }
  return absl::OkStatus();
}

// Null if damage is not to be left out: then the first damage ends the reading.
TableRebuilder::OnDamage TableRebuilder::DamageNoter(const log::CheckpointFile& file) {
  if (!salvage_) return {};
  return [this, &file](uint64_t offset, const std::string& what) {
    std::lock_guard lock(mutex_);
    left_out_.push_back(
        absl::StrCat(log::CheckpointDirectory(directory_, checkpoint_.id), "/", file.name, " at ", offset, ": ", what));
  };
}

Status TableRebuilder::GiveUpIfDamaged(const Table& table, const Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  std::lock_guard lock(mutex_);
  damages_[table.id()].Update(status);
  return absl::OkStatus();
}

bool TableRebuilder::IsGivenUp(const Table& table) {
  std::lock_guard lock(mutex_);
  return !damages_[table.id()].ok();
}

// ---------------------------------------------------------------------------------------------------------------------
// Ordered tables: the checkpoint's records come in key order. The changes are sorted and merged with them, and are the
// input of LocalIndex::BulkLoad.

class TableRebuilder::OrderedTable {
 public:
  OrderedTable(TableRebuilder* owner, const Table* table)
      : owner_(owner), table_(table), size_(owner->changes_->size(*table)), parts_(owner->changes_->parts()) {
    for (const log::CheckpointFile& file : owner->checkpoint_.files) {
      if (file.table == table->id()) files_.emplace_back().file = &file;
    }
    ChooseRanges();
  }

  const Table& table() const { return *table_; }
  size_t size() const { return size_; }  // of the changes
  size_t files() const { return files_.size(); }
  size_t ranges() const { return splitters_.size() + 1; }

  // Does round 1, in any order: each file, each part.
  Status LoadFile(size_t i);
  Status CountPart(size_t part);
  // Called after round 1, if the table was given up, or else.
  void GiveUp();
  void PlaceRanges();
  // Does round 2, in any order: each part. Drops its changes.
  Status TakePart(size_t part);
  // Does round 3, in any order: each range.
  Status SortRange(size_t range);
  // Called after round 3. Chooses the pieces of round 4; none if nothing is to be merged.
  void PlanMerge();
  size_t pieces() const { return pieces_.size(); }
  // Does round 4, in any order: each piece.
  Status MergePiece(size_t piece);
  // Called after round 4. A table without parts is built by one thread.
  Status PlanBuild();
  size_t parts() const { return load_ == nullptr ? 0 : load_->parts(); }
  size_t entries() const { return entries_; }  // of its index
  // Does round 5, in any order: each part.
  Status BuildPart(size_t part);
  // Does round 5 for a table without parts.
  Status BuildWhole();
  // Called after round 5, for a table with parts.
  Status FinishBuild();

 private:
  static constexpr size_t kKeysPerRange = size_t{16} << 10;  // a core's second-level cache holds them
  static constexpr size_t kMostRanges = 1024;
  static constexpr size_t kSamplesPerRange = 16;
  static constexpr size_t kKeysPerPart = kKeysPerRange;  // of an index

  struct FileLoad {
    const log::CheckpointFile* file = nullptr;
    std::vector<index::LoadEntry> entries{};
    Arena arena{};  // the bytes of their keys
  };
  struct PartRanges {
    std::vector<uint16_t> of_keys{};  // the range of each key that is not removed, in the order of the map
    std::vector<size_t> places{};     // of each range: how many keys; from PlaceRanges on where they begin in changes()
    Arena arena{};                    // the bytes of keys
  };

  void ChooseRanges();
  // The number of splitters that are not above the key.
  size_t RangeOf(const Key& key) const {
    if (key.kind() == index::KeyKind::kInteger) {
      size_t range = 0;
      for (size_t step = std::bit_floor(numbers_.size()); step != 0; step /= 2) {
        const bool above = range + step > numbers_.size() || numbers_[range + step - 1] > key.integer();
        range += above ? 0 : step;
      }
      return range;
    }
    const auto below = [](const Key& a, const index::OwnedKey& splitter) { return a < splitter.view(); };
    return static_cast<size_t>(std::upper_bound(splitters_.begin(), splitters_.end(), key, below) - splitters_.begin());
  }
  // The entries of all changes; sorted after round 3.
  std::span<index::LoadEntry> changes() const {
    return {reinterpret_cast<index::LoadEntry*>(memory_.data()), range_begins_.back()};
  }

  TableRebuilder* owner_;
  const Table* table_;
  size_t size_;
  std::vector<FileLoad> files_;
  std::vector<index::OwnedKey> splitters_;  // least keys of the ranges after the first
  std::vector<uint64_t> numbers_;           // the same, if they are integers
  std::vector<PartRanges> parts_;
  std::vector<size_t> range_begins_{0};  // in changes()
  BulkMemory memory_;                    // of changes(); not a vector, which would fill it first
  // Filled by PlanMerge.
  std::vector<std::span<const index::LoadEntry>> runs_;  // first those of the files, later all of the index; none empty
  std::vector<Key> borders_;                             // least keys of the pieces after the first
  std::vector<std::vector<index::LoadEntry>> pieces_;
  // Filled by PlanBuild.
  size_t entries_ = 0;
  std::unique_ptr<index::PartedLoad> load_;
  static_assert(std::is_trivially_copyable_v<index::LoadEntry>);
};

// Takes a few keys of each part for the splitters.
void TableRebuilder::OrderedTable::ChooseRanges() {
  const size_t ranges = std::min(size_ / kKeysPerRange, kMostRanges);
  if (ranges < 2) return;
  const size_t step = std::max<size_t>(1, size_ / (ranges * kSamplesPerRange));
  std::vector<index::OwnedKey> samples;
  for (size_t part = 0; part < parts_.size(); ++part) {
    const ChangeMap* map = owner_->changes_->MapOf(*table_, part);
    if (map == nullptr) continue;
    for (size_t i = 0; i < map->capacity(); i += step) {
      const ChangeMap::Entry& entry = map->at(i);
      if (!entry.used()) continue;
      if (table_->options().key_kind == index::KeyKind::kInteger) {
        samples.emplace_back(Key(entry.number));
      } else {
        samples.push_back(index::LoadKey(entry.record(), index::KeyKind::kBytes));
      }
    }
  }
  if (samples.size() < ranges) return;
  std::sort(samples.begin(), samples.end(),
            [](const index::OwnedKey& a, const index::OwnedKey& b) { return a.view() < b.view(); });
  for (size_t i = 1; i < ranges; ++i) {
    splitters_.push_back(samples[i * samples.size() / ranges]);
    if (table_->options().key_kind == index::KeyKind::kInteger) numbers_.push_back(splitters_.back().integer());
  }
}

Status TableRebuilder::OrderedTable::LoadFile(size_t i) {
  if (owner_->IsGivenUp(*table_)) return absl::OkStatus();
  FileLoad& load = files_[i];
  RecordMaker maker(owner_->local_, owner_->counts_);
  load.entries.reserve(std::min(load.file->records, load.file->bytes));  // whatever a damaged file says
  const auto take = [&](const Key& key, const log::CheckpointRecord& record) -> Status {
    const StatusOr<std::byte*> made = maker.Make(*table_, key, record.payload);
    if (!made.ok()) return made.status();
    load.entries.push_back({load.arena.Keep(key), maker.AddressOf(*made)});
    return absl::OkStatus();
  };
  const Status read = log::ReadCheckpointFile(
      *owner_->files_, owner_->directory_, owner_->database_, owner_->checkpoint_.id, *load.file,
      [&](std::span<const log::CheckpointRecord> records) { return owner_->TakeUnchanged(*table_, records, take); },
      owner_->DamageNoter(*load.file));
  return owner_->GiveUpIfDamaged(*table_, read);
}

Status TableRebuilder::OrderedTable::CountPart(size_t part) {
  GANNET_RETURN_IF_ERROR(CheckStop(owner_->local_->options.stop, kMaking));
  PartRanges& result = parts_[part];
  result.places.resize(ranges());
  const ChangeMap* map = owner_->changes_->MapOf(*table_, part);
  if (map == nullptr) return absl::OkStatus();
  result.of_keys.reserve(map->size());
  const auto count = [&](const Key& key, const ChangeMap::Entry& entry) {
    if (entry.removed()) return absl::OkStatus();
    result.of_keys.push_back(static_cast<uint16_t>(RangeOf(key)));
    ++result.places[result.of_keys.back()];
    return absl::OkStatus();
  };
  return ForKeys(*map, 0, map->capacity(), table_->options().key_kind, count);
}

void TableRebuilder::OrderedTable::GiveUp() {
  RecordMaker maker(owner_->local_, owner_->counts_);
  for (const FileLoad& load : files_) {
    for (const index::LoadEntry& entry : load.entries) maker.Discard(*table_, owner_->local_->Direct(entry.record));
  }
}

// The ranges' places: in each range the parts' keys lie one after the other.
void TableRebuilder::OrderedTable::PlaceRanges() {
  size_t place = 0;
  for (size_t range = 0; range < ranges(); ++range) {
    for (PartRanges& part : parts_) place += std::exchange(part.places[range], place);
    range_begins_.push_back(place);
  }
  if (place > 0) memory_ = BulkMemory(place * sizeof(index::LoadEntry));
}

Status TableRebuilder::OrderedTable::TakePart(size_t part) {
  GANNET_RETURN_IF_ERROR(CheckStop(owner_->local_->options.stop, kMaking));
  const ChangeMap* map = owner_->changes_->MapOf(*table_, part);
  if (map == nullptr) return absl::OkStatus();
  PartRanges& its = parts_[part];
  const std::span<index::LoadEntry> to = changes();
  size_t i = 0;
  const auto take = [&](const Key& key, const ChangeMap::Entry& entry) {
    if (entry.removed()) return absl::OkStatus();
    const size_t range = its.of_keys[i++];
    to[its.places[range]++] = {its.arena.Keep(key), owner_->local_->node.AddressOf(entry.record())};
    return absl::OkStatus();
  };
  GANNET_RETURN_IF_ERROR(ForKeys(*map, 0, map->capacity(), table_->options().key_kind, take));
  its.of_keys = {};
  RecordMaker maker(owner_->local_, owner_->counts_);
  owner_->changes_->Drop(*table_, part, &maker);
  return absl::OkStatus();
}

Status TableRebuilder::OrderedTable::SortRange(size_t range) {
  GANNET_RETURN_IF_ERROR(CheckStop(owner_->local_->options.stop, kMaking));
  const std::span<index::LoadEntry> entries =
      changes().subspan(range_begins_[range], range_begins_[range + 1] - range_begins_[range]);
  if (table_->options().key_kind == index::KeyKind::kInteger) {
    std::sort(entries.begin(), entries.end(),
              [](const index::LoadEntry& a, const index::LoadEntry& b) { return a.key.integer() < b.key.integer(); });
  } else {
    std::sort(entries.begin(), entries.end(),
              [](const index::LoadEntry& a, const index::LoadEntry& b) { return a.key < b.key; });
  }
  return absl::OkStatus();
}

// Every kKeysPerRange-th key of the files and of the changes is a border, so no piece is much larger than that.
void TableRebuilder::OrderedTable::PlanMerge() {
  for (const FileLoad& load : files_) {
    if (!load.entries.empty()) runs_.emplace_back(load.entries);
  }
  if (changes().empty()) return;
  if (runs_.empty()) {
    runs_.emplace_back(changes());
    return;
  }
  const auto add_borders = [this](std::span<const index::LoadEntry> entries) {
    for (size_t i = kKeysPerRange; i < entries.size(); i += kKeysPerRange) borders_.push_back(entries[i].key);
  };
  for (const std::span<const index::LoadEntry> run : runs_) add_borders(run);
  add_borders(changes());
  std::sort(borders_.begin(), borders_.end());
  borders_.erase(std::unique(borders_.begin(), borders_.end()), borders_.end());
  pieces_.resize(borders_.size() + 1);
}

// If both have a key, the log's change of it does not supersede the checkpoint's.
Status TableRebuilder::OrderedTable::MergePiece(size_t piece) {
  GANNET_RETURN_IF_ERROR(CheckStop(owner_->local_->options.stop, kMaking));
  const auto is_below = [](const index::LoadEntry& entry, const Key& key) { return entry.key < key; };
  const auto within = [&](std::span<const index::LoadEntry> entries) {
    auto begin = entries.begin();
    if (piece > 0) begin = std::lower_bound(begin, entries.end(), borders_[piece - 1], is_below);
    auto end = entries.end();
    if (piece < borders_.size()) end = std::lower_bound(begin, end, borders_[piece], is_below);
    return std::span(begin, end);
  };
  auto first = runs_.begin();
  if (piece > 0) {
    first = std::partition_point(first, runs_.end(), [&](std::span<const index::LoadEntry> run) {
      return run.back().key < borders_[piece - 1];
    });
  }
  RecordMaker maker(owner_->local_, owner_->counts_);
  std::vector<index::LoadEntry>& merged = pieces_[piece];
  const std::span<const index::LoadEntry> its_changes = within(changes());
  merged.reserve(its_changes.size() + kKeysPerRange);
  auto change = its_changes.begin();
  for (auto run = first; run != runs_.end(); ++run) {
    const std::span<const index::LoadEntry> loaded = within(*run);
    if (loaded.empty()) break;
    for (const index::LoadEntry& entry : loaded) {
      for (; change != its_changes.end() && change->key < entry.key; ++change) merged.push_back(*change);
      if (change != its_changes.end() && change->key == entry.key) {
        maker.Discard(*table_, owner_->local_->Direct(change->record));
        ++change;
      }
      merged.push_back(entry);
    }
  }
  merged.insert(merged.end(), change, its_changes.end());
  return absl::OkStatus();
}

Status TableRebuilder::OrderedTable::PlanBuild() {
  if (!pieces_.empty()) {
    runs_.assign(pieces_.begin(), pieces_.end());
    for (FileLoad& load : files_) load.entries = {};
    memory_ = {};
    range_begins_ = {0};
  }
  for (const std::span<const index::LoadEntry> run : runs_) entries_ += run.size();
  index::PartedLoader* const loader = index::PartedLoader::Of(&table_->local_index());
  const size_t most_parts = entries_ / kKeysPerPart;
  if (loader == nullptr || most_parts < 2) return absl::OkStatus();
  RecordMaker maker(owner_->local_, owner_->counts_);
  StatusOr<std::unique_ptr<index::PartedLoad>> load =
      loader->BeginLoad(maker.context(), index::LoadRuns(runs_), index::kLoadFill, most_parts);
  if (!load.ok()) return load.status();
  load_ = *std::move(load);
  return absl::OkStatus();
}

Status TableRebuilder::OrderedTable::BuildPart(size_t part) {
  GANNET_RETURN_IF_ERROR(CheckStop(owner_->local_->options.stop, kMaking));
  RecordMaker maker(owner_->local_, owner_->counts_);
  return load_->Build(maker.context(), part);
}

Status TableRebuilder::OrderedTable::BuildWhole() {
  std::vector<index::LoadEntry> joined;
  if (runs_.size() > 1) {
    joined.reserve(entries_);
    for (const std::span<const index::LoadEntry> run : runs_) joined.insert(joined.end(), run.begin(), run.end());
  }
  RecordMaker maker(owner_->local_, owner_->counts_);
  return table_->local_index().BulkLoad(maker.context(), runs_.size() == 1 ? runs_[0] : joined, index::kLoadFill);
}

Status TableRebuilder::OrderedTable::FinishBuild() {
  RecordMaker maker(owner_->local_, owner_->counts_);
  return load_->Finish(maker.context());
}

// ---------------------------------------------------------------------------------------------------------------------
// Tables without order: any order, by several threads. A checkpoint may have a record twice (because its bucket split
// during the walk). Then both have the same version, or the log has a newer one.

Status TableRebuilder::AddToUnordered(RecordMaker* maker, const Table& table, const Key& key, std::byte* record) {
  const StatusOr<index::Change> change =
      table.local_index().Insert(maker->context(), key, maker->AddressOf(record), nullptr);
  if (!absl::IsAlreadyExists(change.status())) return change.status();
  maker->Discard(table, record);
  return absl::OkStatus();
}

Status TableRebuilder::LoadUnorderedFile(const Table& table, const log::CheckpointFile& file) {
  if (IsGivenUp(table)) return absl::OkStatus();
  RecordMaker maker(local_, counts_);
  const auto take = [&](const Key& key, const log::CheckpointRecord& record) -> Status {
    const StatusOr<std::byte*> made = maker.Make(table, key, record.payload);
    return made.ok() ? AddToUnordered(&maker, table, key, *made) : made.status();
  };
  const Status read = log::ReadCheckpointFile(
      *files_, directory_, database_, checkpoint_.id, file,
      [&](std::span<const log::CheckpointRecord> records) { return TakeUnchanged(table, records, take); },
      DamageNoter(file));
  return GiveUpIfDamaged(table, read);
}

// A walk may miss entries if buckets split or merge during it, so this repeats it until nothing is left.
Status TableRebuilder::Empty(const Table& table) {
  RecordMaker maker(local_, counts_);
  std::vector<rdma::GlobalAddress> records;
  for (bool empty = false; !empty;) {
    empty = true;
    index::WalkPosition position;
    for (bool more = true; more;) {
      records.clear();
      maker.context();  // stays inside the epoch
      more = table.local_index().Walk(&position, &records);
      for (const rdma::GlobalAddress record : records) {
        std::byte* block = local_->Direct(record);
        const index::OwnedKey key = index::LoadKey(block, table.options().key_kind);
        const StatusOr<index::Change> removed = table.local_index().Remove(maker.context(), key.view(), record);
        if (absl::IsNotFound(removed.status())) continue;  // found twice
        if (!removed.ok()) return removed.status();
        maker.Discard(table, block);
        empty = false;
      }
    }
  }
  return absl::OkStatus();
}

// Called after the checkpoint's files: their content is at least as new as a change that does not supersede it.
Status TableRebuilder::AddUnorderedChanges(const Table& table, size_t part) {
  const ChangeMap* map = changes_->MapOf(table, part);
  if (map == nullptr) return absl::OkStatus();
  const index::KeyKind kind = table.options().key_kind;
  RecordMaker maker(local_, counts_);
  for (size_t begin = 0; begin < map->capacity(); begin += kSlotsAtOnce) {
    GANNET_RETURN_IF_ERROR(CheckStop(local_->options.stop, kMaking));
    const size_t end = std::min(begin + kSlotsAtOnce, map->capacity());
    const auto prefetch = [&](const Key& key, const ChangeMap::Entry& entry) {
      if (!entry.removed()) table.local_index().PrefetchFor(key);
      return absl::OkStatus();
    };
    const auto add = [&](const Key& key, const ChangeMap::Entry& entry) {
      return entry.removed() ? absl::OkStatus() : AddToUnordered(&maker, table, key, entry.record());
    };
    GANNET_RETURN_IF_ERROR(ForKeys(*map, begin, end, kind, prefetch));
    GANNET_RETURN_IF_ERROR(ForKeys(*map, begin, end, kind, add));
  }
  changes_->Drop(table, part, &maker);
  return absl::OkStatus();
}

// ---------------------------------------------------------------------------------------------------------------------

// Adds the pieces of work that read the checkpoint's files.
Status TableRebuilder::AddFiles(const std::vector<const Table*>& tables, std::vector<OrderedTable>* ordered,
                                Work* work) {
  for (const log::CheckpointFile& file : checkpoint_.files) {
    const Table* table = local_->TableById(file.table);
    if (table == nullptr) {
      return absl::DataLossError(
          absl::StrCat(directory_, ": the checkpoint has a table ", file.table, " that the manifest does not name"));
    }
    if (!table->index_traits().keeps_order && std::ranges::find(tables, table) != tables.end()) {
      work->emplace_back([this, table, &file] { return LoadUnorderedFile(*table, file); });
    }
  }
  for (OrderedTable& table : *ordered) {
    for (size_t i = 0; i < table.files(); ++i) work->emplace_back([&table, i] { return table.LoadFile(i); });
  }
  return absl::OkStatus();
}

// Adds the pieces of work that build the indexes of ordered tables: first the tables that one thread builds, largest
// first, so that the parts of the others fill the time of the other threads.
Status TableRebuilder::BuildOrdered(std::vector<OrderedTable>* ordered, Work* work) {
  for (OrderedTable& table : *ordered) GANNET_RETURN_IF_ERROR(table.PlanBuild());
  std::vector<OrderedTable*> by_size;
  for (OrderedTable& table : *ordered) by_size.push_back(&table);
  std::ranges::sort(by_size, std::ranges::greater(), &OrderedTable::entries);
  for (OrderedTable* const table : by_size) {
    if (table->parts() == 0) work->emplace_back([table] { return table->BuildWhole(); });
  }
  for (OrderedTable* const table : by_size) {
    for (size_t part = 0; part < table->parts(); ++part)
      work->emplace_back([table, part] { return table->BuildPart(part); });
  }
  return absl::OkStatus();
}

Status TableRebuilder::Rebuild(const std::vector<const Table*>& tables, int threads,
                               std::vector<DamagedTable>* damaged) {
  std::vector<OrderedTable> ordered;
  for (const Table* table : tables) {
    if (table->index_traits().keeps_order) ordered.emplace_back(this, table);
  }
  std::ranges::sort(ordered, std::ranges::greater(), &OrderedTable::size);
  const size_t parts = changes_->parts();
  Work work;
  const auto for_each = [&work](std::vector<OrderedTable>* all, size_t n, Status (OrderedTable::*piece)(size_t)) {
    for (OrderedTable& table : *all) {
      for (size_t i = 0; i < n; ++i) work.emplace_back([&table, i, piece] { return (table.*piece)(i); });
    }
  };
  GANNET_RETURN_IF_ERROR(AddFiles(tables, &ordered, &work));
  for_each(&ordered, parts, &OrderedTable::CountPart);
  GANNET_RETURN_IF_ERROR(RunAll(std::exchange(work, {}), threads));

  std::erase_if(ordered, [this](OrderedTable& table) {
    if (!IsGivenUp(table.table())) return false;
    table.GiveUp();
    return true;
  });
  for (OrderedTable& table : ordered) table.PlaceRanges();
  for_each(&ordered, parts, &OrderedTable::TakePart);
  GANNET_RETURN_IF_ERROR(RunAll(std::exchange(work, {}), threads));

  for (OrderedTable& table : ordered) {
    for (size_t range = 0; range < table.ranges(); ++range)
      work.emplace_back([&table, range] { return table.SortRange(range); });
  }
  GANNET_RETURN_IF_ERROR(RunAll(std::exchange(work, {}), threads));

  for (OrderedTable& table : ordered) {
    table.PlanMerge();
    for (size_t piece = 0; piece < table.pieces(); ++piece)
      work.emplace_back([&table, piece] { return table.MergePiece(piece); });
  }
  GANNET_RETURN_IF_ERROR(RunAll(std::exchange(work, {}), threads));

  GANNET_RETURN_IF_ERROR(BuildOrdered(&ordered, &work));
  for (const Table* table : tables) {
    if (table->index_traits().keeps_order || IsGivenUp(*table)) continue;
    for (size_t part = 0; part < parts; ++part)
      work.emplace_back([this, table, part] { return AddUnorderedChanges(*table, part); });
  }
  GANNET_RETURN_IF_ERROR(RunAll(std::exchange(work, {}), threads));

  for (OrderedTable& table : ordered) {
    if (table.parts() > 0) work.emplace_back([&table] { return table.FinishBuild(); });
  }
  GANNET_RETURN_IF_ERROR(RunAll(work, threads));
  for (const Table* table : tables) {
    if (!IsGivenUp(*table)) continue;
    if (!table->index_traits().keeps_order) GANNET_RETURN_IF_ERROR(Empty(*table));
    damaged->push_back({table, std::exchange(damages_[table->id()], absl::OkStatus())});
  }
  return absl::OkStatus();
}

Status TableRebuilder::Salvage(const std::vector<const Table*>& tables, int threads) {
  salvage_ = true;
  std::vector<DamagedTable> damaged;
  GANNET_RETURN_IF_ERROR(Rebuild(tables, threads, &damaged));
  return damaged.empty() ? absl::OkStatus() : damaged.front().damage;  // not covered by a checksum: it does not fit
}

void TableRebuilder::Report(RecoveryReport* report) const {
  report->damages.insert(report->damages.end(), left_out_.begin(), left_out_.end());
}

}  // namespace gannet::txn
