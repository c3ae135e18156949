#include "index/kinds/method_names.h"

#include "index/blink/blink_index.h"
#include "index/catfish/rpc/messages.h"
#include "index/claim_boards.h"
#include "index/dex/dex.h"
#include "index/dolphin/dolphin.h"
#include "index/hash/hash_rpc.h"
#include "index/rolex/model_cache.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/change/change_calls.h"
#include "index/shared_leaf/claim/claim_ranges.h"
#include "index/xstore/rpc/messages.h"

namespace gannet::index {

std::string_view NameOfMethod(rdma::MethodId method) {
  switch (method) {
    case hash::kDescribe:
      return "hash_describe";
    case hash::kFind:
      return "hash_find";
    case hash::kInsert:
      return "hash_insert";
    case hash::kRemove:
      return "hash_remove";
    case xstore::kDescribe:
      return "xstore_describe";
    case xstore::kFind:
      return "xstore_find";
    case xstore::kInsert:
      return "xstore_insert";
    case xstore::kRemove:
      return "xstore_remove";
    case xstore::kScan:
      return "xstore_scan";
    case catfish::kDescribe:
      return "catfish_describe";
    case catfish::kFind:
      return "catfish_find";
    case catfish::kInsert:
      return "catfish_insert";
    case catfish::kRemove:
      return "catfish_remove";
    case catfish::kSearch:
      return "catfish_search";
    case catfish::kNearest:
      return "catfish_nearest";
    case rolex::kDescribe:
      return "rolex_describe";
    case blink::kDescribe:
      return "blink_describe";
    case dex::kDescribe:
      return "dex_describe";
    case dolphin::kDescribe:
      return "dolphin_describe";
    case shared_leaf::kExchange:
      return "leaf_exchange_blocks";
    case shared_leaf::kCallInsert:
      return "leaf_insert";
    case shared_leaf::kCallRemove:
      return "leaf_remove";
    case shared_leaf::kCallReplace:
      return "leaf_replace";
    case shared_leaf::kEndClaims:
      return "leaf_end_claims";
    case shared_leaf::kSetRanges:
      return "leaf_set_ranges";
    case shared_leaf::kReadRanges:
      return "leaf_read_ranges";
    case kTellBoard:
      return "leaf_tell_board";
    default:
      return "";
  }
}

}  // namespace gannet::index
