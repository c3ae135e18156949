#include "cli/run_app.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/str_format.h"
#include "cli/common/exit_codes.h"
#include "cli/common/explain.h"

namespace gannet::cli {
namespace {

[[noreturn]] void EndWithoutMemory() {
  constexpr std::string_view kWhat =
      "gannet: no memory; give this process more (ulimit -v, or the limit of its container), or less to do\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWhat.data(), kWhat.size());
  _exit(kExitFailed);
}

// If standard input, output or error is closed, a file of a database could get its number, and be read as commands or
// be written with messages. What is opened in its place cannot be read, or written, either.
void OccupyStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is that of the stream.
    [[maybe_unused]] const int occupied = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// The output may still be in a buffer, and its disk may be full.
int FinishOutput(int exit_code) {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return exit_code;
  absl::FPrintF(stderr, "gannet: cannot write to standard output%s%s; the output is not complete\n",
                errno == 0 ? "" : ": ", errno == 0 ? "" : std::strerror(errno));
  return exit_code == kExitOk ? kExitFailed : exit_code;
}

}  // namespace

void PrepareProcess() {
  OccupyStandardStreams();
  std::set_new_handler(EndWithoutMemory);
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond `ulimit -f` is an error of its write, which says which file
}

// An unexpected exception ends the program.
int RunApp(int argc, char** argv, const std::unique_ptr<CLI::App>& app, const int* exit_code) {
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return FinishOutput(app->exit(error));  // --help, --version
    std::string name;
    const CLI::App* command = DeepestCommand(*app, &name);
    absl::FPrintF(stderr, "%s: %s (see %s --help)\n", name, ExplainError(*command, error), name);
    return kExitBadFlags;
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    absl::FPrintF(stderr,
                  "gannet: a thread cannot be made: %s; raise the limit of threads (ulimit -u, or that of the "
                  "container), or end others\n",
                  error.what());
    return kExitFailed;
  }
  return FinishOutput(*exit_code);
}

}  // namespace gannet::cli
