#include "txn/peer/table_digests.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cache_line.h"
#include "index/registry.h"
#include "txn/durable/read_words.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gannet::txn {
namespace {

uint64_t DigestOf(const std::string& text) {
  return XXH3_64bits(text.data(), text.size());
}

std::string NameOf(const Placement& placement) {
  const std::string name(placement.name());
  return placement.ranges == nullptr ? name : absl::StrCat(name, " ", absl::StrJoin(placement.ranges->texts(), ","));
}

std::string TextOf(const SecondaryIndex* index) {
  if (index == nullptr) return "";
  return absl::StrCat("\nindex of ", index->table().id(), index->unique() ? " unique " : " ", ToText(index->fields()),
                      index->is_complete() ? "" : " incomplete");
}

uint64_t DigestOf(const Table& table) {
  const TableOptions& options = table.options();
  return DigestOf(absl::StrCat(
      table.id(), "\n", table.name(), "\n", index::EntryOf(options.index).name, "\n",
      std::string(index::NameOf(*options.index_rights)), "\n", static_cast<int>(options.key_kind), " ",
      options.max_key_bytes, " ", static_cast<int>(table.key_form()), " ", table.payload_bytes(), " ",
      options.variable_length ? "variable" : "fixed", "\n", NameOf(options.placement), TextOf(table.secondary())));
}

}  // namespace

TableDigests::TableDigests(rdma::Fabric* fabric, rdma::Node* node, std::byte* lines)
    : fabric_(fabric), node_(node), lines_(lines) {}

Status TableDigests::PublishAndCompare(const TableSet& tables, int data_nodes) {
  {
    const std::lock_guard lock(mutex_);
    data_nodes_ = data_nodes;
    for (int i = 0; i < data_nodes; ++i) {
      if (i != node_->id()) rest_.push_back(static_cast<rdma::NodeId>(i));
    }
    Publish(tables);
  }
  // The other node does the same: without this, neither might see what the other has stored.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return Compare();
}

void TableDigests::PublishAgain(const TableSet& tables) {
  const std::lock_guard lock(mutex_);
  Publish(tables);
}

void TableDigests::Publish(const TableSet& tables) {
  tables_.clear();
  for (const Table* table : tables) tables_.push_back(table);
  std::string all = absl::StrCat(data_nodes_);
  for (size_t i = 0; i < tables_.size(); ++i) {
    const uint64_t digest = DigestOf(*tables_[i]);
    absl::StrAppend(&all, " ", digest);
    if (i < kMostDigests) StoreWord(lines_ + DigestOffset(i), digest);
  }
  StoreWord(lines_ + kAll, DigestOf(all));
  StoreWord(lines_ + kCount, tables_.size() + 1);
}

Status TableDigests::Compare() {
  if (done_.load(std::memory_order_relaxed)) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  if (rest_.empty()) {
    done_.store(true, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  const StatusOr<std::unique_ptr<rdma::Channel>> channel = node_->OpenChannel();
  if (!channel.ok()) return channel.status();
  coro::Worker worker;
  worker.AddPoller([&channel] { return (*channel)->Poll(); });
  std::vector<rdma::NodeId> rest;
  for (const rdma::NodeId other : rest_) {
    const StatusOr<bool> equal = CompareWith(other, channel->get(), &worker);
    if (!equal.ok()) return equal.status();
    if (!*equal) rest.push_back(other);
  }
  rest_ = std::move(rest);
  return absl::OkStatus();
}

StatusOr<bool> TableDigests::CompareWith(rdma::NodeId other, rdma::Channel* channel, coro::Worker* worker) const {
  if (!fabric_->Alive(other)) return false;
  const rdma::GlobalAddress there(other, static_cast<uint64_t>(lines_ - node_->memory().data()));
  std::array<uint64_t, kBytes / kWordBytes> words;
  const auto read = [&](size_t bytes) {
    return worker->BlockOn(ReadWords(channel, there, std::span(words).first(bytes / kWordBytes)));
  };
  // The digests are there once the count is.
  if (!read(kLineBytes).ok() || words[kCount / kWordBytes] == 0 || !read(kBytes).ok()) return false;
  if (words[kAll / kWordBytes] == LoadWord(lines_ + kAll)) return true;
  const auto differ = [&](auto&&... what) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", other, " has other tables than this node: ", what...,
                     "; create the same tables with the same options on every node, new ones in the same order"));
  };
  const uint64_t count = words[kCount / kWordBytes] - 1;
  for (size_t i = 0; i < std::min<size_t>({tables_.size(), count, kMostDigests}); ++i) {
    const size_t at = DigestOffset(i);
    if (words[at / kWordBytes] == LoadWord(lines_ + at)) continue;
    return differ("number ", tables_[i]->id(), ", here '", tables_[i]->name(),
                  "', differs in its name, index, index_rights, keys or their form, payloads, placement, or fields as "
                  "a secondary index, or in whether that is complete");
  }
  if (count != tables_.size()) return differ("there are ", count, ", here ", tables_.size());
  return differ("one of them, or DatabaseOptions::data_nodes");
}

}  // namespace gannet::txn
