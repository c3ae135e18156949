#include "txn/store/table.h"

#include <utility>

#include "index/index.h"
#include "index/own_locations.h"
#include "index/registry.h"

namespace gannet::txn {

Table::Table(TableId id, TableOptions options, int data_nodes, rdma::NodeId self)
    : id_(id),
      options_(std::move(options)),
      placement_name_(options_.placement.name()),
      data_nodes_(data_nodes),
      self_(self) {
  Derive();
  SetName(options_.name);
}

Table::~Table() = default;

// The directory may have shorter rows than the program asks for.
void Table::SetOptions(TableOptions options) {
  const size_t least = least_payload_bytes();
  options_ = std::move(options);
  placement_name_ = options_.placement.name();
  Derive();
  least_payload_bytes_.store(least, std::memory_order_release);
}

void Table::NoteInDirectory(std::string_view placement_name, size_t least_payload_bytes) {
  if (options_.placement.unknown) placement_name_ = placement_name;
  least_payload_bytes_.store(least_payload_bytes, std::memory_order_release);
}

void Table::BeginToGrow(size_t payload_bytes) {
  grows_ = true;
  accepted_payload_bytes_.store(payload_bytes, std::memory_order_release);
}

void Table::EndGrowing() {
  accepted_payload_bytes_.store(payload_bytes(), std::memory_order_release);
  grows_ = false;
}

void Table::Widen(size_t payload_bytes) {
  accepted_payload_bytes_.store(payload_bytes, std::memory_order_release);
  payload_bytes_.store(payload_bytes, std::memory_order_release);
  if (options_.variable_length) least_payload_bytes_.store(payload_bytes, std::memory_order_release);
}

void Table::SetIndex(std::unique_ptr<index::LocalIndex> index, std::unique_ptr<index::OwnLocations> locations) {
  local_index_ = std::move(index);
  own_locations_ = std::move(locations);
}

std::unique_ptr<index::LocalIndex> Table::TakeIndex() {
  own_locations_.reset();
  return std::move(local_index_);
}

void Table::SetSecondary(std::unique_ptr<SecondaryIndex> index) {
  secondary_ = std::move(index);
  DeriveWrites();
}

void Table::SetName(std::string name) {
  names_.push_back(std::make_unique<const std::string>(std::move(name)));
  name_.store(names_.back().get(), std::memory_order_release);
}

void Table::Derive() {
  key_form_.store(options_.key_form, std::memory_order_relaxed);
  payload_bytes_.store(options_.payload_bytes, std::memory_order_release);
  accepted_payload_bytes_.store(options_.payload_bytes, std::memory_order_release);
  least_payload_bytes_.store(options_.payload_bytes, std::memory_order_release);
  index_traits_ = index::TraitsOf(index::EntryOf(options_.index), *options_.index_rights);
  all_here_ = options_.placement.replicated || (data_nodes_ == 1 && self_ == 0);
  SetState(state());
  DeriveWrites();
}

// Accesses look at checks_more() alone, which leads them to state(): so state() changes first when it gets worse, and
// last when it gets better again.
void Table::SetState(State state) {
  const bool more = index_traits_.spatial || !knows_owners();
  if (state == State::kUsed) checks_more_.store(more, std::memory_order_seq_cst);
  state_.store(state, std::memory_order_seq_cst);
  if (state != State::kUsed) checks_more_.store(true, std::memory_order_seq_cst);
}

void Table::DeriveWrites() {
  checks_writes_.store(options_.placement.replicated || secondary_ != nullptr || secondary_indexes() != nullptr,
                       std::memory_order_relaxed);
}

void Table::SetSecondaryIndexes(SecondaryIndexes indexes) {
  index_sets_.push_back(std::make_unique<const SecondaryIndexes>(std::move(indexes)));
  const SecondaryIndexes* const set = index_sets_.back().get();
  secondary_indexes_.store(set->empty() ? nullptr : set, std::memory_order_release);
  DeriveWrites();
}

}  // namespace gannet::txn
