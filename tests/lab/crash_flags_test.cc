// The flags of `gannet crashtest` and of its child.
#include "lab/cli/crash_flags.h"

#include <string>

#include "cli/help/app_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/cli/app.h"
#include "tests/cli/declared_flags.h"

namespace gannet::cli {
namespace crash_flags_test {

TEST(CrashFlags, AreInHelpReportAndDocs) {
  scenario::crash::CrashOptions options;
  const Flags flags = CrashFlags(&options);
  ExpectReadAsWritten(flags);
  int exit_code = 0;
  const auto app = MakeLabApp("gannet", &exit_code);
  ExpectInHelpAndDocs(flags, HelpText(*app->get_subcommand("crashtest"), "gannet"), RowsOfDocs(flags, "`crashtest`"));
}

TEST(CrashFlags, OfAChildAreReadAsTheyAreWritten) {
  scenario::crash::ChildOptions child;
  ExpectReadAsWritten(CrashChildFlags(&child));
}

TEST(CrashFlags, OfAReplayNameNoDirectory) {
  scenario::crash::CrashOptions options;
  options.directory = "here";
  EXPECT_EQ(CrashReplayCommand(options, 4),
            "gannet crashtest --cycles 5 --seed 1 --workload kv --mode sync --medium file --ordered-index xstore "
            "--nodes 1 --threads 2 --coroutines 8 --kill-point random --cycle-time 150ms");
}

}  // namespace crash_flags_test
}  // namespace gannet::cli
