#include "bench/peers/run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace gannet::bench::peers {
namespace {

using nlohmann::json;

// A directory that is removed with what is in it.
class ScratchDirectory {
 public:
  ScratchDirectory() = default;
  ~ScratchDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  Status Make(const std::string& parent) {
    std::string name = parent + "/gannet-peers.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot make a directory in '", parent, "': ", std::strerror(errno), "; give another one"));
    }
    path_ = name;
    return absl::OkStatus();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string ToText(const StatusOr<std::vector<Figure>>& figures) {
  json text = {{"error", std::string(figures.status().message())}, {"figures", json::array()}};
  if (figures.ok()) {
    for (const Figure& figure : *figures) text["figures"].push_back({figure.id, figure.value, figure.digest});
  }
  return text.dump();
}

StatusOr<std::vector<Figure>> FromText(const std::string& text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return absl::InternalError("its process died");
  if (const std::string error = parsed.at("error"); !error.empty()) return absl::InternalError(error);
  std::vector<Figure> figures;
  for (const json& figure : parsed.at("figures")) figures.push_back({figure.at(0), figure.at(1), figure.at(2)});
  return figures;
}

void WriteAll(int file, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(file, text.data() + at, text.size() - at);
    if (written < 0) std::_Exit(1);  // the parent sees text that ends early
    at += static_cast<size_t>(written);
  }
}

std::string ReadAll(int file) {
  std::string text;
  char some[4096];
  for (ssize_t got; (got = read(file, some, sizeof some)) > 0;) text.append(some, static_cast<size_t>(got));
  return text;
}

StatusOr<std::vector<Figure>> MeasureInChild(const EngineKind& engine, const Data& data, const RunOptions& options,
                                             const std::vector<Operation>& operations) {
  ScratchDirectory directory;
  GANNET_RETURN_IF_ERROR(directory.Make(options.directory));
  int ends[2];
  if (pipe(ends) != 0) return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  const pid_t child = fork();
  if (child < 0) return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  if (child == 0) {
    close(ends[0]);
    WriteAll(ends[1], ToText(Measure(engine, data, directory.path(), operations, options.measure)));
    std::_Exit(0);  // the parent's buffers and directory are its own
  }
  close(ends[1]);
  const std::string text = ReadAll(ends[0]);
  close(ends[0]);
  int how = 0;
  waitpid(child, &how, 0);
  if (how != 0) return absl::InternalError(absl::StrFormat("its process ended with status %#x", how));
  return FromText(text);
}

}  // namespace

double Series::Median() const {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
double Series::Least() const {
  return *std::min_element(values.begin(), values.end());
}
double Series::Greatest() const {
  return *std::max_element(values.begin(), values.end());
}

const Series* Results::Find(const std::string& id, size_t engine) const {
  const auto of = figures.find(id);
  if (of == figures.end()) return nullptr;
  const auto series = of->second.find(engine);
  return series == of->second.end() ? nullptr : &series->second;
}

Status CheckAnswers(const std::vector<EngineKind>& engines, const Results& results) {
  for (const auto& [id, series] : results.figures) {
    const size_t first = series.begin()->first;
    const uint64_t expected = series.begin()->second.digests.front();
    for (const auto& [engine, of] : series) {
      for (const uint64_t digest : of.digests) {
        if (digest == expected) continue;
        return absl::InternalError(absl::StrFormat("%s: %s and %s gave different answers (%016x and %016x)", id,
                                                   engines[first].name, engines[engine].name, expected, digest));
      }
    }
  }
  return absl::OkStatus();
}

StatusOr<Results> RunAll(const std::vector<EngineKind>& engines, const Data& data, const RunOptions& options,
                         const std::function<void(int run, const EngineKind& engine)>& progress) {
  Results results;
  results.operations = Operations(options.only);
  if (results.operations.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no operation has '", options.only, "' in its name"));
  }
  for (int run = 0; run < options.runs; ++run) {
    for (size_t i = 0; i < engines.size(); ++i) {
      const size_t engine = (i + static_cast<size_t>(run)) % engines.size();
      progress(run, engines[engine]);
      const auto figures = MeasureInChild(engines[engine], data, options, results.operations);
      if (!figures.ok()) {
        return absl::InternalError(absl::StrCat(engines[engine].name, ": ", figures.status().message()));
      }
      for (const Figure& figure : *figures) {
        Series& series = results.figures[figure.id][engine];
        series.values.push_back(figure.value);
        series.digests.push_back(figure.digest);
      }
    }
  }
  GANNET_RETURN_IF_ERROR(CheckAnswers(engines, results));
  return results;
}

}  // namespace gannet::bench::peers
