#include "txn/access/index_reader.h"

#include <utility>
#include <vector>

#include "txn/access/access_internal.h"
#include "txn/store/secondary_index.h"

namespace gannet::txn {

coro::Task<StatusOr<RowBy>> IndexReader::GetBy(const SecondaryIndex& index, std::string_view entry_key,
                                               bool for_update) {
  if (writes_.has_touched()) {
    coro::Task<Status> keeping = keeper_.KeepIndexes(/*last=*/false);
    const Status kept = co_await keeping;
    if (!kept.ok()) co_return kept;
  }
  coro::Async<StatusOr<std::span<const std::byte>>> looking = points_.GetView(index.entries(), Key(entry_key));
  const StatusOr<std::span<const std::byte>> entry = co_await looking;
  if (absl::IsNotFound(entry.status())) co_return absl::NotFoundError(index.DescribeEntry(entry_key));
  if (!entry.ok()) co_return entry.status();
  const StatusOr<Key> row = index.PrimaryKeyOf(entry_key, *entry);
  if (!row.ok()) co_return row.status();
  GetRequest request = RequestForView(index.table(), *row, &writes_.arena());
  request.for_update = for_update;
  do {
    coro::Async<Status> getting = points_.GetMany(std::span(&request, 1));
    const Status got = co_await getting;
    if (!got.ok()) co_return got;
    if (absl::IsNotFound(request.status)) co_return Dangling(index, entry_key, "it leads to a row that is not there");
    if (!request.status.ok()) co_return request.status;
  } while (!HasWholeView(&request, &writes_.arena()));
  RowBy found;
  found.key = *row;
  found.payload = request.out.first(request.payload_bytes);
  found.handle = request.handle;
  co_return found;
}

coro::Task<Status> IndexReader::RowsOfEntries(const SecondaryIndex& index, const ScanRows& entries, EntrySpan span,
                                              ScanOptions options, ScanRows* rows) {
  rows->Clear();
  const size_t room = options.keys_only ? 0 : FirstViewBytes(index.table());
  for (size_t i = span.from; i < span.to; ++i) {
    const StatusOr<Key> row = index.PrimaryKeyOf(entries.key(i).bytes(), entries.payload(i));
    if (!row.ok()) co_return row.status();
    rows->Add(*row, room);
  }
  if (options.keys_only && !options.for_update) co_return absl::OkStatus();
  std::vector<GetRequest> requests;
  std::vector<size_t> numbers;
  for (size_t n = 0; n < rows->rows_.size(); ++n) numbers.push_back(n);
  while (!numbers.empty()) {
    requests.clear();
    for (const size_t n : numbers) {
      ScanRows::Item& item = rows->rows_[n];
      GetRequest& request = requests.emplace_back();
      request.table = &index.table();
      request.key = rows->KeyOf(item);
      request.out = rows->PayloadOf(item);
      request.for_update = options.for_update;
      request.up_to_end = true;
    }
    coro::Async<Status> getting = points_.GetMany(requests);
    const Status got = co_await getting;
    if (!got.ok()) co_return got;
    std::vector<size_t> longer;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (absl::IsNotFound(requests[i].status)) {
        co_return Dangling(index, entries.key(span.from + numbers[i]).bytes(), "it leads to a row that is not there");
      }
      GANNET_CO_RETURN_IF_ERROR(requests[i].status);
      ScanRows::Item& item = rows->rows_[numbers[i]];
      item.handle = requests[i].handle;
      if (options.keys_only) continue;
      if (requests[i].payload_bytes > item.payload_bytes) {
        rows->Enlarge(&item, requests[i].payload_bytes);
        longer.push_back(numbers[i]);
      }
      item.payload_bytes = requests[i].payload_bytes;
    }
    numbers = std::move(longer);
  }
  co_return absl::OkStatus();
}

}  // namespace gannet::txn
