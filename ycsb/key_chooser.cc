#include "ycsb/key_chooser.h"

namespace gannet::ycsb {

KeyChooser::KeyChooser(const KeySpace* space, Distribution distribution, InsertPlace place)
    : space_(space), distribution_(distribution), place_(place), scatter_(space->loaded()) {}

KeyChooser::KeyChooser(const KeySpace* space, Distribution distribution, uint64_t first_insert, uint64_t client,
                       uint64_t clients, InsertPlace place)
    : KeyChooser(space, distribution, place) {
  next_ = first_insert + client;
  step_ = clients;
  end_ = UINT64_MAX;
}

std::optional<uint64_t> KeyChooser::Fresh() {
  if (part_.has_value()) {
    // The ranks of every step_-th number repeat after loaded() steps at most. None of them may lie in the part.
    uint64_t left = space_->loaded();
    while (!part_->Has(space_->RankOfInsert(next_))) {
      if (left-- == 0) return std::nullopt;
      next_ += step_;
    }
  }
  if (next_ >= space_->max_inserts()) return std::nullopt;
  const uint64_t number = next_;
  next_ += step_;
  inserts_end_ = number + 1;
  return space_->InsertedKey(number, place_);
}

uint64_t KeyChooser::LoadedRank(Random* random) const {
  const uint64_t n = loaded();
  return RankOf(distribution_ == Distribution::kUniform ? random->Below(n) : scatter_(zipf_.Draw(n, random)));
}

uint64_t KeyChooser::Existing(Random* random) const {
  const uint64_t loaded = this->loaded();
  const uint64_t inserted = inserted_.size();
  switch (distribution_) {
    case Distribution::kUniform: {
      const uint64_t at = random->Below(loaded + inserted);
      return at < loaded ? LoadedKey(at) : inserted_[at - loaded];
    }
    case Distribution::kZipfian:
      return space_->LoadedKey(LoadedRank(random));
    case Distribution::kLatest: {
      const uint64_t age = zipf_.Draw(loaded + inserted, random);
      return age < inserted ? inserted_[inserted - 1 - age] : LoadedKey(scatter_(age - inserted));
    }
  }
  return 0;
}

}  // namespace gannet::ycsb
