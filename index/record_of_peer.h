// The check of a record's address that a peer has sent, before an index leads to it.
#pragma once

#include "index/key.h"
#include "index/record_header.h"
#include "rdma/fabric.h"
#include "rdma/global_address.h"
#include "rdma/slab.h"

namespace gannet::index {

// True if `record` lies among the records of `node`, and holds the key there.
inline bool IsRecordOfKey(rdma::Node& node, rdma::GlobalAddress record, const Key& key) {
  // Clients can write into a record, so later it may claim to have a key of any length.
  return record.node() == node.id() && !record.marked() && record.offset() % kLineBytes == 0 &&
         record.offset() >= node.writable_offset() &&
         record.offset() + kLineBytes + rdma::kReadBeyondBytes <= node.memory().size() &&
         RecordHoldsKey(node.memory().data() + record.offset(), key);
}

}  // namespace gannet::index
