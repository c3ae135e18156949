#include "cli/common/live_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/quantity.h"

namespace gannet::cli {
namespace {

constexpr int kLinesPerHeader = 20;
constexpr size_t kTimeWidth = 8;
constexpr size_t kLeastRateWidth = 8;
constexpr size_t kLatencyWidth = 17;       // "12345/23456/34567"
constexpr size_t kShortLatencyWidth = 11;  // "123/234/345"
constexpr std::string_view kUnits = "  (p50/p95/p99 in us)";

std::string Padded(std::string_view text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + std::string(text);
}

size_t RateWidth(const LiveLines::Rate& rate) {
  return std::max(rate.name.size(), kLeastRateWidth);
}

std::string Micros(double us, bool shorter) {
  return us < (shorter ? 10 : 100) ? absl::StrFormat("%.1f", us) : absl::StrFormat("%.0f", us);
}

// Digits behind the point of times: simulated intervals last microseconds.
int DigitsFor(double seconds) {
  return seconds >= 0.05 ? 1 : seconds >= 0.0005 ? 3 : 6;
}

}  // namespace

LiveLines::LiveLines(std::vector<std::string> kinds, std::optional<int> width)
    : names_(std::move(kinds)), width_(width), seen_(names_.size(), false) {}

size_t LiveLines::Form::KindWidth(const std::string& name) const {
  return std::max(name.size(), short_latencies ? kShortLatencyWidth : kLatencyWidth);
}

size_t LiveLines::WidthOf(const Form& form, const std::vector<Rate>& rates) const {
  size_t width = kTimeWidth;
  for (size_t i = 0; i < form.rates; ++i) width += 2 + RateWidth(rates[i]);
  for (size_t kind = 0; kind < names_.size(); ++kind) {
    if (seen_[kind]) width += 2 + form.KindWidth(names_[kind]);
  }
  return width;
}

std::string LiveLines::Header(const std::vector<Rate>& rates) {
  for (const Form& form :
       {Form{rates.size(), false}, Form{rates.size(), true}, Form{std::min<size_t>(1, rates.size()), true}}) {
    form_ = form;
    if (!width_.has_value() || WidthOf(form, rates) <= static_cast<size_t>(*width_)) break;
  }
  std::string header = Padded("time", kTimeWidth);
  for (size_t i = 0; i < form_.rates; ++i) header += "  " + Padded(rates[i].name, RateWidth(rates[i]));
  shown_.clear();
  size_t left_out = 0;
  for (size_t kind = 0; kind < names_.size(); ++kind) {
    if (!seen_[kind]) continue;
    const size_t width = form_.KindWidth(names_[kind]);
    if (left_out > 0 || (width_.has_value() && header.size() + 2 + width > static_cast<size_t>(*width_))) {
      ++left_out;
      continue;
    }
    shown_.push_back(kind);
    header += "  " + Padded(names_[kind], width);
  }
  const std::string units = std::string(shown_.empty() ? "" : kUnits);
  const std::string more =
      left_out == 0 ? "" : absl::StrFormat("  (%s in a wider terminal)", Count(left_out, "more type"));
  for (const std::string& note : {units, more}) {
    const size_t line = header.size() - (header.rfind('\n') == std::string::npos ? 0 : header.rfind('\n') + 1);
    if (width_.has_value() && line + note.size() > static_cast<size_t>(*width_)) header += '\n';
    header += note;
  }
  return header + '\n';
}

std::string LiveLines::Next(const std::vector<Rate>& rates, const bench::Interval& interval) {
  std::string text;
  if (warming_up_ != interval.warming_up) {
    if (interval.warming_up) text += "warming up\n";
    if (warming_up_.has_value()) text += "measuring\n";
    warming_up_ = interval.warming_up;
  }
  for (size_t kind = 0; kind < std::min(names_.size(), interval.kinds.size()); ++kind) {
    if (seen_[kind] || interval.kinds[kind].operations == 0) continue;
    seen_[kind] = true;
    until_header_ = 0;
  }
  if (until_header_ == 0) {
    text += Header(rates);
    until_header_ = kLinesPerHeader;
  }
  --until_header_;
  // The last interval of a phase may be short; that is no reason for another form.
  if (digits_ == 0) digits_ = DigitsFor(interval.seconds);
  text += Padded(absl::StrFormat("%.*f s", digits_, interval.at_seconds), kTimeWidth);
  for (size_t i = 0; i < form_.rates; ++i) text += "  " + Padded(rates[i].value, RateWidth(rates[i]));
  for (const size_t kind : shown_) {
    const bench::KindInterval k = kind < interval.kinds.size() ? interval.kinds[kind] : bench::KindInterval();
    const auto micros = [this](double us) { return Micros(us, form_.short_latencies); };
    const std::string latencies =
        k.operations == 0 ? "-" : absl::StrFormat("%s/%s/%s", micros(k.p50_us), micros(k.p95_us), micros(k.p99_us));
    text += "  " + Padded(latencies, form_.KindWidth(names_[kind]));
  }
  return text + '\n';
}

}  // namespace gannet::cli
