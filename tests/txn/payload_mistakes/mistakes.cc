// Programs that would store or overwrite something else than a payload. None of the marked lines compiles, and the
// compiler's only error for it begins as its mark says (check.sh).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "txn/store/payload.h"

namespace gannet::txn {

struct Item {
  int64_t stock;
};
struct Named {
  int number;
  const char* name;
};
struct Viewed {
  int number[3];
  std::string_view name;
};
struct Referring {
  const int& number;
};
struct Owning {
  std::string name;
};

struct Place {
  double x;
  double y;
};
struct Price {
  int64_t cents;
};
struct Offer : Place, Price {};
struct Dated : Price {
  int64_t day;
};

void Write(PayloadBytes row);
void Read(PayloadRoom row);

void Mistakes(const char* text, Item* item, std::span<const int> numbers, std::vector<int> vector) {
  Write(text);                    // mistake: a pointer is no payload
  Write(item);                    // mistake: a pointer is no payload
  Write(nullptr);                 // mistake: a pointer is no payload
  Write(&Item::stock);            // mistake: a pointer is no payload
  Write("literal");               // mistake: an array is no payload
  Write(std::unique_ptr<int>());  // mistake: a row is trivially copyable
  Write(numbers);                 // mistake: a view is no row
  Write(vector);                  // mistake: a row is trivially copyable
  Write(Owning());                // mistake: a row is trivially copyable
  Write(Named());                 // mistake: a row holds no pointer
  Write(Viewed());                // mistake: a row holds no pointer
  Write(Referring{1});            // mistake: a row holds no pointer
  Write(Offer());                 // mistake: a row has no base class
  Write(Dated());                 // mistake: a row has no base class
  std::string_view view;
  std::vector<std::string> texts;
  const Item constant{};
  Read(&view);  // mistake: a view is no row
  char* buffer = nullptr;
  Read(&buffer);                   // mistake: a pointer is no payload
  Read(&texts);                    // mistake: a row is trivially copyable
  Read(&constant);                 // mistake: no room to read a payload into
  Read(*item);                     // mistake: no room to read a payload into
  Read(nullptr);                   // mistake: no room to read a payload into
  RowOf<std::span<int>>({});       // mistake: a view is no row
  payload::Sum::Of<int64_t>(1.5);  // mistake: the delta of a whole number is a whole number
}

}  // namespace gannet::txn
