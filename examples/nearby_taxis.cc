// Restaurants and taxis on a map: which restaurants lie in a part of the map, and which free taxi is nearest. Taxis
// move all the time, and no taxi is given to two customers.
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>

#include "index/rectangle.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/database.h"

using gannet::Status;
using gannet::StatusOr;
using gannet::index::EncodeRectangleKey;
using gannet::index::Rectangle;
using gannet::index::RectangleKeyBytes;
using gannet::txn::BlockingTransaction;
using gannet::txn::Database;
using gannet::txn::ScanRows;
using gannet::txn::Table;

struct Restaurant {
  char name[24];
};

// A free taxi is a row of the table of free taxis, and a busy one is a row of the other.
struct Taxi {
  uint64_t customer;
};

constexpr double kFirstTaxiAt = 13.35;

struct City {
  const Table* restaurants;
  const Table* free_taxis;
  const Table* busy_taxis;
};

// The key of a place is its rectangle and an id. An area, such as a garden, is a rectangle with an extent.
StatusOr<RectangleKeyBytes> Place(double x, double y, uint64_t id) {
  return EncodeRectangleKey(Rectangle::Point(x, y), id);
}

Status Open(BlockingTransaction& t, const City& city, double x, double y, uint64_t id, const char* name) {
  Restaurant row{};
  std::strncpy(row.name, name, sizeof row.name - 1);
  const auto place = Place(x, y, id);
  if (!place.ok()) return place.status();
  return t.Insert(*city.restaurants, place->view(), row);
}

Status FillMap(BlockingTransaction& t, const City& city) {
  GANNET_RETURN_IF_ERROR(Open(t, city, 13.40, 52.52, 1, "Zum Reiher"));
  GANNET_RETURN_IF_ERROR(Open(t, city, 13.42, 52.50, 2, "Pizzeria Nord"));
  GANNET_RETURN_IF_ERROR(Open(t, city, 13.29, 52.45, 3, "Seeblick"));
  for (uint64_t id = 1; id <= 3; ++id) {
    const auto place = Place(kFirstTaxiAt + 0.05 * static_cast<double>(id - 1), 52.50, id);
    if (!place.ok()) return place.status();
    GANNET_RETURN_IF_ERROR(t.Insert(*city.free_taxis, place->view(), Taxi{}));
  }
  return absl::OkStatus();
}

Status PrintRestaurants(BlockingTransaction& t, const City& city, const Rectangle& part) {
  ScanRows rows;
  GANNET_RETURN_IF_ERROR(t.Search(*city.restaurants, part, &rows));
  for (size_t i = 0; i < rows.size(); ++i) std::cout << "restaurant " << rows.As<Restaurant>(i).name << '\n';
  return absl::OkStatus();
}

// The place is part of the key, so a taxi moves by a removal and an insert. Nobody sees it at neither or at both
// places.
Status Move(BlockingTransaction& t, const City& city, const Rectangle& from, const Rectangle& to, uint64_t id) {
  const auto old_key = EncodeRectangleKey(from, id);
  const auto new_key = EncodeRectangleKey(to, id);
  if (!old_key.ok()) return old_key.status();
  if (!new_key.ok()) return new_key.status();
  GANNET_RETURN_IF_ERROR(t.Remove(*city.free_taxis, old_key->view()));
  return t.Insert(*city.free_taxis, new_key->view(), Taxi{});
}

// Takes the nearest free taxi. If another customer takes it first, or a nearer one arrives before the commit, this
// transaction conflicts, and Run calls it again.
Status Book(BlockingTransaction& t, const City& city, double x, double y, uint64_t customer, uint64_t* taxi) {
  ScanRows nearest;
  GANNET_RETURN_IF_ERROR(t.Nearest(*city.free_taxis, {.x = x, .y = y, .count = 1}, &nearest));
  if (nearest.empty()) return absl::NotFoundError("no taxi is free");
  const auto key = gannet::index::DecodeRectangleKey(nearest.key(0));
  if (!key.ok()) return key.status();
  *taxi = key->id;
  GANNET_RETURN_IF_ERROR(t.Remove(*city.free_taxis, nearest.key(0)));
  return t.Insert(*city.busy_taxis, nearest.key(0), Taxi{customer});
}

Status Run() {
  auto fabric = gannet::rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = 64 << 20});
  if (!fabric.ok()) return fabric.status();
  auto opened = Database::Open(fabric->get(), /*node=*/0, {});
  if (!opened.ok()) return opened.status();
  Database& database = **opened;
  City city{};
  const auto create = [&](const char* name, size_t payload_bytes, const Table** table) -> Status {
    auto created = database.CreateTable({.name = name,
                                         .key_kind = gannet::index::KeyKind::kBytes,
                                         .max_key_bytes = gannet::index::RectangleKey::kBytes,
                                         .index = gannet::txn::IndexKind::kCatfish,
                                         .payload_bytes = payload_bytes});
    if (created.ok()) *table = *created;
    return created.status();
  };
  GANNET_RETURN_IF_ERROR(create("restaurants", sizeof(Restaurant), &city.restaurants));
  GANNET_RETURN_IF_ERROR(create("free taxis", sizeof(Taxi), &city.free_taxis));
  GANNET_RETURN_IF_ERROR(create("busy taxis", sizeof(Taxi), &city.busy_taxis));
  GANNET_RETURN_IF_ERROR(database.Start());

  GANNET_RETURN_IF_ERROR(database.Run([&](auto& t) { return FillMap(t, city); }));
  const Rectangle centre{13.35, 52.48, 13.45, 52.55};
  GANNET_RETURN_IF_ERROR(database.Run([&](auto& t) { return PrintRestaurants(t, city, centre); }));

  const Rectangle from = Rectangle::Point(kFirstTaxiAt, 52.50);
  const Rectangle to = Rectangle::Point(13.41, 52.51);
  GANNET_RETURN_IF_ERROR(database.Run([&](auto& t) { return Move(t, city, from, to, 1); }));
  for (uint64_t customer = 1; customer <= 2; ++customer) {
    uint64_t taxi = 0;
    GANNET_RETURN_IF_ERROR(database.Run([&](auto& t) { return Book(t, city, 13.42, 52.52, customer, &taxi); }));
    std::cout << "customer " << customer << " gets taxi " << taxi << '\n';
  }
  return absl::OkStatus();
}

int main() {
  const Status status = Run();
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
