#include "cli/common/output_file.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "gtest/gtest.h"

namespace gannet::cli {
namespace output_file_test {

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() { std::filesystem::create_directories(directory_); }
  ~OutputFileTest() override { std::filesystem::remove_all(directory_); }

  static std::string ContentsOf(const std::string& path) {
    std::ostringstream contents;
    contents << std::ifstream(path).rdbuf();
    return contents.str();
  }

  const std::string directory_ = ::testing::TempDir() + "/gannet_output_file_test";
  const std::string path_ = directory_ + "/report.json";
};

TEST_F(OutputFileTest, LeavesNothingBehindIfNothingWasWritten) {
  {
    auto file = OutputFile::Open(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_FALSE(std::filesystem::exists(path_)) << "a killed process would leave an empty file";
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(OutputFileTest, KeepsAnOldFileUntilItWrites) {
  std::ofstream(path_) << "a long old report";
  { ASSERT_TRUE(OutputFile::Open(path_).ok()); }
  EXPECT_EQ(ContentsOf(path_), "a long old report");
  auto file = OutputFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write("new").ok());
  EXPECT_EQ(ContentsOf(path_), "new");
}

TEST_F(OutputFileTest, WritesThroughAMovedObject) {
  auto file = OutputFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  {
    OutputFile moved = *std::move(file);
    ASSERT_TRUE(moved.Write("x").ok());
  }
  EXPECT_EQ(ContentsOf(path_), "x");
}

TEST_F(OutputFileTest, SaysWhyItCannotBeWritten) {
  const auto missing = OutputFile::Open(directory_ + "/no/such/directory/report.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("No such file or directory"), std::string::npos) << missing.status();
  EXPECT_FALSE(OutputFile::Open(directory_).ok());
}

}  // namespace output_file_test
}  // namespace gannet::cli
