// Access: the reads of a transaction, by keys and by ranges, and their records.
//
// Every read adds what it saw to the read set or, if it is for update, to the write buffer; the transaction's own
// writes are served from there. Access owns both until the transaction ends; its commit works on them.
//
//   direct_access.cc   records of this node, by its CPU; the entry of every operation
//   path_choice.cc     which path an access to another node takes
//   remote_access.cc   records of other nodes: one-sided, or by call
//   remote_groups.cc   many of them at once
//   composed.cc        operations that read and then write, or that return what they read
//   search.cc          rectangles of a window, or near a point
//   remote_scan.cc     scans and searches of other nodes
//   secondary.cc       secondary indexes: what a commit changes in them, and reads by them
//   several_owners.cc  scans and searches of several nodes at once
//
// One for each transaction; reused for the next one after Clear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/coro/async.h"
#include "base/coro/started.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/record_header.h"
#include "rdma/fabric.h"
#include "rdma/message_buffer.h"
#include "rdma/rpc.h"
#include "txn/access/failure.h"
#include "txn/access/read_set.h"
#include "txn/access/write_buffer.h"
#include "txn/path/offload_chooser.h"
#include "txn/peer/wire.h"
#include "txn/session/session_state.h"
#include "txn/store/requests.h"

namespace gannet::txn {

struct RowShape;

class Access {
 public:
  explicit Access(SessionState* session) : session_(session), writes_(session) {}
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  // Like those of Transaction. An offset of GetRequest::kWhole: the whole payload.
  coro::Async<Status> Get(const Table& table, Key key, std::span<std::byte> out, uint32_t offset);
  coro::Async<Status> GetMany(std::span<GetRequest> requests);
  coro::Async<StatusOr<RecordHandle>> GetForUpdate(const Table& table, Key key, std::span<std::byte> out,
                                                   uint32_t offset);
  coro::Async<Status> Update(const Table& table, Key key, std::span<const std::byte> data, PayloadPart part);
  coro::Async<Status> Remove(const Table& table, Key key);
  coro::Async<StatusOr<std::span<const std::byte>>> GetView(const Table& table, Key key);
  coro::Async<StatusOr<bool>> Exists(const Table& table, Key key);
  coro::Async<Status> Upsert(const Table& table, Key key, std::span<const std::byte> payload);
  coro::Async<StatusOr<bool>> UpdateIf(const Table& table, Key key, std::span<const std::byte> expected,
                                       std::span<const std::byte> payload);
  coro::Async<Status> Add(const Table& table, Key key, uint32_t offset, const payload::Sum& addition, std::byte* sum);
  coro::Async<Status> Scan(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options);
  coro::Async<Status> Search(const Table& table, const index::Rectangle& window, ScanRows* rows, ScanOptions options);
  coro::Async<Status> Nearest(const Table& table, const index::NearestQuery& query, ScanRows* rows,
                              ScanOptions options);

  // secondary.cc
  // True if it writes rows of a table with secondary indexes.
  bool HasIndexedWrites() const;
  // Adds the changes of secondary indexes to the write set that the writes up to now make. AlreadyExists: a row has
  // the key of a unique index already; with `last`, when the commit follows, the commit finds most of these. DataLoss
  // without a failure: an index is wrong, if the transaction validates. After an error, call it again.
  coro::Task<Status> KeepIndexes(bool last);
  // The row to which an entry leads; `entry_key` lies in the arena. NotFound: there is no such entry. Errors as those
  // of KeepIndexes, which it calls if there is something to keep.
  coro::Task<StatusOr<RowBy>> GetBy(const SecondaryIndex& index, std::string_view entry_key, bool for_update);
  // Replaces *rows by the rows of the entries with these numbers. `entries` must not change meanwhile.
  struct EntrySpan {
    size_t from = 0;
    size_t to = 0;
  };
  coro::Task<Status> RowsOfEntries(const SecondaryIndex& index, const ScanRows& entries, EntrySpan span,
                                   ScanOptions options, ScanRows* rows);
  // For the build of an index: adds the entry of a row, if there is such a row and it has none. AlreadyExists names two
  // rows with one key of a unique index. `row` must outlive the await.
  coro::Task<Status> AddEntry(const SecondaryIndex& index, Key row);
  // Removes an entry, if it is there.
  coro::Task<Status> RemoveEntryByKey(const SecondaryIndex& index, Key entry_key);

