// ArtEditor: changes of the inner nodes of Dolphin (III-B) by verbs, for a client, and for the owner over a channel of
// its own. All that it changes are hints, so it takes no lock, and may give up.
//
//   AddLeaf      READ of nodes; [CAS of an entry, READ of the node's state]         the node has a free entry: case 2
//                READ of nodes; [WRITE of new nodes]; [CAS, READ]                   an entry leads elsewhere: case 1
//                READ of nodes; [WRITE of a larger copy]; [CAS, READ]; [CAS, READ]  the node is full
//   RemoveLeaf   READ of nodes; [CAS, READ]
//
// The tree (inner_node.h) has one entry for each leaf: in the deepest node whose prefix its low fence has, which lacks
// two bytes of it, or less. So no key's way leads to a leaf that does not cover it, if no entry is missing. What an
// added leaf needs is one entry and at most two new nodes of the smallest type: one where its low fence leaves that of
// another leaf, or the prefix of a node; and one that has its last two bytes.
//
// A node is WRITTEN completely before a CAS links it, and a block is WRITTEN once before it goes back to the owner. So
// whoever finds a node that nothing leads to may declare it dead, as the owner does after a death (own_art.h).
//
// Which changes are lost. A full node N is replaced: its copy is linked first, then N is declared dead, and then N is
// READ once more, for entries that have changed in between. An editor that has changed an entry of N READs the state of
// N in the same posting. If N lives, the change came before its death, so the editor that replaces N finds it, and
// carries it over to the copy. If N is dead, the editor looks whether its change has been carried over, and otherwise
// makes it again. An entry that does not fit into the copy any more is made again, too. So an
// entry is lost only if a death or a failing verb has interrupted its editor. A removal that comes between the death of
// N and the carrying over finds nothing in the copy; then the entry is wrong until a reader meets it.
//
// A node that gets empty is declared dead first, and then its entry is taken away: an editor that adds to it meanwhile
// sees that, and adds to the parent.
//
// Not thread-safe; coroutines of the channel's worker may use it at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/dolphin/art.h"
#include "index/dolphin/inner_node.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/leaf/posting.h"

namespace gannet::index::dolphin {

// Is told what the editor sees and changes: a client's cache of nodes.
class ArtWatch {
 public:
  // A whole node, as it was READ or made just now.
  virtual void NoteNode(const NodeImage& node) = 0;
  virtual void NoteDead(rdma::GlobalAddress node) = 0;
  virtual void NoteEntry(rdma::GlobalAddress node, uint64_t entry) = 0;
  virtual void NoteNoEntry(rdma::GlobalAddress node, uint64_t entry) = 0;

 protected:
  ~ArtWatch() = default;
};

// An entry for a new leaf that goes out with other verbs, by a client's copy of the node: [CAS of a free entry, WRITE
// of the leaf's reverse pointer, READ of the node]. Of the largest type, where each byte has its place, only the entry
// and the state are READ. Where that fails, AddLeaf does it.
class EntryHint {
 public:
  // `node`: with this state and prefix, as copied; `slot` is free. `entry`: that of `leaf`.
  EntryHint(const NodeRef& node, size_t prefix_lines, uint64_t state, int slot, uint64_t entry,
            rdma::GlobalAddress leaf);
  void Append(shared_leaf::Posting* posting);
  // Call it after the posting, also if that has failed. True: the entry is there, the node lives, and it has no other
  // entry for the byte.
  bool IsThere();
  rdma::GlobalAddress node() const { return node_.address; }
  uint64_t entry() const { return entry_; }

 private:
  NodeRef node_;
  rdma::GlobalAddress word_;
  uint64_t state_;
  int slot_;
  uint64_t entry_;
  rdma::GlobalAddress leaf_;
  // The READs write here.
  uint64_t found_entry_ = 0;
  uint64_t found_state_ = 0;
  std::unique_ptr<NodeImage> found_;  // null: of the largest type
};

class ArtEditor {
 public:
  using BlockSources = std::array<shared_leaf::BlockSource*, kNodeTypes>;

  // All must outlive this. `root`: a node of the largest type, which always lives. `blocks`: of the types from
  // kSmallestNode on. `watch`: null if nobody wants to know.
  ArtEditor(shared_leaf::LeafChannel* leaves, rdma::GlobalAddress root, size_t max_key_bytes, BlockSources blocks,
            ArtWatch* watch = nullptr)
      : leaves_(leaves),
        root_{root, kLargestNode},
        prefix_lines_(PrefixLinesFor(max_key_bytes)),
        blocks_(blocks),
        watch_(watch) {}

  // READs a node once, or several times if it is torn. kTorn: there is no node. An error: the owner cannot be reached.
  coro::Task<StatusOr<LeafLook>> Read(NodeRef node, NodeImage* image);
  // READs different nodes once, in one posting, for the watch. The caller does not learn whether that succeeds.
  static constexpr size_t kMostNodes = 3;
  coro::Task<void> ReadOnce(std::span<const NodeRef> nodes);

