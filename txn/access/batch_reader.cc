#include "txn/access/batch_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/sometimes.h"
#include "txn/access/access_internal.h"
#include "txn/access/path_choice.h"
#include "txn/node/row_checks.h"
#include "txn/peer/wire.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

using index::FindResult;

// Returns the requests for other nodes, sorted by owner and table, so that neighbours share a batch or a call.
std::vector<uint32_t> BatchReader::RemoteOf(std::span<const GetRequest> requests) const {
  std::vector<uint32_t> remote;
  for (uint32_t i = 0; i < requests.size(); ++i) {
    rdma::NodeId owner;
    if (!session_->OwnedHere(*requests[i].table, requests[i].key, &owner)) remote.push_back(i);
  }
  const auto place = [&](uint32_t i) {
    return std::pair(requests[i].table->OwnerOf(requests[i].key, session_->self), requests[i].table->id());
  };
  std::ranges::stable_sort(remote, {}, place);
  return remote;
}

// Fills groups_, with a choice for each.
Status BatchReader::GroupByOwner(std::span<const GetRequest> requests, std::span<const uint32_t> remote) {
  groups_.clear();
  for (size_t first = 0; first < remote.size();) {
    const auto owner_of = [&](size_t n) {
      const GetRequest& request = requests[remote[n]];
      return request.table->OwnerOf(request.key, session_->self);
    };
    Group group{.owner = owner_of(first), .which = {}, .choice = {}};
    size_t end = first;
    // A fixed policy may say something else for some tables.
    const auto path_of = [&](size_t n) { return session_->paths.FixedPath(requests[remote[n]].table->index_traits()); };
    const auto joins = [&](size_t n) {
      return owner_of(n) == group.owner && (session_->paths.adaptive() || path_of(n) == path_of(first));
    };
    for (; end < remote.size() && joins(end); ++end) {
      GANNET_RETURN_IF_ERROR(CheckRow(*session_->local, *requests[remote[end]].table, requests[remote[end]].key));
    }
    group.which = remote.subspan(first, end - first);
    StatusOr<PathChoice> choice = ChooseForGroup(*session_, requests, group.owner, group.which, &keys_);
    if (!choice.ok()) return choice.status();
    group.choice = *choice;
    groups_.push_back(group);
    first = end;
  }
  return absl::OkStatus();
}

coro::Task<Status> BatchReader::GetRemote(std::span<GetRequest> requests, std::span<const uint32_t> remote) {
  Status status = GroupByOwner(requests, remote);
  if (!status.ok()) co_return status;
  one_sided_.clear();
  calls_.clear();
  for (const Group& group : groups_) {
    if (group.choice.path == AccessPath::kOneSided) {
      one_sided_.insert(one_sided_.end(), group.which.begin(), group.which.end());
      continue;
    }
    calls_.emplace_back(GetGroupByCall(requests, &group, buffers_.Of(calls_.size())));
  }
  if (!one_sided_.empty()) status = co_await GetGroupsByReads(requests);
  // All of them: a call in flight still uses its buffers.
  for (coro::Started<Status>& call : calls_) {
    Status called = co_await call;
    status.Update(called);
  }
  calls_.clear();
  co_return status;
}

// The groups share a posting, so each gets a share of the time, by its number of records.
coro::Task<Status> BatchReader::GetGroupsByReads(std::span<GetRequest> requests) {
  const auto is_measured = [](const Group& group) {
    return group.choice.path == AccessPath::kOneSided && group.choice.measured;
  };
  MeasuredAccess measured = session_->Measure(std::ranges::any_of(groups_, is_measured));
  Status status = co_await GetByReads(requests, one_sided_);
  for (const Group& group : groups_) {
    if (!is_measured(group)) continue;
    const double share = static_cast<double>(group.which.size()) / static_cast<double>(one_sided_.size());
    measured.End(status, group.choice, share);
  }
  co_return status;
}

