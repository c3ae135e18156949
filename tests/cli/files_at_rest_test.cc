// Directories in every state of their life, with each file removed, truncated, swapped, duplicated, replaced by another
// kind of file, or unreadable; and with each file, and the whole directory of each node, as they were before the last
// run, or as they are in a copy that went on separately. The database is then either refused, with the name of the file
// and without any change, or has exactly what was acknowledged; and it has all of it if `gannet verify` reports no
// problem.
//
// The gate tries a fixed selection of the cases (tests/support/thorough.h).
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "log/file/pmem_file_system.h"
#include "log/file/posix_file_system.h"
#include "tests/support/thorough.h"
#include "tests/txn/durable_cluster.h"
#include "txn/durable/data_directory.h"
#include "txn/durable/verify.h"

namespace gannet::cli {
namespace files_at_rest_test {

namespace fs = std::filesystem;
using txn::DurableCluster;
using Rows = std::map<uint64_t, uint64_t>;

// Maps "/data" to a directory of the machine. One file can be unreadable: the tests run as root, for which permissions
// have no effect.
class RootedFiles final : public log::FileSystem {
 public:
  RootedFiles(std::unique_ptr<log::FileSystem> inner, fs::path root)
      : inner_(std::move(inner)), root_(std::move(root)) {}

  void MakeUnreadable(const fs::path& path) { unreadable_ = path; }

  StatusOr<std::unique_ptr<log::File>> Open(const std::string& path, log::OpenMode mode) override {
    GANNET_RETURN_IF_ERROR(MayRead(path));
    return inner_->Open(Real(path), mode);
  }
  Status MakeDirectory(const std::string& path) override { return inner_->MakeDirectory(Real(path)); }
  StatusOr<std::vector<std::string>> List(const std::string& path) override {
    GANNET_RETURN_IF_ERROR(MayRead(path));
    return inner_->List(Real(path));
  }
  Status Remove(const std::string& path) override { return inner_->Remove(Real(path)); }
  Status Rename(const std::string& from, const std::string& to) override {
    return inner_->Rename(Real(from), Real(to));
  }
  Status SyncDirectory(const std::string& path) override { return inner_->SyncDirectory(Real(path)); }
  StatusOr<uint64_t> FreeBytes(const std::string& path) override { return inner_->FreeBytes(Real(path)); }
  StatusOr<std::shared_ptr<void>> Lock(const std::string& path) override { return inner_->Lock(Real(path)); }
  std::string Description() const override { return inner_->Description(); }

 private:
  std::string Real(const std::string& path) const {
    return absl::StartsWith(path, root_.string()) ? path : root_.string() + path;
  }
  Status MayRead(const std::string& path) const {
    if (unreadable_ != fs::path(Real(path))) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("opening ", Real(path), ": Permission denied"));
  }

  const std::unique_ptr<log::FileSystem> inner_;
  const fs::path root_;
  fs::path unreadable_;
};

// Every path below `directory` with its type and content, except for lock files.
std::map<std::string, std::string> ContentsOf(const fs::path& directory) {
  std::map<std::string, std::string> contents;
  if (!fs::is_directory(fs::symlink_status(directory))) return contents;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const fs::file_status status = entry.symlink_status();
    std::string& content = contents[entry.path().string()];
    if (entry.path().filename() == "LOCK") {
      contents.erase(entry.path().string());
    } else if (fs::is_regular_file(status)) {
      std::ifstream in(entry.path(), std::ios::binary);
      content = "file " + std::string(std::istreambuf_iterator<char>(in), {});
    } else {
      content = absl::StrCat("kind ", static_cast<int>(status.type()));
    }
  }
  return contents;
}

// --- States ---

struct State {
  std::string name;
  int nodes = 1;
  txn::DurabilityMode mode = txn::DurabilityMode::kSync;
  txn::LogMedium medium = txn::LogMedium::kFile;
  int checkpoints = 0;
  int runs = 1;
  bool checkpoints_of_all = true;  // false: only the first node takes any
  bool killed = false;             // the last run
  uint64_t preallocate = 0;
};

