// How records of other nodes are read: an option of Database.
#pragma once

#include <cstdint>

namespace gannet::txn {

// The path of every Get, GetMany, Scan and Search. kOneSided: READs of the index and of the records. kCall: a call to
// the owner, which does both. kAdaptive: the path that is estimated to be cheaper now (txn/path/offload_chooser.h).
// kOrderedByCall: calls for tables with an ordered index, READs for the others, as in designs whose clients keep no
// cache of trees (DrTM+H, OSDI'18). With a fixed path verb counts depend only on the workload.
//
// Nearest has no choice: a call to the owner finds the rectangles, and READs bring their rows. If they do not fit in a
// message, a search follows, by calls with kCall and by READs with the others.
enum class ReadPathPolicy : uint8_t { kAdaptive, kOneSided, kCall, kOrderedByCall };

}  // namespace gannet::txn
