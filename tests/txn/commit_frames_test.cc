// Counts the coroutine frames of a commit at another node.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/coro/task.h"
#include "gtest/gtest.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace commit_frames_test {

constexpr uint64_t kRowsRead = 4;

coro::Task<void> CommitAndCount(Transaction& t, Status* status, size_t* frames) {
  const size_t before = coro::FramesOfThisThread();
  Status committed = co_await t.Commit();
  *frames = coro::FramesOfThisThread() - before;
  *status = std::move(committed);
}

// The frames of the commit of a transaction of node 1 that reads all rows, which are of node 0, and adds to the first
// `written` of them.
size_t FramesOfCommit(Session& session, const Table& table, uint64_t written) {
  Transaction t = session.Begin();
  BlockingTransaction blocking(&t, &session.worker());
  for (uint64_t key = 0; key < kRowsRead; ++key) {
    uint64_t row = 0;
    if (key < written) {
      const StatusOr<RecordHandle> handle = blocking.GetForUpdate(table, key, &row);
      EXPECT_TRUE(handle.ok()) << handle.status();
      EXPECT_TRUE(blocking.Update(*handle, row + 1).ok());
    } else {
      EXPECT_TRUE(blocking.Get(table, key, &row).ok());
    }
  }
  Status status;
  size_t frames = 0;
  session.worker().BlockOn(CommitAndCount(t, &status, &frames));
  EXPECT_TRUE(status.ok()) << status;
  return frames;
}

TEST(CommitFramesTest, ACommitWithoutWritesOnlyValidates) {
  Cluster cluster({.nodes = 2},
                  {{.name = "rows", .payload_bytes = sizeof(uint64_t), .placement = Placement::OnFirstNode()}});
  Session& session = cluster.NewSession(1);
  const Table& table = cluster.table(1, "rows");
  const Status loaded = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
    for (uint64_t key = 0; key < kRowsRead; ++key) {
      if (Status s = t.Insert(table, key, uint64_t{0}); !s.ok()) return s;
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(loaded.ok()) << loaded;
  // The transaction's task, and that of the validation.
  EXPECT_EQ(FramesOfCommit(session, table, 0), 2u);
  // With a write it runs every step, also those that have nothing to do, but the validation goes with the locks.
  EXPECT_EQ(FramesOfCommit(session, table, 1), 9u);
}

}  // namespace commit_frames_test
}  // namespace gannet::txn