std::vector<State> States() {
  using txn::DurabilityMode;
  return {
      {.name = "Created", .runs = 0},
      {.name = "Closed"},
      {.name = "Killed", .runs = 2, .killed = true},
      {.name = "OneCheckpoint", .checkpoints = 1},
      {.name = "TwoCheckpointsKilled", .checkpoints = 2, .killed = true},
      {.name = "SegmentsRemovedAndReused", .checkpoints = 5, .runs = 2},
      {.name = "Preallocated", .checkpoints = 3, .preallocate = 384 << 10},
      {.name = "Async", .mode = DurabilityMode::kAsync, .checkpoints = 1},
      {.name = "None", .mode = DurabilityMode::kNone, .runs = 2},
      {.name = "Pmem", .medium = txn::LogMedium::kPmem, .checkpoints = 2, .runs = 2},
      {.name = "CreatedForTwo", .nodes = 2, .runs = 0},
      {.name = "TwoNodes", .nodes = 2, .runs = 2},
      {.name = "TwoNodesKilled", .nodes = 2, .checkpoints = 2, .killed = true},
      {.name = "TwoNodesOneWithCheckpoints", .nodes = 2, .checkpoints = 3, .runs = 2, .checkpoints_of_all = false},
  };
}

std::vector<txn::TableOptions> Tables(int nodes) {
  const txn::Placement ordered = nodes == 1 ? txn::Placement::OnFirstNode() : txn::Placement::ByRange({30});
  return {txn::HashTable("rows", txn::Placement::ByHash()), txn::OrderedTable("ordered", ordered)};
}

class FilesAtRestTest : public ::testing::TestWithParam<State> {
 protected:
  FilesAtRestTest() {
    std::string name = (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ::testing::TempDir()) + "/gannet-at-rest-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    fs::create_directory(root_ / "made");
    fs::create_directory(root_ / "tried");
  }
  ~FilesAtRestTest() override { fs::remove_all(root_); }

  static std::shared_ptr<RootedFiles> FilesIn(const fs::path& root) {
    std::unique_ptr<log::FileSystem> inner;
    if (GetParam().medium == txn::LogMedium::kPmem) {
      inner = std::make_unique<log::PmemFileSystem>();
    } else {
      inner = std::make_unique<log::PosixFileSystem>(log::PosixOptions{.zero_ahead = false});
    }
    return std::make_shared<RootedFiles>(std::move(inner), root);
  }

  static StatusOr<std::unique_ptr<DurableCluster>> Open(const std::shared_ptr<RootedFiles>& files) {
    txn::DatabaseOptions options;
    options.durability = GetParam().mode;
    options.log_segment_bytes = uint64_t{128} << 10;
    options.log_buffer_bytes = size_t{16} << 10;
    options.log_large_buffer_bytes = size_t{64} << 10;
    options.log_preallocate_bytes = GetParam().preallocate;
    return DurableCluster::Open(files, Tables(GetParam().nodes), {.nodes = GetParam().nodes, .database = options});
  }

  // Inserts and updates rows; *rows gets what it wrote.
  static void Work(DurableCluster& cluster, uint64_t from, uint64_t to, Rows* rows) {
    for (uint64_t key = from; key < to; ++key) {
      const Status done = cluster.database().Run([&](txn::BlockingTransaction& t) -> Status {
        GANNET_RETURN_IF_ERROR(t.Insert(cluster.table("rows"), key, key * 7));
        GANNET_RETURN_IF_ERROR(t.Insert(cluster.table("ordered"), key, key * 7));
        return key < 4 ? absl::OkStatus() : t.Update(cluster.table("rows"), key - 3, key);
      });
      ASSERT_TRUE(done.ok()) << done;
      (*rows)[key] = key * 7;
      if (key >= 4) (*rows)[key - 3] = key;
    }
  }

