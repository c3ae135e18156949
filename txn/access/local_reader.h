// LocalReader: reads records of this node by its own CPU: no verb, no suspension, no copy beyond the caller's.
//
// A record is read as versioned.h says for the owner's CPU: state word, payload, state word again. Every writer, a
// transaction here or a NIC, locks the state word first, so two equal unlocked words mean an untorn copy.
//
// A record that the index still names may be absent. Either a transaction is removing it (the index entry goes first,
// but we may have read that before), or has inserted it and not committed (then it is locked). The first kind is looked
// up again. The second is waited for briefly, like every locked record, and is a conflict after that.
//
// Each record that was read goes to the read set or, if the request is for update, to the write buffer. The
// transaction's own writes are served from there. Both belong to the transaction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "index/index.h"
#include "rdma/global_address.h"
#include "txn/access/read_set.h"
#include "txn/access/record_look.h"
#include "txn/access/write_buffer.h"
#include "txn/store/requests.h"

namespace gannet::txn {

struct SessionState;

// Used by the session's thread. Its scratch is kept from one transaction to the next.
class LocalReader {
 public:
  // All must outlive this.
  LocalReader(SessionState* session, ReadSet* reads, WriteBuffer* writes)
      : session_(session), reads_(*reads), writes_(*writes) {}
  LocalReader(const LocalReader&) = delete;
  LocalReader& operator=(const LocalReader&) = delete;

  // Serves a request for a record of this node. Ok: request->status is the result. Aborted: the record stays locked, or
  // its key moves in the index. Unavailable: the record stays locked by a lost node (LockedTooLong).
  // DataLoss: the index is damaged. Others: those of CheckRow.
  Status Get(GetRequest* request);
  // Serves several requests with the same errors. Their cache misses are waited for together.
  Status GetMany(std::span<GetRequest> requests);
  // Looks at the record to which the index leads for the request's key.
  Look LookAt(GetRequest* request, rdma::GlobalAddress address);

 private:
  Status Locate(std::span<GetRequest> requests);
  void FindOrdered(std::span<const GetRequest> requests);
  Status GetGroup(std::span<GetRequest> requests);

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;

  // Scratch of GetMany.
  std::vector<index::FindResult> found_;    // by request
  std::vector<uint32_t> pending_;           // requests of ordered tables not looked up yet
  std::vector<uint32_t> group_;             // requests of one table
  std::vector<index::Key> keys_;            // those of the group
  std::vector<index::FindResult> results_;  // by key of the group
};

}  // namespace gannet::txn
