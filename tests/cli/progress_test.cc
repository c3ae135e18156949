// What a pipe gets of a long command.
#include "cli/common/progress.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace progress_test {

using ::testing::MatchesRegex;

// Standard error is a pipe while it lives.
class Pipe {
 public:
  Pipe() : kept_(dup(STDERR_FILENO)) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe(ends), 0);
    from_ = ends[0];
    EXPECT_EQ(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
  }
  ~Pipe() {
    std::fflush(stderr);
    dup2(kept_, STDERR_FILENO);
    close(kept_);
    close(from_);
  }
  // Waits for the next line.
  std::string Line() const {
    std::string line;
    char c = 0;
    while (read(from_, &c, 1) == 1 && c != '\n') line += c;
    return line;
  }

 private:
  const int kept_;
  int from_ = -1;
};

TEST(ProgressTest, ASilentStepGetsALinePerSecond) {
  const Pipe pipe;
  Progress progress;
  progress.Begin("making memory resident");
  EXPECT_THAT(pipe.Line(), MatchesRegex("making memory resident: [0-9]+ s"));
  progress.Step("checking");
  EXPECT_THAT(pipe.Line(), MatchesRegex("checking(: [0-9]+ s)?"));  // at once only if a second has passed
}

}  // namespace progress_test
}  // namespace gannet::cli