// Looks up the requests numbered in `which`: one batch per (table, owner). Results go to found_, in the order of
// `which`.
coro::Task<Status> BatchReader::FindRemote(std::span<GetRequest> requests, std::span<const uint32_t> which) {
  found_.clear();
  for (size_t first = 0; first < which.size();) {
    const Table& table = *requests[which[first]].table;
    const rdma::NodeId owner = table.OwnerOf(requests[which[first]].key, session_->self);
    keys_.clear();
    for (; first < which.size(); ++first) {
      const GetRequest& request = requests[which[first]];
      if (request.table != &table || table.OwnerOf(request.key, session_->self) != owner) break;
      GANNET_CO_RETURN_IF_ERROR(CheckKey(table, request.key));
      keys_.push_back(request.key);
    }
    StatusOr<index::RemoteIndex*> remote = session_->RemoteIndexOf(table, owner);
    if (!remote.ok()) co_return remote.status();
    results_.assign(keys_.size(), {});
    Status status = co_await (*remote)->FindMany(keys_, results_);
    if (!status.ok()) co_return status;
    found_.insert(found_.end(), results_.begin(), results_.end());
  }
  co_return absl::OkStatus();
}

// Serves the requests numbered in `which`: all records with one doorbell.
coro::Task<Status> BatchReader::GetByReads(std::span<GetRequest> requests, std::span<const uint32_t> which) {
  Status status = co_await FindRemote(requests, which);
  if (!status.ok()) co_return status;
  operations_.clear();
  for (size_t n = 0; n < which.size(); ++n) {
    const GetRequest& request = requests[which[n]];
    const FindResult& found = found_[n];
    if (found.is_lost()) co_return IndexDamaged(*request.table, request.key);
    if (found.record.is_null()) continue;
    if (!remote_.MayBeRecordOf(*request.table, request.key, found.record)) {
      co_return IndexDamaged(*request.table, request.key);
    }
    const uint32_t bytes = FirstReadBytes(*request.table, request.key);
    operations_.push_back(rdma::Operation::Read(found.record, writes_.arena().Allocate(bytes), bytes));
  }
  if (!operations_.empty()) {
    status = co_await session_->channel->Post(operations_);
    if (!status.ok()) co_return status;
  }
  for (size_t n = 0, read = 0; n < which.size(); ++n) {
    GetRequest& request = requests[which[n]];
    if (found_[n].record.is_null()) {
      ReadMissing(reads_, writes_, &request, found_[n].witness);
      GANNET_CO_RETURN_IF_ERROR(Served(&request));
      continue;
    }
    const rdma::Operation& operation = operations_[read++];
    const Look look =
        remote_.LookAtImage(&request, found_[n], static_cast<std::byte*>(operation.local), operation.size);
    if (look == Look::kDone) {
      GANNET_CO_RETURN_IF_ERROR(Served(&request));
      continue;
    }
    StatusOr<index::RemoteIndex*> index =
        session_->RemoteIndexOf(*request.table, request.table->OwnerOf(request.key, session_->self));
    if (!index.ok()) co_return index.status();
    if (look == Look::kGone) (*index)->Forget(request.key);
    session_->channel->CountRetry();
    status = co_await remote_.GetByReads(&request, *index);
    if (!status.ok()) co_return status;
  }
  co_return absl::OkStatus();
}

coro::Task<Status> BatchReader::GetGroupByCall(std::span<GetRequest> requests, const Group* group,
                                               CallBuffers::Messages* messages) {
  MeasuredAccess measured = session_->Measure(group->choice.measured);
  Status status = co_await GetByCall(requests, group, messages);
  measured.End(status, group->choice);
  co_return status;
}

