// Mutants: deliberate mistakes in the protocols, to prove that the oracles of scenario/ find them. They exist only
// where a file is compiled with GANNET_MUTANTS, which one test program does (tests/scenario/CMakeLists.txt); everywhere
// else GANNET_MUTANT(...) is the constant false.
#pragma once

#include <cstdint>

#ifdef GANNET_MUTANTS

namespace gannet {

enum class Mutant : uint8_t {
  kNone,
  kSkipValidation,       // a transaction commits whatever has become of what it read
  kSkipWitness,          // absences and scanned ranges are not validated: phantoms
  kUnlockBeforeInstall,  // the lock goes before the new payload is there
  kLoseSecondLine,       // a payload's second line is not written
  kReuseWithoutGrace,    // a removed record's memory is reused at once, and its versions begin anew
  kAcknowledgeEarly,     // a commit is acknowledged before it is durable
  kTellErrorsEarly,      // AlreadyExists, and a body's error, are told before what they rest on is durable
  kBelieveErrors,        // a body's error is believed though its read set may not validate
  kForgetFailure,        // a transaction goes on, and commits, after one of its operations failed
  kKeepStalePatches,     // what a record was written before a new size stays, and is written over it
  kSkipDecision,         // a transaction is installed at several nodes though none of them could end it
  kSkipRepair,           // what a dead node left stays
  kRepairUndecided,      // what a dead node left is undone, though it may have been decided
  kNoMarks,              // a line in the middle of a record looks like the beginning of one
};
inline Mutant active_mutant = Mutant::kNone;

}  // namespace gannet

#define GANNET_MUTANT(name) (::gannet::active_mutant == ::gannet::Mutant::name)
#else
#define GANNET_MUTANT(name) false
#endif
