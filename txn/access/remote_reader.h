// RemoteReader: reads records of other nodes, one at a time: one-sided (the index's cache or READs of the index, then a
// READ of the record), or by a call that does both at the owner. It chooses the path for each access (path_choice.h).
// It also judges the image of a record for those who fetch several at once (batch_reader.h, remote_scanner.h).
//
// A record brought by a READ is valid if it is untorn and unlocked (versioned.h) and holds the requested key. A locked
// or torn one is READ again a few times, because its writer is between its first and last WRITE.
//
// Each record that was read goes to the read set or, if the request is for update, to the write buffer. The
// transaction's own writes are served from there. Both belong to the transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/record_header.h"
#include "rdma/fabric.h"
#include "rdma/message_buffer.h"
#include "rdma/rpc.h"
#include "txn/access/read_set.h"
#include "txn/access/record_look.h"
#include "txn/access/write_buffer.h"
#include "txn/peer/wire.h"
#include "txn/session/session_state.h"
#include "txn/store/requests.h"

namespace gannet::txn {

// Used by the session's thread.
class RemoteReader {
 public:
  // All must outlive this.
  RemoteReader(SessionState* session, ReadSet* reads, WriteBuffer* writes)
      : session_(session), reads_(*reads), writes_(*writes) {}
  RemoteReader(const RemoteReader&) = delete;
  RemoteReader& operator=(const RemoteReader&) = delete;

  // Serves a request. Ok: request->status is the result. Aborted: the record stays locked or torn. Unavailable and
  // DeadlineExceeded: the owner cannot be reached, or is dead. Unavailable, too: the record stays locked by a lost node
  // (LockedTooLong). DataLoss: the index is damaged. Internal: the owner's answer is malformed. Others:
  // those of CheckRow.
  coro::Task<Status> Get(GetRequest* request);
  // Does the same by READs, for a request that was checked. `remote` is the client of the table's index at the owner.
  coro::Task<Status> GetByReads(GetRequest* request, index::RemoteIndex* remote);

  // Calls `owner`, and puts the answer into `room`. An owner does not wait for locked records, so it is asked again.
  coro::Task<StatusOr<size_t>> AskOwner(rdma::NodeId owner, rdma::MethodId method, std::span<const std::byte> question,
                                        std::span<std::byte> room);
  // Looks at the image of the record that `found` names. kConflict: READ it again; if the record is longer than the
  // image, request->payload_bytes is its length. The image must stay as long as the transaction.
  Look LookAtImage(GetRequest* request, const index::FindResult& found, const std::byte* image, size_t image_bytes);
  // The image of a record that a call brought, like that of a READ.
  const std::byte* MakeImage(const Key& key, uint64_t state, index::RecordMeta meta, std::span<const std::byte> payload,
                             size_t* bytes);
  // Takes a record, present or not, that an owner's answer has next. False: it is malformed.
  bool TakeAnswer(rdma::WireReader& reader, ReadOutcome outcome, GetRequest* request);
  // False: the index is damaged. What a client of it found cannot be the address of the key's record.
  bool MayBeRecordOf(const Table& table, const Key& key, rdma::GlobalAddress record) const {
    return !table.index_traits().client_writes ||
           (record.node() == table.OwnerOf(key, session_->self) && record.offset() % kLineBytes == 0);
  }

 private:
  coro::Task<Status> GetByCall(GetRequest* request, rdma::NodeId owner);
  void Remember(const GetRequest& request, rdma::GlobalAddress record);

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  rdma::MessageBuffer response_;
};

}  // namespace gannet::txn
