// Catfish: an R-tree that other nodes search one-sidedly, designed after Catfish (ACM TSAS 8(2), 2022;
// docs/references.md). Keys are rectangles with an id (index/rectangle.h).
//
//   owner    CatfishTree   an R-tree whose nodes are versioned objects in registered memory (node.h); three variants
//   client   CatfishClient READs all nodes of a level that meet the window with one posting (4.3 of the paper), or asks
//                          the owner by a call (3.1, "fast messaging"); inserts and removals are calls
//
// Witnesses. A search returns the words of all nodes that meet its window, inner ones too; the root's always. Why that
// covers the window. Let a rectangle r that meets window Q enter the tree, in leaf L, after a search of Q read it:
//
//   - The search read L: L's word changes.
//   - It did not. Then some node on the path to L had, when it was read, no entry that meets Q for the next node of the
//     path. Take the first such node. It was read (the root always is). Afterwards its entry contains r, so it meets Q:
//     the entry has changed, and so has the node's word. The same if the entry or the node is new: whichever node got
//     the entry has another word, and that holds up to a node which was read.
//
// A removal changes the word of the leaf. The words alone make a set of nodes that were read at different moments a
// consistent one only because changes are ordered (tree.h).
//
// A key's absence has a witness of its own, because a miss returns one word (index.h): a word that covers all keys of
// one hash value (key_words.h). Inserts and removals change it, too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/index.h"
#include "index/rectangle.h"
#include "index/service.h"
#include "rdma/fabric.h"

namespace gannet::index {

enum class CatfishVariant : uint8_t {
  kGuttman,  // least enlargement, quadratic split (Guttman, SIGMOD'84): the paper's "basic R-tree"
  kRStar,    // least overlap, forced reinsertion, split by margin and overlap (Beckmann et al., SIGMOD'90)
  kHilbert,  // order by Hilbert values, two nodes split into three (Kamel and Faloutsos, VLDB'94)
};

struct CatfishOptions {
  CatfishVariant variant = CatfishVariant::kRStar;
  // Most entries of a node. The paper has 30, and measures 15 to 130 (5.3.2). A node of 30 is 1,664 bytes.
  uint32_t node_entries = 30;
  // Most searches of one node (process) that READ the tree at the same time, over all its clients; others make calls.
  // More of them only lengthen each other's searches (4.4 of the paper, which has 3). 0: no limit.
  uint32_t offloading = 3;
  // The region of the rectangles, if it is known: Hilbert values are then evenly distributed there (hilbert.h).
  std::optional<Rectangle> world = {};
};

inline constexpr uint32_t kMinCatfishNodeEntries = 4;
inline constexpr uint32_t kMaxCatfishNodeEntries = 130;
inline constexpr uint32_t kMostCatfishReads = 64;  // of one posting

// The options as text, for TableOptions::index_options: "variant=rstar,node_entries=30,offloading=3", and with a known
// world also ",world=min_x:min_y:max_x:max_y". All fields must be valid.
std::string ToText(const CatfishOptions& options);
// Options that the text does not name have their defaults. InvalidArgument names the wrong one, and its valid values.
StatusOr<CatfishOptions> CatfishOptionsOf(std::string_view text);

// The owner's side. InvalidArgument names the option that is wrong; keys must be byte keys of at least 40 bytes.
// `expected_keys` decides only how many words cover absent keys.
StatusOr<std::unique_ptr<LocalIndex>> CreateCatfish(IndexService* service, IndexId id, KeyKind key_kind,
                                                    size_t max_key_bytes, uint64_t expected_keys,
                                                    const CatfishOptions& options);

// Serves the clients of all catfish indexes of `service` on its node. Must be called before Node::Serve.
void RegisterCatfishMethods(IndexService* service);

struct CatfishClientOptions {
  // No READs: every lookup and search is a call to the owner.
  bool by_call = false;
  // This limit replaces the one that the owner's CatfishOptions have.
  std::optional<uint32_t> offloading = {};
  // Most nodes that a search READs with one posting, 1 to kMostCatfishReads: "multi-issue" (4.3 of the paper).
  uint32_t reads_at_once = kMostCatfishReads;
  absl::Duration call_timeout = rdma::Channel::kDefaultCallTimeout;
};

// Connects to index `id` of node `owner` on `channel`, which must outlive the client. Makes no call yet. The first
// operation asks where the tree is, and returns NotFound if the owner has no such index.
//
// A search READs the root, then level by level all nodes that meet the window, many with one posting. It ends with
// READs of the words of all these nodes, if it has to return the content of one moment. A search that finds nodes
// locked, torn or dead again and again, or that finds no such moment, continues by calls.
StatusOr<std::unique_ptr<RemoteIndex>> ConnectCatfish(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                                      const CatfishClientOptions& options);

}  // namespace gannet::index