  ReadSet& reads() { return reads_; }
  const ReadSet& reads() const { return reads_; }
  WriteBuffer& writes() { return writes_; }
  const WriteBuffer& writes() const { return writes_; }
  Failure& failure() { return failure_; }
  const Failure& failure() const { return failure_; }

  void Clear() {
    reads_.Clear();
    writes_.Clear();
    failure_.Clear();
    index_notes_.clear();
  }

 private:
  // The outcome of one attempt to read a record.
  enum class Look : uint8_t {
    kDone,      // request->status is set
    kGone,      // the record is absent or holds another key: ask the index again
    kConflict,  // locked for long
    kDamaged,   // the index is damaged, and led to something else
  };

  Status Failed(Status status) { return failure_.Note(std::move(status)); }
  // The same for a GetMany: the requests get the failure, too.
  Status Failed(Status status, std::span<GetRequest> requests);

  // direct_access.cc
  // Returns the result of the user's Get or GetMany for a request that was served.
  static Status Served(GetRequest* request);
  // The key is not in the index: serves this transaction's own insert of it, if any; else NotFound, under `witness`.
  void ReadMissing(GetRequest* request, const index::Witness& witness);
  Look LookDirect(GetRequest* request, rdma::GlobalAddress record);
  Status GetDirect(GetRequest* request);
  // Serves the one request of an operation, and returns the operation's result.
  Status LoadDirect(GetRequest* request);
  Status LocateDirect(std::span<GetRequest> requests);
  void FindOrdered(std::span<const GetRequest> requests);
  Status GetManyDirect(std::span<GetRequest> requests);
  Status GetGroupDirect(std::span<GetRequest> requests);
  coro::Task<Status> GetManyApart(std::span<GetRequest> requests);
  Status ScanDirect(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options);
  // Appends the rows of what `find` finds in this node's index, and adds its witnesses to the read set.
  Status AppendFound(const Table& table, absl::FunctionRef<Status(index::ScanResult*)> find, ScanRows* rows,
                     ScanOptions options);
  // The same for a scan of an index that tells records without their keys (IndexTraits::scans_records).
  Status AppendScanned(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options);
  // How a scan copies rows: it watches that the keys ascend if other nodes may write into records.
  enum class Copying : uint8_t { kAlone, kWatched, kSimulated };
  struct CopyRun;
  template <index::KeyKind kKind, Copying kCopying>
  static void CopyRows(const RowShape& shape, const std::byte* memory, CopyRun* run);
  static CopyRun BeginCopies(const RowShape& shape);
  size_t AppendUnlocked(const RowShape& shape, std::span<const rdma::GlobalAddress> records, CopyRun* run,
                        ScanRows* rows);
  static bool EndsInOrder(const ScanRows& rows, bool reverse);
  bool AppendRow(const Table& table, const index::Entry& entry, ScanRows* rows, ScanOptions options, Look* look);
  bool IsGoneForGood(const Table& table, const index::Entry& entry) const;
  // False: the index is damaged. What a client of it found cannot be the address of the key's record.
  bool MayBeRecordOf(const Table& table, const Key& key, rdma::GlobalAddress record) const {
    return !table.index_traits().client_writes ||
           (record.node() == table.OwnerOf(key, session_->self) && record.offset() % kLineBytes == 0);
  }
  void MergeOwnInserts(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options);
  void AppendOwnRow(uint32_t number, ScanRows* rows, ScanOptions options);
  // `range` with a larger limit if this transaction has removed rows in it.
  index::ScanRange BeyondOwnRemovals(const Table& table, index::ScanRange range) const;

