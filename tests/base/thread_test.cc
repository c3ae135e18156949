#include "base/thread.h"

#include <sched.h>

#include <cstddef>

#include "gtest/gtest.h"

namespace gannet {
namespace {

TEST(BindThisThreadTest, BindsAndUnbinds) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  Thread("bound", [&] {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      const bool allowed = CPU_ISSET(static_cast<size_t>(cpu), &before);
      EXPECT_EQ(BindThisThread(cpu), allowed);
      if (allowed) {
        EXPECT_EQ(sched_getcpu(), cpu);
      }
    }
    EXPECT_FALSE(BindThisThread(-1));
    EXPECT_FALSE(BindThisThread(CPU_SETSIZE));
    Thread("inherits", [&] {
      UnbindThisThread();
      cpu_set_t after;
      ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
      EXPECT_TRUE(CPU_EQUAL(&after, &before));
    }).join();
  }).join();
}

}  // namespace
}  // namespace gannet
