#include "lab/cli/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace gannet::cli {
namespace {

constexpr double kWidth = 900;
constexpr double kHeight = 340;
constexpr double kLeft = 60;
constexpr double kRight = kWidth - 190;  // the legend is right of it
constexpr double kTop = 15;
constexpr double kBottom = kHeight - 75;
constexpr int kMostTicks = 5;
constexpr std::array<const char*, 6> kColours = {"#1f6fb4", "#d9792b", "#3a9a4c", "#9355b0", "#b03a48", "#5c6b73"};

const char* ColourOf(size_t series) {
  return kColours[series % kColours.size()];
}

// The ticks of an axis: from 0 on, `step` apart.
struct Ticks {
  double step = 1;
  int count = 1;

  double end() const { return step * count; }
};

// The fewest ticks that reach `most`. The step is the smallest number 1, 2, 2.5 or 5 times a power of ten with which
// kMostTicks reach it.
Ticks TicksFor(double most) {
  if (most <= 0) return {1, kMostTicks};
  const double power = std::pow(10, std::floor(std::log10(most / kMostTicks)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.5, 2.0, 1.0}) {
    if (factor * power * kMostTicks >= most) step = factor * power;
  }
  return {step, std::clamp(static_cast<int>(std::ceil(most / step)), 1, kMostTicks)};
}

// Converts values to positions in the picture.
struct Scale {
  Ticks x_ticks;
  Ticks y_ticks;

  double x(double value) const { return kLeft + (kRight - kLeft) * value / x_ticks.end(); }
  double y(double value) const { return kBottom - (kBottom - kTop) * value / y_ticks.end(); }
};

std::string Text(double x, double y, const char* attributes, std::string_view text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, attributes, EscapeXml(text));
}

std::string Hint(const std::string& text) {
  return "<title>" + EscapeXml(text) + "</title>";
}

// The frame: both axes' names, and the y axis.
std::string Frame(const Axes& axes, const Scale& scale) {
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n", kWidth, kHeight);
  for (int i = 0; i <= scale.y_ticks.count; ++i) {
    const double value = scale.y_ticks.step * i;
    svg += absl::StrFormat("<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", kLeft, kRight,
                           scale.y(value), scale.y(value));
    svg += Text(kLeft - 6, scale.y(value) + 4, "text-anchor=\"end\"", absl::StrFormat("%g", value));
  }
  svg += Text((kLeft + kRight) / 2, kHeight - 8, "text-anchor=\"middle\"", axes.x);
  const double middle = (kTop + kBottom) / 2;
  svg += absl::StrFormat("<text text-anchor=\"middle\" transform=\"translate(14 %.1f) rotate(-90)\">%s</text>\n",
                         middle, EscapeXml(axes.y));
  return svg;
}

// The paper's values: a stroke over a bar, a cross next to a line.
constexpr char kPaperBar[] = "h12";
constexpr char kPaperPlace[] = "h14 m-7 -7 v14";

// `paper`: the mark of its values; null: there are none.
std::string Legend(const std::vector<std::string>& names, const char* paper) {
  std::string svg;
  double y = kTop + 10;
  for (size_t i = 0; i < names.size(); ++i, y += 20) {
    svg += absl::StrFormat("<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", kRight + 14,
                           y - 10, ColourOf(i));
    svg += Text(kRight + 32, y, "", names[i]);
  }
  if (paper == nullptr) return svg;
  svg += absl::StrFormat("<path class=\"paper\" d=\"M%.1f %.1f %s\"/>\n", kRight + 13, y - 4, paper);
  return svg + Text(kRight + 32, y, "", "the paper");
}

std::string XTicks(const Scale& scale) {
  std::string svg;
  for (int i = 0; i <= scale.x_ticks.count; ++i) {
    const double value = scale.x_ticks.step * i;
    svg += Text(scale.x(value), kBottom + 18, "text-anchor=\"middle\"", absl::StrFormat("%g", value));
  }
  return svg;
}

