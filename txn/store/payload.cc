#include "txn/store/payload.h"

#include "base/check.h"

namespace gannet::txn::payload {

void RowHasOtherSize(size_t row_bytes, size_t payload_bytes) {
  GANNET_CHECK(row_bytes == payload_bytes,
               "a row of %d bytes was taken as a struct of %d: use the struct that was stored, or payload()",
               payload_bytes, row_bytes);
  __builtin_unreachable();
}

}  // namespace gannet::txn::payload
