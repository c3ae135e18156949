// The catalog of a data directory: its tables as the manifests describe them, and as TableOptions.
//
// Every node's manifest has all tables. A node that died while it noted new ones may have noted fewer; so a node reads
// the manifests of all nodes, and the catalog is their union. New tables are noted after all nodes have agreed on them,
// and before any of their rows is in a log: so what a manifest lacks has no rows there.
//
// Nodes that change their tables together while they run (all_nodes.h) give each change a number, the generation, which
// each of their manifests gets with the new tables. A crash in the middle leaves manifests of two generations. Then
// only the manifests of the greatest generation count: with the first manifest that has it, the whole change is
// durable. The next start brings the others up to it. A start does not change the generation: it only adds tables, and
// for these the union holds.
//
// A manifest of such a change may lack a table and still have the files that checkpoints have of it: until all nodes
// have noted that the table is dropped, the change may be taken back, and the table then needs its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "log/manifest/manifest.h"
#include "txn/durable/data_directory.h"
#include "txn/store/options.h"
#include "txn/store/table.h"

namespace gannet::txn {

struct LocalNode;

struct Catalog {
  std::vector<log::TableDescription> tables;  // by number
  uint32_t next_table = 0;                    // greater than the number of every table that there is or was
  uint64_t generation = 0;                    // of the newest manifests
};

// The tables of all these manifests, as far as they have the greatest generation. DataLoss: two such manifests
// contradict each other, or one contradicts itself.
StatusOr<Catalog> CatalogOf(const std::vector<NodeData>& nodes);

// Gives manifests of an earlier generation the tables of the greatest one, and leaves out of all manifests what their
// checkpoints have of other tables, which were dropped. Nothing without generations. Errors: as CatalogOf.
Status TakeNewestCatalog(std::vector<NodeData>* nodes);

log::TableDescription DescribeTable(const Table& table);

// The options with which a table is created again. DataLoss or InvalidArgument, with the table's name: this program has
// no such index or placement.
StatusOr<TableOptions> OptionsOf(const log::TableDescription& description);

// Ok if a program that describes a table as `has` may use it as the directory has it, `had`. InvalidArgument names the
// first thing that differs. The hint expected_rows, the note `application`, and index_rights may differ: they say
// nothing about rows. One of them may not say the form of the keys. With one data node, a placement may differ, unless
// it is replicated.
Status CheckSameTable(const log::TableDescription& had, const log::TableDescription& has, int data_nodes);

// The error of a change of the catalog, `what` ("a table is created"), whose manifest could not be written.
Status NotNoted(absl::string_view what, const Status& why);

// Null if the manifest does not have the table.
const log::TableDescription* TableById(const log::Manifest& manifest, uint16_t id);

// Leaves out the files that checkpoints have of tables that the manifest does not have.
void LeaveOutUnknown(log::Manifest* manifest);

// Leaves out of a manifest the tables that were dropped, and the files that checkpoints have of them. Tables that this
// node does not have stay: CreateTable notes a table before it adds it. The files themselves are removed with the next
// checkpoint (log::RemoveStrayCheckpoints): a backup may be reading them.
void LeaveOutDropped(const LocalNode& local, log::Manifest* manifest);

}  // namespace gannet::txn
