// Step 2 of recovery (recovery.h): reads the logs of all nodes, each once.
//
// A change may be taken at once if this node's log is known to close its epoch, and the other nodes' logs, which are
// read first, close it and have the decision, if another node decides. Other changes are kept aside until the end of
// this node's log is known: transactions of the last epochs, and parts without a decision.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "log/file/file_system.h"
#include "log/log.h"
#include "log/manifest/manifest.h"
#include "log/segment/log_reader.h"
#include "txn/durable/data_directory.h"
#include "txn/durable/latest_changes.h"
#include "txn/store/options.h"
#include "txn/store/statistics.h"

namespace gannet::txn {

// One Read.
class LogsReader {
 public:
  // `nodes`: all nodes of the cluster; this reads for `node`. `files`, `nodes` and `checkpoint` must outlive this.
  // `make_durable`: see log::ReadOptions; the caller holds this node's directory.
  LogsReader(log::FileSystem& files, const std::vector<NodeData>& nodes, int node,
             const log::CheckpointDescription& checkpoint, int threads, bool salvage, bool make_durable,
             const std::atomic<bool>* stop)
      : files_(files),
        nodes_(nodes),
        node_(node),
        checkpoint_(checkpoint),
        threads_(threads),
        salvage_(salvage),
        make_durable_(make_durable),
        stop_(stop),
        logs_(nodes.size()) {}

  // Puts the changes of this node's records that the checkpoint does not have into *changes. Cancelled once *stop (may
  // be null) is true.
  Status Read(LatestChanges* changes, log::LogEnd* end, RecoveryReport* report);

 private:
  using Id = std::pair<uint64_t, uint64_t>;  // epoch, id
  struct Aside {
    Id id;
    log::TransactionPart part;
    std::string bytes;  // an encoded transaction
  };

  StatusOr<log::LogSummary> ReadOne(int node, uint64_t from_segment, const log::TransactionVisitor& visit,
                                    const std::function<Status(int thread)>& batch_end) const;
  Status ReadOthers();
  Status CheckTogether();
  // Ends the reading with the damage; in salvage, lists it.
  Status Found(log::Damage damage);
  Status Visit(int thread, const log::TransactionView& transaction);
  void NoteDecision(const log::TransactionView& transaction);
  void KeepAside(const log::TransactionView& transaction);
  Status TakeAside(LatestChanges* changes, RecoveryReport* report) const;

  log::FileSystem& files_;
  const std::vector<NodeData>& nodes_;
  int node_;
  const log::CheckpointDescription& checkpoint_;
  int threads_;
  bool salvage_;  // continue after damage; report->damages has it
  bool make_durable_;
  const std::atomic<bool>* stop_;
  std::vector<log::LogSummary> logs_;  // of the nodes, once they are read
  uint64_t recovered_ = UINT64_MAX;    // the epoch that all logs read so far recover
  uint64_t last_epoch_ = 0;
  std::vector<log::Damage> damages_;   // of the logs together
  std::atomic<uint64_t> left_out_{0};  // transactions of later epochs, which were not kept aside

  std::set<Id> decided_elsewhere_;                             // by the other logs, once they are read
  std::vector<std::unique_ptr<LatestChanges::Adder>> adders_;  // by thread
  Mutex mutex_;                                                // guards the members below while a log is read
  std::set<Id> decided_;
  std::vector<Aside> aside_;
};

}  // namespace gannet::txn
