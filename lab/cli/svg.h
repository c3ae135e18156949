// Plots as SVG, with only the features that the page of `gannet reproduce` needs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gannet::cli {

// Text with XML's special characters escaped.
std::string EscapeXml(std::string_view text);

struct Place {
  double x = 0;
  double y = 0;
  std::string hint;  // shown when the pointer is on it
};

struct Line {
  std::string name;
  std::vector<Place> places;  // joined in this order
  std::vector<Place> paper;   // the values to compare with, which have separate marks
};

struct Axes {
  std::string x;
  std::string y;
};

std::string PlotLines(const Axes& axes, const std::vector<Line>& lines);

struct Bar {
  double value = 0;
  std::optional<double> paper;
  std::string hint;
};

struct BarSeries {
  std::string name;
  std::vector<std::optional<Bar>> bars;  // one place for each group
};

std::string PlotBars(const Axes& axes, const std::vector<std::string>& groups, const std::vector<BarSeries>& series);

}  // namespace gannet::cli
