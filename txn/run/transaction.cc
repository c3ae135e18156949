#include "txn/run/transaction.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/record_header.h"
#include "rdma/memory_full.h"
#include "txn/run/transaction_impl.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

namespace {

struct DurableAwaiter {
  log::LogWriter* writer;
  uint64_t epoch;
  uint64_t deadline;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) const { writer->Await(epoch, deadline, handle); }
  void await_resume() const noexcept {}
};

// True if a Commit that returns this gives information about the database, on which others may rely.
bool TellsOfData(const Status& status) {
  return status.ok() || absl::IsAlreadyExists(status);
}

constexpr uint64_t kNoChanges = 0;  // replaces their number, and Over() the failure, once the transaction is over
const Status& Over() {
  static const auto* const over = new Status(absl::FailedPreconditionError(
      "the transaction is over: it was committed, or its commit failed; begin another one"));
  return *over;
}

}  // namespace

Transaction::Transaction(std::unique_ptr<TransactionImpl> impl)
    : session_(&impl->session()),
      impl_(std::move(impl)),
      failure_(&impl_->failure()),
      changes_(&impl_->writes().changes()) {}

Transaction::~Transaction() {
  Release();
}

void Transaction::Release() {
  if (impl_ == nullptr) return;
  failure_ = &Over();
  changes_ = &kNoChanges;
  if (!session_->home.is_here()) [[unlikely]] {
    static_cast<void>(impl_.release());  // as ~Database
    return;
  }
  impl_->End();
  session_->idle_transactions.push_back(std::move(impl_));
}

// The transaction holds nothing while it waits: its writes are visible, its memory is reused.
coro::Task<Status> Transaction::AwaitDurable(SessionState* session, uint64_t epoch, Status status, uint64_t begun) {
  const absl::Duration within = session->local->options.durable_within;
  const DurableAwaiter awaiter{&session->log->writer(), epoch,
                               NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(within))};
  co_await awaiter;
  if (begun != 0) session->meter.NoteCommitTime(NowNanos() - begun);
  const CommitLog& log = *session->log;
  if (log.durable_epoch() >= epoch) co_return status;
  Sometimes<"durable: a result is Unknown because it did not become durable in time">();
  const Status health = log.health();
  co_return absl::UnknownError(absl::StrCat(
      "what the transaction wrote or read is in memory but did not become durable within ",
      absl::FormatDuration(within), ": ", health.ok() ? "the disk is slow" : absl::string_view(health.message())));
}

coro::Async<Status> Transaction::WhenDurable(Status status, uint64_t begun) {
  const uint64_t epoch = GANNET_MUTANT(kTellErrorsEarly) && !status.ok() ? 0 : impl_->EpochToAwait();
  impl_->GiveBackPrecedence();
  Release();
  const bool waits = epoch != 0 && epoch_at_ == nullptr;
  if (begun != 0 && !waits) session_->meter.NoteCommitTime(NowNanos() - begun);
  if (epoch_at_ != nullptr) {
    *epoch_at_ = epoch;
    if (epoch != 0) session_->log->writer().Want(epoch);
    return status;
  }
  if (!waits) return status;
  return AwaitDurable(session_, epoch, std::move(status), begun);
}

uint64_t Transaction::BeginsCommit() {
  if (impl_->writes().entries().empty()) return 0;
  const bool each = epoch_at_ == nullptr && session_->log->awaits_durability();  // a look at the clock is nothing then
  return session_->meter.TakesSample() || each ? NowNanos() : 0;
}

coro::Task<Status> Transaction::AfterCommit(coro::Task<Status> commit, uint64_t begun) {
  Status status;
  try {
    status = co_await commit;
  } catch (...) {  // no user code runs in a commit, so this is a lack of memory
    GANNET_CHECK(false, "a commit over several nodes met an exception in the middle");
  }
  impl_->NoteCommitted(status);
  if (!TellsOfData(status)) {
    TransactionImpl* const impl = impl_.get();
    const bool again = run_concludes_ && rdma::IsMemoryFull(status) && impl->MayAwaitMemory();
    Release();
    if (!again) co_return status;
    coro::Task<Status> waiting = impl->AwaitMemory();
    co_return co_await waiting;
  }
  coro::Async<Status> durable = WhenDurable(std::move(status), begun);
  co_return co_await durable;
}

