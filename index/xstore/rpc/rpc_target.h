// RpcTarget: the interface of an XStore index to the handlers of RegisterXStoreMethods. Requests come from peers, so
// everything in them is checked. The caller is inside the epoch.
#pragma once

#include <memory>

#include "index/index.h"
#include "index/model/trainer.h"
#include "rdma/rpc.h"

namespace gannet::index::xstore {

class RpcTarget {
 public:
  virtual ~RpcTarget() = default;

  // Each function reads the rest of its request and writes its response (messages.h).
  //
  // ServeDescribe also starts the training of the model by `trainer`, because a client needs it now.
  virtual Status ServeDescribe(rdma::WireReader& request, rdma::WireWriter& response,
                               const std::shared_ptr<Trainer>& trainer) = 0;
  virtual Status ServeFind(rdma::WireReader& request, rdma::WireWriter& response) = 0;
  virtual Status ServeInsert(Context& context, rdma::WireReader& request, rdma::WireWriter& response) = 0;
  virtual Status ServeRemove(Context& context, rdma::WireReader& request, rdma::WireWriter& response) = 0;
  virtual Status ServeScan(rdma::WireReader& request, rdma::WireWriter& response) = 0;
};

}  // namespace gannet::index::xstore
