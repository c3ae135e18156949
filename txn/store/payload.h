// Payloads as the program has them: what may be written as one, and what may be read into.
//
//   bytes     std::string, std::string_view, and every other contiguous range of char, unsigned char or std::byte
//   a row     an object whose own bytes are the payload: a number, or a struct of such
//
// A row is trivially copyable, and can be assigned to. It is no pointer, array or view, and holds none: what lies
// elsewhere would not be stored. It has no base: of a member that comes from a base, &Row::member says only where the
// base has it. Members of aggregates are looked at, one by one, also those of nested ones: of each
// aggregate the first kMostInitializers, where each element of an array counts. A class with a constructor or private
// members is taken as it is, and of a union only the first member is seen. Mistakes do not compile; the message says
// what to pass.
//
// A row is written and read as a whole, with exactly the size that the payload has, so a struct that is not that of the
// table is noticed. A PayloadPart names what an operation is about if that is less.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "index/key.h"

namespace gannet::txn {

namespace payload {

inline constexpr size_t kMostInitializers = 1024;

template <class T>
inline constexpr bool kIsByte =
    std::same_as<T, char> || std::same_as<T, signed char> || std::same_as<T, unsigned char> ||
    std::same_as<T, std::byte> || std::same_as<T, char8_t>;

// A range of bytes in one piece, but no array: of a literal nobody knows whether its zero belongs to it.
template <class T>
concept ByteRange = !std::is_array_v<std::remove_cvref_t<T>> && std::ranges::contiguous_range<T> &&
                    std::ranges::sized_range<T> && kIsByte<std::ranges::range_value_t<T>>;

template <class T>
concept WritableByteRange =
    std::ranges::contiguous_range<T> && std::ranges::sized_range<T> && kIsByte<std::ranges::range_value_t<T>> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<T>>>;

template <class T>
inline constexpr bool kIsStdArray = false;
template <class Element, size_t n>
inline constexpr bool kIsStdArray<std::array<Element, n>> = true;

template <class T>
inline constexpr bool kIsKnownReference = std::same_as<T, index::Key>;
template <class T>
inline constexpr bool kIsKnownReference<std::reference_wrapper<T>> = true;
template <class T>
inline constexpr bool kIsKnownReference<std::initializer_list<T>> = true;

// A range to whose elements it makes no difference whether the range is const does not own them.
template <class T>
concept SharesElements = std::ranges::range<T&> && std::ranges::range<const T&> &&
    std::is_lvalue_reference_v<std::ranges::range_reference_t<T&>> &&
    std::same_as<std::ranges::range_reference_t<T&>, std::ranges::range_reference_t<const T&>>;

template <class T>
inline constexpr bool kRefersElsewhere = kIsKnownReference<T> || std::ranges::view<T> || SharesElements<T>;

template <class T>
consteval bool IsPlain();

// Initializes a member of Owner, of any type. It is noexcept if the type IsPlain. (A conversion that did not exist, or
// was deleted, would say less: then an aggregate is taken apart, and its first member is initialized.)
template <class Owner>
struct AnyMember {
  template <class Member>
  requires(!std::same_as<Member, Owner>) operator Member() const noexcept(IsPlain<Member>());  // NOLINT: implicit
};

// Initializes a base of Owner, and nothing else. (A base is the first that an aggregate with bases initializes.)
template <class Owner>
struct AnyBase {
  template <class Base>
  requires(std::is_base_of_v<Base, Owner> && !std::same_as<Base, Owner>) operator Base() const noexcept;  // NOLINT
};
template <class T>
concept HasBase = std::is_aggregate_v<T> && std::is_class_v<T> && requires {
  T{AnyBase<T>{}};
};

template <class Member, size_t>
using Repeated = Member;
template <class T, size_t... number>
consteval bool TakesEach(std::index_sequence<number...>) {
  return requires {
    T{Repeated<AnyMember<T>, number>{}...};
  };
}
template <class T, size_t... number>
consteval bool AllPlain(std::index_sequence<number...>) {
  return requires {
    {
      T {
        Repeated<AnyMember<T>, number>{}...
      }
    }
    noexcept;
  };
}
// True if n members can be initialized so. Members of members do not count, because a whole member is made; elements of
// arrays do, because no array can be made.
template <class T, size_t n>
inline constexpr bool kTakes = TakesEach<T>(std::make_index_sequence<n>{});

// The greatest n with kTakes, which is in [low, high).
template <class T, size_t low, size_t high>
consteval size_t CountBetween() {
  if constexpr (high - low == 1) {
    return low;
  } else {
    constexpr size_t middle = low + (high - low) / 2;
    if constexpr (kTakes<T, middle>) {
      return CountBetween<T, middle, high>();
    } else {
      return CountBetween<T, low, middle>();
    }
  }
}
template <class T, size_t n = 1>
consteval size_t CountInitializers() {
  if constexpr (n > kMostInitializers) {
    return kMostInitializers;
  } else if constexpr (kTakes<T, n>) {
    return CountInitializers<T, 2 * n>();
  } else {
    return CountBetween<T, n / 2, n>();
  }
}

// True if the bytes of a T are all there is of it, as far as can be seen.
template <class T>
consteval bool IsPlain() {
  if constexpr (std::is_class_v<T> || std::is_union_v<T>) {
    if constexpr (!std::is_trivially_copyable_v<T> || kRefersElsewhere<T>) {
      return false;
    } else if constexpr (kIsStdArray<T>) {
      return IsPlain<std::remove_cv_t<typename T::value_type>>();
    } else if constexpr (std::is_aggregate_v<T>) {
      return AllPlain<T>(std::make_index_sequence<CountInitializers<T>()>{});
    } else {
      return true;
    }
  } else if constexpr (std::is_array_v<T>) {
    return IsPlain<std::remove_cv_t<std::remove_all_extents_t<T>>>();
  } else {
    return !std::is_pointer_v<T> && !std::is_member_pointer_v<T> && !std::is_null_pointer_v<T> &&
           !std::is_function_v<T> && !std::is_reference_v<T> && !std::is_void_v<T>;
  }
}

enum class Mistake : uint8_t { kNone, kPointer, kArray, kView, kOwnsOther, kHoldsReference, kHasBase };

template <class T>
consteval Mistake MistakeOf() {
  if constexpr (std::is_array_v<T>) {
    return Mistake::kArray;
  } else if constexpr (!std::is_class_v<T> && !std::is_union_v<T>) {
    return IsPlain<T>() ? Mistake::kNone : Mistake::kPointer;
  } else if constexpr (kRefersElsewhere<T> ||
                       (!kIsStdArray<T> && (std::is_convertible_v<const T&, std::span<const std::byte>> ||
                                            std::is_convertible_v<const T&, std::string_view>))) {
    return Mistake::kView;
  } else if constexpr (!std::is_trivially_copyable_v<T>) {
    return Mistake::kOwnsOther;
  } else if constexpr (HasBase<T>) {
    return Mistake::kHasBase;
  } else {
    // What has a reference somewhere cannot be assigned.
    return std::is_copy_assignable_v<T> && IsPlain<T>() ? Mistake::kNone : Mistake::kHoldsReference;
  }
}

// Compiles if T is the type of a row. The messages are part of the interface (tests/txn/payload_mistakes).
template <class T>
consteval void CheckRowType() {
  constexpr Mistake mistake = MistakeOf<std::remove_cv_t<T>>();
  static_assert(mistake != Mistake::kPointer,
                "a pointer is no payload: pass the row itself, a std::string_view of text, or a std::span of bytes");
  static_assert(mistake != Mistake::kArray,
                "an array is no payload: pass std::string_view(text) for a text or literal without its zero, "
                "std::span(array) for an array of bytes, or a struct that holds the array");
  static_assert(mistake != Mistake::kView,
                "a view is no row, because what it refers to would not be stored: pass a std::string_view or a "
                "std::span of bytes (std::as_bytes makes one) where bytes are written, and read with "
                "GetView, or into a std::string");
  static_assert(mistake != Mistake::kOwnsOther,
                "a row is trivially copyable, without std::string, containers or virtual functions: pass such a "
                "struct, with char name[24] for a text, or bytes (std::string, std::span) that you made of it");
  static_assert(mistake != Mistake::kHoldsReference,
                "a row holds no pointer, reference, view or const member, because what it refers to would not be "
                "stored: store the bytes themselves, such as char name[24], or the key of another row");
  static_assert(mistake != Mistake::kHasBase,
                "a row has no base class, because &Row::member does not say where a base lies: make the base a member");
}

// The bytes of a value, of any type that a field may have.
template <class T>
std::span<const std::byte> ObjectBytes(const T& object) {
  return {reinterpret_cast<const std::byte*>(std::addressof(object)), sizeof(T)};
}
template <class T>
std::span<std::byte> ObjectBytes(T& object) {
  return {reinterpret_cast<std::byte*>(std::addressof(object)), sizeof(T)};
}

// Prints both sizes and stops the process: a row was taken as a struct of another size.
[[noreturn, gnu::cold]] void RowHasOtherSize(size_t row_bytes, size_t payload_bytes);

// What is added to a number of a payload: a delta, which may have another type than the number.
struct Sum {
  // Adds the delta to the number, of which it has the bytes; false if the sum does not fit.
  bool (*add)(std::byte* number, const std::byte* delta);
  size_t number_bytes;
  size_t delta_bytes;
  std::array<std::byte, sizeof(long double)> delta;

