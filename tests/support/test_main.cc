// The main function of test programs. With --source=death_test.cc, which may be repeated, a program runs the tests of
// these source files only: many files are compiled and linked together, because their headers take longer to compile
// than they do, and ctest runs each by itself. --gtest_filter has precedence: the child processes of death tests have
// both.
#include <cstdio>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

constexpr std::string_view kSourceFlag = "--source=";

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// A filter for the tests of one source file; empty if it has none.
std::string FilterFor(std::string_view source) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (BaseName(test.file()) == source) filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kSourceFlag)) continue;
    const std::string_view source = argument.substr(kSourceFlag.size());
    const std::string more = FilterFor(source);
    if (more.empty()) {
      std::fprintf(stderr, "%s: no test is in a file %.*s\n", argv[0], static_cast<int>(source.size()), source.data());
      return 2;
    }
    filter += more;
  }
  if (!filter.empty() && GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, filter);
  return RUN_ALL_TESTS();
}
