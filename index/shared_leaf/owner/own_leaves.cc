#include "index/shared_leaf/owner/own_leaves_impl.h"

namespace gannet::index::shared_leaf {

template class OwnLeaves<IntegerKeys>;
template class OwnLeaves<ByteKeys>;

}  // namespace gannet::index::shared_leaf
