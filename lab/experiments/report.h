// The report on a paper's experiments, as data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/experiments/experiment.h"

namespace gannet::experiments {

// A number that is not a point of a figure (a factor, READs, an error, memory), and what it is compared with.
struct Claim {
  std::string what;
  std::optional<double> ours;  // nothing, if the runs did not measure it: the claim then holds for nothing
  PaperValue paper;
  std::string note;  // reason for the difference

  static Claim Of(std::string what, std::optional<double> ours, double paper, std::string source, std::string note);
  std::optional<double> ratio() const;
  std::optional<double> difference_percent() const;
};

// `a` / `b`, of two throughputs or latencies. Nothing, if one of them is 0: its run measured nothing.
std::optional<double> RatioOf(double a, double b);

// One table in place of a report's figures: a row for each of several things that were run in the same way.
struct SummaryTable {
  struct Column {
    std::string key;   // in JSON
    std::string head;  // in text and HTML
    std::string what;  // one sentence, with the unit
    int digits = 0;    // behind the point
  };
  struct Row {
    std::string name;
    std::vector<std::optional<double>> values;  // one for each column; nothing: it was not, or cannot be, measured
  };

  std::string rows_are;  // "kind"
  std::vector<Column> columns;
  std::vector<Row> rows;
  std::vector<std::string> notes;  // why values are missing, and what they leave out
};

struct Report {
  std::string system;   // the paper's name for its own system: "XStore"; or what our own experiments are about
  std::string setting;  // one sentence: what was run in place of the paper's rack
  std::vector<Experiment> experiments;
  std::vector<Claim> claims;
  std::vector<std::string> nics;    // the NIC profiles that were used (rdma/sim/nic_profile.h)
  std::string reference = "paper";  // what the claims are compared with
  std::optional<SummaryTable> table;
};

}  // namespace gannet::experiments
