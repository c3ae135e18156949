#include "index/index.h"

namespace gannet::index {

coro::Task<Status> RemoteIndex::Search(WindowQuery /*query*/, ScanResult* /*result*/) {
  co_return absl::UnimplementedError("this kind of index finds no rectangles");
}

coro::Task<Status> RemoteIndex::Nearest(NearestQuery /*query*/, ScanResult* /*result*/) {
  co_return absl::UnimplementedError("this kind of index finds no rectangles");
}

coro::Task<Status> RemoteIndex::Replace(Key /*key*/, rdma::GlobalAddress /*from*/, rdma::GlobalAddress /*to*/) {
  co_return absl::UnimplementedError("clients do not change this kind of index");
}

}  // namespace gannet::index
