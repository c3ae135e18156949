#include "bench/peers/engine.h"

namespace gannet::bench::peers {

std::vector<EngineKind> AllEngines() {
  return {GannetHash(), GannetOrdered(), Lmdb(), RocksDb(), Sqlite()};
}

}  // namespace gannet::bench::peers