std::string LineOf(const Line& line, const char* colour, const Scale& scale) {
  std::string path;
  std::string svg;
  for (const Place& place : line.places) {
    path += absl::StrFormat("%.1f,%.1f ", scale.x(place.x), scale.y(place.y));
    svg += absl::StrFormat("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\">%s</circle>\n", scale.x(place.x),
                           scale.y(place.y), colour, Hint(place.hint));
  }
  for (const Place& place : line.paper) {
    svg += absl::StrFormat("<path class=\"paper\" style=\"stroke:%s\" d=\"M%.1f %.1f %s\">%s</path>\n", colour,
                           scale.x(place.x) - 7, scale.y(place.y), kPaperPlace, Hint(place.hint));
  }
  return absl::StrFormat("<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"%s\"/>\n", colour, path) +
         svg;
}

std::string BarOf(const Bar& bar, double x, double width, const char* colour, const Scale& scale) {
  std::string svg =
      absl::StrFormat("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\">%s</rect>\n", x,
                      scale.y(bar.value), width, kBottom - scale.y(bar.value), colour, Hint(bar.hint));
  if (!bar.paper.has_value()) return svg;
  return svg + absl::StrFormat("<path class=\"paper\" d=\"M%.1f %.1f h%.1f\">%s</path>\n", x - 2, scale.y(*bar.paper),
                               width + 4, Hint(absl::StrFormat("the paper: %.3g", *bar.paper)));
}

}  // namespace

std::string EscapeXml(std::string_view text) {
  return absl::StrReplaceAll(absl::string_view(text.data(), text.size()),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string PlotLines(const Axes& axes, const std::vector<Line>& lines) {
  double most_x = 0;
  double most_y = 0;
  bool paper = false;
  std::vector<std::string> names;
  for (const Line& line : lines) {
    names.push_back(line.name);
    paper = paper || !line.paper.empty();
    for (const auto* places : {&line.places, &line.paper}) {
      for (const Place& place : *places) {
        most_x = std::max(most_x, place.x);
        most_y = std::max(most_y, place.y);
      }
    }
  }
  const Scale scale{TicksFor(most_x), TicksFor(most_y)};
  std::string svg = Frame(axes, scale) + XTicks(scale);
  for (size_t i = 0; i < lines.size(); ++i) svg += LineOf(lines[i], ColourOf(i), scale);
  return svg + Legend(names, paper ? kPaperPlace : nullptr) + "</svg>\n";
}

std::string PlotBars(const Axes& axes, const std::vector<std::string>& groups, const std::vector<BarSeries>& series) {
  double most = 0;
  bool paper = false;
  std::vector<std::string> names;
  for (const BarSeries& s : series) {
    names.push_back(s.name);
    for (const std::optional<Bar>& bar : s.bars) {
      if (!bar.has_value()) continue;
      most = std::max({most, bar->value, bar->paper.value_or(0)});
      paper = paper || bar->paper.has_value();
    }
  }
  const Scale scale{{}, TicksFor(most)};
  std::string svg = Frame(axes, scale);
  const double stride = (kRight - kLeft) / static_cast<double>(std::max<size_t>(1, groups.size()));
  const double width = 0.8 * stride / static_cast<double>(std::max<size_t>(1, series.size()));
  for (size_t g = 0; g < groups.size(); ++g) {
    const double left = kLeft + stride * (static_cast<double>(g) + 0.1);
    for (size_t s = 0; s < series.size(); ++s) {
      if (!series[s].bars[g].has_value()) continue;
      svg += BarOf(*series[s].bars[g], left + width * static_cast<double>(s), width, ColourOf(s), scale);
    }
    const std::string slanted =
        absl::StrFormat("text-anchor=\"end\" transform=\"rotate(-20 %.1f %.1f)\"", left + 0.5 * stride, kBottom + 16);
    svg += Text(left + 0.5 * stride, kBottom + 16, slanted.c_str(), groups[g]);
  }
  return svg + Legend(names, paper ? kPaperBar : nullptr) + "</svg>\n";
}

}  // namespace gannet::cli