coro::Async<Status> Transaction::Get(const Table& table, Key key, PayloadRoom row) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->points().Get(table, key, row, GetRequest::kWhole);
}
coro::Async<Status> Transaction::Get(const Table& table, Key key, PayloadRoom out, PayloadPart part) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  GANNET_RETURN_IF_ERROR(CheckRowOf(table, part));
  return impl_->points().Get(table, key, out, part.offset());
}
coro::Async<StatusOr<std::span<const std::byte>>> Transaction::GetView(const Table& table, Key key) {
  if (!failure_->ok()) [[unlikely]]
    return StatusOr<std::span<const std::byte>>(*failure_);
  return impl_->points().GetView(table, key);
}
coro::Task<Status> Transaction::Assign(coro::Task<StatusOr<std::span<const std::byte>>> view, std::string* payload) {
  const StatusOr<std::span<const std::byte>> got = co_await view;
  if (!got.ok()) co_return got.status();
  payload->assign(reinterpret_cast<const char*>(got->data()), got->size());
  co_return absl::OkStatus();
}
coro::Async<Status> Transaction::GetText(const Table& table, Key key, std::string* payload) {
  coro::Async<StatusOr<std::span<const std::byte>>> view = GetView(table, key);
  if (!view.ready()) return Assign(std::move(view.task()), payload);
  const StatusOr<std::span<const std::byte>>& got = view.value();
  if (!got.ok()) return got.status();
  payload->assign(reinterpret_cast<const char*>(got->data()), got->size());
  return absl::OkStatus();
}
coro::Async<StatusOr<bool>> Transaction::Exists(const Table& table, Key key) {
  if (!failure_->ok()) [[unlikely]]
    return StatusOr<bool>(*failure_);
  return impl_->points().Exists(table, key);
}
coro::Async<Status> Transaction::GetMany(std::span<GetRequest> requests) {
  if (!failure_->ok()) [[unlikely]] {
    for (GetRequest& request : requests) request.status = *failure_;
    return *failure_;
  }
  return impl_->points().GetMany(requests);
}
coro::Async<StatusOr<RecordHandle>> Transaction::GetForUpdate(const Table& table, Key key, PayloadRoom row) {
  if (!failure_->ok()) [[unlikely]]
    return StatusOr<RecordHandle>(*failure_);
  return impl_->points().GetForUpdate(table, key, row, GetRequest::kWhole);
}
coro::Async<StatusOr<RecordHandle>> Transaction::GetForUpdate(const Table& table, Key key, PayloadRoom out,
                                                              PayloadPart part) {
  if (!failure_->ok()) [[unlikely]]
    return StatusOr<RecordHandle>(*failure_);
  if (Status s = CheckRowOf(table, part); !s.ok()) [[unlikely]]
    return StatusOr<RecordHandle>(std::move(s));
  return impl_->points().GetForUpdate(table, key, out, part.offset());
}
Status Transaction::Update(RecordHandle handle, PayloadBytes row) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->writes().Update(handle, row, PayloadPart::Whole());
}
Status Transaction::Update(RecordHandle handle, PayloadBytes data, PayloadPart part) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->writes().Update(handle, data, part);
}
coro::Async<Status> Transaction::Update(const Table& table, Key key, PayloadBytes row) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->points().Update(table, key, row, PayloadPart::Whole());
}
coro::Async<Status> Transaction::Update(const Table& table, Key key, PayloadBytes data, PayloadPart part) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  GANNET_RETURN_IF_ERROR(CheckRowOf(table, part));
  return impl_->points().Update(table, key, data, part);
}
Status Transaction::Insert(const Table& table, Key key, PayloadBytes row) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  Status inserted = impl_->writes().Insert(table, key, row);
  return absl::IsResourceExhausted(inserted) ? impl_->AfterRefusedInsert(table, key, std::move(inserted)) : inserted;
}
coro::Async<Status> Transaction::Upsert(const Table& table, Key key, PayloadBytes row) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->points().Upsert(table, key, row);
}
coro::Async<StatusOr<bool>> Transaction::UpdateIf(const Table& table, Key key, PayloadBytes expected,
                                                  PayloadBytes row) {
  if (!failure_->ok()) [[unlikely]]
    return StatusOr<bool>(*failure_);
  return impl_->points().UpdateIf(table, key, expected, row);
}
coro::Async<Status> Transaction::AddTo(const Table& table, Key key, PayloadPart part, const payload::Sum& addition,
                                       void* sum) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  GANNET_RETURN_IF_ERROR(CheckRowOf(table, part));
  return impl_->points().Add(table, key, part.offset(), addition, static_cast<std::byte*>(sum));
}
Status Transaction::Remove(RecordHandle handle) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->writes().Remove(handle);
}
coro::Async<Status> Transaction::Remove(const Table& table, Key key) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->points().Remove(table, key);
}

