#include "log/file/simulated/faulty_file_system.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/thread.h"

namespace gannet::log {
namespace {

Status NoSuch(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(path, ": no such file or directory"));
}

std::vector<std::string> Parts(const std::string& path) {
  std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  std::erase(parts, ".");
  return parts;
}

uint64_t BytesBelow(const internal::FaultyNode& node) {
  uint64_t bytes = node.content.size();
  for (const auto& [name, child] : node.names) bytes += BytesBelow(*child);
  return bytes;
}

}  // namespace

FaultyFileSystem::FaultyFileSystem(uint64_t seed, FaultOptions options)
    : random_(seed),
      options_(std::move(options)),
      root_(std::make_shared<Node>(true)),
      locked_(std::make_shared<std::set<std::string>>()) {}

FaultyFileSystem::~FaultyFileSystem() = default;

Status FaultyFileSystem::Begin(DiskOperation operation, const std::string& path, std::unique_lock<Mutex>* lock,
                               Fault* fault) {
  std::function<void(DiskOperation, const std::string&)> before;
  {
    const std::lock_guard guard(mutex_);
    before = options_.before;
  }
  if (before) before(operation, path);
  *lock = std::unique_lock(mutex_);
  if (!powered_) return absl::UnavailableError(absl::StrCat(path, ": the power is off"));
  ++operations_[static_cast<size_t>(operation)];
  *fault = DrawFault(operation, path);
  if (*fault != Fault::kNone) ++faults_;
  return absl::OkStatus();
}

FaultyFileSystem::Fault FaultyFileSystem::DrawFault(DiskOperation operation, const std::string& path) {
  Fault fault = Fault::kNone;
  for (ScheduledFault& each : scheduled_) {
    if (each.operation != operation || path.find(each.path_contains) == std::string::npos) continue;
    if (each.after > 0) {
      --each.after;
    } else if (each.times > 0) {
      --each.times;
      fault = each.short_write && operation == DiskOperation::kWrite ? Fault::kShortWrite : Fault::kError;
    }
  }
  std::erase_if(scheduled_, [](const ScheduledFault& each) { return each.times == 0; });
  if (fault != Fault::kNone) return fault;
  switch (operation) {
    case DiskOperation::kWrite:
      if (Chance(options_.write_error_one_in)) return Fault::kError;
      return Chance(options_.short_write_one_in) ? Fault::kShortWrite : Fault::kNone;
    case DiskOperation::kRead:
      if (Chance(options_.read_error_one_in)) return Fault::kError;
      return Chance(options_.read_bit_flip_one_in) ? Fault::kBitFlip : Fault::kNone;
    case DiskOperation::kSync:
    case DiskOperation::kSyncDirectory:
      return Chance(options_.sync_error_one_in) ? Fault::kError : Fault::kNone;
    default:
      return Fault::kNone;
  }
}

StatusOr<FaultyFileSystem::Place> FaultyFileSystem::Find(const std::string& path) const {
  Place place{nullptr, "", root_};
  for (std::string& part : Parts(path)) {
    if (place.node == nullptr) return NoSuch(path);
    if (!place.node->directory) return absl::InvalidArgumentError(absl::StrCat(path, ": leads through a file"));
    place.parent = place.node;
    const auto found = place.parent->names.find(part);
    place.node = found == place.parent->names.end() ? nullptr : found->second;
    place.name = std::move(part);
  }
  return place;
}

StatusOr<std::shared_ptr<internal::FaultyNode>> FaultyFileSystem::FindDirectory(const std::string& path) const {
  StatusOr<Place> place = Find(path);
  if (!place.ok()) return place.status();
  if (place->node == nullptr) return NoSuch(path);
  if (!place->node->directory) return absl::InvalidArgumentError(absl::StrCat(path, ": is a file, not a directory"));
  return place->node;
}

Status FaultyFileSystem::Grow(Node* node, uint64_t bytes, const std::string& path) {
  const uint64_t size = node->content.size();
  if (bytes <= size) return absl::OkStatus();
  if (node->linked) {
    const uint64_t free = used_bytes_ < options_.capacity_bytes ? options_.capacity_bytes - used_bytes_ : 0;
    if (bytes - size > free) {
      return absl::ResourceExhaustedError(absl::StrCat(path, ": the disk is full: ", free, " bytes are free, ",
                                                       bytes - size, " more are needed; make room"));
    }
    used_bytes_ += bytes - size;
  }
  node->content.Grow(bytes);
  return absl::OkStatus();
}

void FaultyFileSystem::Unlink(const std::shared_ptr<Node>& node) {
  node->linked = false;
  used_bytes_ -= node->content.size();
}

