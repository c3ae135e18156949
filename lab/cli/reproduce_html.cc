#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "lab/cli/reproduce_report.h"
#include "lab/cli/svg.h"
#include "rdma/sim/nic_profile.h"

namespace gannet::cli {
namespace {

using experiments::BoundOf;
using experiments::Chart;
using experiments::Claim;
using experiments::Experiment;
using experiments::Measured;
using experiments::Moment;
using experiments::Point;

// A larger difference from the paper needs a reason.
constexpr double kNear = 0.15;

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>Gannet: the experiments of $0</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
h1, h2 { line-height: 1.2; }
div.wide { overflow-x: auto; }
svg { display: block; width: 100%; min-width: 40rem; height: auto; font-size: 12px; }
svg .grid { stroke: #ddd; }
svg .paper { stroke: #000; stroke-width: 3; fill: none; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 10px 2px 0; text-align: right; border-bottom: 1px solid #eee; vertical-align: top; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
table.points td { white-space: nowrap; }
table.points td:last-child { white-space: normal; min-width: 10rem; }
table.claims td { min-width: 8rem; }
table.claims td:nth-child(n+2):nth-child(-n+4) { min-width: 0; }
table.claims td:last-child { min-width: 20rem; }
td.far { font-weight: bold; }
p.note { color: #555; font-size: 13px; margin: 0.3rem 0; }
</style>
</head>
<body>
)";

std::vector<std::string> Distinct(const Experiment& experiment, std::string Point::*member) {
  std::vector<std::string> values;
  for (const Point& point : experiment.points) {
    if (std::ranges::find(values, point.*member) == values.end()) values.push_back(point.*member);
  }
  return values;
}

std::string HintOf(const Point& point) {
  const Measured& m = point.measured;
  std::string hint = absl::StrFormat("%s, %s: ", point.series, point.label);
  if (m.mops == 0) return hint + kNotMeasured;
  absl::StrAppendFormat(&hint, "%.2f M/s, ", m.mops);
  if (m.p50().has_value()) absl::StrAppendFormat(&hint, "median %.1f us, ", m.p50_us);
  absl::StrAppendFormat(&hint, "bound by %s", BoundOf(m));
  if (point.paper.has_value()) hint += absl::StrFormat("; the paper: %.3g", point.paper->value);
  return hint;
}

std::string Bars(const Experiment& experiment) {
  const std::vector<std::string> groups = Distinct(experiment, &Point::label);
  std::vector<BarSeries> series;
  for (const std::string& name : Distinct(experiment, &Point::series)) {
    BarSeries bars{name, std::vector<std::optional<Bar>>(groups.size())};
    for (const Point& point : experiment.points) {
      if (point.series != name) continue;
      Bar bar{point.measured.mops, std::nullopt, HintOf(point)};
      if (point.paper.has_value()) bar.paper = point.paper->value;
      bars.bars[static_cast<size_t>(std::ranges::find(groups, point.label) - groups.begin())] = std::move(bar);
    }
    series.push_back(std::move(bars));
  }
  return PlotBars({experiment.x_axis, "million operations per second"}, groups, series);
}

std::string Timeline(const Experiment& experiment) {
  std::vector<Line> rates;
  std::vector<Line> calls;
  for (const Point& point : experiment.points) {
    Line rate{point.series, {}, {}};
    Line share{point.series, {}, {}};
    for (const Moment& moment : point.measured.timeline) {
      rate.places.push_back({moment.milliseconds, moment.mops,
                             absl::StrFormat("%s: %.2f ms, %.2f M/s", point.series, moment.milliseconds, moment.mops)});
      if (!moment.calls.has_value()) continue;
      const double percent = 100 * *moment.calls;
      share.places.push_back({moment.milliseconds, percent,
                              absl::StrFormat("%s: %.2f ms, %.1f%%", point.series, moment.milliseconds, percent)});
    }
    rates.push_back(std::move(rate));
    if (!share.places.empty()) calls.push_back(std::move(share));
  }
  std::string plots = PlotLines({experiment.x_axis, "million operations per second"}, rates);
  if (!calls.empty()) plots += PlotLines({experiment.x_axis, "% of accesses by calls"}, calls);
  return plots;
}

std::string Lines(const Experiment& experiment) {
  const bool latency = experiment.chart == Chart::kThroughputLatency;
  std::vector<Line> lines;
  for (const std::string& name : Distinct(experiment, &Point::series)) {
    Line line{name, {}, {}};
    for (const Point& point : experiment.points) {
      if (point.series != name) continue;
      const Measured& m = point.measured;
      line.places.push_back({latency ? m.mops : point.x, latency ? m.p50_us : m.mops, HintOf(point)});
      // The paper's text has too few latencies for a plot.
      if (point.paper.has_value() && !latency) line.paper.push_back({point.x, point.paper->value, HintOf(point)});
    }
    lines.push_back(std::move(line));
  }
  if (!latency) return PlotLines({experiment.x_axis, "million operations per second"}, lines);
  return PlotLines({"million operations per second", "median latency, us"}, lines);
}

std::string PlotOf(const Experiment& experiment) {
  if (experiment.chart == Chart::kBars) return Bars(experiment);
  return experiment.chart == Chart::kTimeline ? Timeline(experiment) : Lines(experiment);
}

// "ours / paper", marked if they differ much.
std::string RatioCell(std::optional<double> ratio) {
  if (!ratio.has_value()) return "<td></td>";
  return absl::StrFormat("<td%s>%.2f</td>", std::abs(*ratio - 1) > kNear ? " class=\"far\"" : "", *ratio);
}

// The cells of latencies, READs and bytes.
std::string OperationCells(const Measured& m) {
  std::string cells =
      m.p50().has_value() ? absl::StrFormat("<td>%.1f</td><td>%.1f</td>", m.p50_us, m.p99_us) : "<td></td><td></td>";
  if (m.mops == 0) return cells + "<td></td><td></td>";
  absl::StrAppendFormat(&cells, "<td>%.2f</td><td>%.0f</td>", m.reads_per_operation, m.bytes_per_operation);
  return cells;
}

std::string TableOf(const Experiment& experiment) {
  std::string html =
      "<div class=\"wide\"><table class=\"points\">\n<tr><th>series</th><th "
      "class=\"text\">point</th><th>M/s</th><th>paper</th><th>ratio</th><th>p50 us</th>"
      "<th>p99 us</th><th>READs</th><th>bytes</th><th>CPU</th><th>NIC</th><th>link</th><th class=\"text\">bound by</th>"
      "<th class=\"text\">paper's source</th></tr>\n";
  for (const Point& point : experiment.points) {
    const Measured& m = point.measured;
    const std::string paper = point.paper.has_value() ? absl::StrFormat("<td>%.3g</td>", point.paper->value) +
                                                            RatioCell(m.IfMeasured(m.mops / point.paper->value))
                                                      : "<td></td><td></td>";
    html += absl::StrFormat("<tr><td>%s</td><td class=\"text\">%s</td><td>%.2f</td>%s", EscapeXml(point.series),
                            EscapeXml(point.label), m.mops, paper);
    html += absl::StrFormat(
        "%s<td>%.0f%%</td><td>%.0f%%</td><td>%.0f%%</td><td class=\"text\">%s</td><td class=\"text\">%s</td></tr>\n",
        OperationCells(m), 100 * m.server_cpu, 100 * m.server_nic, 100 * m.server_link,
        m.mops == 0 ? kNotMeasured : BoundOf(m), EscapeXml(point.paper.has_value() ? point.paper->source : ""));
  }
  return html + "</table></div>\n";
}

std::string ClaimsHtml(const std::vector<Claim>& claims, const std::string& reference) {
  if (claims.empty()) return "";
  std::string html = absl::StrFormat(
      "<h2>Compared with the %s</h2>\n<div class=\"wide\"><table "
      "class=\"claims\">\n<tr><th>claim</th><th>ours</th><th>%s</th><th>difference</th>"
      "<th class=\"text\">source</th><th class=\"text\">why we differ</th></tr>\n",
      reference, reference);
  for (const Claim& claim : claims) {
    const std::string ours = claim.ours.has_value() ? absl::StrFormat("%.2f", *claim.ours) : kNotMeasured;
    const std::string difference =
        claim.ours.has_value() ? absl::StrFormat("%+.0f%%", *claim.difference_percent()) : "";
    html += absl::StrFormat(
        "<tr><td>%s</td><td>%s</td><td>%.2f</td><td>%s</td><td class=\"text\">%s</td><td "
        "class=\"text\">%s</td></tr>\n",
        EscapeXml(claim.what), ours, claim.paper.value, difference, EscapeXml(claim.paper.source),
        EscapeXml(claim.note));
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string ToHtml(const experiments::Report& report) {
  std::string html = absl::StrReplaceAll(kHead, {{"$0", EscapeXml(report.system)}});
  html +=
      "<h1>The experiments of " + EscapeXml(report.system) +
      ", on a simulated rack</h1>\n<p>Gannet " GANNET_VERSION ". " + EscapeXml(report.setting) +
      ". In the plots, marks without a dot are the paper's values, where its text gives one. READs and bytes are of "
      "one operation; CPU, NIC and link are busy shares of the server. Ratios to the paper's value in bold differ by "
      "more than 15%; the notes under the tables say why.</p>\n";
  html += ClaimsHtml(report.claims, EscapeXml(report.reference));
  for (const Experiment& experiment : report.experiments) {
    html += "<h2 id=\"" + experiment.id + "\">" + EscapeXml(experiment.title) + "</h2>\n";
    html += "<div class=\"wide\">\n" + PlotOf(experiment) + "</div>\n";
    html += TableOf(experiment);
    for (const std::string& note : experiment.notes) html += "<p class=\"note\">" + EscapeXml(note) + "</p>\n";
  }
  html += "<h2>What the model is made of</h2>\n";
  for (const std::string& name : report.nics) {
    const std::string source(rdma::sim::FindNicProfile(name)->source);
    html += absl::StrFormat("<p class=\"note\">NIC %s: %s</p>\n", name, EscapeXml(source));
  }
  html += "<p class=\"note\">What the CPUs' work costs, and the source of each number: docs/simulation.md.</p>\n";
  return html + "</body>\n</html>\n";
}

}  // namespace gannet::cli
