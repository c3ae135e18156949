#include "txn/node/record_walk.h"

#include "txn/node/index_damage.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

StatusOr<std::span<const rdma::GlobalAddress>> RecordWalk::Next() {
  records_.clear();
  more_ = index_.Walk(&position_, &records_);
  if (table_.index_traits().client_writes) {
    const auto is_stray = [&](rdma::GlobalAddress record) {
      if (IsRecordOf(local_, table_, record)) return false;
      local_.index_damage.NoteStray(table_, record);
      return true;
    };
    if (std::erase_if(records_, is_stray) > 0 && strays_ == Strays::kEndIt) return IndexDamaged(table_);
  }
  return std::span<const rdma::GlobalAddress>(records_);
}

}  // namespace gannet::txn
