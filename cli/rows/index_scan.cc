#include "cli/rows/index_scan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/stop.h"
#include "cli/common/words.h"
#include "cli/rows/row_text.h"
#include "index/tuple_key.h"

namespace gannet::cli {
namespace {

using index::TupleKey;
using txn::KeyCopy;
using txn::KeyRange;

constexpr const char* kReadingEntries = "rows were read";
constexpr size_t kChunkEntries = 4096;

KeyCopy TupleOf(const TupleKey& tuple) {
  return KeyCopy(index::Key(std::string_view(tuple.bytes())));
}

// The first field alone, of an index that has fields.
StatusOr<KeyCopy> FirstField(const txn::IndexField& field, std::string_view text) {
  const absl::string_view number(text.data(), text.size());
  switch (field.type) {
    case txn::IndexField::Type::kUnsigned:
      if (uint64_t value = 0; absl::SimpleAtoi(number, &value)) return TupleOf(TupleKey::Of(value));
      return absl::InvalidArgumentError("must be a whole number from 0 to 2^64 - 1, or a tuple such as (5)");
    case txn::IndexField::Type::kSigned:
      if (int64_t value = 0; absl::SimpleAtoi(number, &value)) return TupleOf(TupleKey::Of(value));
      return absl::InvalidArgumentError("must be a whole number from -2^63 to 2^63 - 1, or a tuple such as (-5)");
    case txn::IndexField::Type::kFloating:
      if (double value = 0; absl::SimpleAtod(number, &value)) return TupleOf(TupleKey::Of(value));
      return absl::InvalidArgumentError("must be a number, or a tuple such as (2.5)");
    case txn::IndexField::Type::kText:
    case txn::IndexField::Type::kBytes:
      break;
  }
  const StatusOr<std::string> bytes = UnescapeText(text);
  if (!bytes.ok()) return bytes.status();
  return TupleOf(TupleKey::Of(std::string_view(*bytes)));
}

StatusOr<KeyRange> RangeOf(const IndexText& text, const RowRange& asked) {
  if (asked.prefix.has_value()) {
    StatusOr<KeyRange> prefix = text.ParsePrefix(*asked.prefix);
    if (!prefix.ok()) return Named("--prefix", *asked.prefix, prefix.status());
    return prefix;
  }
  return RangeBetween(asked, [&text](std::string_view key) { return text.ParseKey(key); });
}

// What one transaction of a scan reads.
class EntryChunk {
 public:
  EntryChunk(const txn::SecondaryIndex& index, bool whole, bool reverse, uint64_t limit)
      : index_(index), whole_(whole), reverse_(reverse), left_(limit) {}

  Status Read(txn::BlockingTransaction& t, const txn::CursorOptions& options, const std::atomic<bool>* stop,
              RowVisitor visit) {
    // Nobody else writes, so a transaction of a scan meets no conflict that would make it run again.
    if (rows_ > 0) return absl::InternalError("rows changed while they were read");
    txn::BlockingIndexCursor cursor = t.OpenCursor(index_, options);
    Status moved = reverse_ ? cursor.Last() : cursor.First();
    for (; moved.ok() && cursor.valid() && left_ > 0; moved = reverse_ ? cursor.Previous() : cursor.Next()) {
      GANNET_RETURN_IF_ERROR(CheckStop(stop, kReadingEntries));
      // It ends between two keys: the next one begins behind all rows with the last key.
      if (!whole_ && rows_ >= kChunkEntries) {
        const StatusOr<index::OwnedKey> key = cursor.index_key();
        if (!key.ok()) return key.status();
        if (!last_.has_value()) {
          last_ = KeyCopy(key->view());
        } else if (!(last_->view() == key->view())) {
          more_ = true;
          return absl::OkStatus();
        }
      }
      const std::span<const std::byte> payload = cursor.payload();
      ++rows_;
      --left_;
      GANNET_RETURN_IF_ERROR(visit(cursor.key(), {reinterpret_cast<const char*>(payload.data()), payload.size()}));
    }
    return moved;
  }

  // False: there is nothing behind it.
  bool more() const { return more_; }
  const KeyCopy& last_key() const { return *last_; }
  uint64_t left() const { return left_; }

