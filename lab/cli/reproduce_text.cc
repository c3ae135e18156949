#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/common/table.h"
#include "lab/cli/reproduce_report.h"

namespace gannet::cli {
namespace {

using experiments::BoundOf;
using experiments::Chart;
using experiments::Claim;
using experiments::Experiment;
using experiments::Measured;
using experiments::Moment;
using experiments::Point;

// The number, or "-" if there is none.
std::string Told(const absl::FormatSpec<double>& format, std::optional<double> number) {
  return number.has_value() ? absl::StrFormat(format, *number) : "-";
}

std::string Told(int digits, std::optional<double> number) {
  return number.has_value() ? absl::StrFormat("%.*f", digits, *number) : "-";
}

std::string TableOf(const Experiment& experiment) {
  const bool calls =
      std::ranges::any_of(experiment.points, [](const Point& point) { return point.measured.calls.has_value(); });
  std::vector<std::string> head = {"series, point", "M/s",        "paper", "ratio", "p50 us",  "READs",
                                   "bytes",         "server CPU", "NIC",   "link",  "bound by"};
  if (calls) head.emplace_back("calls");
  if (experiment.shows_cache) head.emplace_back("cache B/key");
  Table table(head);
  for (const Point& point : experiment.points) {
    const Measured& m = point.measured;
    std::vector<std::string> row = {
        point.series + ", " + point.label,
        absl::StrFormat("%.2f", m.mops),
        point.paper.has_value() ? absl::StrFormat("%.3g", point.paper->value) : "-",
        point.paper.has_value() ? Told("%.2f", m.IfMeasured(m.mops / point.paper->value)) : "-",
        Told("%.1f", m.p50()),
        Told("%.2f", m.IfMeasured(m.reads_per_operation)),
        Told("%.0f", m.IfMeasured(m.bytes_per_operation)),
        absl::StrFormat("%.0f%%", 100 * m.server_cpu),
        absl::StrFormat("%.0f%%", 100 * m.server_nic),
        absl::StrFormat("%.0f%%", 100 * m.server_link),
        m.mops == 0 ? kNotMeasured : BoundOf(m)};
    if (calls) row.push_back(m.calls.has_value() ? absl::StrFormat("%.0f%%", 100 * *m.calls) : "-");
    if (experiment.shows_cache) {
      row.push_back(absl::StrFormat("%.2f", m.cache_bytes / static_cast<double>(point.options.keys)));
    }
    table.Add(row);
  }
  return table.ToString();
}

// Returns the timeline in at most `most` pieces of about equal length, so that a line of text has room for them.
std::vector<Moment> Joined(const std::vector<Moment>& timeline, size_t most) {
  const size_t pieces = std::min(most, timeline.size());
  std::vector<Moment> joined;
  for (size_t i = 0; i < pieces; ++i) {
    const size_t begin = i * timeline.size() / pieces;
    const size_t end = (i + 1) * timeline.size() / pieces;
    Moment sum;
    for (size_t k = begin; k < end; ++k) {
      sum.mops += timeline[k].mops / static_cast<double>(end - begin);
      if (timeline[k].calls.has_value()) {
        sum.calls = sum.calls.value_or(0) + *timeline[k].calls / static_cast<double>(end - begin);
      }
    }
    sum.milliseconds = timeline[end - 1].milliseconds;
    joined.push_back(sum);
  }
  return joined;
}

// Lines for each point of a timeline.
std::string TimelinesOf(const Experiment& experiment) {
  constexpr size_t kMost = 32;
  std::string text;
  if (experiment.chart != Chart::kTimeline) return text;
  for (const Point& point : experiment.points) {
    const std::vector<Moment> timeline = Joined(point.measured.timeline, kMost);
    if (timeline.empty()) continue;
    const int digits = timeline.front().mops < 10 ? 2 : 1;
    absl::StrAppendFormat(&text, "  M/s over %.4g ms, %s:", timeline.back().milliseconds, point.series);
    for (const Moment& moment : timeline) absl::StrAppendFormat(&text, " %.*f", digits, moment.mops);
    text += "\n";
    if (!timeline.front().calls.has_value()) continue;
    text += "  % of accesses by calls, " + point.series + ":";
    for (const Moment& moment : timeline) absl::StrAppendFormat(&text, " %.0f", 100 * moment.calls.value_or(0));
    text += "\n";
  }
  return text;
}

std::string SourcesOf(const Experiment& experiment) {
  std::string text;
  for (const Point& point : experiment.points) {
    if (!point.paper.has_value()) continue;
    text += absl::StrFormat("  paper, %s, %s: %.3g (%s)\n", point.series, point.label, point.paper->value,
                            point.paper->source);
  }
  for (const std::string& note : experiment.notes) text += "  " + note + "\n";
  return text;
}

std::string TextOf(const experiments::SummaryTable& summary) {
  std::vector<std::string> head = {summary.rows_are};
  std::string notes;
  for (const auto& column : summary.columns) head.push_back(column.head);
  Table table(head);
  for (const auto& [name, values] : summary.rows) {
    std::vector<std::string> row = {name};
    for (size_t i = 0; i < values.size(); ++i) row.push_back(Told(summary.columns[i].digits, values[i]));
    table.Add(row);
  }
  for (const auto& column : summary.columns) notes += absl::StrFormat("  %s: %s\n", column.head, column.what);
  for (const std::string& note : summary.notes) notes += "  " + note + "\n";
  return table.ToString() + notes;
}

}  // namespace

std::string ToText(const experiments::Report& report) {
  std::string text = report.setting + "\n";
  if (report.table.has_value()) return text + "\n" + TextOf(*report.table);
  for (const Experiment& experiment : report.experiments) {
    text += absl::StrFormat("\n%s\n%s%s%s", experiment.title, TableOf(experiment), TimelinesOf(experiment),
                            SourcesOf(experiment));
  }
  if (report.claims.empty()) return text;
  Table table({"claim", "ours", report.reference, "difference"});
  std::string notes;
  for (const Claim& claim : report.claims) {
    table.Add({claim.what, claim.ours.has_value() ? absl::StrFormat("%.2f", *claim.ours) : kNotMeasured,
               absl::StrFormat("%.2f", claim.paper.value), Told("%+.0f%%", claim.difference_percent())});
    notes += absl::StrFormat("  %s: %s%s%s\n", claim.what, claim.paper.source,
                             claim.note.empty() ? "" : ". We differ: ", claim.note);
  }
  return text + "\n" + table.ToString() + notes;
}

}  // namespace gannet::cli
