// How records of other nodes are read: an option of Database.
#pragma once

#include <cstdint>

namespace gannet::txn {

// Of every Get, GetMany and Scan. kOneSided: READs of the index and of the records. kCall: a call to the owner, which
// does both. kAdaptive: the path that is estimated to be cheaper now (txn/access/offload_chooser.h). kOrderedByCall:
// calls for tables with an ordered index, READs for the others, as in designs whose clients keep no cache of trees
// (DrTM+H, OSDI'18). With a fixed path verb counts depend only on the workload.
enum class ReadPathPolicy : uint8_t { kAdaptive, kOneSided, kCall, kOrderedByCall };

}  // namespace gannet::txn
