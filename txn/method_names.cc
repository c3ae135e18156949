#include "txn/method_names.h"

#include "index/kinds/method_names.h"
#include "txn/peer/wire.h"

namespace gannet::txn {

std::string_view NameOfMethod(rdma::MethodId method) {
  switch (method) {
    case kTxnPrepare:
      return "txn_prepare";
    case kTxnFinish:
      return "txn_finish";
    case kTxnRead:
      return "txn_read";
    case kTxnLog:
      return "txn_log";
    case kTxnCancel:
      return "txn_cancel";
    case kTxnDecide:
      return "txn_decide";
    case kTxnFinishFor:
      return "txn_finish_for";
    case kTxnJoin:
      return "txn_join";
    case kTxnForwarded:
      return "txn_forwarded";
    case kTxnScan:
      return "txn_scan";
    case kTxnReadMany:
      return "txn_read_many";
    case kTxnLend:
      return "txn_lend";
    default:
      return index::NameOfMethod(method);
  }
}

}  // namespace gannet::txn
