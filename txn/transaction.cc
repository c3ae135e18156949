#include "txn/transaction.h"

#include <utility>

#include "txn/session_internal.h"
#include "txn/transaction_impl.h"

namespace gannet::txn {

Transaction::Transaction(std::unique_ptr<TransactionImpl> impl) : impl_(std::move(impl)) {}

Transaction::~Transaction() {
  impl_->End();
  impl_->session().idle_transactions.push_back(std::move(impl_));
}

coro::Async<Status> Transaction::Get(const Table& table, Key key, std::span<std::byte> out, uint32_t offset) {
  return impl_->Get(table, key, out, offset);
}
coro::Async<Status> Transaction::GetMany(std::span<GetRequest> requests) {
  return impl_->GetMany(requests);
}
coro::Async<StatusOr<RecordHandle>> Transaction::GetForUpdate(const Table& table, Key key, std::span<std::byte> out,
                                                              uint32_t offset) {
  return impl_->GetForUpdate(table, key, out, offset);
}
Status Transaction::Update(RecordHandle handle, std::span<const std::byte> data, uint32_t offset, bool resize) {
  return impl_->Update(handle, data, offset, resize);
}
coro::Async<Status> Transaction::Update(const Table& table, Key key, std::span<const std::byte> data) {
  return impl_->Update(table, key, data);
}
Status Transaction::Insert(const Table& table, Key key, std::span<const std::byte> payload) {
  return impl_->Insert(table, key, payload);
}
Status Transaction::Remove(RecordHandle handle) {
  return impl_->Remove(handle);
}
coro::Async<Status> Transaction::Remove(const Table& table, Key key) {
  return impl_->Remove(table, key);
}
coro::Async<Status> Transaction::Scan(const Table& table, const index::ScanRange& range, ScanRows* rows,
                                      ScanOptions options) {
  return impl_->Scan(table, range, rows, options);
}
coro::Async<Status> Transaction::Commit() {
  return impl_->Commit();
}
coro::Async<Status> Transaction::Validate() {
  return impl_->Validate();
}
void Transaction::Rollback() {
  impl_->End();
  impl_->Begin();
}
Session& Transaction::session() {
  return *impl_->session().session;
}

}  // namespace gannet::txn
