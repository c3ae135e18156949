#include "index/dolphin/holder_book.h"

#include <tuple>
#include <utility>

namespace gannet::index::dolphin {

std::shared_ptr<HolderBook> HolderBook::Of(const std::byte* node_memory, rdma::NodeId owner, IndexId index) {
  static Mutex* const mutex = new Mutex;
  static auto* const books =
      new absl::flat_hash_map<std::tuple<const std::byte*, rdma::NodeId, IndexId>, std::weak_ptr<HolderBook>>;
  std::lock_guard lock(*mutex);
  absl::erase_if(*books, [](const auto& book) { return book.second.expired(); });
  std::weak_ptr<HolderBook>& known = (*books)[{node_memory, owner, index}];
  std::shared_ptr<HolderBook> book = known.lock();
  if (book == nullptr) known = book = std::make_shared<HolderBook>();
  return book;
}

}  // namespace gannet::index::dolphin
