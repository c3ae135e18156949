// A child of fork has a copy of a database without its threads: whatever it does with it is refused and changes
// nothing, and the parent notices nothing.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "txn/bulk_loader.h"
#include "txn/database.h"
#include "txn/run/manual_transaction.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace fork_test {

using testing::HasSubstr;

// A child that runs `body`, whose false EXPECTs are the child's failure, and then lives until End.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    EXPECT_EQ(pipe(control_.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      body();
      close(control_[1]);
      char byte = 0;
      if (write(ready[1], &byte, 1) != 1 || read(control_[0], &byte, 1) != 0) _exit(2);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    char byte = 0;
    close(ready[1]);
    EXPECT_EQ(read(ready[0], &byte, 1), 1) << "the child has crashed";
    close(ready[0]);
  }
  ~Child() {
    if (pid_ > 0) End();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void End() {
    int status = -1;
    close(control_[0]);
    close(control_[1]);
    EXPECT_EQ(waitpid(std::exchange(pid_, -1), &status, 0) > 0, true);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }

 private:
  std::array<int, 2> control_{};
  pid_t pid_ = -1;
};

class ForkTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(directory_);
    Open(/*create=*/true);
    rows_ = database_->CreateTable({.name = "rows", .index = IndexKind::kXStore, .payload_bytes = 8}).value();
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Open(bool create) {
    database_ = Database::Open(directory_, {.create_if_missing = create, .memory_bytes = uint64_t{64} << 20}).value();
    ASSERT_TRUE(database_->Start().ok());
    rows_ = database_->FindTable("rows");
  }
  Status Put(uint64_t key) {
    return database_->Run([&](auto& t) { return t.Upsert(*rows_, key, key); });
  }
  bool Has(uint64_t key) {
    bool yes = false;
    EXPECT_TRUE(database_
                    ->Run([&](auto& t) {
                      const StatusOr<bool> exists = t.Exists(*rows_, key);
                      yes = exists.value_or(false);
                      return exists.status();
                    })
                    .ok());
    return yes;
  }
  void ExpectRefused(const Status& status) const {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(std::string(status.message()),
              absl::StrCat("this database was opened by process ", parent_, "; open it after fork"));
  }

  // All that the parent has done would be there.
  void ExpectNoStatistics() const {
    EXPECT_EQ(database_->MetricsText(), "");
    EXPECT_EQ(database_->log_statistics().transactions, 0u);
    EXPECT_EQ(database_->checkpoint_statistics().taken, 0u);
    EXPECT_EQ(database_->precedence_statistics().asked, 0u);
    EXPECT_EQ(database_->transaction_statistics().commits_of_writers, 0u);
    EXPECT_EQ(database_->memory_statistics().capacity_bytes, 0u);
    EXPECT_TRUE(database_->table_statistics().empty());
    EXPECT_TRUE(database_->path_statistics().empty());
    EXPECT_TRUE(database_->shared_cache_bytes().empty());
    database_->PrefaultMemory(1);
  }

  const pid_t parent_ = getpid();
  const std::string directory_ = absl::StrCat(testing::TempDir(), "gannet-fork-", getpid());
  std::unique_ptr<Database> database_;
  const Table* rows_ = nullptr;
};

TEST_F(ForkTest, AllThatAChildDoesIsRefused) {
  ASSERT_TRUE(Put(1).ok());
  auto session = database_->OpenSession().value();
  std::optional<ManualTransaction> manual(database_->Begin().value());
  ASSERT_TRUE((*manual)->Upsert(*rows_, 2, uint64_t{2}).ok());
  Child child([&] {
    ExpectRefused(manual->Commit());
    manual->Rollback();
    manual.reset();
    ExpectRefused(session->RunBlocking(
        [&](Transaction& t) -> coro::Task<Status> { co_return t.Insert(*rows_, 3, uint64_t{3}); }));
    {
      Transaction t = session->Begin();
      ExpectRefused(session->worker().BlockOn(
          [](Transaction* of) -> coro::Task<Status> { co_return co_await of->Commit(); }(&t)));
    }
    {
      BulkLoader loader(session.get(), rows_);
      ExpectRefused(loader.Add(3, uint64_t{3}));
      ExpectRefused(loader.Finish());
    }
    session.reset();
    ExpectRefused(Put(4));
    ExpectRefused(database_->Begin().status());
    ExpectRefused(database_->OpenSession().status());
    ExpectRefused(database_->Start());
    ExpectRefused(database_->CreateTable({.name = "more", .payload_bytes = 8}).status());
    ExpectRefused(database_->RenameTable("rows", "lines"));
    ExpectRefused(database_->DropTable("rows"));
    ExpectRefused(database_->WidenTable("rows", 16));
    ExpectRefused(database_->ArrangeTable("rows"));
    ExpectRefused(database_->SetClaimRanges("rows", {}));
    ExpectRefused(
        database_->CreateIndex({.name = "by_all", .table = "rows", .fields = {IndexField::Unsigned(0, 8)}}).status());
    ExpectRefused(database_->Checkpoint());
    ExpectRefused(database_->Backup(directory_ + "-copy"));
    ExpectRefused(database_->log_health());
    ExpectNoStatistics();
    ExpectRefused(database_->CloseWithoutCheckpoint());
    ExpectRefused(database_->Close());
    database_.reset();
  });
  EXPECT_TRUE(manual->Commit().ok());
  manual.reset();
  session.reset();
  EXPECT_TRUE(Put(5).ok());
  EXPECT_TRUE(database_->Checkpoint().ok());
  child.End();
  EXPECT_TRUE(Has(1) && Has(2) && Has(5));
  EXPECT_FALSE(Has(3) || Has(4));
}

