#include "tpcc/population.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "txn/bulk_loader.h"

namespace gannet::tpcc {
namespace {

using txn::BulkLoader;

constexpr Cents kInitialPayment = 1000;           // H_AMOUNT, and the customer's debt
constexpr Cents kCreditLimit = 5'000'000;         // 50,000.00
constexpr std::span<const std::byte> kNothing{};  // the payload of tables with only a key

// The generator of a part for one warehouse. It does not depend on the loading thread or the order.
enum class Part : uint64_t { kItems, kWarehouses, kStock, kCustomers, kOrders };
Random RandomFor(const PopulationContext& context, Part part, uint32_t w) {
  return Random(Mix64(context.seed) ^ Mix64(uint64_t{w} << 8 | static_cast<uint64_t>(part)));
}

uint16_t RandomTax(Random& random) {
  return static_cast<uint16_t>(random.Between(0, 2000));
}

CustomerInfo RandomCustomer(Random& random, const PopulationContext& context, uint32_t c) {
  CustomerInfo info{};
  const uint32_t names = context.tables->scale.last_names();
  info.terms.last = LastName(c <= names ? c - 1 : context.non_uniform.LastName(random, names));
  info.terms.discount = static_cast<uint16_t>(random.Between(0, 5000));
  info.terms.bad_credit = random.OneIn(10);
  info.middle.Assign("OE");
  RandomText(random, 8, 16, &info.first);
  info.address = RandomAddress(random);
  FillDigits(random, info.phone.bytes);
  info.since = context.date;
  info.credit_lim = kCreditLimit;
  return info;
}

// Fills the tables of LoadCustomers.
class CustomerLoader {
 public:
  CustomerLoader(txn::Session& session, const PopulationContext& context)
      : context_(context),
        customer_(&session, context.tables->customer),
        info_(&session, context.tables->customer_info),
        data_(&session, context.tables->customer_data),
        by_name_(&session, context.tables->customer_by_name),
        history_(&session, context.tables->history) {}

  Status AddDistrict(Random& random, uint32_t w, uint32_t d) {
    names_.clear();
    for (uint32_t c = 1; c <= context_.tables->scale.customers_per_district; ++c) {
      GANNET_RETURN_IF_ERROR(AddCustomer(random, w, d, c));
    }
    std::sort(names_.begin(), names_.end(),
              [](const CustomerNameKey& a, const CustomerNameKey& b) { return a.key() < b.key(); });
    for (const CustomerNameKey& name : names_) GANNET_RETURN_IF_ERROR(by_name_.Add(name.key(), kNothing));
    return absl::OkStatus();
  }

  Status Finish() {
    for (BulkLoader* loader : {&customer_, &info_, &data_, &by_name_, &history_}) {
      GANNET_RETURN_IF_ERROR(loader->Finish());
    }
    return absl::OkStatus();
  }

 private:
  Status AddCustomer(Random& random, uint32_t w, uint32_t d, uint32_t c) {
    const uint64_t key = CustomerKey(w, d, c);
    const CustomerInfo info = RandomCustomer(random, context_, c);
    GANNET_RETURN_IF_ERROR(info_.Add(key, info));
    names_.emplace_back(w, d, info.terms.last, info.first, c);
    const Customer customer{
        .balance = -kInitialPayment, .ytd_payment = kInitialPayment, .payment_cnt = 1, .delivery_cnt = 0};
    GANNET_RETURN_IF_ERROR(customer_.Add(key, customer));
    CustomerData data;
    RandomText(random, 300, 500, &data.data);
    GANNET_RETURN_IF_ERROR(data_.Add(key, data));
    History history{.c_id = c,
                    .c_d_id = static_cast<uint8_t>(d),
                    .c_w_id = static_cast<uint16_t>(w),
                    .date = context_.date,
                    .amount = kInitialPayment,
                    .data = {}};
    RandomText(random, 12, 24, &history.data);
    return history_.Add(HistoryKey(w, d, kLoaderWorker, c), history);
  }

