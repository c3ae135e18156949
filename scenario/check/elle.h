// A list-append history as Elle and Jepsen read it: EDN, one map per event and line, so that a checker that is not ours
// can judge us (https://github.com/jepsen-io/elle; elle-cli --model list-append history.edn).
//
//   {:type :invoke, :f :txn, :value [[:append 3 17] [:r 4 nil]], :process 0, :time 123, :index 0}
//   {:type :ok, :f :txn, :value [[:append 3 17] [:r 4 [1 2]]], :process 0, :time 140, :index 1}
//
// Each invocation has exactly one completion; those that the history lacks are written as :info at the end. A process
// whose operation ended as :info does nothing after that: its client goes on as a new process, whose number is larger
// by the number of clients (Jepsen's rule).
#pragma once

#include <string>

#include "scenario/check/list_append.h"

namespace gannet::scenario {

std::string ToElleEdn(const AppendHistory& history);

}  // namespace gannet::scenario
