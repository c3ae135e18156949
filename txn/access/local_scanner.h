// LocalScanner: scans and searches of this node's rows by its own CPU. The index tells the records, whose keys and
// payloads are copied as local_reader.h says.
//
// The words of the records and the index's witnesses go to the read set; records that are read for update go to the
// write buffer. Rows that the transaction has removed are left out, and rows that it has changed are as it left them.
// Its inserts are not in the index yet, so they are not found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "index/index.h"
#include "rdma/global_address.h"
#include "txn/access/local_reader.h"
#include "txn/access/read_set.h"
#include "txn/access/rows_wanted.h"
#include "txn/access/write_buffer.h"
#include "txn/store/requests.h"

namespace gannet::txn {

struct RowShape;
struct SessionState;

// Used by the session's thread, for one scan at a time. Its scratch is kept from one transaction to the next.
class LocalScanner {
 public:
  // All must outlive this.
  LocalScanner(SessionState* session, ReadSet* reads, WriteBuffer* writes, LocalReader* reader)
      : session_(session), reads_(*reads), writes_(*writes), reader_(*reader) {}
  LocalScanner(const LocalScanner&) = delete;
  LocalScanner& operator=(const LocalScanner&) = delete;

  // Appends this node's rows that are wanted, and as many more as the transaction's removals may hide. Aborted: a
  // record stays locked, or rows come and go all the time. Unavailable: a record stays locked by a lost node
  // (LockedTooLong). DataLoss: the index is damaged. Others: those of the index. After an error *rows has
  // some of the rows.
  Status Append(const Table& table, const RowsWanted& wanted, ScanRows* rows, ScanOptions options);

 private:
  // Appends the rows of what `find` finds in the index, and adds its witnesses to the read set.
  Status AppendFound(const Table& table, absl::FunctionRef<Status(index::ScanResult*)> find, ScanRows* rows,
                     ScanOptions options);
  // Does so for a scan of an index that tells records without their keys (IndexTraits::scans_records).
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

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  LocalReader& reader_;

  // Scratch.
  index::ScanResult scan_;
  std::vector<rdma::GlobalAddress> ahead_;  // records of a scan, whose rows are copied next
};

}  // namespace gannet::txn