  const PopulationContext& context_;
  BulkLoader customer_;
  BulkLoader info_;
  BulkLoader data_;
  BulkLoader by_name_;
  BulkLoader history_;
  std::vector<CustomerNameKey> names_;  // of one district
};

// Fills the tables of LoadOrders.
class OrderLoader {
 public:
  OrderLoader(txn::Session& session, const PopulationContext& context)
      : context_(context),
        scale_(context.tables->scale),
        order_(&session, context.tables->order),
        by_customer_(&session, context.tables->order_by_customer),
        new_order_(&session, context.tables->new_order),
        order_line_(&session, context.tables->order_line),
        customers_(scale_.customers_per_district) {}

  // Returns the number of order lines.
  StatusOr<uint64_t> AddDistrict(Random& random, uint32_t w, uint32_t d) {
    std::iota(customers_.begin(), customers_.end(), 1);
    std::shuffle(customers_.begin(), customers_.end(), random);
    by_customer_keys_.clear();
    uint64_t lines = 0;
    for (uint32_t o = 1; o <= customers_.size(); ++o) {
      StatusOr<int> added = AddOrder(random, w, d, o);
      if (!added.ok()) return added.status();
      lines += static_cast<uint64_t>(*added);
    }
    std::sort(by_customer_keys_.begin(), by_customer_keys_.end());
    for (const uint64_t key : by_customer_keys_) GANNET_RETURN_IF_ERROR(by_customer_.Add(key, kNothing));
    return lines;
  }

  Status Finish() {
    for (BulkLoader* loader : {&order_, &by_customer_, &new_order_, &order_line_}) {
      GANNET_RETURN_IF_ERROR(loader->Finish());
    }
    return absl::OkStatus();
  }

 private:
  StatusOr<int> AddOrder(Random& random, uint32_t w, uint32_t d, uint32_t o) {
    const bool delivered = o <= scale_.delivered_orders();
    const Order order{.c_id = customers_[o - 1],
                      .entry_d = context_.date,
                      .carrier_id = static_cast<uint8_t>(delivered ? random.Between(1, 10) : 0),
                      .ol_cnt = static_cast<uint8_t>(random.Between(5, 15)),
                      .all_local = 1};
    GANNET_RETURN_IF_ERROR(order_.Add(OrderKey(w, d, o), order));
    by_customer_keys_.push_back(OrderByCustomerKey(w, d, order.c_id, o));
    if (!delivered) GANNET_RETURN_IF_ERROR(new_order_.Add(OrderKey(w, d, o), kNothing));
    for (uint32_t line = 1; line <= order.ol_cnt; ++line) {
      GANNET_RETURN_IF_ERROR(
          order_line_.Add(OrderLineKey(w, d, o, line), RandomOrderLine(random, w, delivered, order.entry_d)));
    }
    return int{order.ol_cnt};
  }

  OrderLine RandomOrderLine(Random& random, uint32_t w, bool delivered, Date entry_d) const {
    OrderLine line{.i_id = static_cast<uint32_t>(random.Between(1, scale_.items)),
                   .delivery = {.delivery_d = delivered ? entry_d : 0,
                                .amount = delivered ? 0 : static_cast<uint32_t>(random.Between(1, 999999))},
                   .supply_w_id = static_cast<uint16_t>(w),
                   .quantity = 5,
                   .dist_info = {}};
    FillLetters(random, line.dist_info.bytes);
    return line;
  }

