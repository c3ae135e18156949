// Changes of the rows of secondary_helpers.h.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tests/txn/secondary_helpers.h"
#include "txn/database.h"

namespace gannet::txn {

inline Status PutPerson(Database& database, uint64_t key, const Person& person) {
  return database.Run([&](auto& t) { return t.Upsert(*database.FindTable("people"), key, person); });
}

// One transaction of a random kind. Violations of the unique index are no error.
inline Status ChangePeople(Database& database, Random& random, uint64_t keys) {
  const Table& people = *database.FindTable("people");
  const uint64_t key = random.Below(keys);
  const std::string mail = absl::StrCat("m", random.Below(keys));
  const auto city = static_cast<uint32_t>(random.Below(5));
  const uint64_t kind = random.Below(5);
  const uint64_t other = random.Below(keys);
  const Status done = database.Run([&](auto& t) -> Status {
    if (kind == 0) {
      const Status removed = t.Remove(people, key);
      return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
    }
    if (kind == 1) {
      uint32_t sum = 0;
      const Status added = t.Add(people, key, &Person::city, 1, &sum);
      return absl::IsNotFound(added) ? absl::OkStatus() : added;
    }
    if (kind == 2) {  // two rows exchange what they are, without their numbers
      Person a, b;
      const Status found_a = t.Get(people, key, &a);
      const Status found_b = t.Get(people, other, &b);
      if (!found_a.ok()) return absl::IsNotFound(found_a) ? absl::OkStatus() : found_a;
      if (!found_b.ok()) return absl::IsNotFound(found_b) ? absl::OkStatus() : found_b;
      GANNET_RETURN_IF_ERROR(t.Update(people, key, b));
      return t.Update(people, other, a);
    }
    return t.Upsert(people, key, MakePerson(mail, city));
  });
  return absl::IsAlreadyExists(done) ? absl::OkStatus() : done;
}

}  // namespace gannet::txn
