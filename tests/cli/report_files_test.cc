#include "cli/report/report_files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace report_files_test {

using ::testing::HasSubstr;

class ReportFilesTest : public ::testing::Test {
 protected:
  ~ReportFilesTest() override { std::filesystem::remove(path_); }
  const std::string path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".report";
};

TEST_F(ReportFilesTest, WritesWhatWasAskedForAndNothingElse) {
  StatusOr<ReportFiles> files = ReportFiles::Open({{"--json", path_}, {"--csv", ""}});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->text_stream(), stdout);
  EXPECT_TRUE(files->Write("--json", [] { return std::string("{}"); }).ok());
  bool called = false;
  const auto never = [&called] {
    called = true;
    return std::string("x");
  };
  EXPECT_TRUE(files->Write("--csv", never).ok());
  EXPECT_FALSE(called) << "a form that nobody wants is not made";
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "{}");
}

TEST_F(ReportFilesTest, TheTextMakesRoomForAReportOnStandardOutput) {
  const StatusOr<ReportFiles> files = ReportFiles::Open({{"--json", path_}, {"--csv", "-"}});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->text_stream(), stderr);
}

TEST_F(ReportFilesTest, AFileThatCannotBeWrittenIsNamedWithItsFlag) {
  const Status status = ReportFiles::Open({{"--json", path_}, {"--csv", "/no/such/x.csv"}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--csv /no/such/x.csv"));
  EXPECT_FALSE(std::filesystem::exists(path_)) << "nothing is left of those that could be opened";
}

TEST_F(ReportFilesTest, TwoFlagsDoNotShareAFile) {
  const Status status = ReportFiles::Open({{"--json", "-"}, {"--csv", path_}, {"--html", "-"}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--html -: --json goes there, too"));
}

TEST_F(ReportFilesTest, TwoNamesOfOneFileAreNoTwoFiles) {
  const std::string again = ::testing::TempDir() + "/./" + std::filesystem::path(path_).filename().string();
  for (const bool exists : {false, true}) {
    if (exists) std::ofstream(path_) << "old";
    const Status status = ReportFiles::Open({{"--json", path_}, {"--csv", again}}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("--csv " + again + ": --json goes there, too"));
  }
}

// A trace is written line by line, by its command.
TEST_F(ReportFilesTest, AFileOfTheCallersIsAnotherFileAndNotStandardOutput) {
  const auto error_of = [this](const std::string& trace) {
    return std::string(ReportFiles::Open({{"--json", path_}}, {{"--trace", trace}}).status().message());
  };
  EXPECT_EQ(error_of(path_ + ".trace"), "");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".trace"));
  EXPECT_THAT(error_of(path_), HasSubstr("--trace " + path_ + ": --json goes there, too"));
  EXPECT_THAT(error_of("-"), HasSubstr("--trace -: cannot go to standard output"));
  EXPECT_THAT(error_of("/no/such/trace"), HasSubstr("--trace /no/such/trace: cannot write there"));
}

}  // namespace report_files_test
}  // namespace gannet::cli
