// Runs the program `gannet` as a user does, and captures its output.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gannet::cli {

struct Outcome {
  int exit_code = -1;  // 128 + signal if a signal killed it
  std::string out;
  std::string err;
};

// The program's environment.
struct Surroundings {
  bool err_is_terminal = false;           // otherwise a pipe
  bool all_is_terminal = false;           // input, output and errors; what it shows is Outcome::out
  bool output_is_closed = false;          // standard output and errors
  std::string out = {};                   // file for standard output; empty: a pipe
  std::string in = {};                    // file for standard input; empty: inherited
  std::string temporary_directory = {};   // $TMPDIR; empty: inherited
  uint64_t most_file_bytes = 0;           // `ulimit -f`; 0: inherited
  uint64_t most_address_space_bytes = 0;  // `ulimit -v`; 0: inherited
};

// A running `gannet <arguments>`.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Waits until stderr (stdout) contains `text`; returns false if the program ended without it.
  bool WaitForStderr(const std::string& text) { return WaitFor(outcome_.err, text); }
  bool WaitForStdout(const std::string& text) { return WaitFor(outcome_.out, text); }
  // The part of stderr that has been read by calls that waited for it.
  const std::string& heard_on_stderr() const { return outcome_.err; }
  // Types what a person types. Called with all_is_terminal.
  void Type(const std::string& text);
  // Returns when the program has received the signal, so that a second one is not merged with it.
  void Signal(int signal);
  // Waits for the end and returns the whole outcome.
  Outcome Wait();

 private:
  // Reads available output; returns false once both ends are closed.
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
