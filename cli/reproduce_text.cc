#include <string>

#include "absl/strings/str_format.h"
#include "cli/reproduce_report.h"
#include "cli/table.h"

namespace gannet::cli {
namespace {

using experiments::BoundOf;
using experiments::Chart;
using experiments::Claim;
using experiments::Experiment;
using experiments::Measured;
using experiments::Moment;
using experiments::Point;

std::string TableOf(const Experiment& experiment) {
  Table table(
      {"series, point", "M/s", "paper", "ratio", "p50 us", "READs", "bytes", "server CPU", "NIC", "link", "bound by"});
  for (const Point& point : experiment.points) {
    const Measured& m = point.measured;
    table.Add({point.series + ", " + point.label, absl::StrFormat("%.2f", m.mops),
               point.paper.has_value() ? absl::StrFormat("%.3g", point.paper->value) : "-",
               point.paper.has_value() ? absl::StrFormat("%.2f", m.mops / point.paper->value) : "-",
               absl::StrFormat("%.1f", m.p50_us), absl::StrFormat("%.2f", m.reads_per_operation),
               absl::StrFormat("%.0f", m.bytes_per_operation), absl::StrFormat("%.0f%%", 100 * m.server_cpu),
               absl::StrFormat("%.0f%%", 100 * m.server_nic), absl::StrFormat("%.0f%%", 100 * m.server_link),
               BoundOf(m)});
  }
  return table.ToString();
}

// A line for each point of a timeline.
std::string TimelinesOf(const Experiment& experiment) {
  std::string text;
  if (experiment.chart != Chart::kTimeline) return text;
  for (const Point& point : experiment.points) {
    text += "  M/s over time, " + point.series + ":";
    for (const Moment& moment : point.measured.timeline) text += absl::StrFormat(" %.1f", moment.mops);
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

}  // namespace

std::string ToText(const experiments::Report& report) {
  std::string text = report.setting + "\n";
  for (const Experiment& experiment : report.experiments) {
    text += absl::StrFormat("\n%s\n%s%s%s", experiment.title, TableOf(experiment), TimelinesOf(experiment),
                            SourcesOf(experiment));
  }
  if (report.claims.empty()) return text;
  Table table({"claim", "ours", "paper", "difference"});
  std::string notes;
  for (const Claim& claim : report.claims) {
    table.Add({claim.what, absl::StrFormat("%.2f", claim.ours), absl::StrFormat("%.2f", claim.paper.value),
               absl::StrFormat("%+.0f%%", claim.difference_percent())});
    notes += absl::StrFormat("  %s: %s%s%s\n", claim.what, claim.paper.source,
                             claim.note.empty() ? "" : ". We differ: ", claim.note);
  }
  return text + "\n" + table.ToString() + notes;
}

}  // namespace gannet::cli
