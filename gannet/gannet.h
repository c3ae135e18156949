// All that a program in C++ uses of Gannet. Each of these headers can be included by itself, which compiles sooner.
// (For programs in C: capi/gannet.h, which is installed as <gannet.h>.)
#pragma once

#include "cluster/client.h"         // a node without rows in a cluster of processes
#include "cluster/config/config.h"  // cluster files
#include "cluster/server.h"         // a node with rows in a cluster of processes
#include "index/rectangle.h"        // keys of spatial tables
#include "index/tuple_key.h"        // byte keys of several fields
#include "rdma/shm/shm_fabric.h"    // several nodes in one process, or in shared memory
#include "txn/all_nodes.h"          // changes of tables at all nodes of a process
#include "txn/bulk_loader.h"        // loading many rows
#include "txn/database.h"           // Database, Table, Transaction
#include "txn/metrics.h"            // metrics as data
#include "txn/run/manual_transaction.h"
#include "txn/run/session.h"  // coroutines