  // `low`: of the leaf, as ArtKeyOf for integer keys. `start`: a node on the way to it, from a cache. False: given up;
  // the entry may be there nevertheless, and others may have been lost.
  coro::Task<bool> AddLeaf(ByteKey low, rdma::GlobalAddress leaf, std::optional<NodeRef> start = std::nullopt);
  // Takes the entry away, if it leads to this leaf.
  coro::Task<bool> RemoveLeaf(ByteKey low, rdma::GlobalAddress leaf, std::optional<NodeRef> start = std::nullopt);
  // Takes away an entry that has misled: that of a leaf with another low fence, or ArtWay::misled().
  coro::Task<bool> RemoveEntry(NodeRef node, uint64_t entry);

 private:
  static constexpr int kMostTries = 16;
  static constexpr int kMostLooks = 8;
  static constexpr size_t kMostLost = 64;

  // An entry, and the node that has it, as it was READ.
  struct Link {
    NodeRef node;
    uint64_t state = 0;
    rdma::GlobalAddress word;
    uint64_t entry = 0;
  };
  // The end of the way to a low fence.
  struct Place {
    std::vector<Link> links;  // from the first node on; the last one leads to `node`
    NodeImage node;           // the deepest whose prefix the low fence has
    int byte = 0;             // of the low fence behind that
    int slot = -1;            // that has an entry for the byte
    bool has_child = false;   // the entry leads to an inner node, whose prefix the low fence does not have
    NodeImage child;

    uint64_t entry() const { return slot < 0 ? 0 : node.word(slot); }
    Link LinkAt(int at) const { return {node.ref(), node.state(), node.AddressOf(at), node.word(at)}; }
    // The way passes this node.
    bool Passes(rdma::GlobalAddress address) const;
  };
  // A node that is being made.
  struct Fresh {
    NodeImage image;
    shared_leaf::FreeBlock block;
  };
  using Nodes = std::vector<std::unique_ptr<Fresh>>;

  enum class Outcome : uint8_t { kDone, kAgain, kFailed };
  // kUncertain: the entry may have been changed, or was changed in a node that is dead.
  enum class Swapped : uint8_t { kDone, kChanged, kUncertain };

  rdma::NodeId owner() const { return root_.address.node(); }
  // This node's CPU reads the nodes.
  std::byte* Own(rdma::GlobalAddress node) const {
    return leaves_->is_own() ? leaves_->channel()->Local(node) : nullptr;
  }
  bool MayBeNode(const NodeRef& node) const;
  // kAgain: an entry that led to no child was taken away.
  coro::Task<Outcome> FindOnce(std::string_view low, std::optional<NodeRef> start, Place* place);
  coro::Task<bool> Find(std::string_view low, std::optional<NodeRef> start, Place* place);
  coro::Task<Outcome> AddAt(const ByteKey& low, rdma::GlobalAddress leaf, bool replaces, Place* place);
  // The node that has the entry of a leaf now, and becomes its reverse pointer. Of an added leaf, and of the one whose
  // entry a new node has taken over (null: none).
  struct Holder {
    NodeRef node;
    rdma::GlobalAddress leaf{};
  };
  using Holders = std::array<Holder, 2>;
  // Makes the nodes that are needed between the place and the leaf. *entry: what leads to them.
  coro::Task<bool> Plan(std::string_view low, rdma::GlobalAddress leaf, const Place& place, Nodes* nodes,
                        uint64_t* entry, Holders* holders);
  // Null: there is no block.
  coro::Task<Fresh*> NewNode(NodeType type, std::string_view prefix, Nodes* nodes);
  coro::Task<bool> Write(const Nodes& nodes);
  // Gives back blocks of new nodes that nothing leads to, or a word of an editor that has given up.
  coro::Task<void> Abandon(Nodes* nodes, bool were_written);
  // Changes an entry from link.entry.
  coro::Task<Swapped> Swap(Link link, uint64_t desired, const Holders* holders = nullptr);
  // Declares a node dead. *late: what its block has then. False: somebody else has done it, or it is not known.
  coro::Task<bool> Kill(const NodeImage& node, NodeImage* late);
  // The node was replaced by `copy`.
  coro::Task<void> Retire(const NodeImage& node, NodeImage* copy);
  coro::Task<void> CarryOver(const NodeImage& before, const NodeImage& after, NodeImage* copy);
  coro::Task<bool> AddToCopy(uint64_t entry, NodeImage* copy);
  // An entry of a node that died did not get into its copy: its leaves are to be added again, and nodes below it die.
  coro::Task<void> Lose(uint64_t entry, std::string_view prefix);
  // `replaces`: another leaf with the same low fence; a lost entry may be older than that one.
  coro::Task<bool> AddOne(ByteKey low, rdma::GlobalAddress leaf, bool replaces, std::optional<NodeRef> start);
  coro::Task<void> AddLost();
  // Whether the way to `low` passes the node now. kFailed: it is not known.
  coro::Task<Outcome> IsOnWay(std::string_view low, rdma::GlobalAddress node);
  coro::Task<void> GiveBack(const NodeImage& dead);
  // Takes the node of the place, and those above it, out of the tree if they are empty.
  coro::Task<void> DropEmpty(std::string_view low, Place* place);

  shared_leaf::LeafChannel* leaves_;
  NodeRef root_;
  size_t prefix_lines_;
  BlockSources blocks_;
  ArtWatch* watch_;
  std::vector<std::pair<ByteKey, rdma::GlobalAddress>> lost_;  // leaves to be added again
};

}  // namespace gannet::index::dolphin
