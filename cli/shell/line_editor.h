// Lines that a person types at a terminal: with editing, and a history that outlives the program.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace gannet::cli {

// One per program. Not thread-safe.
class LineEditor {
 public:
  // Edits lines of standard input and output, which are a terminal. `stop` must outlive it. `history`: a file, which is
  // read now and written by the destructor; only its owner can read it. Empty: no history is kept. `complete` returns
  // what may stand in the place of the last word of `line`, which ends at the cursor; Tab asks it.
  using Complete = std::function<std::vector<std::string>(const std::string& line)>;
  LineEditor(const std::atomic<bool>* stop, std::string history, Complete complete);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Returns the next line, as LineInput::Next does, behind a prompt.
  StatusOr<bool> Next(const std::string& prompt, std::string* line);

  // Defined in the source file, which alone knows the library.
  struct State;

 private:
  const std::unique_ptr<State> state_;
};

// $GANNET_HISTORY, or else .gannet_history in the home directory. Empty if the former is empty, or neither is set.
std::string HistoryFile();

}  // namespace gannet::cli
