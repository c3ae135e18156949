// BatchReader: serves many requests at once, of which some are for other nodes.
//
// The requests of one owner take one path: READs, whose lookups share doorbells, with one doorbell for the records of
// all such owners; or a call that looks them all up at the owner. The calls, and the READs, are in flight together. The
// requests for this node follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/coro/started.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "rdma/fabric.h"
#include "rdma/rpc.h"
#include "txn/access/call_buffers.h"
#include "txn/access/local_reader.h"
#include "txn/access/read_set.h"
#include "txn/access/remote_reader.h"
#include "txn/access/write_buffer.h"
#include "txn/path/offload_chooser.h"
#include "txn/store/requests.h"

namespace gannet::txn {

// Used by the session's thread, for one batch at a time. Its scratch is kept from one transaction to the next.
class BatchReader {
 public:
  // All must outlive this.
  BatchReader(SessionState* session, ReadSet* reads, WriteBuffer* writes, LocalReader* local, RemoteReader* remote,
              CallBuffers* buffers)
      : session_(session), reads_(*reads), writes_(*writes), local_(*local), remote_(*remote), buffers_(*buffers) {}
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // Serves all requests. The errors are those of LocalReader and RemoteReader; after one, some requests may have been
  // served. Nothing is in flight when it returns.
  coro::Task<Status> GetMany(std::span<GetRequest> requests);

 private:
  // The requests that one owner serves, by their numbers.
  struct Group {
    rdma::NodeId owner = 0;
    std::span<const uint32_t> which{};
    PathChoice choice;
  };

  std::vector<uint32_t> RemoteOf(std::span<const GetRequest> requests) const;
  Status GroupByOwner(std::span<const GetRequest> requests, std::span<const uint32_t> remote);
  // Serves the requests numbered in `remote`, which are sorted by owner and table.
  coro::Task<Status> GetRemote(std::span<GetRequest> requests, std::span<const uint32_t> remote);
  coro::Task<Status> GetGroupsByReads(std::span<GetRequest> requests);
  coro::Task<Status> GetByReads(std::span<GetRequest> requests, std::span<const uint32_t> which);
  coro::Task<Status> FindRemote(std::span<GetRequest> requests, std::span<const uint32_t> which);
  coro::Task<Status> GetGroupByCall(std::span<GetRequest> requests, const Group* group,
                                    CallBuffers::Messages* messages);
  coro::Task<Status> GetByCall(std::span<GetRequest> requests, const Group* group, CallBuffers::Messages* messages);
  StatusOr<size_t> TakeMany(rdma::WireReader& reader, rdma::NodeId owner, std::span<GetRequest> requests,
                            std::span<const uint32_t> asked, std::vector<uint32_t>* locked, uint64_t* lock);

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  LocalReader& local_;
  RemoteReader& remote_;
  CallBuffers& buffers_;

  // Scratch.
  std::vector<Group> groups_;
  std::vector<uint32_t> one_sided_;  // requests that are served by READs
  std::vector<index::Key> keys_;     // those of one table
  std::vector<index::FindResult> results_;
  std::vector<index::FindResult> found_;  // by their place in one_sided_
  std::vector<rdma::Operation> operations_;
  std::vector<coro::Started<Status>> calls_;
};

}  // namespace gannet::txn
