// LocalNode: the parts of a database that its services share: the owner's service, repair, recovery, checkpoints and
// sessions. The database owns these parts and outlives the services.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "index/service.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "rdma/fabric.h"
#include "txn/node/client_caches.h"
#include "txn/node/lent_records.h"
#include "txn/node/record_bytes.h"
#include "txn/node/record_stock.h"
#include "txn/node/table_set.h"
#include "txn/store/options.h"
#include "txn/store/table.h"

namespace gannet::txn {

class IndexDamage;

struct LocalNode {
  const DatabaseOptions& options;
  rdma::Fabric& fabric;
  rdma::Node& node;
  index::IndexService& indexes;
  const TableSet& tables;
  RecordBytes& record_bytes;
  ClientCaches& client_caches;
  LentRecords& lent_records;
  RecordStock& record_stock;
  IndexDamage& index_damage;
  // For clients of indexes whose leaves this node may claim. Null: the node is alone.
  index::shared_leaf::ClaimHolder* claims;
  int data_nodes;  // DatabaseOptions::data_nodes, but never 0
  // The node's memory, and where its writable part begins, without a call.
  const std::span<std::byte> memory = node.memory();
  const uint64_t writable_offset = node.writable_offset();

  rdma::NodeId id() const { return node.id(); }
  // Null if there is none.
  const Table* TableById(TableId id) const { return tables.ById(id); }
  // True if a record can begin at this address.
  bool MayHaveRecord(rdma::GlobalAddress at) const {
    return at.node() == id() && at.offset() % kLineBytes == 0 && at.offset() >= writable_offset &&
           at.offset() + kLineBytes <= memory.size();
  }
  // A record of this node, for its CPU.
  std::byte* Direct(rdma::GlobalAddress record) const { return memory.data() + record.offset(); }
  // True if sessions of this node make calls, or await verbs: a single node whose CPU may do everything itself does
  // not.
  bool calls() const { return fabric.num_nodes() > 1 || !fabric.capabilities().cpu_coherent_atomics; }
};

}  // namespace gannet::txn
