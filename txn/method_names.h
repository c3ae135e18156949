// Names of the methods by which nodes call each other, for metrics.
#pragma once

#include <string_view>

#include "rdma/fabric.h"

namespace gannet::txn {

// A method of txn/ or of the layers below: "txn_prepare", "xstore_find". Empty: it is none.
std::string_view NameOfMethod(rdma::MethodId method);

}  // namespace gannet::txn