  // Copies the same directory, as it was before the last run, and continued by another one.
  void MakeFork(uint64_t key) {
    fs::create_directory(root_ / "fork");
    fs::copy(root_ / "older", root_ / "fork", fs::copy_options::recursive);
    auto cluster = Open(FilesIn(root_ / "fork"));
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (uint64_t i = 0; i < 8; ++i) {
      const Status done = (*cluster)->database().Run([&](txn::BlockingTransaction& t) -> Status {
        GANNET_RETURN_IF_ERROR(t.Insert((*cluster)->table("rows"), key + i, key));
        return t.Insert((*cluster)->table("ordered"), key + i, key);
      });
      ASSERT_TRUE(done.ok()) << done;
    }
    for (int node = 0; GetParam().checkpoints > 0 && node < GetParam().nodes; ++node) {
      ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
    }
    ASSERT_TRUE((*cluster)->Close().ok());
  }

  // Brings a directory into the state; rows_ gets what was acknowledged.
  void Make() {
    const State& state = GetParam();
    const auto files = FilesIn(root_ / "made");
    if (state.runs == 0) {
      ASSERT_TRUE(txn::TakeDataDirectory(*files, "/data", 0, state.nodes, /*create=*/true, "").ok());
      return;
    }
    uint64_t key = 1;
    for (int run = 1; run <= state.runs; ++run) {
      if (run > 1 && run == state.runs) {
        fs::create_directory(root_ / "older");
        fs::copy(root_ / "made", root_ / "older", fs::copy_options::recursive);
      }
      auto cluster = Open(files);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      for (int checkpoint = 0; checkpoint <= state.checkpoints; ++checkpoint) {
        Work(**cluster, key, key + 8, &rows_);
        key += 8;
        const int checkpointing = checkpoint == state.checkpoints ? 0 : state.checkpoints_of_all ? state.nodes : 1;
        for (int node = 0; node < checkpointing; ++node) {
          ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
        }
      }
      if (run < state.runs || !state.killed) {
        ASSERT_TRUE((*cluster)->Close().ok());
        continue;
      }
      // The current files are what a killed process leaves.
      fs::create_directory(root_ / "killed");
      fs::copy(root_ / "made", root_ / "killed", fs::copy_options::recursive);
      cluster->reset();
      fs::remove_all(root_ / "made");
      fs::rename(root_ / "killed", root_ / "made");
    }
    if (state.runs > 1) MakeFork(key + 100);
  }

  // The files and directories of the database; directories last.
  std::vector<fs::path> Places() const {
    std::vector<fs::path> files;
    std::vector<fs::path> directories;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "made" / "data")) {
      if (entry.path().filename() == "LOCK") continue;  // has no data; any file is valid
      (entry.is_directory() ? directories : files).push_back(entry.path().lexically_relative(root_ / "made"));
    }
    std::ranges::sort(files);
    std::ranges::sort(directories);
    files.insert(files.end(), directories.begin(), directories.end());
    return files;
  }

  void Reset() {
    fs::remove_all(root_ / "tried");
    fs::copy(root_ / "made", root_ / "tried", fs::copy_options::recursive);
  }

  void Try(const std::string& what, const fs::path& place, const fs::path& other,
           const std::shared_ptr<RootedFiles>& files);

  fs::path root_;
  Rows rows_;
};

