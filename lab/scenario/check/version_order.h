// VersionOrder: the order in which the committed writes of each key took effect.
//
// If all writes of a key have version numbers, these give the order. Otherwise each write that read the key first
// follows the write that it read. The resulting chains (each begins with an insert or a blind write) are put in an
// order that respects real time. Where real time leaves a choice, the order is a guess, and marked as one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/scenario/check/anomaly.h"
#include "lab/scenario/check/choices.h"
#include "lab/scenario/check/commits.h"
#include "lab/scenario/check/history.h"
#include "lab/scenario/check/write_index.h"

namespace gannet::scenario {

struct Version {
  uint32_t write;
  bool guessed;  // its place after the version before it is a guess
};

class VersionOrder {
 public:
  // Appends lost updates and divergent versions to *anomalies.
  VersionOrder(const History& history, const WriteIndex& index, const Commits& commits, Choices* choices,
               std::vector<Anomaly>* anomalies);

  std::span<const Version> ordered(KeyIndex key) const { return Part(first_[key], tail_[key]); }
  // Versions after all of those, in an unknown order.
  std::span<const Version> tail(KeyIndex key) const { return Part(tail_[key], first_[key + 1]); }
  // Index in ordered(key); kNone if it is not there.
  uint32_t position(uint32_t write) const { return position_[write]; }
  // True if the choices lead to every possible order.
  bool exhaustive() const { return exhaustive_; }

 private:
  struct Chain {
    size_t begin;  // in order_
    size_t end;
    uint64_t applied_by;  // the earliest of its writes
    uint64_t invoked;     // the latest of its writes
  };
  std::span<const Version> Part(size_t from, size_t to) const { return std::span(versions_).subspan(from, to - from); }
  void GroupByKey();
  void OrderKey(std::span<const uint32_t> writes);
  bool OrderByVersion(std::span<const uint32_t> writes);
  void OrderByReads(std::span<const uint32_t> writes);
  void CollectChains(std::span<const uint32_t> writes);
  void Follow(uint32_t write);
  void SortChains(std::span<const uint32_t> writes);
  void ChooseNext(size_t place);
  bool InsertsAreKnown(std::span<const uint32_t> writes) const;
  bool Stays(const Chain& chain) const { return !index_.write(order_[chain.end - 1]).remove; }
  static bool Forced(const Chain& a, const Chain& b) { return a.applied_by < b.invoked; }
  void FindLostUpdates();
  void FindDoubleInserts(std::span<const uint32_t> writes);
  bool Certain(uint32_t write) const { return commits_.Certain(index_.write(write).op); }
  void SayLostUpdate(uint32_t first, uint32_t second, const char* found);

  const History& history_;
  const WriteIndex& index_;
  const Commits& commits_;
  Choices* choices_;
  std::vector<Anomaly>* anomalies_;

  std::vector<uint32_t> by_key_;     // commits_.writes, grouped
  std::vector<size_t> group_;        // of each key, in by_key_
  std::vector<uint32_t> successor_;  // by write: the write that read it and overwrote it
  std::vector<uint8_t> followed_;    // by write: whether it is in a chain
  std::vector<uint32_t> order_;
  std::vector<Chain> chains_;
  bool inserts_known_ = false;      // of the current key
  std::vector<uint64_t> earliest_;  // earliest invocation of the chains from this one on, in the order of SortChains
  std::vector<size_t> candidates_;
  bool exhaustive_ = true;

  std::vector<Version> versions_;
  std::vector<size_t> first_;
  std::vector<size_t> tail_;
  std::vector<uint32_t> position_;
};

}  // namespace gannet::scenario
