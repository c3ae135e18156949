// A program of another project. It succeeds if what it calls is really there.
#include <cstdio>

#include "rdma/global_address.h"

int main() {
  const gannet::rdma::GlobalAddress address(3, 64);
  std::puts(address.ToString().c_str());
  return address.ToString() == "3:0x40" ? 0 : 1;
}
