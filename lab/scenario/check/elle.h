// A list-append history in the format of Elle and Jepsen, so that an independent checker can judge it: EDN, one map per
// event and line (https://github.com/jepsen-io/elle; elle-cli --model list-append history.edn).
//
//   {:type :invoke, :f :txn, :value [[:append 3 17] [:r 4 nil]], :process 0, :time 123, :index 0}
//   {:type :ok, :f :txn, :value [[:append 3 17] [:r 4 [1 2]]], :process 0, :time 140, :index 1}
//
// Each invocation has exactly one completion; missing completions are written as :info at the end. A process whose
// operation ended as :info does nothing after that. Its client continues as a new process, whose number is larger by
// the number of clients (Jepsen's rule).
#pragma once

#include <string>

#include "lab/scenario/check/list_append.h"

namespace gannet::scenario {

std::string ToElleEdn(const AppendHistory& history);

}  // namespace gannet::scenario