TEST_F(ForkTest, ABodyThatForksCommitsInTheParentAlone) {
  for (const bool fails : {false, true}) {
    pid_t child = -1;
    const Status result = database_->Run([&](BlockingTransaction& t) {
      GANNET_RETURN_IF_ERROR(t.Upsert(*rows_, 2, uint64_t{2}));
      if (child < 0) child = fork();
      return child == 0 && fails ? absl::NotFoundError("in the child") : absl::OkStatus();
    });
    if (child == 0) _exit(absl::IsFailedPrecondition(result) ? 0 : 1);
    EXPECT_TRUE(result.ok()) << result;
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(Has(2));
}

// Whatever locks these threads hold at the fork, the child waits for none of them.
TEST_F(ForkTest, AChildDoesNotWaitForThreadsThatItDoesNotHave) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (uint64_t key = 0; !stop; ++key) EXPECT_TRUE(Put(key % 100).ok());
  });
  threads.emplace_back([&] {
    while (!stop) EXPECT_TRUE(database_->Checkpoint().ok());
  });
  threads.emplace_back([&] {
    for (int i = 0; !stop; ++i) {
      EXPECT_TRUE(database_->RenameTable("rows", "lines").ok());
      EXPECT_TRUE(database_->RenameTable("lines", "rows").ok());
    }
  });
  threads.emplace_back([&] {
    while (!stop) {
      database_->MetricsText();
      database_->table_statistics();
    }
  });
  for (int i = 0; i < 20; ++i) {
    Child child([&] {
      alarm(60);
      ExpectRefused(Put(1));
      ExpectRefused(database_->Checkpoint());
      ExpectRefused(database_->RenameTable("rows", "lines"));
      ExpectRefused(database_->CreateTable({.name = "more", .payload_bytes = 8}).status());
      ExpectRefused(database_->log_health());
      ExpectNoStatistics();
      ExpectRefused(database_->Close());
      database_.reset();
    });
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(database_->Close().ok());
}

TEST_F(ForkTest, TheDirectoryIsFreeAfterCloseWhileAChildLives) {
  ASSERT_TRUE(Put(1).ok());
  Child child([] {});
  EXPECT_TRUE(database_->Close().ok());
  Open(/*create=*/false);
  EXPECT_TRUE(Has(1));
}

TEST_F(ForkTest, AChildOpensTheDirectoryItselfAndIsThenItsHolder) {
  ASSERT_TRUE(Put(1).ok());
  ASSERT_TRUE(database_->Close().ok());
  Child child([&] {
    Open(/*create=*/false);
    EXPECT_TRUE(Put(2).ok());
  });
  const Status used = Database::Open(directory_, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(used)) << used;
  EXPECT_THAT(std::string(used.message()), HasSubstr("is in use by process"));
  child.End();
  Open(/*create=*/false);
  EXPECT_TRUE(Has(2));
}

// The child has descriptors of none of the directory's files.
TEST_F(ForkTest, AChildKeepsNoFileOfTheDirectory) {
  const auto open_files = [&] {
    std::string files;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string path = std::filesystem::read_symlink(entry.path(), gone);
      if (path.find(directory_) != std::string::npos || path.find("io_uring") != std::string::npos) {
        absl::StrAppend(&files, path, " ");
      }
    }
    return files;
  };
  ASSERT_TRUE(Put(1).ok());
  EXPECT_NE(open_files(), "");
  Child child([&] { EXPECT_EQ(open_files(), ""); });
}

}  // namespace fork_test
}  // namespace gannet::txn
