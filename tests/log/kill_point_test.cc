#include "log/file/kill_point.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::log {
namespace kill_point_test {

// Runs `body` in a child process; returns its status from waitpid.
template <typename Body>
int EndOfChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int end = 0;
  EXPECT_EQ(waitpid(child, &end, 0), child);
  return end;
}

TEST(KillPoint, EveryPointHasANameOfItsOwn) {
  const auto names = KillPointNames();
  EXPECT_EQ(names.size(), static_cast<size_t>(KillPoint::kCount));
  const std::set<std::string_view> distinct(names.begin(), names.end());
  EXPECT_EQ(distinct.size(), names.size());
  EXPECT_EQ(distinct.count(""), 0u);
  EXPECT_EQ(KillPointName(KillPoint::kCommitLocked), "commit-locked");
  EXPECT_EQ(KillPointName(KillPoint::kManifestRenamed), "manifest-renamed");
  EXPECT_EQ(KillPointName(KillPoint::kRecoveryLoaded), "recovery-loaded");
}

TEST(KillPoint, UnarmedPointsDoNothing) {
  for (int i = 0; i < static_cast<int>(KillPoint::kCount); ++i) MayDieHere(static_cast<KillPoint>(i));
}

TEST(KillPoint, EveryPointKillsWhenArmed) {
  for (int i = 0; i < static_cast<int>(KillPoint::kCount); ++i) {
    const auto point = static_cast<KillPoint>(i);
    const int end = EndOfChild([point] {
      if (!ArmKillPoint(KillPointName(point), 1).ok()) return 2;
      for (int other = 0; other < static_cast<int>(KillPoint::kCount); ++other) {
        if (static_cast<KillPoint>(other) != point) MayDieHere(static_cast<KillPoint>(other));
      }
      MayDieHere(point);
      return 0;
    });
    EXPECT_TRUE(WIFSIGNALED(end)) << KillPointName(point);
    EXPECT_EQ(WTERMSIG(end), SIGKILL) << KillPointName(point);
  }
}

TEST(KillPoint, DiesAtThePassageAskedForAndNotBefore) {
  const auto passages = [](int count) {
    return EndOfChild([count] {
      if (!ArmKillPoint("batch-written", 3).ok()) return 2;
      for (int i = 0; i < count; ++i) {
        MayDieHere(KillPoint::kBatchCollected);
        MayDieHere(KillPoint::kBatchWritten);
      }
      return 7;
    });
  };
  const int two = passages(2);
  ASSERT_TRUE(WIFEXITED(two));
  EXPECT_EQ(WEXITSTATUS(two), 7);
  EXPECT_TRUE(WIFSIGNALED(passages(3)));
}

TEST(KillPoint, UnknownNamesAreRefusedWithTheList) {
  const Status status = ArmKillPoint("commit-lockd", 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("commit-locked, commit-appended"));
  EXPECT_EQ(ArmKillPoint("commit-locked", 0).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace kill_point_test
}  // namespace gannet::log
