#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/report/html_page.h"
#include "lab/cli/reproduce_report.h"
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

constexpr char kThroughput[] = "million operations per second";
// A larger difference from the paper needs a reason.
constexpr double kNear = 0.15;

std::vector<std::string> SeriesOf(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const Point& point : experiment.points) {
    if (std::ranges::find(names, point.series) == names.end()) names.push_back(point.series);
  }
  return names;
}

// Points of a line in the order of x, as plots need them.
PlotSeries Sorted(std::string name, int color, bool marks, std::vector<std::pair<double, double>> points) {
  std::ranges::sort(points);
  PlotSeries series{.name = std::move(name), .color = color, .marks = marks};
  for (const auto& [x, y] : points) {
    series.x.push_back(x);
    series.y.push_back(y);
  }
  return series;
}

// One bar for each point, and one below it for the value of the paper.
void AddBars(const Experiment& experiment, HtmlPage* page) {
  const auto rate = [](double mops) { return static_cast<uint64_t>(std::llround(mops * 1e6)); };
  std::vector<PageBar> bars;
  for (const Point& point : experiment.points) {
    const std::string name = absl::StrCat(point.label, ", ", point.series);
    bars.push_back({name, {rate(point.measured.mops), 0}});
    if (point.paper.has_value()) bars.push_back({name, {0, rate(point.paper->value)}});
  }
  page->AddBars("Operations per second", "", {"ours", "the paper's"}, bars);
}

void AddTimeline(const Experiment& experiment, HtmlPage* page) {
  PlotView rates{.name = "throughput"};
  PlotView calls{.name = "calls"};
  for (const Point& point : experiment.points) {
    PlotSeries rate{.name = point.series};
    PlotSeries share{.name = point.series};
    for (const Moment& moment : point.measured.timeline) {
      rate.x.push_back(moment.milliseconds);
      rate.y.push_back(moment.mops);
      if (!moment.calls.has_value()) continue;
      share.x.push_back(moment.milliseconds);
      share.y.push_back(100 * *moment.calls);
    }
    rates.series.push_back(std::move(rate));
    calls.series.push_back(std::move(share));
  }
  page->AddPlot({.title = "Throughput over time",
                 .x_label = experiment.x_axis,
                 .x_name = "ms",
                 .y_label = kThroughput,
                 .views = {std::move(rates)}});
  page->AddPlot({.title = "Accesses by calls over time",
                 .x_label = experiment.x_axis,
                 .x_name = "ms",
                 .y_label = "of accesses",
                 .y_unit = "%",
                 .views = {std::move(calls)}});
}

// Latencies are points without lines: more load may bring less throughput, and then a line would go back.
void AddLines(const Experiment& experiment, HtmlPage* page) {
  const bool latency = experiment.chart == Chart::kThroughputLatency;
  PlotView view;
  const std::vector<std::string> names = SeriesOf(experiment);
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<std::pair<double, double>> ours;
    std::vector<std::pair<double, double>> paper;
    for (const Point& point : experiment.points) {
      if (point.series != names[i]) continue;
      const Measured& m = point.measured;
      ours.emplace_back(latency ? m.mops : point.x, latency ? m.p50_us : m.mops);
      // The paper's text has too few latencies for a plot.
      if (point.paper.has_value() && !latency) paper.emplace_back(point.x, point.paper->value);
    }
    const int color = static_cast<int>(i);
    view.series.push_back(Sorted(names[i], color, /*marks=*/false, std::move(ours)));
    view.series.push_back(Sorted(names[i] + ", the paper's", color, /*marks=*/true, std::move(paper)));
  }
  page->AddPlot({.title = latency ? "Latency by throughput" : "Throughput",
                 .x_label = latency ? kThroughput : experiment.x_axis,
                 .x_name = latency ? "M/s" : experiment.x_axis,
                 .y_label = latency ? "median latency" : kThroughput,
                 .y_unit = latency ? "us" : "",
                 .points = latency,
                 .views = {std::move(view)}});
}

std::string Percent(double share) {
  return absl::StrFormat("%.0f%%", 100 * share);
}