  template <class Number, class Delta>
  static Sum Of(Delta delta) {
    static_assert(std::is_arithmetic_v<Delta>, "the delta of a number is a number");
    static_assert(!std::is_same_v<Number, bool>, "nothing can be added to a bool");
    static_assert(std::is_floating_point_v<Number> || std::is_integral_v<Delta>,
                  "the delta of a whole number is a whole number: convert it, as it is to be rounded");
    Sum sum{.add = &Add<Number, Delta>, .number_bytes = sizeof(Number), .delta_bytes = sizeof(Delta), .delta = {}};
    std::memcpy(sum.delta.data(), &delta, sizeof(Delta));
    return sum;
  }

 private:
  template <class Number, class Delta>
  static bool Add(std::byte* number, const std::byte* delta) {
    Number a;
    Delta b;
    std::memcpy(&a, number, sizeof(Number));
    std::memcpy(&b, delta, sizeof(Delta));
    if constexpr (std::is_integral_v<Number>) {
      if (__builtin_add_overflow(a, +b, &a)) return false;  // +: of a bool the number
    } else {
      a += static_cast<Number>(b);
    }
    std::memcpy(number, &a, sizeof(Number));
    return true;
  }
};

}  // namespace payload

// A type whose objects are rows.
template <class T>
concept PayloadType = std::is_object_v<T> && payload::MistakeOf<std::remove_cv_t<T>>()
== payload::Mistake::kNone;

// A payload that is passed to a write: a view of bytes, or of a row. The call copies it.
class PayloadBytes {
 public:
  template <class T>
  PayloadBytes(const T& payload) : bytes_(View(payload)) {}       // NOLINT: bytes and rows are passed as payloads
  operator std::span<const std::byte>() const { return bytes_; }  // NOLINT: it is one

