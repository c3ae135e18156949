#include "lab/scenario/crash/append_judge.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "lab/scenario/check/elle.h"

namespace gannet::scenario::crash {

AppendJudge::AppendJudge(const CrashOptions& options)
    : Judge(options), clients_(static_cast<size_t>(options.workers()) + 1) {}

uint64_t AppendJudge::Now() {
  now_ = std::max(now_ + 1, NowNanos());
  return now_;
}

Status AppendJudge::Take(const Message& message) {
  if (message.worker >= clients_.size()) return absl::InternalError("the child names a worker that does not exist");
  Client& client = clients_[message.worker];
  switch (message.kind) {
    case MessageKind::kRecovered:
    case MessageKind::kRunning:
    case MessageKind::kClosed:
      return absl::OkStatus();
    case MessageKind::kAppendBegun:
      client = {.micro_ops_to_come = message.number, .micro_ops = {}, .lists = {}};
      return absl::OkStatus();
    case MessageKind::kMicroOp:
      AddMicroOp(message, &client);
      return absl::OkStatus();
    case MessageKind::kList:
      client.lists.emplace_back();
      client.values_to_come = message.number;
      return AddValues(message, &client);
    case MessageKind::kListMore:
      return AddValues(message, &client);
    case MessageKind::kAppendOver:
      return End(message, &client);
    case MessageKind::kStateEnd:
      if (message.number != message.a) {
        return absl::DataLossError(
            absl::StrFormat("the indexes count %d keys, but %d lists were found", message.number, message.a));
      }
      ++statistics_.recoveries;
      changed_from_ = next_list_;
      return absl::OkStatus();
    default:
      return absl::InternalError("the child sent a message that this workload does not have");
  }
}

void AppendJudge::AddMicroOp(const Message& message, Client* client) {
  client->micro_ops.push_back(message.number != 0 ? MicroOp::Append(message.a, message.b) : MicroOp::Read(message.a));
  if (message.number != 0) {
    next_list_ = std::max(next_list_, message.a + 1);
    changed_from_ = std::min(changed_from_, message.a);
  }
  if (client->micro_ops.size() < client->micro_ops_to_come) return;
  ++statistics_.begun;
  client->running = true;
  client->op = history_.Invoke(message.worker, Now(), client->micro_ops);
}

Status AppendJudge::AddValues(const Message& message, Client* client) {
  if (client->lists.empty()) return absl::InternalError("the child told values of no list");
  for (const uint64_t value : std::array{message.a, message.b, message.c}) {
    if (client->values_to_come == 0) break;
    --client->values_to_come;
    client->lists.back().push_back(value);
  }
  return absl::OkStatus();
}

Status AppendJudge::End(const Message& message, Client* client) {
  if (!client->running) return absl::InternalError("the child ended a transaction that it did not begin");
  client->running = false;
  if (message.number == 0) {
    history_.Complete(client->op, Now(), Outcome::kInfo);
    return absl::OkStatus();
  }
  std::vector<List> reads(client->micro_ops.size());
  size_t read = 0;
  for (size_t i = 0; i < reads.size(); ++i) {
    if (client->micro_ops[i].append) continue;
    if (read == client->lists.size()) return absl::InternalError("the child did not tell every list that it read");
    reads[i] = std::move(client->lists[read++]);
  }
  history_.Complete(client->op, Now(), Outcome::kOk, std::move(reads));
  ++statistics_.acknowledged;
  return absl::OkStatus();
}

void AppendJudge::ChildDied() {
  for (Client& client : clients_) {
    if (client.running) history_.Complete(client.op, Now(), Outcome::kInfo);
    client = {};
  }
}

KeyRange AppendJudge::ListsToTell(bool last) const {
  const auto down = [](uint64_t key) { return key / kListSlots * kListSlots; };
  const uint64_t to = down(next_list_ + kListSlots - 1);
  const uint64_t newest = to - std::min(to, kListSlots);
  return {.from = last ? 0 : std::min(down(changed_from_), newest), .to = to};
}

Status AppendJudge::WriteElle() const {
  if (options_.elle_file.empty()) return absl::OkStatus();
  std::ofstream file(options_.elle_file);
  file << ToElleEdn(history_);
  file.close();
  if (file) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(options_.elle_file, ": cannot be written"));
}

Status AppendJudge::Finish() {
  GANNET_RETURN_IF_ERROR(WriteElle());
  const Report report = CheckListAppend(history_);
  if (report.verdict == Verdict::kViolated) {
    verdict_ = "the history is not strictly serializable";
    return absl::DataLossError(absl::StrCat(verdict_, ":\n", report.ToString()));
  }
  verdict_ = absl::StrFormat(
      "the history of %d transactions is %s: %d committed, of which %d had not been acknowledged; %d edges",
      report.operations, report.ok() ? "strictly serializable" : "undecided", report.committed, report.info_committed,
      report.edges);
  return absl::OkStatus();
}

}  // namespace gannet::scenario::crash
