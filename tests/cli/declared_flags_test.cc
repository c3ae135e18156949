// A flag of a benchmark is declared once: its help, its value in the report, and its place in the docs follow from
// that.
#include "tests/cli/declared_flags.h"

#include <optional>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/help/app_text.h"
#include "cli/report/bench_flags.h"
#include "cli/tpcc/flags.h"
#include "cli/ycsb/flags.h"

namespace gannet::cli {
namespace declared_flags_test {

using ::testing::ElementsAre;

std::string HelpOf(const std::vector<std::string>& words) {
  int exit_code = 0;
  const auto app = MakeApp(&exit_code);
  const CLI::App* command = app.get();
  for (const std::string& word : words) command = command->get_subcommand(word);
  return HelpText(*command, "gannet");
}

TEST(DeclaredFlags, OfTpccAreInHelpReportAndDocs) {
  TpccOptions options;
  const Flags flags = TpccFlags(&options);
  ExpectReadAsWritten(flags);
  ExpectInHelpAndDocs(flags, HelpOf({"tpcc", "run"}), RowsOfDocs(flags, "", kWithDurability, "durability/"));
}

TEST(DeclaredFlags, OfYcsbAreInHelpReportAndDocs) {
  bench::YcsbOptions options;
  YcsbFlags others;
  const Flags flags = FlagsOfYcsb(&options, &others);
  ExpectReadAsWritten(flags);
  ExpectInHelpAndDocs(flags, HelpOf({"ycsb"}), RowsOfDocs(flags));
}

struct Trip {
  int days = 3;
  std::optional<uint64_t> bytes;
  std::string place;
  absl::Duration rest = absl::Milliseconds(5);
  absl::Duration limit = absl::InfiniteDuration();
  bool alone = false;
  bool rain = true;
};

constexpr Marks kFar = 1;
constexpr Marks kDry = 2;

Flags FlagsOf(Trip* trip) {
  Flags flags;
  flags.Group("Where");
  flags.Add("--days", "days", &trip->days, form::Integer(1, 9), "Days", kFar);
  flags.Add("--bytes", "bytes", &trip->bytes, form::kBytesOrZero, "Bytes", kFar | kDry);
  flags.Add("--place", "", &trip->place, form::Path("PLACE"), "Place").Excludes("--bytes");
  flags.Group("How");
  flags.Add("--rest", "rest_us", &trip->rest, form::Time(absl::ZeroDuration()), "Rest");
  flags.Add("--limit", "limit_seconds", &trip->limit, form::Time(absl::ZeroDuration()), "Limit");
  flags.AddSwitch("--alone", "alone", &trip->alone, "Alone");
  flags.AddSwitch("--no-rain", "rain", &trip->rain, "No rain", kDry, false);
  return flags;
}

TEST(DeclaredFlags, ThatAreNotGivenHaveTheirDefaults) {
  Trip trip;
  EXPECT_EQ(FlagsOf(&trip).Values().dump(), R"({"days":3,"rest_us":5000.0,"alone":false,"rain":true})");
  EXPECT_THAT(FlagsOf(&trip).Arguments(), ElementsAre("--days", "3", "--rest", "5ms", "--limit", "inf"));
}

TEST(DeclaredFlags, ThatAreGivenAreReadReportedAndPassedOn) {
  Trip trip;
  const Flags flags = FlagsOf(&trip);
  CLI::App command;
  flags.AddTo(&command);
  command.parse("--bytes 2K --days 4 --days 5 --limit 2s --no-rain");
  EXPECT_EQ(flags.Values().dump(),
            R"({"days":5,"bytes":2048,"rest_us":5000.0,"limit_seconds":2.0,"alone":false,"rain":false})");
  EXPECT_EQ(flags.Values(kFar).dump(), R"({"days":5,"bytes":2048})");
  EXPECT_EQ(flags.Values(kFar, kDry).dump(), R"({"days":5})");
  EXPECT_THAT(flags.Arguments(kDry), ElementsAre("--bytes", "2048", "--no-rain"));
  EXPECT_EQ(flags.FirstGiven(command, kDry), "--bytes");
  EXPECT_EQ(flags.FirstGiven(command, 0), "--days");
  EXPECT_EQ(command.get_option("--rest")->get_group(), "How");
}

TEST(DeclaredFlags, SayWhatTheirValueMustBe) {
  Trip trip;
  const Flags flags = FlagsOf(&trip);
  CLI::App command;
  flags.AddTo(&command);
  try {
    command.parse("--days 10");
    ADD_FAILURE() << "it was accepted";
  } catch (const CLI::ValidationError& error) {
    EXPECT_STREQ(error.what(), "--days 10: must be a whole number from 1 to 9");
  }
  EXPECT_THROW(command.parse("--bytes 1 --place here"), CLI::ExcludesError);
  EXPECT_EQ(trip.days, 3);
  EXPECT_EQ(flags.FirstGiven(command, kFar | kDry), "--bytes");
}

}  // namespace declared_flags_test
}  // namespace gannet::cli
