// Mutants: deliberate mistakes in the protocols, to prove that the checkers of lab/scenario/ find them. They exist only
// in files that are compiled with GANNET_MUTANTS, as some test programs do (tests/lab/scenario/CMakeLists.txt).
// Everywhere else GANNET_MUTANT(...) is the constant false.
#pragma once

#include <cstdint>

#ifdef GANNET_MUTANTS

namespace gannet {

enum class Mutant : uint8_t {
  kNone,
  kSkipValidation,       // a transaction commits without validating its reads
  kValidateEarly,        // a transaction validates before it has locked what it changes
  kValidateBesideLocks,  // its locks and its validation share a posting, also where they go to several nodes
  kSkipWitness,          // absences and scanned ranges are not validated: phantoms
  kConfirmUnseen,        // an owner calls all of its answers snapshots, without another look at their words
  kUnlockBeforeInstall,  // a record is unlocked before its new payload is written
  kLoseSecondLine,       // a payload's second line is not written
  kReuseWithoutGrace,    // a removed record's memory is reused at once, and its versions restart
  kAcknowledgeEarly,     // a commit is acknowledged before it is durable
  kTellErrorsEarly,      // AlreadyExists, or a body's error, is returned before the reads behind it are durable
  kBelieveErrors,        // a body's error is returned without validating its read set
  kForgetFailure,        // a transaction continues and commits after one of its operations failed
  kKeepStalePatches,     // writes of a record from before its size changed are kept and applied to the new size
  kForgetRemovals,       // an insert by verbs does not start above the versions of removed records
  kSkipDecision,         // a transaction is installed at several nodes without a decision that ends it
  kSkipRepair,           // the locks and pending operations of a dead node are not repaired
  kPendingRest,          // a pending operation that is not settled within call_timeout is not tried again
  kRepairUndecided,      // a dead node's transaction is undone although it may have been decided
  kSilentInnerNode,      // an R-tree's inner node keeps its word when a box grows, or a node below splits
  kSilentLeaf,           // an R-tree's leaf keeps its word when a rectangle enters it
  kLeafWitnesses,        // a search of a window has no witnesses but the leaves that it met
  kNoMarks,              // a line in the middle of a record looks like the beginning of one
  kLineZeroFirst,        // a change of a shared leaf writes line 0 before the lines with the entries
  kOldStamp,             // the repair of a shared leaf gives it no new version
  kNoSweep,              // blocks that were lent to a dead node stay lent
  kNamelessLock,         // the lock of a shared leaf does not name its holder
  kClaimNotEnded,        // an owner changes a claimed leaf without ending the claim
  kBoardUnseen,          // the holder of a claim does not look at its board
  kLeaseUnseen,          // nor at the clock
  kClaimSameVersion,     // a claim keeps the version of the leaf, so its word returns
  kClaimBeforeFrame,     // a leaf is claimed while no flag keeps the holder's own changes away
  kCopyStaysGood,        // a change by the holder leaves its copy good without a verb
  kUnmarkedChange,       // the copy of a change is good although another thread may have changed the leaf since
  kNoClaimTerm,          // the claims of a lost node are ended at once
  kBoardAfter,           // a claim keeps the value that its board has after the CAS
  kClockAtRead,          // the look at the clock comes before the read of the copy
  kOldConnection,        // a copy is judged by the lease of the present connection, not by its own
  kClaimedUnlocked,      // a holder changes a claimed leaf without the lock
  kNoFences,             // a cached leaf is used without a look at its fences
  kGreedy,               // a node claims again at once what the owner has ended
  kKeptRepairedAtOnce,   // so are its locks of leaves that it keeps
  kUnlockedFirst,        // a kept leaf is unlocked before it is written back
  kKeptForgotten,        // the changes of a kept leaf are not written when its copy is evicted
  kKeptReadByOwner,      // an owner answers from its memory what only the holder of a kept leaf knows
  kLookFirst,            // a client of Dolphin reads a leaf before it enters it
  kBitFirst,             // it leaves before it has published its change
  kRaiseFirst,           // it raises the state word before that
  kNoReservation,        // an insert publishes its key before the target
  kAnySlot,              // the inserts of some nodes do not take the first free slot
  kNotVoid,              // an insert of several stays although an earlier one has met its key
  kNoDrain,              // a holder of the exclusive side does not wait for those who are inside
  kHeadFirst,            // a leaf gets the range of its sibling before the entries
  kOneHighFence,         // a change of the high fence overwrites the copy that counts
  kNoNumbers,            // a reader does not compare the numbers of lines
  kNoGeneration,         // nor the generation
  kStateInRead,          // a witness has the state word of the READ
  kRepeatWords,          // an insert repeats its words, also if they have taken effect
  kClearsAllBits,        // the repair takes all nodes out of a leaf
  kOnlyUnlocks,          // the repair only unlocks
  kReservedStay,         // slots that a dead node has reserved stay so
};
inline Mutant active_mutant = Mutant::kNone;

}  // namespace gannet

#define GANNET_MUTANT(name) (::gannet::active_mutant == ::gannet::Mutant::name)
#else
#define GANNET_MUTANT(name) false
#endif
