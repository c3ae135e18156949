// Schema: changes of the tables of one node, or of all nodes of a fabric together. The steps of each are in the same
// order on all nodes, under the locks of all (NodeLocks): so all nodes always have the same tables with the same
// numbers.
//
//   nodes.h           the nodes and their locks
//   table_options.h   what a program may ask of a table
//   new_table.h       tables that are made, found in a directory, or taken over
//   catalog_notes.h   the manifests
//   quiesce.h         the skeleton of changes for which transactions have to end
//   *_table.cc, create_index.cc   one change each; their comments say its steps
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "txn/schema/nodes.h"
#include "txn/store/secondary_index.h"
#include "txn/store/table.h"

namespace gannet::txn {

// The functions are those of Database, or with several nodes those of all_nodes.h. What they return is of the first
// node. Thread-safe.
class Schema {
 public:
  // `nodes`: one, or all of a fabric in their order (InOrder). They outlive this.
  explicit Schema(Nodes nodes) : nodes_(nodes) {}

  StatusOr<const Table*> CreateTable(const TableOptions& options);
  Status RenameTable(std::string_view from, const std::string& to);
  Status DropTable(std::string_view name);
  Status WidenTable(std::string_view name, size_t payload_bytes);
  // There is one node.
  Status ArrangeTable(std::string_view name);
  StatusOr<const SecondaryIndex*> CreateIndex(const SecondaryIndexOptions& options);

 private:
  const Nodes nodes_;
};

}  // namespace gannet::txn