  // composed.cc
  // What the operations do with a request that was served with `found`.
  Status PutRow(Status found, const GetRequest& request, std::span<const std::byte> payload);
  StatusOr<bool> PutRowIf(Status found, const GetRequest& request, std::span<const std::byte> expected,
                          std::span<const std::byte> payload);
  Status PutSum(Status found, const GetRequest& request, const payload::Sum& addition, std::byte* sum);
  coro::Task<StatusOr<std::span<const std::byte>>> GetViewRemote(const Table& table, Key key);
  coro::Task<StatusOr<bool>> ExistsRemote(const Table& table, Key key);
  coro::Task<Status> UpsertRemote(const Table& table, Key key, std::span<const std::byte> payload);
  coro::Task<StatusOr<bool>> UpdateIfRemote(const Table& table, Key key, std::span<const std::byte> expected,
                                            std::span<const std::byte> payload);
  coro::Task<Status> AddRemote(const Table& table, Key key, uint32_t offset, payload::Sum addition, std::byte* sum);
  GetRequest RequestForNumber(const Table& table, Key key, uint32_t offset, size_t bytes);
  GetRequest RequestForView(const Table& table, Key key);
  // False: the payload is longer than the request's room, which is larger now; serve it again.
  bool HasWholeView(GetRequest* request);

  // secondary.cc
  // What the write set leaves of a row in an index.
  struct IndexNote {
    const SecondaryIndex* index = nullptr;
    std::optional<std::string_view> entry;  // its key, in the arena
    uint32_t next = UINT32_MAX;             // number of the next note about the same row
  };
  struct IndexInsertion {
    uint32_t note;
    Key row;
    std::string_view entry;
  };
  struct IndexRemoval {
    uint32_t note;
    Key row;
  };
  struct IndexChanges {
    std::vector<IndexRemoval> removals;
    std::vector<IndexInsertion> insertions;
  };
  std::string_view KeepText(std::string_view text);
  Status CopyBase(const WriteEntry& entry, std::span<std::byte> out) const;
  // Valid until the next call.
  StatusOr<std::optional<std::string_view>> EntryKeyOf(const SecondaryIndex& index, const Key& key,
                                                       std::span<const std::byte> payload);
  StatusOr<uint32_t> NoteOf(WriteEntry& entry, const SecondaryIndex& index);
  Status CollectIndexChanges(std::span<const uint32_t> written, IndexChanges* changes);
  coro::Task<Status> ChangeIndexes(const IndexChanges* changes, bool last);
  Status CheckKeysDiffer(const IndexChanges& changes) const;
  Status RemoveEntry(RecordHandle handle);
  Status InsertEntry(const SecondaryIndex& index, std::string_view entry_key, const Key& row);

  // search.cc
  // The range of all keys of a spatial table.
  static index::ScanRange AllRectangles();
  // A range of keys that has all rectangles that meet the window, and others.
  index::ScanRange RectanglesFor(const index::Rectangle& window);
  Status CheckSpatial(const Table& table) const;
  Status SearchDirect(const Table& table, const index::Rectangle& window, ScanRows* rows, ScanOptions options);
  coro::Task<Status> SearchRemote(const Table& table, index::Rectangle window, ScanRows* rows, ScanOptions options);
  void MergeOwnInserts(const Table& table, const index::Rectangle& window, ScanRows* rows, ScanOptions options);
  Status NearestDirect(const Table& table, const index::NearestQuery& query, ScanRows* rows, ScanOptions options);
  coro::Task<Status> NearestOfAll(const Table& table, index::NearestQuery query, ScanRows* rows, ScanOptions options);
  coro::Task<Status> NearestRemote(const Table& table, index::NearestQuery query, rdma::NodeId node, ScanRows* rows,
                                   ScanOptions options);
  void KeepNearest(const Table& table, const index::NearestQuery& query, ScanRows* rows, ScanOptions options);