 private:
  template <class T>
  static std::span<const std::byte> View(const T& payload) {
    if constexpr (payload::ByteRange<const T&>) {
      return std::as_bytes(std::span(std::ranges::data(payload), std::ranges::size(payload)));
    } else {
      payload::CheckRowType<T>();
      return {reinterpret_cast<const std::byte*>(std::addressof(payload)), sizeof(T)};
    }
  }

  std::span<const std::byte> bytes_;
};

// Room for a payload that is read: a row by its address, or writable bytes. (A string that takes the size of the
// payload is another form of Transaction::Get.)
class PayloadRoom {
 public:
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, PayloadRoom>) PayloadRoom(T&& room)  // NOLINT: passed as room
      : bytes_(View(room)) {}
  operator std::span<std::byte>() const { return bytes_; }  // NOLINT: it is one

 private:
  template <class T>
  static std::span<std::byte> View(T& room) {
    using Row = std::remove_pointer_t<T>;
    if constexpr (payload::WritableByteRange<T&>) {
      return std::as_writable_bytes(std::span(std::ranges::data(room), std::ranges::size(room)));
    } else if constexpr (std::is_pointer_v<T> && !std::is_const_v<Row>) {
      payload::CheckRowType<Row>();
      return {reinterpret_cast<std::byte*>(room), sizeof(Row)};
    } else {
      static_assert(!std::same_as<T, T>,
                    "no room to read a payload into: pass the address of a row that is not const, the address of a "
                    "std::string, or writable bytes (std::as_writable_bytes makes a span of them)");
      return {};
    }
  }

  std::span<std::byte> bytes_;
};

// A row from its payload, which must have its size.
template <class Row>
Row RowOf(std::span<const std::byte> payload) {
  payload::CheckRowType<Row>();
  if (payload.size() != sizeof(Row)) [[unlikely]]
    payload::RowHasOtherSize(sizeof(Row), payload.size());
  Row row;
  std::memcpy(&row, payload.data(), sizeof(Row));
  return row;
}

// The place of a member in its struct.
template <class Row, class Member>
size_t OffsetOf(Member Row::*member) {
  alignas(Row) std::byte room[sizeof(Row)]{};
  const Row* const row = reinterpret_cast<const Row*>(room);
  return static_cast<size_t>(reinterpret_cast<const std::byte*>(&(row->*member)) - room);
}

// Stands in the place of an offset and means all of the payload.
inline constexpr uint32_t kWholePayload = UINT32_MAX;

// A part of payloads: what lies at an offset, or a member of the struct that the rows of a table are.
class PayloadPart {
 public:
  constexpr PayloadPart(uint32_t offset)  // NOLINT: an offset is passed as a part
      : offset_(std::min(offset, kWholePayload - 1)) {}
  template <class Row, class Member>
  explicit PayloadPart(Member Row::*member)
      : offset_(static_cast<uint32_t>(OffsetOf(member))), row_bytes_(sizeof(Row)) {
    payload::CheckRowType<Row>();
  }
  // All of a payload, and no part of it.
  static constexpr PayloadPart Whole() {
    PayloadPart part(0);
    part.offset_ = kWholePayload;
    return part;
  }
  uint32_t offset() const { return offset_; }
  // Size of the struct; 0: it is not known.
  size_t row_bytes() const { return row_bytes_; }

 private:
  uint32_t offset_;
  uint32_t row_bytes_ = 0;
};

}  // namespace gannet::txn