// Makes as many calls as necessary: an answer is one message. The owner does not wait for locked records for long, so
// it is asked again for them.
coro::Task<Status> BatchReader::GetByCall(std::span<GetRequest> requests, const Group* group,
                                          CallBuffers::Messages* messages) {
  std::vector<uint32_t> locked;  // of the records asked for in this round
  std::vector<uint32_t> asked_again;
  uint64_t lock = 0;
  std::span<const uint32_t> pending = group->which;
  for (int round = 1; !pending.empty(); ++round) {
    if (round > kReadAgain) co_return session_->LockedTooLong(lock);
    if (round > 1) {
      session_->channel->CountRetry();
      co_await session_->Yield();
    }
    while (!pending.empty()) {
      rdma::WireWriter writer(messages->request.room());
      const std::span<std::byte> count = writer.Reserve(sizeof(uint16_t));
      uint16_t n = 0;
      for (; n < std::min(pending.size(), kMostKeysPerRead) && writer.room() >= kAskedKeyBytes; ++n) {
        writer.PutU16(requests[pending[n]].table->id());
        index::PutKey(writer, requests[pending[n]].key);
      }
      std::memcpy(count.data(), &n, sizeof n);
      const std::span<const uint32_t> asked = pending.first(n);
      const std::span<const std::byte> question = writer.written();
      StatusOr<size_t> size = co_await session_->channel->Call(
          group->owner, kTxnReadMany, question, messages->response.room(), session_->local->options.call_timeout);
      if (!size.ok()) co_return size.status();
      rdma::WireReader reader(messages->response.room().first(*size));
      StatusOr<size_t> served = TakeMany(reader, group->owner, requests, asked, &locked, &lock);
      if (!served.ok()) co_return served.status();
      pending = pending.subspan(*served);
    }
    asked_again = std::exchange(locked, {});
    pending = asked_again;
  }
  co_return absl::OkStatus();
}

// Takes the answer to a kTxnReadMany about `asked`, and returns how many of them it is about. Adds those that are
// locked to *locked, with a state word in *lock.
StatusOr<size_t> BatchReader::TakeMany(rdma::WireReader& reader, rdma::NodeId owner, std::span<GetRequest> requests,
                                       std::span<const uint32_t> asked, std::vector<uint32_t>* locked, uint64_t* lock) {
  const bool confirmed = reader.GetU8() != 0;
  const size_t read_before = reads_.size();
  const size_t n = reader.GetU16();
  if (!reader.ok() || n == 0 || n > asked.size()) return MalformedReply(owner, "a read");
  for (const uint32_t i : asked.first(n)) {
    const uint8_t outcome = reader.GetU8();
    if (!reader.ok() || outcome > static_cast<uint8_t>(ReadOutcome::kLocked)) return MalformedReply(owner, "a read");
    if (static_cast<ReadOutcome>(outcome) == ReadOutcome::kLocked) {
      Sometimes<"read: a record of another node stays locked while its owner waits">();
      *lock = reader.GetU64();
      locked->push_back(i);
      continue;
    }
    if (!remote_.TakeAnswer(reader, static_cast<ReadOutcome>(outcome), &requests[i]))
      return MalformedReply(owner, "a read");
    GANNET_RETURN_IF_ERROR(Served(&requests[i]));
  }
  if (!reader.Finish().ok()) return MalformedReply(owner, "a read");
  if (confirmed) reads_.Confirm(read_before);
  return n;
}

coro::Task<Status> BatchReader::GetMany(std::span<GetRequest> requests) {
  reads_.NoteVerbs();
  const std::vector<uint32_t> remote = RemoteOf(requests);
  Status status = co_await GetRemote(requests, remote);
  if (!status.ok()) co_return status;
  // The other requests are for this node: serves maximal runs of them.
  for (size_t first = 0; first < requests.size();) {
    rdma::NodeId owner;
    if (!session_->OwnedHere(*requests[first].table, requests[first].key, &owner)) {
      ++first;
      continue;
    }
    size_t end = first + 1;
    while (end < requests.size() && session_->OwnedHere(*requests[end].table, requests[end].key, &owner)) ++end;
    status = local_.GetMany(requests.subspan(first, end - first));
    if (!status.ok()) co_return status;
    first = end;
  }
  co_return absl::OkStatus();
}

}  // namespace gannet::txn