  // path_choice.cc
  // Rows of a range; or of a window: then `range` is RectanglesFor(window); or those nearest to a point: then it is
  // AllRectangles().
  struct RowsWanted {
    index::ScanRange range;
    std::optional<index::Rectangle> window{};
    std::optional<index::NearestQuery> nearest{};
    bool is_spatial() const { return window.has_value() || nearest.has_value(); }
  };
  // The requests of a GetMany that one owner serves, by their numbers.
  struct OwnerGroup {
    rdma::NodeId owner = 0;
    std::span<const uint32_t> which{};
    PathChoice choice;
  };
  // The buffers of a call, of which several may be in progress.
  struct CallBuffers {
    rdma::MessageBuffer request;
    rdma::MessageBuffer response;
  };
  // What one of several owners has for a scan or search.
  struct OwnerPart {
    rdma::NodeId owner = 0;
    ScanRows rows;  // known so far
    bool has_all = false;
    size_t asked_for = 0;    // rows, at most, by the last question
    size_t rows_before = 0;  // it
    coro::Started<Status> answer;
  };
  PathChoice ChooseForKey(const GetRequest& request, rdma::NodeId owner, const index::RemoteIndex& index);
  StatusOr<PathChoice> ChooseForGroup(std::span<const GetRequest> requests, const OwnerGroup& group);
  PathChoice ChooseForRows(const Table& table, const RowsWanted& wanted, rdma::NodeId owner,
                           const index::RemoteIndex& index);

  // remote_access.cc
  coro::Task<Status> GetOne(GetRequest request);
  coro::Task<StatusOr<RecordHandle>> GetOneForUpdate(GetRequest request);
  coro::Task<Status> GetRemote(GetRequest* request);
  // Like LoadDirect.
  coro::Task<Status> LoadRemote(GetRequest* request);
  coro::Task<Status> GetByReads(GetRequest* request, index::RemoteIndex* remote);
  coro::Task<Status> GetByCall(GetRequest* request, rdma::NodeId owner);
  // Puts the owner's answer into `room`. An owner does not wait for locked records, so it is asked again.
  coro::Task<StatusOr<size_t>> AskOwner(rdma::NodeId owner, rdma::MethodId method, std::span<const std::byte> question,
                                        std::span<std::byte> room);
  Look LookAtImage(GetRequest* request, const index::FindResult& found, const std::byte* image, size_t image_bytes);
  uint32_t FirstReadBytes(const Table& table, const Key& key) const;
  const std::byte* MakeImage(const Key& key, uint64_t state, index::RecordMeta meta, std::span<const std::byte> payload,
                             size_t* bytes);
  // Takes a record, present or not, that an owner's answer has next. False: it is malformed.
  bool TakeAnswer(rdma::WireReader& reader, ReadOutcome outcome, GetRequest* request);
  void Remember(const GetRequest& request, rdma::GlobalAddress record);
  coro::Task<Status> UpdateByKey(const Table& table, Key key, std::span<const std::byte> data, PayloadPart part);
  coro::Task<Status> RemoveByKey(const Table& table, Key key);

  // remote_groups.cc
  coro::Task<Status> GetManyMixed(std::span<GetRequest> requests);
  coro::Task<Status> GetManyOfAll(std::span<GetRequest> requests);
  std::vector<uint32_t> RemoteOf(std::span<const GetRequest> requests) const;
  // Serves the requests numbered in `remote`, which are sorted by owner and table.
  coro::Task<Status> GetManyRemote(std::span<GetRequest> requests, std::span<const uint32_t> remote);
  CallBuffers* BuffersOfCall(size_t i);
  Status GroupByOwner(std::span<const GetRequest> requests, std::span<const uint32_t> remote);
  coro::Task<Status> GetGroupsByReads(std::span<GetRequest> requests);
  coro::Task<Status> GetManyByReads(std::span<GetRequest> requests, std::span<const uint32_t> which);
  coro::Task<Status> FindRemote(std::span<GetRequest> requests, std::span<const uint32_t> which);
  coro::Task<Status> GetGroupByCall(std::span<GetRequest> requests, const OwnerGroup* group, CallBuffers* buffers);
  coro::Task<Status> GetManyByCall(std::span<GetRequest> requests, const OwnerGroup* group, CallBuffers* buffers);
  StatusOr<size_t> TakeMany(rdma::WireReader& reader, rdma::NodeId owner, std::span<GetRequest> requests,
                            std::span<const uint32_t> asked, std::vector<uint32_t>* locked, uint64_t* lock);

