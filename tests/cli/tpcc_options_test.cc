#include <filesystem>
#include <string>
#include <system_error>

#include "cli/tpcc/options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace tpcc_options_test {

using ::testing::HasSubstr;

TpccOptions RunIn(const std::string& directory) {
  TpccOptions options;
  options.database.directory = directory;
  options.database.create_if_missing = true;
  return options;
}

TEST(TpccOptionsTest, TheLogOfADirectoryThatIsToBeMadeIsPrepared) {
  TpccOptions options = RunIn(::testing::TempDir() + "/no/such/directory/");
  const Status complete = Complete(&options);
  ASSERT_TRUE(complete.ok()) << complete;
  EXPECT_GT(options.log_preallocate, 0u);
}

TEST(TpccOptionsTest, TheLogMustFitTheDiskOfADirectoryThatIsToBeMade) {
  std::error_code error;
  const std::filesystem::space_info shm = std::filesystem::space("/dev/shm", error);
  if (error || shm.capacity >= std::filesystem::space(".", error).capacity) GTEST_SKIP() << "there is no smaller disk";
  TpccOptions options = RunIn("/dev/shm/no/such/directory");
  options.log_preallocate = shm.capacity + 1;
  EXPECT_THAT(std::string(Complete(&options).message()), HasSubstr("--log-preallocate"));
}

}  // namespace tpcc_options_test
}  // namespace gannet::cli
