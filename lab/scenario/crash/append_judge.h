// AppendJudge: collects the transactions of all children into one list-append history, and judges it at the end.
//
// The pipe is the clock. A child sends the begin of a transaction before it runs it, and the end after it was
// acknowledged; messages received earlier happened earlier, as far as real time can show. Transactions of a killed
// child have an unknown outcome, and each start reads the lists back: everything that was acknowledged or seen must
// still be there, in the same order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lab/scenario/check/list_append.h"
#include "lab/scenario/crash/judge.h"

namespace gannet::scenario::crash {

// Lists that are appended to at the same time.
inline constexpr uint64_t kListSlots = 16;

class AppendJudge final : public Judge {
 public:
  // It has one client for each worker, and one that reads the recovered lists.
  explicit AppendJudge(const CrashOptions& options);

  Status Take(const Message& message) override;
  void ChildDied() override;
  KeyRange ListsToTell(bool last) const override;
  // Writes CrashOptions::elle_file, if it is set, and judges. DataLoss lists the anomalies.
  Status Finish() override;
  std::string Verdict() const override { return verdict_; }
  const AppendHistory& history() const { return history_; }

 private:
  // A transaction, as far as it has been reported.
  struct Client {
    uint64_t micro_ops_to_come = 0;
    uint64_t values_to_come = 0;  // of the last of `lists`
    bool running = false;
    OperationId op = 0;
    std::vector<MicroOp> micro_ops;
    std::vector<List> lists;  // of the reads, in their order
  };

  void AddMicroOp(const Message& message, Client* client);
  static Status AddValues(const Message& message, Client* client);
  Status End(const Message& message, Client* client);
  Status WriteElle() const;
  // Returns a moment that is later than every moment before.
  uint64_t Now();

  AppendHistory history_;
  std::vector<Client> clients_;
  uint64_t now_ = 0;
  uint64_t next_list_ = 0;     // above the keys of all lists
  uint64_t changed_from_ = 0;  // no list below has been appended to since the lists were reported
  std::string verdict_;
};

}  // namespace gannet::scenario::crash
