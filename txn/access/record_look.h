// The outcome of one look at a record, and what a read does when the index does not have its key. Shared by the readers
// of records of this node and of other nodes.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "index/index.h"
#include "txn/access/read_set.h"
#include "txn/access/write_buffer.h"
#include "txn/store/key_status.h"
#include "txn/store/requests.h"

namespace gannet::txn {

// The outcome of one attempt to read a record.
enum class Look : uint8_t {
  kDone,      // request->status is set
  kGone,      // the record is absent or holds another key: ask the index again
  kConflict,  // the record is locked for long; a record of another node: READ it again
  kDamaged,   // the index is damaged, and led to something else
};

// The key is not in the index. Serves this transaction's own insert of it, if there is one; else the request's status
// is NotFound, which rests on `witness`.
inline void ReadMissing(ReadSet& reads, WriteBuffer& writes, GetRequest* request, const index::Witness& witness) {
  if (const int own = writes.FindInsert(*request->table, request->key); own >= 0) {
    writes.ReadOwn(own, request);
    return;
  }
  reads.AddWitness(witness);
  request->payload_bytes = 0;
  request->handle = {};
  request->status = Status(absl::StatusCode::kNotFound, "");
}

// Returns the result of the user's operation for a request that was served. A NotFound gets its message.
inline Status Served(GetRequest* request) {
  if (request->status.ok()) [[likely]]
    return absl::OkStatus();
  if (absl::IsAborted(request->status)) return request->status;
  if (absl::IsNotFound(request->status)) request->status = KeyNotFound(*request->table, request->key);
  return absl::OkStatus();
}

}  // namespace gannet::txn