StatusOr<std::unique_ptr<File>> FaultyFileSystem::Open(const std::string& path, OpenMode mode) {
  std::unique_lock<Mutex> lock;
  Fault fault = Fault::kNone;
  GANNET_RETURN_IF_ERROR(Begin(DiskOperation::kOpen, path, &lock, &fault));
  if (fault != Fault::kNone) return InjectedError(DiskOperation::kOpen, path);
  StatusOr<Place> place = Find(path);
  if (!place.ok()) return place.status();
  if (mode != OpenMode::kCreate) {
    if (place->node == nullptr) return NoSuch(path);
    if (place->node->directory) return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory, not a file"));
    return NewFile(path, place->node, mode == OpenMode::kReuse);
  }
  if (place->node != nullptr) return absl::AlreadyExistsError(absl::StrCat(path, ": exists; remove it first"));
  auto node = std::make_shared<Node>(false);
  place->parent->Change({{place->name, node}});
  return NewFile(path, std::move(node), true);
}

Status FaultyFileSystem::MakeDirectory(const std::string& path) {
  std::unique_lock<Mutex> lock;
  Fault fault = Fault::kNone;
  GANNET_RETURN_IF_ERROR(Begin(DiskOperation::kMakeDirectory, path, &lock, &fault));
  if (fault != Fault::kNone) return InjectedError(DiskOperation::kMakeDirectory, path);
  StatusOr<Place> place = Find(path);
  if (!place.ok()) return place.status();
  if (place->node == nullptr) {
    place->parent->Change({{place->name, std::make_shared<Node>(true)}});
  } else if (!place->node->directory) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": is a file; remove it or choose another directory"));
  }
  return absl::OkStatus();
}

StatusOr<std::vector<std::string>> FaultyFileSystem::List(const std::string& directory) {
  std::unique_lock<Mutex> lock;
  Fault fault = Fault::kNone;
  GANNET_RETURN_IF_ERROR(Begin(DiskOperation::kList, directory, &lock, &fault));
  if (fault != Fault::kNone) return InjectedError(DiskOperation::kList, directory);
  StatusOr<std::shared_ptr<Node>> node = FindDirectory(directory);
  if (!node.ok()) return node.status();
  std::vector<std::string> names;
  for (const auto& [name, child] : (*node)->names) names.push_back(name);
  return names;
}

Status FaultyFileSystem::Remove(const std::string& path) {
  std::unique_lock<Mutex> lock;
  Fault fault = Fault::kNone;
  GANNET_RETURN_IF_ERROR(Begin(DiskOperation::kRemove, path, &lock, &fault));
  if (fault != Fault::kNone) return InjectedError(DiskOperation::kRemove, path);
  StatusOr<Place> place = Find(path);
  if (!place.ok()) return place.status();
  if (place->node == nullptr) return NoSuch(path);
  if (!place->node->names.empty() || place->parent == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": the directory is not empty; remove its content first"));
  }
  Unlink(place->node);
  place->parent->Change({{place->name, nullptr}});
  return absl::OkStatus();
}

Status FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  std::unique_lock<Mutex> lock;
  Fault fault = Fault::kNone;
  GANNET_RETURN_IF_ERROR(Begin(DiskOperation::kRename, from, &lock, &fault));
  if (fault != Fault::kNone) return InjectedError(DiskOperation::kRename, from);
  StatusOr<Place> source = Find(from);
  if (!source.ok()) return source.status();
  StatusOr<Place> target = Find(to);
  if (!target.ok()) return target.status();
  if (source->node == nullptr) return NoSuch(from);
  if (source->parent != target->parent || source->parent == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("renaming ", from, " to ", to, ": must stay in one directory"));
  }
  if (target->node == source->node) return absl::OkStatus();
  if (target->node != nullptr) {
    if (target->node->directory || source->node->directory) {
      return absl::AlreadyExistsError(absl::StrCat("renaming ", from, " to ", to, ": only files are replaced"));
    }
    Unlink(target->node);
  }
  source->parent->Change({{source->name, nullptr}, {target->name, source->node}});
  return absl::OkStatus();
}

Status FaultyFileSystem::SyncDirectory(const std::string& path) {
  std::unique_lock<Mutex> lock;
  Fault fault = Fault::kNone;
  GANNET_RETURN_IF_ERROR(Begin(DiskOperation::kSyncDirectory, path, &lock, &fault));
  StatusOr<std::shared_ptr<Node>> node = FindDirectory(path);
  if (!node.ok()) return node.status();
  if (fault != Fault::kNone) {
    (*node)->FailSyncNames(random_);
    return InjectedError(DiskOperation::kSyncDirectory, path);
  }
  (*node)->SyncNames();
  return absl::OkStatus();
}

StatusOr<uint64_t> FaultyFileSystem::FreeBytes(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  StatusOr<std::shared_ptr<Node>> node = FindDirectory(directory);
  if (!node.ok()) return node.status();
  return used_bytes_ < options_.capacity_bytes ? options_.capacity_bytes - used_bytes_ : 0;
}