  // remote_scan.cc
  coro::Task<Status> ScanRemote(const Table& table, index::ScanRange range, ScanRows* rows, ScanOptions options);
  coro::Task<Status> RowsOfNode(const Table& table, RowsWanted wanted, rdma::NodeId node, CallBuffers* buffers,
                                ScanRows* rows, ScanOptions options);
  Status RowsDirect(const Table& table, const RowsWanted& wanted, ScanRows* rows, ScanOptions options);
  coro::Task<Status> RowsByReads(const Table& table, RowsWanted wanted, index::RemoteIndex* remote, ScanRows* rows,
                                 ScanOptions options);
  // READs the records of `found`, appends them, and adds the witnesses to the read set. After a conflict that a damaged
  // index may be the reason of, *doubtful is the number of the entry.
  coro::Task<Status> FetchFound(const Table& table, const index::ScanResult& found, ScanRows* rows, ScanOptions options,
                                size_t* doubtful);
  coro::Task<Status> RowsByCalls(const Table& table, RowsWanted wanted, rdma::NodeId node, CallBuffers* buffers,
                                 ScanRows* rows, ScanOptions options);
  Status TakeScanned(const Table& table, rdma::NodeId node, rdma::WireReader& reader, ScanRequest* request,
                     ScanRows* rows, ScanOptions options, bool* more);
  Status AppendImage(const GetRequest& request, rdma::GlobalAddress record, const std::byte* image, ScanRows* rows,
                     ScanOptions options);

  // several_owners.cc
  // Appends the rows of all owners, up to the range's limit. In the order of the scan, unless `wanted` is spatial.
  coro::Task<Status> RowsOfNodes(const Table& table, RowsWanted wanted, ScanRows* rows, ScanOptions options);
  void PrepareParts(const Owners& owners, bool reverse);
  void StartRound(const Table& table, const RowsWanted& wanted, bool in_order, size_t round,
                  std::span<const std::unique_ptr<OwnerPart>> parts, ScanOptions options);
  bool OwnedDirectly(rdma::NodeId owner) const;
  bool EstimateRows(const Table& table, const RowsWanted& wanted, rdma::NodeId owner, size_t* rows);
  index::ScanRange RestOf(const OwnerPart& part, index::ScanRange range, size_t more);
  static void NoteAnswer(OwnerPart& part);
  static void MergeParts(const index::ScanRange& range, bool in_order,
                         std::span<const std::unique_ptr<OwnerPart>> parts, ScanRows* rows);

  SessionState* const session_;
  Failure failure_;
  ReadSet reads_;
  WriteBuffer writes_;

  // Scratch, kept for its capacity.
  std::vector<Key> keys_;
  std::vector<index::FindResult> found_;    // by request
  std::vector<index::FindResult> results_;  // by key of one group
  std::vector<uint32_t> pending_;           // requests of ordered tables not looked up yet
  std::vector<uint32_t> group_;             // requests of one table
  std::vector<IndexNote> index_notes_;
  std::string entry_key_;
  std::string entry_payload_;
  std::vector<std::byte> row_bytes_;
  index::ScanResult scan_;
  std::vector<rdma::GlobalAddress> ahead_;  // records of a scan, whose rows are copied next
  std::vector<rdma::Operation> operations_;
  std::vector<OwnerGroup> groups_;                          // of a GetMany
  std::vector<uint32_t> one_sided_;                         // requests of it
  std::vector<coro::Started<Status>> calls_;                // of it
  std::vector<std::unique_ptr<CallBuffers>> call_buffers_;  // by number of the call (BuffersOfCall)
  std::vector<std::unique_ptr<OwnerPart>> parts_;
  rdma::MessageBuffer response_;
};

}  // namespace gannet::txn