void AddPoints(const Experiment& experiment, HtmlPage* page) {
  std::vector<std::vector<std::string>> rows = {{"series", "point", "M/s", "paper", "ratio", "p50 us", "p99 us",
                                                 "READs", "bytes", "CPU", "NIC", "link", "bound by", "paper's source"}};
  for (const Point& point : experiment.points) {
    const Measured& m = point.measured;
    const bool measured = m.mops != 0;
    std::string paper;
    std::string ratio;
    if (point.paper.has_value()) {
      paper = absl::StrFormat("%.3g", point.paper->value);
      if (const std::optional<double> near = m.IfMeasured(m.mops / point.paper->value); near.has_value())
        ratio = absl::StrFormat("%s%.2f", std::abs(*near - 1) > kNear ? "!" : "", *near);
    }
    rows.push_back({point.series, point.label, absl::StrFormat("%.2f", m.mops), paper, ratio,
                    m.p50().has_value() ? absl::StrFormat("%.1f", m.p50_us) : "",
                    m.p50().has_value() ? absl::StrFormat("%.1f", m.p99_us) : "",
                    measured ? absl::StrFormat("%.2f", m.reads_per_operation) : "",
                    measured ? absl::StrFormat("%.0f", m.bytes_per_operation) : "", Percent(m.server_cpu),
                    Percent(m.server_nic), Percent(m.server_link), measured ? BoundOf(m) : kNotMeasured,
                    point.paper.has_value() ? point.paper->source : ""});
  }
  page->AddTable("Points", absl::StrJoin(experiment.notes, " "), rows, {0, 1, 12, 13});
}

void AddClaims(const std::vector<Claim>& claims, const std::string& reference, HtmlPage* page) {
  if (claims.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"claim", "ours", reference, "difference", "source", "why we differ"}};
  for (const Claim& claim : claims) {
    rows.push_back({claim.what, claim.ours.has_value() ? absl::StrFormat("%.2f", *claim.ours) : kNotMeasured,
                    absl::StrFormat("%.2f", claim.paper.value),
                    claim.ours.has_value() ? absl::StrFormat("%+.0f%%", *claim.difference_percent()) : "",
                    claim.paper.source, claim.note});
  }
  page->AddTable(absl::StrCat("Compared with the ", reference), "", rows, {0, 4, 5});
}

void AddSummary(const experiments::SummaryTable& table, HtmlPage* page) {
  std::vector<std::vector<std::string>> rows = {{table.rows_are}};
  std::vector<std::string> notes;
  for (const auto& column : table.columns) {
    rows.front().push_back(column.head);
    notes.push_back(absl::StrCat(column.head, ": ", column.what, "."));
  }
  for (const auto& [name, values] : table.rows) {
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{name});
    for (size_t i = 0; i < values.size(); ++i) {
      row.push_back(values[i].has_value() ? absl::StrFormat("%.*f", table.columns[i].digits, *values[i]) : "-");
    }
  }
  notes.insert(notes.end(), table.notes.begin(), table.notes.end());
  page->AddTable(absl::StrCat("By ", table.rows_are), absl::StrJoin(notes, " "), rows, {0});
}

}  // namespace

std::string ToHtml(const experiments::Report& report) {
  HtmlPage page(
      absl::StrCat("The experiments of ", report.system, ", on a simulated rack"),
      absl::StrCat(
          report.setting,
          ". Crosses, and second bars, are the paper's values, where its text gives one. READs and bytes are "
          "of one operation; CPU, NIC and link are busy shares of the server. Ratios to the paper's value that "
          "differ by more than 15% are marked; the notes of the tables say why."));
  if (report.table.has_value()) AddSummary(*report.table, &page);
  AddClaims(report.claims, report.reference, &page);
  for (const Experiment& experiment : report.experiments) {
    page.AddHeading(experiment.title, experiment.id);
    if (experiment.chart == Chart::kBars) {
      AddBars(experiment, &page);
    } else {
      experiment.chart == Chart::kTimeline ? AddTimeline(experiment, &page) : AddLines(experiment, &page);
    }
    AddPoints(experiment, &page);
  }
  HtmlPage::Facts model;
  for (const std::string& name : report.nics) {
    model.emplace_back(absl::StrCat("NIC ", name), std::string(rdma::sim::FindNicProfile(name)->source));
  }
  model.emplace_back("CPUs", "docs/simulation.md says what their work costs, and where each number is from");
  page.AddFacts({{"What the model is made of", model}});
  return page.ToString();
}

}  // namespace gannet::cli
