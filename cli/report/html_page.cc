#include "cli/report/html_page.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/quantity.h"
#include "base/usable_memory.h"
#include "cli/common/view.h"

namespace gannet::cli {

// Made by gannet_embed (CMakeLists.txt).
namespace embedded {
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;
extern const std::string_view kPlotStyle;
extern const std::string_view kPlotScript;
extern const std::string_view kPlotLicense;
}  // namespace embedded

namespace {

using Json = nlohmann::ordered_json;

// "<section ...><h2>title</h2><p>note</p>".
std::string SectionBegin(std::string_view title, std::string_view note, std::string_view attributes = "") {
  std::string html = absl::StrCat("<section", View(attributes), ">\n<h2>", EscapeHtml(title), "</h2>\n");
  if (!note.empty()) absl::StrAppend(&html, "<p class=\"note\">", EscapeHtml(note), "</p>\n");
  return html;
}

std::string FactsTable(const HtmlPage::Facts& facts) {
  std::string html = "<table class=\"facts\">\n";
  for (const auto& [name, value] : facts) {
    absl::StrAppend(&html, "<tr><td>", EscapeHtml(name), "</td><td class=\"text\">", EscapeHtml(value), "</td></tr>\n");
  }
  return html + "</table>\n";
}

void AddFactsOf(const Json& json, const std::string& prefix, HtmlPage::Facts* facts) {
  for (const auto& [name, value] : json.items()) {
    const std::string full = prefix.empty() ? name : absl::StrCat(prefix, ".", name);
    if (value.is_object()) {
      AddFactsOf(value, full, facts);
    } else if (value.is_string()) {
      if (!value.get<std::string>().empty()) facts->emplace_back(full, value.get<std::string>());
    } else if (value.is_array()) {
      std::vector<std::string> parts;
      for (const Json& each : value) parts.push_back(each.dump());
      facts->emplace_back(full, absl::StrJoin(parts, ", "));
    } else {
      facts->emplace_back(full, value.is_boolean() ? (value.get<bool>() ? "yes" : "no") : value.dump());
    }
  }
}

Json SeriesJson(const PlotSeries& series) {
  Json json = {{"name", series.name}, {"x", series.x}, {"y", series.y}};
  if (series.color >= 0) json["color"] = series.color;
  if (series.marks) json["marks"] = true;
  return json;
}

// Every bar has the same place for each range from the shortest to the longest, also for empty ones: between two ranges
// with operations a line must go down to zero.
PlotSeries DistributionOf(const std::string& name, const std::vector<bench::LatencyRange>& distribution, bool so_far) {
  PlotSeries series{name, {}, {}};
  uint64_t all = 0;
  for (const bench::LatencyRange& range : distribution) all += range.operations;
  uint64_t sum = 0;
  const auto percent = [all](uint64_t n) { return 100 * static_cast<double>(n) / static_cast<double>(all); };
  const auto add = [&series](double x, double y) {
    series.x.push_back(x);
    series.y.push_back(y);
  };
  double last_to = 0;
  for (const bench::LatencyRange& range : distribution) {
    sum += range.operations;
    if (range.from_us <= 0) continue;  // a logarithmic axis has no zero
    if (so_far) {
      add(range.to_us, percent(sum));
      continue;
    }
    if (range.from_us > last_to * (1 + 1e-9)) add(last_to == 0 ? range.from_us : last_to, 0);
    if (last_to > 0 && range.from_us > last_to * (1 + 1e-9) && range.from_us > series.x.back()) add(range.from_us, 0);
    add((range.from_us + range.to_us) / 2, percent(range.operations));
    last_to = range.to_us;
  }
  if (!so_far && last_to > 0) add(last_to, 0);
  return series;
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  return absl::StrReplaceAll(View(text), {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

void HtmlPage::AddTile(std::string_view value, std::string_view what, Mood mood) {
  const char* const extra = mood == Mood::kGood ? " good" : mood == Mood::kBad ? " bad" : "";
  absl::StrAppend(&tiles_, "<div class=\"tile", extra, "\"><b>", EscapeHtml(value), "</b><span>", EscapeHtml(what),
                  "</span></div>\n");
}

void HtmlPage::AddWarning(std::string_view text) {
  absl::StrAppend(&warnings_, "<p class=\"warning\">", EscapeHtml(text), "</p>\n");
}

void HtmlPage::AddHeading(std::string_view title, std::string_view id) {
  absl::StrAppend(&sections_, "<h2 class=\"part\" id=\"", EscapeHtml(id), "\">", EscapeHtml(title), "</h2>\n");
}

void HtmlPage::AddPlot(Plot plot) {
  Json views = Json::array();
  for (PlotView& view : plot.views) {
    std::erase_if(view.series, [](const PlotSeries& series) { return series.x.empty(); });
    if (view.series.empty()) continue;
    Json series = Json::array();
    for (const PlotSeries& each : view.series) series.push_back(SeriesJson(each));
    views.push_back({{"name", view.name}, {"series", std::move(series)}});
  }
  if (views.empty()) return;
  const std::string id = absl::StrCat("plot-", plots_.size() + 1);
  absl::StrAppend(&sections_, SectionBegin(plot.title, plot.note, absl::StrCat(" id=\"", id, "\"")),
                  "<div class=\"views\"></div>\n<div class=\"chart\"></div>\n</section>\n");
  plots_.push_back({{"id", id},
                    {"x_label", plot.x_label},
                    {"x_name", plot.x_name},
                    {"x_unit", plot.x_unit},
                    {"y_label", plot.y_label},
                    {"y_unit", plot.y_unit},
                    {"log_x", plot.log_x},
                    {"log_y", plot.log_y},
                    {"steps", plot.steps},
                    {"points", plot.points},
                    {"views", std::move(views)}});
}

void HtmlPage::AddBars(std::string_view title, std::string_view note, const std::vector<std::string>& parts,
                       const std::vector<PageBar>& bars) {
  uint64_t longest = 0;
  for (const PageBar& bar : bars) {
    uint64_t sum = 0;
    for (const uint64_t part : bar.parts) sum += part;
    longest = std::max(longest, sum);
  }
  if (longest == 0) return;
  std::string html = SectionBegin(title, note);
  if (parts.size() > 1) {
    html += "<div class=\"keys\">";
    for (size_t i = 0; i < parts.size(); ++i) {
      absl::StrAppend(&html, "<span><i style=\"background:var(--s", i, ")\"></i>", EscapeHtml(parts[i]), "</span>");
    }
    html += "</div>\n";
  }
  html += "<div class=\"bars\">\n";
  for (const PageBar& bar : bars) {
    std::string pieces;
    std::vector<std::string> values;
    uint64_t sum = 0;
    for (size_t i = 0; i < bar.parts.size(); ++i) {
      sum += bar.parts[i];
      values.push_back(WithCommas(bar.parts[i]));
      // A part that exists is seen, however small it is.
      if (bar.parts[i] == 0) continue;
      const double width = 100 * static_cast<double>(bar.parts[i]) / static_cast<double>(longest);
      absl::StrAppendFormat(&pieces,
                            "<i style=\"width:%.3f%%;min-width:2px;background:var(--s%d)\" title=\"%s: %s\"></i>",
                            width, i, EscapeHtml(parts[i]), WithCommas(bar.parts[i]));
    }
    if (sum == 0) continue;
    absl::StrAppend(&html, "<span>", EscapeHtml(bar.name), "</span><span class=\"bar\">", pieces,
                    "</span><span class=\"value\">", absl::StrJoin(values, " / "), "</span>\n");
  }
  absl::StrAppend(&sections_, html, "</div>\n</section>\n");
}

std::string HtmlPage::Micros(double us) {
  return absl::StrFormat("%.1f", us);
}

void HtmlPage::AddTable(std::string_view title, std::string_view note,
                        const std::vector<std::vector<std::string>>& rows, const std::vector<size_t>& text_columns) {
  std::string html = SectionBegin(title, note) + "<div class=\"wide\"><table class=\"facts\">\n";
  for (size_t row = 0; row < rows.size(); ++row) {
    html += "<tr>";
    const char* const tag = row == 0 ? "th" : "td";
    for (size_t column = 0; column < rows[row].size(); ++column) {
      std::string_view cell = rows[row][column];
      std::vector<std::string> classes;
      if (std::ranges::find(text_columns, column) != text_columns.end()) classes.emplace_back("text");
      if (cell.starts_with('!')) {
        cell.remove_prefix(1);
        classes.emplace_back("bad");
      }
      const std::string attribute = classes.empty() ? "" : absl::StrCat(" class=\"", absl::StrJoin(classes, " "), "\"");
      absl::StrAppend(&html, "<", tag, attribute, ">", EscapeHtml(cell), "</", tag, ">");
    }
    html += "</tr>\n";
  }
  absl::StrAppend(&sections_, html, "</table></div>\n</section>\n");
}

void HtmlPage::AddFacts(const std::vector<std::pair<std::string, Facts>>& tables) {
  std::string html = "<div class=\"columns\">\n";
  for (const auto& [title, facts] : tables) {
    if (!facts.empty()) absl::StrAppend(&html, SectionBegin(title, ""), FactsTable(facts), "</section>\n");
  }
  absl::StrAppend(&sections_, html, "</div>\n");
}

std::string HtmlPage::ToString() const {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n<title>",
      EscapeHtml(title_), "</title>\n<style>\n");
  if (!plots_.empty()) absl::StrAppend(&html, View(embedded::kPlotStyle), "\n");
  absl::StrAppend(&html, View(embedded::kPageStyle), "</style>\n</head>\n<body>\n<main>\n<header>\n<h1>",
                  EscapeHtml(title_), "</h1>\n<p>", EscapeHtml(subtitle_), "</p>\n", warnings_, "</header>\n");
  if (!tiles_.empty()) absl::StrAppend(&html, "<div class=\"tiles\">\n", tiles_, "</div>\n");
  if (!plots_.empty()) html += "<noscript><p class=\"warning\">The plots need JavaScript.</p></noscript>\n";
  absl::StrAppend(&html, sections_, "<footer>Made by gannet ", GANNET_VERSION, ": <code>", EscapeHtml(CommandLine()),
                  "</code></footer>\n</main>\n");
  if (!plots_.empty()) {
    const std::string data =
        Json{{"plots", plots_}}.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
    absl::StrAppend(&html, "<script type=\"application/json\" id=\"data\">",
                    absl::StrReplaceAll(data, {{"<", "\\u003c"}}), "</script>\n<script>\n/*\n",
                    View(embedded::kPlotLicense), "*/\n", View(embedded::kPlotScript), "\n</script>\n<script>\n",
                    View(embedded::kPageScript), "</script>\n");
  }
  return html + "</body>\n</html>\n";
}

std::string TimeText(double us) {
  if (us >= 1e6) return absl::StrFormat("%.1f s", us * 1e-6);
  if (us >= 1e3) return absl::StrFormat("%.1f ms", us * 1e-3);
  return absl::StrFormat("%.1f µs", us);
}

HtmlPage::Facts FactsOf(const Json& json) {
  HtmlPage::Facts facts;
  AddFactsOf(json, "", &facts);
  return facts;
}

HtmlPage::Facts MachineFacts() {
  HtmlPage::Facts facts;
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    facts.emplace_back("processor", std::string(absl::StripAsciiWhitespace(line.substr(line.find(':') + 1))));
    break;
  }
  facts.emplace_back("processors in use", std::to_string(sysconf(_SC_NPROCESSORS_ONLN)));
  facts.emplace_back("memory", FormatBytes(UsableMemoryBytes()));
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    if (line.rfind("PRETTY_NAME=", 0) != 0) continue;
    facts.emplace_back("system", std::string(absl::StrReplaceAll(line.substr(12), {{"\"", ""}})));
  }
  struct utsname name = {};
  if (uname(&name) == 0) facts.emplace_back("kernel", absl::StrCat(name.sysname, " ", name.release));
  facts.emplace_back("written at", absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::Now(), absl::UTCTimeZone()));
  return facts;
}

std::string CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string words(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> parts = absl::StrSplit(absl::StripSuffix(words, absl::string_view("\0", 1)), '\0');
  parts.front() = "gannet";
  return absl::StrJoin(parts, " ");
}

void AddBenchmarkPlots(std::string_view unit, const std::vector<PlottedKind>& kinds, const bench::OperationReport& all,
                       const std::vector<bench::Interval>& timeline, HtmlPage* page) {
  const std::string units(unit);
  std::vector<size_t> used;  // kinds with operations
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    if (!kinds[kind].report->distribution.empty()) used.push_back(kind);
  }
  constexpr int kAllColor = 5;
  Plot throughput = {.title = "Throughput over time",
                     .note = absl::StrCat("Finished ", units, " per second, in each interval of the measurement."),
                     .x_label = "time since the start, s",
                     .x_name = "time",
                     .x_unit = "s",
                     .y_label = absl::StrCat(units, " per second"),
                     .y_unit = "",
                     .views = {{"every type", {}}}};
  Plot latency = {.title = "Latency over time",
                  .note = absl::StrCat("Half of the ", units,
                                       " of an interval took less than p50, 95% less than p95, 99% less than p99."),
                  .x_label = "time since the start, s",
                  .x_name = "time",
                  .x_unit = "s",
                  .y_label = "latency",
                  .y_unit = "us",
                  .log_y = true,
                  .views = {}};
  Plot aborts = {.title = "Conflicts over time",
                 .note = absl::StrCat("Attempts per second that met another of the ", units, " and were run again."),
                 .x_label = "time since the start, s",
                 .x_name = "time",
                 .x_unit = "s",
                 .y_label = "attempts per second",
                 .y_unit = "",
                 .views = {{"", {}}}};
  // Calls add(x, y) for each interval in which `kind` (or, if null, all kinds) had an operation.
  const auto each_interval = [&timeline](const size_t* kind, const auto& visit) {
    for (const bench::Interval& interval : timeline) {
      visit(interval, kind == nullptr ? interval.all : interval.kinds[*kind]);
    }
  };
  const auto add_kind = [&](const std::string& name, const size_t* kind, int color) {
    PlotSeries rate{name, {}, {}, color};
    PlotSeries conflicts{name, {}, {}, color};
    PlotView times{name, {{"p50", {}, {}, 0}, {"p95", {}, {}, 4}, {"p99", {}, {}, 6}}};
    uint64_t aborted = 0;
    each_interval(kind, [&](const bench::Interval& interval, const bench::KindInterval& k) {
      rate.x.push_back(interval.at_seconds);
      rate.y.push_back(interval.Rate(k.operations));
      conflicts.x.push_back(interval.at_seconds);
      conflicts.y.push_back(interval.Rate(k.aborts));
      aborted += k.aborts;
      if (k.operations == 0) return;
      const double values[] = {k.p50_us, k.p95_us, k.p99_us};
      for (size_t i = 0; i < std::size(values); ++i) {
        times.series[i].x.push_back(interval.at_seconds);
        times.series[i].y.push_back(values[i]);
      }
    });
    if (used.size() > 1) throughput.views.push_back({name, {rate}});
    throughput.views[0].series.push_back(std::move(rate));
    if (aborted > 0) aborts.views[0].series.push_back(std::move(conflicts));
    latency.views.push_back(std::move(times));
  };
  if (used.size() > 1) add_kind("all", nullptr, kAllColor);
  Plot distribution = {.title = "How long they took",
                       .note = "The whole measurement. Each power of two of the time is divided into eight ranges.",
                       .x_label = "latency",
                       .x_name = "latency",
                       .x_unit = "us",
                       .y_label = absl::StrCat("% of the ", units, " of the type"),
                       .y_unit = "%",
                       .log_x = true,
                       .views = {{"share of each range", {}}, {"share up to here", {}}}};
  if (used.size() > 1) {
    for (size_t view = 0; view < 2; ++view) {
      distribution.views[view].series.push_back(DistributionOf("all", all.distribution, view == 1));
      distribution.views[view].series.back().color = kAllColor;
    }
  }
  for (size_t i = 0; i < used.size(); ++i) {
    const int color = static_cast<int>(i) + (i >= static_cast<size_t>(kAllColor) ? 1 : 0);
    add_kind(kinds[used[i]].name, &used[i], color);
    for (size_t view = 0; view < 2; ++view) {
      distribution.views[view].series.push_back(
          DistributionOf(kinds[used[i]].name, kinds[used[i]].report->distribution, view == 1));
      distribution.views[view].series.back().color = color;
    }
  }
  page->AddPlot(std::move(throughput));
  page->AddPlot(std::move(latency));
  page->AddPlot(std::move(distribution));
  page->AddPlot(std::move(aborts));
}

}  // namespace gannet::cli