ScanRows::Item& ScanRows::Add(const Key& key, size_t payload_bytes) {
  const size_t stored = index::StoredKeyBytes(key.size());
  const size_t place = bytes_.Append(stored + payload_bytes);
  std::byte* const to = bytes_.At(place, stored).data();
  if (key.kind() == index::KeyKind::kInteger) {
    const uint64_t integer = key.integer();
    std::memcpy(to, &integer, sizeof integer);
  } else if (stored > 0) {
    std::memset(to + stored - kWordBytes, 0, kWordBytes);
    std::memcpy(to, key.bytes().data(), key.size());
  }
  key_kind_ = key.kind();
  rows_.push_back({.key_place = place,
                   .key_bytes = static_cast<uint32_t>(key.size()),
                   .payload_bytes = static_cast<uint32_t>(payload_bytes),
                   .handle = {}});
  return rows_.back();
}

void ScanRows::Enlarge(Item* item, size_t payload_bytes) {
  const size_t stored = index::StoredKeyBytes(item->key_bytes);
  const size_t place = bytes_.Append(stored + payload_bytes);
  std::ranges::copy(bytes_.At(item->key_place, stored), bytes_.At(place, stored).begin());
  item->key_place = place;
  item->payload_bytes = static_cast<uint32_t>(payload_bytes);
}

coro::Async<Status> Transaction::Scan(const Table& table, const index::ScanRange& range, ScanRows* rows,
                                      ScanOptions options) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->scanner().Scan(table, range, rows, options);
}
coro::Async<Status> Transaction::Search(const Table& table, const index::Rectangle& window, ScanRows* rows,
                                        ScanOptions options) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->scanner().Search(table, window, rows, options);
}
coro::Async<Status> Transaction::Nearest(const Table& table, const index::NearestQuery& query, ScanRows* rows,
                                         ScanOptions options) {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->scanner().Nearest(table, query, rows, options);
}
coro::Async<StatusOr<RowBy>> Transaction::GetBy(const SecondaryIndex& index, const Key& key, bool for_update) {
  if (!failure_->ok()) [[unlikely]]
    return StatusOr<RowBy>(*failure_);
  return impl_->GetBy(index, key, for_update);
}
Status Transaction::RefuseToEnd(const char* why) {
  if (impl_ != nullptr) impl_->Fail(absl::FailedPreconditionError(why));
  return *failure_;
}
coro::Async<Status> Transaction::Commit() {
  if (run_concludes_) [[unlikely]]
    return RefuseToEnd("the body called Commit, so nothing is committed: return Ok, and Run commits");
  return DoCommit();
}
coro::Async<Status> Transaction::DoCommit() {
  if (!session_->home.is_here()) [[unlikely]]
    return session_->registry->CheckHome();
  if (!failure_->ok()) [[unlikely]] {
    Status failure = *failure_;
    Release();
    return failure;
  }
  const uint64_t begun = BeginsCommit();
  coro::Async<Status> committed = impl_->Commit();
  if (!committed.ready()) return AfterCommit(std::move(committed.task()), begun);
  impl_->NoteCommitted(committed.value());
  if (TellsOfData(committed.value())) [[likely]]
    return WhenDurable(std::move(committed.value()), begun);
  TransactionImpl* const impl = impl_.get();
  const bool again = run_concludes_ && rdma::IsMemoryFull(committed.value()) && impl->MayAwaitMemory();
  Release();
  if (again) return impl->AwaitMemory();
  return committed;
}
coro::Async<Status> Transaction::Validate() {
  if (!failure_->ok()) [[unlikely]]
    return *failure_;
  return impl_->Validate();
}
void Transaction::Rollback() {
  if (impl_ == nullptr) return;
  if (run_concludes_) [[unlikely]] {
    RefuseToEnd("the body called Rollback, so nothing is committed: return an error, and Run rolls back").IgnoreError();
    return;
  }
  if (!session_->home.is_here()) return;
  impl_->Restart();
}
Session& Transaction::session() {
  return *session_->session;
}

}  // namespace gannet::txn
