// How the records of other nodes are read: an option of Database.
#pragma once

#include <cstdint>

namespace gannet::txn {

// kOneSided: READs of the index and of the record. kCall: a call of the owner, which does both. kAdaptive: for each
// table and node, what has been faster lately. A fixed path makes verb counts a function of the workload alone.
enum class ReadPathPolicy : uint8_t { kAdaptive, kOneSided, kCall };

}  // namespace gannet::txn
