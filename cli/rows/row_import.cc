#include "cli/rows/row_import.h"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/stop.h"
#include "cli/rows/row_text.h"

namespace gannet::cli {
namespace {

// Limits of one transaction.
constexpr size_t kBatchRows = 1000;
constexpr size_t kBatchBytes = size_t{1} << 20;

struct Item {
  RowBytesOwned row;
  uint64_t line = 0;
};

class Importer {
 public:
  Importer(const RowRunner* run, const txn::Table* table, const ImportOptions* options)
      : run_(run), table_(table), options_(options) {}

  void Import(RowReader* reader) {
    while (result_.status.ok()) {
      if (Status stopped = CheckStop(options_->stop, "rows were imported"); !stopped.ok()) return EndWith(stopped);
      Item item;
      const StatusOr<bool> there = reader->Next(&item.row);
      item.line = reader->line();
      if (!there.ok()) return EndWith(AtLine(item.line, there.status()));
      if (!*there) return EndWith(absl::OkStatus());
      bytes_ += item.row.key.bytes().size() + item.row.payload.size();
      batch_.push_back(std::move(item));
      if (batch_.size() == kBatchRows || bytes_ >= kBatchBytes) Flush();
    }
  }

  ImportResult result() && { return std::move(result_); }

 private:
  static Status AtLine(uint64_t line, const Status& wrong) {
    return Status(wrong.code(), absl::StrCat("line ", line, ": ", wrong.message()));
  }

  // The rows before the end of the file, or before the error, are imported first.
  void EndWith(const Status& status) {
    Flush();
    if (result_.status.ok()) result_.status = status;
  }

  void Flush() {
    Status written = Write(batch_);
    if (written.ok()) {
      result_.rows += batch_.size();
    } else if (absl::IsAlreadyExists(written) || absl::IsInvalidArgument(written)) {
      OneByOne();
    } else {
      result_.status = std::move(written);
    }
    batch_.clear();
    bytes_ = 0;
    if (options_->progress) options_->progress(result_.rows);
  }

  // One of the rows does not go in. Writes those before it.
  void OneByOne() {
    for (const Item& item : batch_) {
      if (const Status written = Write({&item, 1}); !written.ok()) {
        result_.status = AtLine(item.line, written);
        return;
      }
      ++result_.rows;
    }
  }

  Status Write(std::span<const Item> items) {
    if (items.empty()) return absl::OkStatus();
    return (*run_)([&](txn::BlockingTransaction& t) -> Status {
      for (const Item& item : items) {
        const auto payload = std::as_bytes(std::span(item.row.payload));
        const txn::Key key = item.row.key.view();
        GANNET_RETURN_IF_ERROR(options_->replace ? t.Upsert(*table_, key, payload) : t.Insert(*table_, key, payload));
      }
      return absl::OkStatus();
    });
  }

  const RowRunner* const run_;
  const txn::Table* const table_;
  const ImportOptions* const options_;
  std::vector<Item> batch_;
  size_t bytes_ = 0;
  ImportResult result_;
};

}  // namespace

ImportResult ImportRows(const RowRunner& run, const txn::Table& table, RowReader* reader,
                        const ImportOptions& options) {
  Importer importer(&run, &table, &options);
  importer.Import(reader);
  return std::move(importer).result();
}

}  // namespace gannet::cli