StatusOr<Rows> ReadTable(DurableCluster& cluster, const char* table, uint64_t most) {
  Rows rows;
  for (uint64_t key = 1; key <= most; ++key) {
    uint64_t value = 0;
    const Status status =
        cluster.database().Run([&](txn::BlockingTransaction& t) { return t.Get(cluster.table(table), key, &value); });
    if (status.ok()) rows[key] = value;
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return rows;
}

// The directory of the node that `place` belongs to; "data" if there is only one node.
std::string PartOf(const fs::path& place, int nodes) {
  auto at = place.begin();
  const std::string data = (at++)->string();
  return nodes == 1 || at == place.end() ? data : data + "/" + at->string();
}

// The name of the next file of its kind.
fs::path NextName(const fs::path& path) {
  const std::string name = path.filename().string();
  const size_t digits = name.find_last_not_of("0123456789abcdef") + 1;
  if (digits == name.size() || name.find('-') == std::string::npos) return path.parent_path() / (name + ".tmp");
  const size_t width = name.size() - digits;
  const uint64_t number = std::stoull(name.substr(digits), nullptr, 16);
  return path.parent_path() / (name.substr(0, digits) + absl::StrFormat("%0*x", static_cast<int>(width), number + 1));
}

// `other`: the second changed file, if two were swapped.
void FilesAtRestTest::Try(const std::string& what, const fs::path& place, const fs::path& other,
                          const std::shared_ptr<RootedFiles>& files) {
  SCOPED_TRACE(absl::StrCat(GetParam().name, ": ", place.string(), " ", what));
  const auto before = ContentsOf(root_ / "tried" / "data");
  const StatusOr<txn::Verification> verified = txn::VerifyDataDirectory(*files, (root_ / "tried" / "data").string(), 1);
  const bool sound = verified.ok() && verified->problems.empty();
  EXPECT_TRUE(verified.ok() || absl::StrContains(verified.status().message(), "/tried/data")) << verified.status();
  auto cluster = Open(files);
  if (!cluster.ok()) {
    const std::string message(cluster.status().message());
    EXPECT_TRUE(absl::StrContains(message, "/" + PartOf(place, GetParam().nodes)) ||
                absl::StrContains(message, "/" + PartOf(other, GetParam().nodes)))
        << message;
    EXPECT_TRUE(before == ContentsOf(root_ / "tried" / "data")) << "refused, and changed: " << message;
    // Files of future segments are empty, and verify ignores them.
    EXPECT_FALSE(sound && !place.filename().string().starts_with("new-segment-"))
        << "verify calls it sound, and it is refused: " << message;
    // With the original files restored, everything is there.
    for (const fs::path& changed : {place, other, NextName(place)}) {
      fs::remove_all(root_ / "tried" / changed);
      if (fs::exists(root_ / "made" / changed)) {
        fs::copy(root_ / "made" / changed, root_ / "tried" / changed, fs::copy_options::recursive);
      }
    }
    cluster = Open(FilesIn(root_ / "tried"));
    ASSERT_TRUE(cluster.ok()) << "with the files put back: " << cluster.status();
  }
  for (const char* table : {"rows", "ordered"}) {
    const StatusOr<Rows> found = ReadTable(**cluster, table, rows_.size() + 2);
    ASSERT_TRUE(found.ok()) << found.status();
    Rows expected = rows_;
    for (auto& [key, value] : expected) value = *table == 'o' ? key * 7 : value;
    EXPECT_TRUE(*found == expected) << table << " has " << found->size() << " of " << expected.size() << " rows";
  }
}

// True for the directory of one of several nodes.
bool IsNode(const fs::path& place) {
  return place.filename().string().starts_with("node-");
}

void Cut(const fs::path& path, uint64_t bytes) {
  fs::resize_file(path, bytes);
}

struct Change {
  const char* name;
  bool of_directories;
  // Changes the file at `path`; `other`: another file. Returns false if the change does not apply here.
  bool (*apply)(const fs::path& path, const fs::path& other);
};

const Change kChanges[] = {
    {"removed", true, [](const fs::path& path, const fs::path&) { return fs::remove_all(path) > 0; }},
    {"made empty", false,
     [](const fs::path& path, const fs::path&) { return fs::file_size(path) > 0 && (Cut(path, 0), true); }},
    {"cut by a byte", false,
     [](const fs::path& path, const fs::path&) {
       return fs::file_size(path) > 0 && (Cut(path, fs::file_size(path) - 1), true);
     }},
    {"cut by a block", false,
     [](const fs::path& path, const fs::path&) {
       return fs::file_size(path) > 4096 && (Cut(path, fs::file_size(path) - 4096), true);
     }},
    {"cut by half", false,
     [](const fs::path& path, const fs::path&) {
       return fs::file_size(path) > 1 && (Cut(path, fs::file_size(path) / 2), true);
     }},
    {"longer by a block", false,
     [](const fs::path& path, const fs::path&) { return Cut(path, fs::file_size(path) + 4096), true; }},
    {"swapped", false,
     [](const fs::path& path, const fs::path& other) {
       if (path == other) return false;
       fs::rename(path, path.string() + "~");
       fs::rename(other, path);
       fs::rename(path.string() + "~", other);
       return true;
     }},
    {"doubled", false,
     [](const fs::path& path, const fs::path&) {
       return fs::copy_file(path, NextName(path), fs::copy_options::overwrite_existing);
     }},
    {"an empty directory", true,
     [](const fs::path& path, const fs::path&) { return fs::remove_all(path), fs::create_directory(path); }},
    {"a FIFO", true,
     [](const fs::path& path, const fs::path&) { return fs::remove_all(path), mkfifo(path.c_str(), 0644) == 0; }},
    {"a link to nowhere", true,
     [](const fs::path& path, const fs::path&) {
       return fs::remove_all(path), fs::create_symlink("nowhere", path), true;
     }},
    {"an empty file", true,
     [](const fs::path& path, const fs::path&) { return fs::remove_all(path), std::ofstream(path).good(); }},
};

TEST_P(FilesAtRestTest, IsRefusedByNameOrWhole) {
  ASSERT_NO_FATAL_FAILURE(Make());
  Reset();
  Try("as it is", "data", "data", FilesIn(root_ / "tried"));
  const std::vector<fs::path> places = Places();
  uint64_t number = Mix64(GetParam().name.size() * 131 + static_cast<uint64_t>(GetParam().name[0]));
  const auto drawn = [&] { return ++number % StepOfPlaces(8) == 0; };
  for (size_t i = 0; i < places.size(); ++i) {
    const fs::path& place = places[i];
    const bool directory = fs::is_directory(root_ / "made" / place);
    size_t other = (i + 1) % places.size();
    if (fs::is_directory(root_ / "made" / places[other])) other = 0;
    for (const Change& change : kChanges) {
      if ((directory && !change.of_directories) || !drawn()) continue;
      Reset();
      if (change.apply(root_ / "tried" / place, root_ / "tried" / places[other])) {
        Try(change.name, place, places[other], FilesIn(root_ / "tried"));
      }
    }
    if (!drawn()) continue;
    Reset();
    const auto files = FilesIn(root_ / "tried");
    files->MakeUnreadable(root_ / "tried" / place);
    Try("unreadable", place, place, files);
  }
  for (const char* source : {"older", "fork"}) {
    if (!fs::exists(root_ / source)) continue;
    for (const fs::path& place : places) {
      const bool whole_node = fs::is_directory(root_ / "made" / place);
      if (!fs::exists(root_ / source / place) || !(whole_node ? IsNode(place) : drawn())) continue;
      Reset();
      fs::remove_all(root_ / "tried" / place);
      fs::copy(root_ / source / place, root_ / "tried" / place, fs::copy_options::recursive);
      const fs::path other = place == "data/node-0" ? "data/node-1" : whole_node ? "data/node-0" : place;
      Try(std::string(source) + " in its place", place, other, FilesIn(root_ / "tried"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(States, FilesAtRestTest, ::testing::ValuesIn(States()),
                         [](const auto& state) { return state.param.name; });

}  // namespace files_at_rest_test
}  // namespace gannet::cli
