// BusyNeighbour: a client that changes and reads the leaves in which a client of another node dies (leaf_death.h),
// while that dies, and until what it left has been repaired. It knows what became of each of its keys, which nobody
// else changes. One key is its rival's: both insert it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "index/index.h"
#include "tests/txn/cluster.h"
#include "txn/session/session_state.h"

namespace gannet::scenario {

// Owned by a test. Work is called once, by a thread of the client's node; the other functions before it, or after its
// end.
class BusyNeighbour {
 public:
  enum class By : uint8_t {
    kTransactions,  // each change is a transaction
    kVerbs  // changes of the index alone, by its client. A key is inserted at most once, and removed at most once
  };
  struct Key {
    uint64_t number = 0;
    index::OwnedKey key;
    bool is_there = false;
    rdma::GlobalAddress record{};  // with kVerbs: the one in the index, or one to insert
  };

  // `table`: of the client's node. It must outlive this.
  BusyNeighbour(By by, uint64_t seed, const txn::Table* table, std::vector<Key> keys, std::optional<Key> rival)
      : by_(by), random_(seed), table_(table), keys_(std::move(keys)), rival_(std::move(rival)) {}

  void Work(txn::Session& session) {
    const uint64_t rival_at = random_.Below(kFirst);
    SleepForNanos(random_.Below(kLatestStartNanos));
    for (uint64_t i = 0; i < kOperations && wrong_.empty(); ++i) {
      // Many at first, while the other client is alive. The others are spread over the time until the repair has ended.
      SleepForNanos(random_.Below(i < kFirst ? kPauseNanos : kLongPauseNanos));
      if (i == rival_at && rival_.has_value()) {
        Compete(session);
      } else {
        WorkOn(session, &keys_[random_.Below(keys_.size())]);
      }
    }
    is_over_ = true;
  }

  bool is_over() const { return is_over_; }
  // The first of its operations that did not do what it must; empty: there is none.
  const std::string& wrong() const { return wrong_; }
  const std::vector<Key>& keys() const { return keys_; }
  int changes() const { return changes_; }
  // The rival's key; is_there: this client has inserted it, or has met it.
  const std::optional<Key>& rival() const { return rival_; }
  // Who has inserted it: this client; or the other one, as an AlreadyExists has told. nullopt: it is not known.
  std::optional<bool> has_won() const { return has_won_; }

 private:
  static constexpr uint64_t kFirst = 12;
  static constexpr uint64_t kOperations = 28;
  static constexpr uint64_t kLatestStartNanos = 20'000;
  static constexpr uint64_t kPauseNanos = 2'000;
  static constexpr uint64_t kLongPauseNanos = 300'000;  // the death is known after a millisecond
  static constexpr uint64_t kAgainNanos = 50'000;
  static constexpr uint64_t kServedWithinNanos = 20'000'000;

