// A process that may not have the threads that a database needs: an error, and no crash.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/share_work.h"
#include "gtest/gtest.h"
#include "txn/database.h"

namespace gannet::txn {
namespace thread_limit_test {

constexpr int kNobody = 65534;

// This process may have no further threads from now on.
bool ForbidThreads() {
  if (geteuid() == 0 && setuid(kNobody) != 0) return false;  // the limit is none for root
  const struct rlimit none { .rlim_cur = 1, .rlim_max = 1 };
  return setrlimit(RLIMIT_NPROC, &none) == 0;
}

// Lets everybody use the files.
void OpenToAll(const std::string& directory) {
  std::filesystem::permissions(directory, std::filesystem::perms::all);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    std::filesystem::permissions(entry.path(), std::filesystem::perms::all);
  }
}

// Makes a directory whose log has several segments, which recovery reads with several threads.
Status Fill(const std::string& directory) {
  auto database = Database::Open(directory, {.create_if_missing = true, .log_segment_bytes = 64 << 10});
  if (!database.ok()) return database.status();
  auto table = (*database)->CreateTable({.name = "rows", .payload_bytes = 4096});
  if (!table.ok()) return table.status();
  GANNET_RETURN_IF_ERROR((*database)->Start());
  for (uint64_t first = 0; first < 100; first += 10) {
    const Status inserted = (*database)->Run([&](auto& t) -> Status {
      for (uint64_t key = first; key < first + 10; ++key) {
        GANNET_RETURN_IF_ERROR(t.Insert(**table, key, std::array<char, 4096>{}));
      }
      return absl::OkStatus();
    });
    GANNET_RETURN_IF_ERROR(inserted);
  }
  return (*database)->Close();
}

// Returns 0 if Start fails and says why, in this process, which may then have no further threads.
int StartWithoutThreads(const std::string& directory) {
  if (!ForbidThreads()) return 2;
  auto database = Database::Open(directory, {.recovery_threads = 4});
  if (!database.ok()) {
    std::fprintf(stderr, "Open: %s\n", database.status().ToString().c_str());
    return 4;
  }
  auto in_memory = Database::OpenInMemory({});
  if (!in_memory.ok()) return 5;
  for (const Status& started : {(*database)->Start(), (*in_memory)->Start()}) {
    if (absl::IsResourceExhausted(started) && absl::StrContains(started.message(), "ulimit -u")) continue;
    std::fprintf(stderr, "Start: %s\n", started.ToString().c_str());
    return 6;
  }
  return 0;
}

// Returns 0 if the work is done all the same, in this process, which may then have no further threads.
int ShareWorkWithNobody() {
  if (!ForbidThreads()) return 2;
  int done = 0;
  const Status shared = ShareWork("helper", 3, 4, [&done](size_t, int thread) {
    ++done;
    return thread == 0 ? absl::OkStatus() : absl::InternalError("there is another thread");
  });
  return shared.ok() && done == 3 ? 0 : 4;
}

int ResultOfChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(ThreadLimitTest, WorkIsDoneWithoutHelpers) {
  EXPECT_EQ(ResultOfChild(ShareWorkWithNobody), 0);
}

TEST(ThreadLimitTest, StartSaysThatThereAreNoThreads) {
  const std::string directory = absl::StrCat(testing::TempDir(), "gannet-threads-", getpid());
  const Status filled = Fill(directory);
  ASSERT_TRUE(filled.ok()) << filled;
  OpenToAll(directory);
  EXPECT_EQ(ResultOfChild([&] { return StartWithoutThreads(directory); }), 0);
  // The directory is as it was.
  auto database = Database::Open(directory, {});
  ASSERT_TRUE(database.ok()) << database.status();
  const Status started = (*database)->Start();
  EXPECT_TRUE(started.ok()) << started;
  EXPECT_EQ((*database)->recovery().records, 100u);
  EXPECT_TRUE((*database)->Close().ok());
  std::filesystem::remove_all(directory);
}

}  // namespace thread_limit_test
}  // namespace gannet::txn
