// CatfishClient: a client of a catfish index.
//
// Several coroutines of the channel's worker may use it at once; each has a Session with its buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/keyed_hash.h"
#include "index/catfish/catfish.h"
#include "index/catfish/client/image.h"
#include "index/catfish/client/search_history.h"
#include "index/catfish/node.h"
#include "index/catfish/rpc/messages.h"
#include "index/index.h"
#include "rdma/message_buffer.h"

namespace gannet::index::catfish {

class CatfishClient final : public RemoteIndex {
 public:
  CatfishClient(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const CatfishClientOptions& options)
      : channel_(channel), owner_(owner), id_(id), options_(options) {}

  coro::Async<StatusOr<FindResult>> Find(const Key& key) override;
  coro::Task<Status> FindMany(std::span<const Key> keys, std::span<FindResult> results) override;
  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override;
  coro::Task<Status> Search(WindowQuery query, ScanResult* result) override;
  // This is a call: the nodes that can matter become known one after the other, so READs would take as many round
  // trips. If the result does not fit in a message, the owner says how far it reaches, and the window of that reach is
  // searched.
  coro::Task<Status> Nearest(NearestQuery query, ScanResult* result) override;
  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record) override;
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record) override;
  // The estimates follow what the last operations met: nothing is cached but the place of the tree.
  ReadEstimate Estimate(std::span<const Key> keys) const override;
  ReadEstimate EstimateSearch(const WindowQuery& query) const override;
  using RemoteIndex::Estimate;
  void Forget(const Key&) override {}
  ClientStatistics statistics() const override { return statistics_; }

 private:
  static constexpr size_t kWordBatch = 1024;     // words of one posting
  static constexpr size_t kMostNodes = 1 << 16;  // of one traversal; a search of more is made by calls
  static constexpr int kMostIdleRounds = 16;     // postings in a row that brought no node
  static constexpr int kMostAttempts = 4;        // of one operation
  static constexpr uint32_t kAllKeys = UINT32_MAX;

  // What the owner's description says.
  struct Tree {
    Tree(const Description& from, rdma::NodeId node)
        : layout(from.node_entries),
          offloading(from.offloading),
          root(from.root),
          words({node, from.key_words}),
          words_mask(from.key_word_count - 1),
          hash(from.seed) {}
    NodeLayout layout;
    uint32_t offloading;
    uint64_t root;
    rdma::GlobalAddress words;
    uint32_t words_mask;
    KeyedHash hash;
  };
  // A node to READ. `key`: the number of the key in a FindMany.
  struct Pending {
    uint64_t offset;
    int32_t level;  // -1: any
    uint32_t key;
  };
  // A node that was READ, and its word.
  struct Seen {
    uint64_t offset;
    uint64_t state;
    uint32_t key;
  };

  // Buffers of one operation, reused.
  struct Session {
    std::vector<Pending> pending;
    std::vector<Pending> posted;
    std::vector<Seen> seen;
    std::vector<rdma::Operation> operations;
    std::vector<std::byte> images;
    std::vector<uint64_t> words;
    NodeCopy copy;
    bool too_large = false;  // the last ReadNodes met more nodes than it reads
    rdma::MessageBuffer response;
  };
  class PooledSession {
   public:
    explicit PooledSession(CatfishClient* client);
    ~PooledSession();
    PooledSession(const PooledSession&) = delete;
    PooledSession& operator=(const PooledSession&) = delete;
    Session& operator*() const { return *session_; }

   private:
    CatfishClient* client_;
    std::unique_ptr<Session> session_;
  };

  class WindowVisit;
  class KeysVisit;

  rdma::GlobalAddress WordOf(const Key& key) const {
    return tree_->words + (tree_->hash(key.bytes()) & tree_->words_mask) * kWordBytes;
  }

  // READs the nodes of session.pending and, while `visit` adds to them, those below. Each node is given to
  // visit(pending, copy) and added to session.seen. False: the tree changes too fast, or is not what it should be.
  template <class Visit>
  coro::Task<StatusOr<bool>> ReadNodes(Session& session, Visit& visit);
  // READs `words` into session.words.
  coro::Task<Status> ReadWords(Session& session, std::span<const rdma::GlobalAddress> words);
  // Reads the words of session.seen again. False: one has changed.
  coro::Task<StatusOr<bool>> ConfirmSeen(Session& session);

  coro::Task<StatusOr<bool>> SearchByReads(Session& session, WindowQuery query, ScanResult* result);
  coro::Task<Status> SearchByCalls(Session& session, WindowQuery query, ScanResult* result);
  coro::Task<StatusOr<bool>> SearchByPages(Session& session, WindowQuery query, ScanResult* result);
  // Asks the owner for the nearest. Nothing: *result has them. Otherwise they do not fit in a message: their reach
  // (messages.h).
  coro::Task<StatusOr<std::optional<double>>> AskForNearest(NearestQuery query, ScanResult* result);
  // Finds the nearest by a search of the window that has all rectangles within `reach`. False: there are fewer than
  // query.count now.
  coro::Task<StatusOr<bool>> NearestWithin(NearestQuery query, double reach, ScanResult* result);

  coro::Task<StatusOr<FindResult>> FindOne(Key key);
  // Finds some keys by READs; those that READs did not settle, by calls.
  coro::Task<Status> FindGroup(Session& session, std::span<const Key> keys, std::span<FindResult> results);
  // Gives the keys that were not found their witnesses. settled[i] stays 0 where that failed.
  coro::Task<Status> WitnessMisses(Session& session, std::span<const Key> keys, std::span<FindResult> results,
                                   std::vector<uint8_t>* settled);
  coro::Task<StatusOr<FindResult>> FindByCall(Session& session, Key key);

  coro::Task<Status> Describe(Session& session);
  coro::Task<StatusOr<Change>> CallChange(rdma::MethodId method, Key key, rdma::GlobalAddress record);
  // Returns the response, which lies in session.response.
  coro::Task<StatusOr<std::span<const std::byte>>> Call(Session& session, rdma::MethodId method,
                                                        std::span<const std::byte> request);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  IndexId id_;
  CatfishClientOptions options_;
  std::optional<Tree> tree_;
  ClientStatistics statistics_;
  double levels_ = 3;         // of the tree, when its root was READ last
  double nodes_per_key_ = 3;  // that lookups READ, the root apart; a running average
  SearchHistory searches_;
  std::vector<std::unique_ptr<Session>> free_sessions_;
};

}  // namespace gannet::index::catfish