  const PopulationContext& context_;
  const Scale scale_;
  BulkLoader order_;
  BulkLoader by_customer_;
  BulkLoader new_order_;
  BulkLoader order_line_;
  std::vector<uint32_t> customers_;         // in the order of their orders
  std::vector<uint64_t> by_customer_keys_;  // of one district
};

}  // namespace

Status LoadItems(txn::Session& session, const PopulationContext& context) {
  BulkLoader loader(&session, context.tables->item);
  Random random = RandomFor(context, Part::kItems, 0);
  const uint32_t items = context.tables->scale.items;
  for (uint32_t i = 1; i <= items; ++i) {
    Item item;
    item.im_id = static_cast<uint32_t>(random.Between(1, 10000));
    item.price = static_cast<uint32_t>(random.Between(100, 10000));
    RandomText(random, 14, 24, &item.name);
    RandomData(random, &item.data);
    GANNET_RETURN_IF_ERROR(loader.Add(ItemKey(i), item));
  }
  GANNET_RETURN_IF_ERROR(loader.Finish());
  context.loaded(0, items);
  return absl::OkStatus();
}

Status LoadWarehouses(txn::Session& session, const PopulationContext& context) {
  const Tables& tables = *context.tables;
  BulkLoader warehouses(&session, tables.warehouse), warehouse_ytds(&session, tables.warehouse_ytd);
  BulkLoader districts(&session, tables.district), district_ytds(&session, tables.district_ytd);
  BulkLoader district_infos(&session, tables.district_info);
  const uint32_t customers = tables.scale.customers_per_district;
  const Cents district_ytd = customers * kInitialPayment;
  for (const uint32_t w : context.warehouses) {
    Random random = RandomFor(context, Part::kWarehouses, w);
    Warehouse warehouse{.tax = RandomTax(random), .name = {}, .address = RandomAddress(random)};
    RandomText(random, 6, 10, &warehouse.name);
    GANNET_RETURN_IF_ERROR(warehouses.Add(WarehouseKey(w), warehouse));
    GANNET_RETURN_IF_ERROR(warehouse_ytds.Add(WarehouseKey(w), WarehouseYtd{.ytd = kDistricts * district_ytd}));
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      const uint64_t key = DistrictKey(w, d);
      GANNET_RETURN_IF_ERROR(districts.Add(key, District{.next_o_id = customers + 1, .tax = RandomTax(random)}));
      GANNET_RETURN_IF_ERROR(district_ytds.Add(key, DistrictYtd{.ytd = district_ytd}));
      DistrictInfo info{.name = {}, .address = RandomAddress(random)};
      RandomText(random, 6, 10, &info.name);
      GANNET_RETURN_IF_ERROR(district_infos.Add(key, info));
    }
    context.loaded(w, 2 + 3 * kDistricts);
  }
  for (BulkLoader* loader : {&warehouses, &warehouse_ytds, &districts, &district_ytds, &district_infos}) {
    GANNET_RETURN_IF_ERROR(loader->Finish());
  }
  return absl::OkStatus();
}

Status LoadStock(txn::Session& session, const PopulationContext& context) {
  const uint32_t items = context.tables->scale.items;
  BulkLoader stocks(&session, context.tables->stock), infos(&session, context.tables->stock_info);
  for (const uint32_t w : context.warehouses) {
    Random random = RandomFor(context, Part::kStock, w);
    for (uint32_t i = 1; i <= items; ++i) {
      const uint64_t key = StockKey(w, i);
      const Stock stock{
          .quantity = static_cast<int32_t>(random.Between(10, 100)), .ytd = 0, .order_cnt = 0, .remote_cnt = 0};
      GANNET_RETURN_IF_ERROR(stocks.Add(key, stock));
      StockInfo info;
      for (Text<24>& dist : info.dist) FillLetters(random, dist.bytes);
      RandomData(random, &info.data);
      GANNET_RETURN_IF_ERROR(infos.Add(key, info));
    }
    context.loaded(w, uint64_t{2} * items);
  }
  GANNET_RETURN_IF_ERROR(stocks.Finish());
  return infos.Finish();
}

Status LoadCustomers(txn::Session& session, const PopulationContext& context) {
  CustomerLoader loader(session, context);
  for (const uint32_t w : context.warehouses) {
    Random random = RandomFor(context, Part::kCustomers, w);
    for (uint32_t d = 1; d <= kDistricts; ++d) GANNET_RETURN_IF_ERROR(loader.AddDistrict(random, w, d));
    context.loaded(w, uint64_t{5} * kDistricts * context.tables->scale.customers_per_district);
  }
  return loader.Finish();
}

Status LoadOrders(txn::Session& session, const PopulationContext& context) {
  OrderLoader loader(session, context);
  const Scale& scale = context.tables->scale;
  for (const uint32_t w : context.warehouses) {
    Random random = RandomFor(context, Part::kOrders, w);
    uint64_t rows = uint64_t{kDistricts} * (2 * scale.customers_per_district + scale.undelivered_orders());
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      StatusOr<uint64_t> lines = loader.AddDistrict(random, w, d);
      if (!lines.ok()) return lines.status();
      rows += *lines;
    }
    context.loaded(w, rows);
  }
  return loader.Finish();
}

}  // namespace gannet::tpcc
