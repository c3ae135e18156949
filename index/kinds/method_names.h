// Names of the methods of all indexes, for metrics.
#pragma once

#include <string_view>

#include "rdma/fabric.h"

namespace gannet::index {

// "xstore_find". Empty: it is none of the index layer.
std::string_view NameOfMethod(rdma::MethodId method);

}  // namespace gannet::index
