// A database is created only in a directory of its own.
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "txn/database.h"

namespace gannet::txn {
namespace foreign_files_test {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(ForeignFilesTest, ADirectoryWithOtherFilesIsRefusedAndUnchanged) {
  const fs::path directory = fs::path(::testing::TempDir()) / "gannet_foreign_files";
  fs::remove_all(directory);
  fs::create_directories(directory / "lost+found");
  for (const char* const name : {"a.txt", "b.txt", "c.txt", "d.txt"}) std::ofstream(directory / name) << "mine";
  const DatabaseOptions options = {.create_if_missing = true, .memory_bytes = uint64_t{64} << 20};
  const auto refused = Database::Open(directory.string(), options);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr(", ...), and a database needs a directory of its own"));
  for (const char* const made : {"MANIFEST", "LOCK"}) EXPECT_FALSE(fs::exists(directory / made)) << made;
  for (const char* const name : {"a.txt", "b.txt", "c.txt", "d.txt"}) fs::remove(directory / name);
  for (int again = 0; again < 2; ++again) {  // its own files are none of others
    const auto made = Database::Open(directory.string(), options);
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE((*made)->Start().ok());
    ASSERT_TRUE((*made)->Close().ok());
    std::ofstream(directory / "later.txt") << "what comes later is not refused";
  }
  fs::remove_all(directory);
}

}  // namespace foreign_files_test
}  // namespace gannet::txn
