// libFuzzer: the first byte of the input chooses the target. With clang:
//   cmake -S . -B build-fuzz -DCMAKE_CXX_COMPILER=clang++ -DGANNET_BUILD_FUZZERS=ON -DGANNET_SANITIZE=address
//   ninja -C build-fuzz log_fuzzer && build-fuzz/tests/log/fuzz/log_fuzzer -max_len=32768
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/log/fuzz/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gannet::log::FuzzTarget;
  if (size == 0) return 0;
  const auto target = static_cast<FuzzTarget>(data[0] / 2 % static_cast<int>(FuzzTarget::kCount));
  gannet::log::RunFuzzTarget(target, data[0] % 2 != 0, std::as_bytes(std::span(data + 1, size - 1)));
  return 0;
}
