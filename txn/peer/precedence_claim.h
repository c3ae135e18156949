// PrecedenceClaim: one call of Session::Run, for precedence. Programs do not use it; it is here because Run is a
// template. txn/peer/precedence.h has the rules that the comments name.
#pragma once

#include <cstdint>

namespace gannet::txn {

class Precedence;

// One call of Run: its conflicts, and its place in the wait queue. Belongs to the thread of its session.
class PrecedenceClaim {
 public:
  PrecedenceClaim() = default;
  ~PrecedenceClaim() { GiveBack(); }
  PrecedenceClaim(const PrecedenceClaim&) = delete;
  PrecedenceClaim& operator=(const PrecedenceClaim&) = delete;

  // An attempt has lost now. Asks `precedence` if that was once too often.
  void NoteConflict(Precedence* precedence, uint64_t now);
  // The last attempt did not lose: its body asked for another one (rule 7). NoteConflict still follows.
  void NoteAskedAgain();
  // The last attempt spent this much time waiting for others' precedence.
  void NoteHeldUp(uint64_t nanos) { last_ += nanos; }
  void GiveBack() {
    if (asked_ != nullptr) [[unlikely]]
      Leave();
  }
  // True if it ever asked.
  bool has_asked() const { return has_asked_; }

 private:
  friend class Precedence;
  void Leave();

  Precedence* asked_ = nullptr;  // may be in its queue
  bool has_asked_ = false;
  bool asked_again_ = false;
  uint32_t conflicts_ = 0;
  uint64_t first_ = 0;    // time of the first of them
  uint64_t last_ = 0;     // time of the last of them
  uint64_t longest_ = 0;  // duration of the longest attempt
};

}  // namespace gannet::txn
