// Repair of shared leaves by the owner's CPU, after the death of a client that held their locks. None of the client's
// verbs takes effect any more (fabric.h, 5), so the owner is alone with each of these leaves, apart from readers.
//
// No log and no intent is needed. A leaf that the index reaches has either the change, or not: line 0 says which. What
// the client wrote into other lines stays there, because line 0 counts the slots; line 0 only gets their versions. A
// leaf that the index does not reach was absorbed, or was about to be linked: it becomes dead.
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/shared_leaf/leaf/leaf.h"

namespace gannet::index::shared_leaf {

// Repairs one leaf in the owner's memory, whose lock the dead client holds. `is_linked`: the chain of right links of
// its level reaches the leaf. Afterwards it is not locked, and whole or dead; its state word is new.
void RepairLeaf(std::byte* leaf, bool is_linked);
// Does what RepairLeaf does, for a leaf of byte keys.
void RepairTaggedLeaf(std::byte* leaf, bool is_linked, size_t fence_lines);

}  // namespace gannet::index::shared_leaf
