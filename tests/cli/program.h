// Runs the program `gannet` as a user does, and looks at what it says.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gannet::cli {

struct Outcome {
  int exit_code = -1;  // 128 + signal if it was killed by one
  std::string out;
  std::string err;
};

// What surrounds the program.
struct Surroundings {
  bool err_is_terminal = false;           // else a pipe
  std::string out = {};                   // a file that standard output goes to; empty: a pipe
  std::string temporary_directory = {};   // $TMPDIR; empty: as here
  uint64_t most_file_bytes = 0;           // `ulimit -f`; 0: as here
  uint64_t most_address_space_bytes = 0;  // `ulimit -v`; 0: as here
};

// A running `gannet <arguments>`.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Waits until stderr (stdout) has said `text`; false if the program ended without.
  bool WaitForStderr(const std::string& text) { return WaitFor(outcome_.err, text); }
  bool WaitForStdout(const std::string& text) { return WaitFor(outcome_.out, text); }
  // What it has said there up to now, as far as somebody waited for it.
  const std::string& heard_on_stderr() const { return outcome_.err; }
  // Comes back when the program has got it: a second one is not lost in the first.
  void Signal(int signal);
  // Waits for the end and returns everything.
  Outcome Wait();

 private:
  // Reads what is there; false once both ends are closed.
  bool ReadMore();
  bool WaitFor(const std::string& said, const std::string& text);

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Outcome outcome_;
};

inline Outcome RunProgram(const std::vector<std::string>& arguments, const Surroundings& surroundings = {}) {
  return Program(arguments, surroundings).Wait();
}

}  // namespace gannet::cli
