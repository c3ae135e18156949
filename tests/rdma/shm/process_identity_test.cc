#include "rdma/shm/process_identity.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace gannet::rdma::shm {
namespace {

TEST(ProcessIdentity, ThisProcessRuns) {
  const ProcessIdentity self = ThisProcess();
  EXPECT_EQ(self.pid, static_cast<uint64_t>(getpid()));
  EXPECT_TRUE(IsRunning(self));
}

TEST(ProcessIdentity, TheSamePidFromAnotherTimeIsAnotherProcess) {
  ProcessIdentity other = ThisProcess();
  ++other.start_time;
  EXPECT_FALSE(IsRunning(other));
}

TEST(ProcessIdentity, AZombieDoesNotRun) {
  pid_t pid = 0;
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  ASSERT_EQ(posix_spawn(&pid, program, nullptr, nullptr, arguments, environ), 0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);  // it has ended, and is not reaped
  EXPECT_FALSE(IsRunning({static_cast<uint64_t>(pid), ThisProcess().start_time}));
  waitpid(pid, nullptr, 0);
}

TEST(ProcessIdentity, NoProcessDoesNotRun) {
  EXPECT_FALSE(IsRunning({}));
}

}  // namespace
}  // namespace gannet::rdma::shm
