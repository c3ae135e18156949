// SharedModels: what the clients of a process have cached of an owner's ROLEX index: its directory, its models, and
// what they know of the models' synonym tables (FAST'23, 3.3 and 3.4). All of it is a hint, so nothing expires. What
// turns out to be old is fetched again by the client that notices it, for all.
//
// The models take at most `max_bytes`. If that is not enough, those that were not used for long make room (CLOCK). The
// directory stays: it has 16 bytes for each model.
//
//   SharedModels::Reading models(view);   models->Find(...)      // view: the client's, one per client
//   SharedModels::Changing models(view);  models->Install(...)
//
// Thread-safe, by these two. Neither may be held across a suspension.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/many_readers_lock.h"
#include "index/index.h"
#include "index/rolex/directory.h"
#include "index/rolex/model.h"
#include "index/rolex/synonyms.h"

namespace gannet::index::rolex {

// A model, and what is known of the leaves that are not in its table.
struct KnownModel {
  Model model;                                     // never changes
  uint64_t slots = 0;                              // of the synonym table that were fetched
  absl::btree_map<uint64_t, uint64_t> synonyms{};  // by low fence: the leaf's offset
  mutable std::atomic<bool> used{true};            // since CLOCK's hand passed

  static constexpr uint64_t kSynonymBytes = 16;
  uint64_t bytes() const { return model.bytes() + synonyms.size() * kSynonymBytes; }
};

// The content. Guarded by the lock of SharedModels.
class KnownModels {
 public:
  // Where a lookup begins.
  struct Lead {
    uint64_t leaf = 0;  // its offset
    int line = LineHint::kUnknown;
  };

  explicit KnownModels(size_t max_bytes) : max_bytes_(max_bytes) {}

  // False if the model for `key` is not known.
  bool Find(uint64_t key, Lead* lead) const;
  // Appends the offsets of the leaves from the one for `key` on, in the direction of a scan, as far as the model is
  // known; at most `most`.
  void FindRun(uint64_t key, bool reverse, size_t most, std::vector<uint64_t>* leaves) const;
  // Null if it is not known.
  std::shared_ptr<KnownModel> ModelFor(uint64_t key) const;

  // Replaces all models that share keys with this one.
  void Install(Model model);
  // A leaf that is not in its model's table. No effect if the model is not known.
  void NoteLeaf(const Synonym& leaf);
  // Adds what was READ of the synonym table of a model, up to slot `slots`.
  void AddSynonyms(KnownModel* model, std::span<const Synonym> synonyms, uint64_t slots);
  // What is known of the model's synonyms is wrong.
  void DropSynonyms(uint64_t key);

  // The directory. Offsets in the owner's memory; 0: not known.
  uint64_t root() const { return root_; }
  uint64_t queue() const { return queue_; }
  void SetPlaces(uint64_t root, uint64_t queue) {
    root_ = root;
    queue_ = queue;
  }
  bool knows_top() const { return !top_.empty(); }
  // Pages that are the same stay.
  void SetTop(std::vector<DirectoryEntry> top);
  // The entry of the top for the page of `key`; the top is known.
  DirectoryEntry PageFor(uint64_t key) const { return top_[FindEntry(top_, key)]; }
  // The entry of the page for the model of `key`. False if the page is not known.
  bool FindInPage(uint64_t key, DirectoryEntry* entry) const;
  // No effect if the top has another page there by now.
  void SetPage(const DirectoryEntry& page, std::vector<DirectoryEntry> entries);

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  using Models = absl::btree_map<uint64_t, std::shared_ptr<KnownModel>>;

  KnownModel* Covering(uint64_t key) const;
  Models::iterator Erase(Models::iterator at);
  // Makes room, but not by the model that begins at `keep`.
  void Evict(uint64_t keep);
  void Count(uint64_t added, uint64_t removed) { bytes_.store(bytes() + added - removed, std::memory_order_relaxed); }

  const size_t max_bytes_;
  uint64_t root_ = 0;
  uint64_t queue_ = 0;
  std::vector<DirectoryEntry> top_;
  std::vector<std::vector<DirectoryEntry>> pages_;  // of top_; empty: not fetched
  Models models_;                                   // by first key
  uint64_t model_bytes_ = 0;
  uint64_t hand_ = 0;               // of CLOCK: a key
  std::atomic<uint64_t> bytes_{0};  // of all, for threads that do not hold the lock
};

class SharedModels final : public SharedCache {
 public:
  explicit SharedModels(size_t max_bytes) : models_(max_bytes) {}

  uint64_t bytes() const override { return models_.bytes(); }

  // A client's place among the readers. Used by one thread at a time; the cache must outlive it.
  class View {
   public:
    explicit View(SharedModels* cache) : cache_(cache), reader_(&cache->lock_) {}

   private:
    friend class SharedModels;
    SharedModels* const cache_;
    ManyReadersLock::Reader reader_;
  };

  class Reading {
   public:
    explicit Reading(View& view) : view_(view) { view.reader_.lock(); }
    ~Reading() { view_.reader_.unlock(); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    const KnownModels* operator->() const { return &view_.cache_->models_; }

   private:
    View& view_;
  };
  class Changing {
   public:
    explicit Changing(View& view) : view_(view) { view.cache_->lock_.lock(); }
    ~Changing() { view_.cache_->lock_.unlock(); }
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;
    KnownModels* operator->() const { return &view_.cache_->models_; }

   private:
    View& view_;
  };

 private:
  ManyReadersLock lock_;
  KnownModels models_;
};

}  // namespace gannet::index::rolex
