#include "cli/report/bench_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/operation_report.h"

namespace gannet::cli {
namespace bench_text_test {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(HistogramsTextTest, HasTwoRangesForEachPowerOfTwoAndNoEmptyOnes) {
  // 4096 ns to 6143 ns, and 6144 ns to 8191 ns, and nothing up to a millisecond.
  const bench::OperationReport report = ReportOf({4096, 5000, 6000, 6144, 1'000'000});
  const std::string text = HistogramsText({{"payment", &report}}, 80);
  EXPECT_THAT(text, HasSubstr("latency of payment"));
  EXPECT_THAT(text, ContainsRegex(" 4\\.10 -- 6\\.14 +3 +60\\.00 +60\\.00  #+\n"));
  EXPECT_THAT(text, ContainsRegex(" 6\\.14 -- 8\\.19 +1 +20\\.00 +80\\.00  #+\n"));
  EXPECT_THAT(text, ContainsRegex(" 786 -- 1049 +1 +20\\.00 +100\\.00  #+\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 5) << text;
  for (const int width : {40, 60, 80, 200}) {
    for (const auto& line : absl::StrSplit(HistogramsText({{"payment", &report}}, width), '\n')) {
      EXPECT_LE(line.size(), static_cast<size_t>(std::max(width, 57))) << line;
    }
  }
}

TEST(HistogramsTextTest, KindsWithoutOperationsAreLeftOut) {
  const bench::OperationReport none;
  const bench::OperationReport tiny = ReportOf({0, 1, 2, 3});
  EXPECT_EQ(HistogramsText({{"scan", &none}}, 80), "");
  const std::string text = HistogramsText({{"scan", &none}, {"read", &tiny}}, 80);
  EXPECT_THAT(text, Not(HasSubstr("scan")));
  EXPECT_THAT(text, HasSubstr("100.00"));
}

TEST(VerbsTextTest, LeavesOutZerosAndSaysWhenThereIsNothing) {
  bench::OperationReport reads;
  reads.verb_samples = 2;
  reads.verbs.reads = 3;
  bench::OperationReport nothing;
  nothing.verb_samples = 2;
  rdma::VerbCounters sums;
  sums.reads = 3;
  const std::string text = VerbsText("operation", {{"read", &reads}, {"scan", &nothing}}, sums, 100);
  EXPECT_THAT(text, ContainsRegex("read +1\\.50"));
  EXPECT_THAT(text, Not(HasSubstr("scan")));
  EXPECT_THAT(VerbsText("operation", {{"scan", &nothing}}, {}, 100), HasSubstr("verbs: none"));
}

}  // namespace bench_text_test
}  // namespace gannet::cli
