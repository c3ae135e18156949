// Rectangles: transactions that insert, move, remove and read rectangles of a spatial table, search windows, and look
// for the nearest. Judged by the checker of strict serializability (judged_transaction.h).
//
// The rectangles that can ever exist are a fixed set, drawn from the seed; the history names them by number. So the
// result of a search is known to the checker in full: each rectangle of the set that meets the window was read, as the
// write that made it or as absent. A rectangle that enters or leaves the window unseen is a phantom, and a cycle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "index/rectangle.h"
#include "lab/scenario/workload/judged_workload.h"
#include "lab/scenario/workload/row.h"

namespace gannet::scenario {

class Rectangles : public JudgedWorkload {
 public:
  using RectangleRow = Row<12>;  // three lines with the header and the key

  Rectangles(const ScenarioOptions& drawn, Control* control);

  std::vector<txn::TableOptions> Tables() const override;
  Status Load(txn::Session& session) override;
  std::unique_ptr<Client> NewClient(txn::Session& session, uint32_t number) override;
  Status ReadAll(txn::Session& session, bool whole) override;
  bool CanGoOn(const std::function<bool(int node)>& lives) const override;

 private:
  friend class RectangleClient;
  friend class RectangleTransaction;

  std::string index_options_;
  bool many_keys_;
  std::vector<index::RectangleKey> places_;               // by number
  absl::flat_hash_map<std::string, uint64_t> numbers_{};  // by key
};

}  // namespace gannet::scenario
