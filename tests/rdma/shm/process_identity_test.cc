#include "rdma/shm/process_identity.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"
#include "gtest/gtest.h"

namespace gannet::rdma::shm {
namespace process_identity_test {

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

// A child that reports its identity before it ends.
class Child {
 public:
  // Its first thread runs `body`, and then ends alone. The child ends with its last thread, or with this object.
  explicit Child(void (*body)()) {
    int told[2], let_go[2];
    GANNET_CHECK(pipe(told) == 0 && pipe(let_go) == 0, "no pipes");
    pid_ = fork();
    GANNET_CHECK(pid_ >= 0, "no child");
    if (pid_ == 0) {
      const ProcessIdentity self = ThisProcess();
      GANNET_CHECK(write(told[1], &self, sizeof self) == sizeof self, "nobody listens");
      close(let_go[1]);
      let_go_ = let_go[0];
      body();
      syscall(SYS_exit, 0);
    }
    GANNET_CHECK(read(told[0], &identity_, sizeof identity_) == sizeof identity_, "the child says nothing");
    close(told[0]), close(told[1]), close(let_go[0]);
    held_ = let_go[1];
  }
  ~Child() {
    LetGo();
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const ProcessIdentity& identity() const { return identity_; }
  void LetGo() {
    if (held_ >= 0) close(std::exchange(held_, -1));
  }
  // Does not reap the child.
  void AwaitItsEnd() const {
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }
  void AwaitEndOfFirstThread() const {
    while (StateOfFirstThread() != 'Z') usleep(1000);
  }

  // Run by the child's threads.
  static void EndWhenLetGo() {
    char nothing;
    while (read(let_go_, &nothing, 1) != 0) {
    }
    _exit(0);
  }

 private:
  char StateOfFirstThread() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string line;
    std::getline(file, line);
    return line.at(line.rfind(')') + 2);
  }

  static inline int let_go_ = -1;
  pid_t pid_ = -1;
  int held_ = -1;
  ProcessIdentity identity_;
};

TEST(ProcessIdentity, AZombieDoesNotRun) {
  Child child([] { _exit(0); });
  child.AwaitItsEnd();
  EXPECT_FALSE(IsRunning(child.identity()));
}

TEST(ProcessIdentity, AProcessRunsUntilItsLastThreadHasEnded) {
  Child child([] { std::thread(Child::EndWhenLetGo).detach(); });
  child.AwaitEndOfFirstThread();
  EXPECT_TRUE(IsRunning(child.identity()));
  child.LetGo();
  child.AwaitItsEnd();
  EXPECT_FALSE(IsRunning(child.identity()));
}

TEST(ProcessIdentity, NoProcessDoesNotRun) {
  EXPECT_FALSE(IsRunning({}));
}

}  // namespace process_identity_test
}  // namespace gannet::rdma::shm
