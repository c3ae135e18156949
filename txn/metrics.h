// The metrics of a database, as families of base/metrics.h. docs/cluster.md lists all of them.
#pragma once

#include <vector>

#include "base/metrics.h"
#include "rdma/statistics.h"
#include "txn/database.h"
#include "txn/store/statistics.h"

namespace gannet::txn {

// Each of these appends families. Those of a node without transactions (cluster/bare_server.h), too:
void AddMemoryMetrics(const rdma::SlabStatistics& memory, std::vector<MetricFamily>* families);
// Nothing if the node has announced no load.
void AddLoadMetrics(const rdma::NodeLoad& load, std::vector<MetricFamily>* families);
// Nothing if there were no accesses.
void AddPathMetrics(const std::vector<TablePaths>& paths, std::vector<MetricFamily>* families);

void AddTransactionMetrics(const TransactionStatistics& transactions, std::vector<MetricFamily>* families);

// The log and the checkpoints of this node, if it has a log, and its starving transactions. Until Database::Close.
void AddCommitMetrics(const Database& database, std::vector<MetricFamily>* families);

// All of the above, of the node of this database.
std::vector<MetricFamily> MetricsOf(const Database& database);

}  // namespace gannet::txn
