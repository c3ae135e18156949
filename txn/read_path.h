// How records of other nodes are read: an option of Database.
#pragma once

#include <cstdint>

namespace gannet::txn {

// kOneSided: READs of the index and of the record. kCall: a call to the owner, which does both. kAdaptive: for each
// table and node, the path that was cheaper recently. With a fixed path verb counts depend only on the workload.
enum class ReadPathPolicy : uint8_t { kAdaptive, kOneSided, kCall };

}  // namespace gannet::txn
