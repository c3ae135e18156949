#include "index/shared_leaf/basic_leaf_index_impl.h"

namespace gannet::index::shared_leaf {

template class BasicLeafIndex<IntegerKeys>;
template class BasicLeafIndex<ByteKeys>;

}  // namespace gannet::index::shared_leaf