 private:
  const txn::SecondaryIndex& index_;
  const bool whole_;
  const bool reverse_;
  uint64_t left_;
  size_t rows_ = 0;
  std::optional<KeyCopy> last_;
  bool more_ = false;
};

}  // namespace

StatusOr<const txn::SecondaryIndex*> FindIndexOf(txn::Database& database, const txn::Table& table,
                                                 const std::string& name) {
  std::vector<std::string> names;
  for (const txn::Table* entries : database.tables()) {
    if (entries->secondary() == nullptr || &entries->secondary()->table() != &table) continue;
    if (entries->name() == name) return entries->secondary();
    names.push_back(entries->name());
  }
  const std::string nearest = Nearest(name, names);
  return absl::InvalidArgumentError(absl::StrCat("--by ", name, ": table '", table.name(), "' has no such index",
                                                 !nearest.empty() ? absl::StrCat("; did you mean ", nearest, "?")
                                                 : !names.empty()
                                                     ? absl::StrCat("; it has ", absl::StrJoin(names, ", "))
                                                     : "; gannet create-index makes one"));
}

StatusOr<IndexText> IndexText::For(const RowRunner& run, const txn::SecondaryIndex& index) {
  IndexText text(&index);
  if (!index.by_function()) return text;
  const Status looked = run([&](txn::BlockingTransaction& t) -> Status {
    txn::BlockingIndexCursor first = t.OpenCursor(index, {.keys_only = true});
    GANNET_RETURN_IF_ERROR(first.First());
    if (!first.valid()) return absl::OkStatus();
    const StatusOr<index::OwnedKey> key = first.index_key();
    if (key.ok()) text.function_gives_numbers_ = key->view().kind() == index::KeyKind::kInteger;
    return key.status();
  });
  if (!looked.ok()) return looked;
  return text;
}

bool IndexText::has_numbers() const {
  if (index_->by_function()) return function_gives_numbers_;
  const txn::IndexField::Type type = index_->fields().front().type;
  return type != txn::IndexField::Type::kText && type != txn::IndexField::Type::kBytes;
}

StatusOr<KeyCopy> IndexText::ParseKey(std::string_view text) const {
  if (text.starts_with('(')) {
    const StatusOr<RowText> tuples = RowText::For(index_->entries(), {.keys = KeyForm::kTuple});
    if (!tuples.ok()) return tuples.status();
    StatusOr<KeyCopy> tuple = tuples->ParseKey(text);
    std::string entry;
    if (tuple.ok()) GANNET_RETURN_IF_ERROR(index_->EncodeKey(tuple->view(), /*whole=*/false, &entry));
    return tuple;
  }
  if (!index_->by_function()) return FirstField(index_->fields().front(), text);
  if (function_gives_numbers_) {
    if (uint64_t value = 0; absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &value)) {
      return KeyCopy(index::Key(value));
    }
    return absl::InvalidArgumentError("must be a whole number from 0 to 2^64 - 1");
  }
  const StatusOr<std::string> bytes = UnescapeText(text);
  if (!bytes.ok()) return bytes.status();
  return KeyCopy(index::Key(std::string_view(*bytes)));
}

StatusOr<KeyRange> IndexText::ParsePrefix(std::string_view text) const {
  const bool tuple = text.starts_with('(');
  if (!tuple && has_numbers()) {
    return absl::InvalidArgumentError(absl::StrCat("numbers have no prefix; give --from and --to",
                                                   index_->by_function() ? "" : ", or a tuple such as (5)"));
  }
  if (tuple || index_->by_function()) {
    const StatusOr<KeyCopy> key = ParseKey(text);
    if (!key.ok()) return key.status();
    return KeyRange::Prefix(key->bytes());
  }
  // The order of one-field tuples is that of their texts.
  const StatusOr<std::string> bytes = UnescapeText(text);
  if (!bytes.ok()) return bytes.status();
  KeyRange range = KeyRange::Prefix(*bytes);
  for (std::optional<KeyRange::End>* end : {&range.from, &range.to}) {
    if (end->has_value()) (*end)->key = TupleOf(TupleKey::Of((*end)->key.bytes()));
  }
  return range;
}

Status ScanRowsBy(const RowRunner& run, bool in_transaction, const txn::SecondaryIndex& index, const RowRange& asked,
                  bool keys_only, const std::atomic<bool>* stop, RowVisitor visit) {
  const StatusOr<IndexText> text = IndexText::For(run, index);
  if (!text.ok()) return text.status();
  StatusOr<KeyRange> range = RangeOf(*text, asked);
  if (!range.ok()) return range.status();
  uint64_t left = asked.limit;
  while (left > 0) {
    EntryChunk chunk(index, in_transaction, asked.reverse, left);
    GANNET_RETURN_IF_ERROR(run([&](txn::BlockingTransaction& t) {
      return chunk.Read(t, {.range = *range, .keys_only = keys_only}, stop, visit);
    }));
    if (!chunk.more()) break;
    left = chunk.left();
    (asked.reverse ? range->to : range->from) = KeyRange::End{.key = chunk.last_key(), .included = false};
  }
  return absl::OkStatus();
}

}  // namespace gannet::cli
