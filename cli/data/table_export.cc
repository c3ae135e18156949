#include "cli/data/table_export.h"

#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/stop.h"
#include "cli/common/data_directory.h"
#include "cli/rows/row_walk.h"

namespace gannet::cli {

Status ExportTable(log::FileSystem& files, const std::string& directory, const ExportOptions& options, std::FILE* to,
                   uint64_t* rows, std::vector<std::string>* left_out) {
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, directory);
  if (!nodes.ok()) return nodes.status();
  GANNET_RETURN_IF_ERROR(CheckTableName("--table", options.table, nodes->front()));
  std::optional<RowWriter> writer;
  const auto visit = [&](txn::Database& database) -> Status {
    const txn::Table* table = database.FindTable(options.table);
    if (table->options().placement.replicated && writer.has_value()) return absl::OkStatus();
    if (!writer.has_value()) {
      const StatusOr<RowText> text = RowText::For(*table, options.forms);
      if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat("--keys ", text.status().message()));
      writer.emplace(*text, options.format, to);
      GANNET_RETURN_IF_ERROR(writer->Header());
    }
    return WalkRows(database, *table, [&](const index::Key& key, std::string_view payload) -> StatusOr<bool> {
      GANNET_RETURN_IF_ERROR(CheckStop(options.recover.stop, "rows were written"));
      GANNET_RETURN_IF_ERROR(writer->Row(key, payload));
      return true;
    });
  };
  const auto recovered = RecoverDataDirectory(files, directory, options.recover, visit);
  *rows = writer.has_value() ? writer->rows() : 0;
  if (recovered.ok()) *left_out = LeftOut(*recovered);
  return recovered.status();
}

}  // namespace gannet::cli