StatusOr<std::shared_ptr<void>> FaultyFileSystem::Lock(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  if (!powered_) return absl::UnavailableError(absl::StrCat(directory, ": the power is off"));
  StatusOr<std::shared_ptr<Node>> node = FindDirectory(directory);
  if (!node.ok()) return node.status();
  std::string key = absl::StrJoin(Parts(directory), "/");
  if (!locked_->insert(key).second) {
    return absl::FailedPreconditionError(absl::StrCat(
        directory,
        ": is in use by this process; close the other database (Database::Close), or use another directory"));
  }
  // The set is replaced when the power goes: a lock taken before then releases nothing that was locked later.
  struct Held {
    Held(FaultyFileSystem* owner, std::shared_ptr<std::set<std::string>> held, std::string name)
        : files(owner), set(std::move(held)), key(std::move(name)) {}
    ~Held() {
      const std::lock_guard guard(files->mutex_);
      set->erase(key);
    }
    FaultyFileSystem* files;
    std::shared_ptr<std::set<std::string>> set;
    std::string key;
  };
  return std::make_shared<Held>(this, locked_, std::move(key));
}

std::string FaultyFileSystem::Description() const {
  return "in memory, with injected faults";
}

void FaultyFileSystem::SetOptions(FaultOptions options) {
  const std::lock_guard lock(mutex_);
  options_ = std::move(options);
}

void FaultyFileSystem::SetCapacity(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  options_.capacity_bytes = bytes;
}

void FaultyFileSystem::Schedule(ScheduledFault fault) {
  const std::lock_guard lock(mutex_);
  scheduled_.push_back(std::move(fault));
}

void FaultyFileSystem::Heal() {
  const std::lock_guard lock(mutex_);
  scheduled_.clear();
  options_ = FaultOptions{.capacity_bytes = options_.capacity_bytes};
}

void FaultyFileSystem::PowerOff() {
  const std::lock_guard lock(mutex_);
  powered_ = false;
  ++power_cycle_;
}

void FaultyFileSystem::PowerOn() {
  const std::lock_guard lock(mutex_);
  GANNET_CHECK(!powered_, "the power is on; call PowerOff first%s", "");
  internal::Survival survival(&random_);
  root_ = root_->AfterCrash(survival);
  used_bytes_ = BytesBelow(*root_);
  locked_ = std::make_shared<std::set<std::string>>();
  powered_ = true;
}

void FaultyFileSystem::KillPrograms() {
  const std::lock_guard lock(mutex_);
  ++power_cycle_;
  locked_ = std::make_shared<std::set<std::string>>();
}

std::unique_ptr<FaultyFileSystem> FaultyFileSystem::CrashedCopy(uint64_t seed) const {
  auto copy = std::make_unique<FaultyFileSystem>(seed);
  const std::lock_guard lock(mutex_);
  internal::Survival survival(&copy->random_);
  copy->root_ = root_->AfterCrash(survival);
  copy->used_bytes_ = BytesBelow(*copy->root_);
  return copy;
}

std::vector<std::unique_ptr<FaultyFileSystem>> FaultyFileSystem::CrashedCopies(size_t most, uint64_t seed) const {
  std::vector<std::unique_ptr<FaultyFileSystem>> copies;
  {
    const std::lock_guard lock(mutex_);
    internal::CrashOutcome outcome;
    bool more = true;
    for (; more && copies.size() < most; more = outcome.Advance()) {
      auto copy = std::make_unique<FaultyFileSystem>(seed);
      internal::Survival survival(&outcome);
      copy->root_ = root_->AfterCrash(survival);
      copy->used_bytes_ = BytesBelow(*copy->root_);
      copies.push_back(std::move(copy));
    }
    if (!more) return copies;
  }
  for (size_t i = 0; i < copies.size(); ++i) copies[i] = CrashedCopy(seed + i);
  return copies;
}

Status FaultyFileSystem::FlipBit(const std::string& path, uint64_t offset, int bit) {
  const std::lock_guard lock(mutex_);
  StatusOr<Place> place = Find(path);
  if (!place.ok()) return place.status();
  if (place->node == nullptr) return NoSuch(path);
  if (offset >= place->node->content.size()) {
    return absl::OutOfRangeError(absl::StrCat(path, ": has ", place->node->content.size(), " bytes, none at ", offset));
  }
  place->node->content.FlipBit(offset, bit);
  return absl::OkStatus();
}

StatusOr<uint64_t> FaultyFileSystem::FlipRandomBit(const std::string& path, uint64_t begin, uint64_t end) {
  GANNET_CHECK(begin < end, "begin=%d end=%d", begin, end);
  uint64_t offset = 0;
  int bit = 0;
  {
    const std::lock_guard lock(mutex_);
    offset = begin + random_.Below(end - begin);
    bit = static_cast<int>(random_.Below(8));
  }
  GANNET_RETURN_IF_ERROR(FlipBit(path, offset, bit));
  return offset;
}

uint64_t FaultyFileSystem::operations(DiskOperation operation) const {
  const std::lock_guard lock(mutex_);
  return operations_[static_cast<size_t>(operation)];
}

uint64_t FaultyFileSystem::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

}  // namespace gannet::log