  void WorkOn(txn::Session& session, Key* key) {
    // A record that was removed is not inserted again.
    const bool may_change = by_ == By::kTransactions || key->is_there || !key->record.is_null();
    if (!may_change || random_.OneIn(3)) {
      StatusOr<bool> found(false);
      bool is_uncertain = false;
      static_cast<void>(UntilServed(&is_uncertain, [&] {
        found = Find(session, *key);
        return found.status();
      }));
      if (!found.ok()) Note(*key, "a lookup", found.status().ToString());
      if (found.ok() && *found != key->is_there) Note(*key, "a lookup", *found ? "it is there" : "it is not there");
      return;
    }
    bool is_uncertain = false;
    const Status changed =
        UntilServed(&is_uncertain, [&] { return key->is_there ? Remove(session, *key) : Insert(session, *key); });
    const bool was_made = is_uncertain && (key->is_there ? absl::IsNotFound(changed) : absl::IsAlreadyExists(changed));
    if (!changed.ok() && !was_made) {
      return Note(*key, key->is_there ? "a removal" : "an insert", changed.ToString());
    }
    if (key->is_there) key->record = {};
    key->is_there = !key->is_there;
    ++changes_;
  }
  void Compete(txn::Session& session) {
    bool is_uncertain = false;
    const Status inserted = UntilServed(&is_uncertain, [&] { return Insert(session, *rival_); });
    if (!inserted.ok() && !absl::IsAlreadyExists(inserted)) return Note(*rival_, "an insert", inserted.ToString());
    rival_->is_there = true;
    if (inserted.ok() || !is_uncertain) has_won_ = inserted.ok();
  }
  // Makes a change again until it is made, or refused. *is_uncertain: an attempt may have made it before. The owner's
  // patience is short (tests/txn/hasty_kinds.h), so what waits for a repair ends with Unavailable.
  template <class Change>
  Status UntilServed(bool* is_uncertain, const Change& change) {
    const uint64_t deadline = NowNanos() + kServedWithinNanos;
    for (;;) {
      Status status = change();
      if (!absl::IsUnavailable(status) || NowNanos() > deadline) return status;
      *is_uncertain = true;
      SleepForNanos(kAgainNanos);
    }
  }
  void Note(const Key& key, const char* what, const std::string& result) {
    wrong_ = absl::StrCat(what, " of key ", key.number, " by the other client: ", result);
  }

  StatusOr<bool> Find(txn::Session& session, const Key& key) {
    if (by_ == By::kTransactions) {
      uint64_t row = 0;
      const Status got = txn::RunBlockingBody(
          session, [&](txn::BlockingTransaction& t) { return t.Get(*table_, key.key.view(), &row); });
      if (!got.ok() && !absl::IsNotFound(got)) return got;
      return got.ok();
    }
    return WithIndex<StatusOr<bool>>(session, [&](index::RemoteIndex* remote) -> StatusOr<bool> {
      StatusOr<index::FindResult> found = session.worker().BlockOn(FindTask(remote, key.key.view()));
      if (found.ok() && found->from_cache) {
        // An old copy, which a transaction would believe only together with the record.
        remote->Forget(key.key.view());
        found = session.worker().BlockOn(FindTask(remote, key.key.view()));
      }
      if (!found.ok()) return found.status();
      return !found->record.is_null();
    });
  }
  Status Insert(txn::Session& session, const Key& key) {
    if (by_ == By::kTransactions) {
      return txn::RunBlockingBody(
          session, [&](txn::BlockingTransaction& t) { return t.Insert(*table_, key.key.view(), key.number); });
    }
    return WithIndex<Status>(session, [&](index::RemoteIndex* remote) {
      return session.worker().BlockOn(remote->Insert(key.key.view(), key.record)).status();
    });
  }
  Status Remove(txn::Session& session, const Key& key) {
    if (by_ == By::kTransactions) {
      return txn::RunBlockingBody(session,
                                  [&](txn::BlockingTransaction& t) { return t.Remove(*table_, key.key.view()); });
    }
    return WithIndex<Status>(session, [&](index::RemoteIndex* remote) {
      return session.worker().BlockOn(remote->Remove(key.key.view(), key.record)).status();
    });
  }
  static coro::Task<StatusOr<index::FindResult>> FindTask(index::RemoteIndex* remote, index::Key key) {
    co_return co_await remote->Find(key);
  }
  // Inside the epoch, so that the records that the index leads to are what they are.
  template <class Result, class Use>
  Result WithIndex(txn::Session& session, const Use& use) {
    const StatusOr<index::RemoteIndex*> remote = session.state().RemoteIndexOf(*table_, 0);
    if (!remote.ok()) return remote.status();
    const uint64_t entered = session.state().participant->Enter();
    Result result = use(*remote);
    session.state().participant->Leave(entered);
    return result;
  }

  const By by_;
  Random random_;
  const txn::Table* table_;
  std::vector<Key> keys_;
  std::optional<Key> rival_;
  std::optional<bool> has_won_;
  std::string wrong_;
  int changes_ = 0;
  bool is_over_ = false;
};

}  // namespace gannet::scenario
