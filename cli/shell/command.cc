#include "cli/shell/command.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/common/command.h"
#include "cli/common/exit_codes.h"
#include "cli/common/explain.h"
#include "cli/common/flags.h"
#include "cli/common/interrupt.h"
#include "cli/common/line_input.h"
#include "cli/common/machine_memory.h"
#include "cli/common/words.h"
#include "cli/help/app_text.h"
#include "cli/rows/commands/command.h"
#include "cli/rows/row_host.h"
#include "cli/rows/row_store.h"
#include "cli/shell/line_editor.h"
#include "log/manifest/manifest.h"
#include "txn/durable/catalog.h"
#include "txn/run/session.h"

namespace gannet::cli {
namespace {

constexpr const char* kName = "shell";

// The store of a shell, and its open transaction.
class ShellHost final : public RowHost {
 public:
  ShellHost(RowStore* store, txn::Session* session) : store_(store), session_(session) {}

  void AddFlags(CLI::App&) override {}

  StatusOr<std::vector<log::TableDescription>> Tables() override {
    std::vector<log::TableDescription> tables;
    for (const txn::Table* table : store_->database().tables()) {
      tables.push_back(txn::DescribeTable(*table));
      tables.back().name = table->name();
    }
    return tables;
  }

  StatusOr<RowStore*> Open(Access) override { return store_; }

  RowRunner runner() override {
    if (transaction_ == nullptr) return store_->runner();
    return [this](const auto& body) {
      txn::BlockingTransaction t(&*transaction_, &session_->worker());
      return body(t);
    };
  }

  bool in_transaction() const override { return transaction_ != nullptr; }
  const std::atomic<bool>* stop() const override { return &InterruptGuard::requested(); }

  int End(std::string_view command, const Status& status) override {
    std::fflush(stdout);
    if (status.ok()) return kExitOk;
    absl::FPrintF(stderr, "%s: %s\n", command, status.message());
    return kExitFailed;
  }

  txn::Database& database() { return store_->database(); }

  Status Begin() {
    if (transaction_ != nullptr) {
      return absl::FailedPreconditionError("a transaction is open already; commit or abort it first");
    }
    transaction_.reset(new txn::Transaction(session_->Begin()));  // cannot be moved, so not make_unique
    return absl::OkStatus();
  }

  Status Commit() {
    GANNET_RETURN_IF_ERROR(CheckOpen());
    const Status committed = Wait(transaction_->Commit());
    transaction_.reset();
    if (committed.ok()) return committed;
    const std::string where = absl::IsAborted(committed) ? session_->last_conflict() : "";
    return Status(committed.code(), absl::StrCat(where, where.empty() ? "" : ": ", committed.message(),
                                                 "; nothing of the transaction was done"));
  }

  Status Abort() {
    GANNET_RETURN_IF_ERROR(CheckOpen());
    transaction_.reset();
    return absl::OkStatus();
  }

 private:
  Status CheckOpen() const {
    if (transaction_ != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError("no transaction is open; begin one first");
  }

  Status Wait(coro::Async<Status> async) {
    return async.ready() ? std::move(async.value()) : session_->worker().BlockOn(std::move(async.task()));
  }

  RowStore* const store_;
  txn::Session* const session_;
  std::unique_ptr<txn::Transaction> transaction_;
};

class Shell {
 public:
  Shell(const std::string& directory, RowStore* store, txn::Session* session)
      : host_(std::make_shared<ShellHost>(store, session)), terminal_(isatty(STDIN_FILENO) == 1), prompt_(directory) {}

  // Runs lines until the end, `quit` or Ctrl-C. Returns the exit code.
  int Run() {
    if (terminal_) absl::PrintF("Commands: help, quit, and those that help lists.\n");
    LineInput input(&InterruptGuard::requested());
    std::optional<LineEditor> editor;
    if (terminal_ && isatty(STDOUT_FILENO) == 1) {
      editor.emplace(&InterruptGuard::requested(), HistoryFile(),
                     [this](const std::string& line) { return Completions(line); });
    }
    while (!done_) {
      const std::string prompt = prompt_ + (host_->in_transaction() ? " (in a transaction)> " : "> ");
      if (terminal_ && !editor.has_value()) {
        absl::PrintF("%s", prompt);
        std::fflush(stdout);
      }
      std::string line;
      const StatusOr<bool> there = editor.has_value() ? editor->Next(prompt, &line) : input.Next(&line);
      if (!there.ok()) return Fail(kName, WithRest(there.status(), Rest()));
      if (!*there) break;
      ++line_;
      Execute(line);
    }
    if (host_->in_transaction()) {
      failed_ = true;
      absl::FPrintF(stderr, "gannet shell: %s\n", Rest());
    }
    // A person has seen the errors.
    return failed_ && !terminal_ ? kExitFailed : kExitOk;
  }

 private:
  std::string Rest() const {
    return host_->in_transaction() ? "the open transaction was not committed: nothing of it was done"
                                   : "everything that was acknowledged is durable";
  }

  // `commit` and `abort` end the transaction, so a command that fails leaves it open.
  void Execute(const std::string& line) {
    StatusOr<std::vector<std::string>> words = SplitWords(line);
    if (!words.ok()) return Note(words.status());
    if (words->empty() || words->front().starts_with('#')) return;
    int exit_code = kExitOk;
    const std::unique_ptr<CLI::App> app = Commands(&exit_code);
    std::ranges::reverse(*words);  // as CLI11 takes them
    try {
      app->parse(*words);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) {
        std::string name;
        absl::PrintF("%s", DeepestCommand(*app, &name)->help());
        std::fflush(stdout);
        return;
      }
      std::string name;
      const CLI::App* command = DeepestCommand(*app, &name);
      const std::string why = ExplainError(*command, error);
      return Note(
          absl::InvalidArgumentError(name.empty() ? why : absl::StrFormat("%s: %s (see %s --help)", name, why, name)));
    }
    if (exit_code != kExitOk) NoteFailure();
  }

  // The words that may complete the last word of `line`.
  std::vector<std::string> Completions(const std::string& line) {
    const size_t begin = line.find_last_of(' ') + 1;  // 0 if there is no blank
    const StatusOr<std::vector<std::string>> before = SplitWords(line.substr(0, begin));
    if (!before.ok()) return {};
    int exit_code = kExitOk;
    return CompletionsOf(*Commands(&exit_code), *before, line.substr(begin), [this] {
      std::vector<std::string> names;
      for (const txn::Table* table : host_->database().tables()) names.push_back(table->name());
      return names;
    });
  }

  void Note(const Status& status) {
    absl::FPrintF(stderr, "%s\n", status.message());
    NoteFailure();
  }

  // The command has printed its error; a script needs its place, too.
  void NoteFailure() {
    failed_ = true;
    if (!terminal_) absl::FPrintF(stderr, "  in line %d\n", line_);
  }

  std::unique_ptr<CLI::App> Commands(int* exit_code) {
    auto app = std::make_unique<CLI::App>("Tables and rows of the open directory.", "");
    app->require_subcommand(1);
    const auto add = [&](const char* name, const char* description, std::function<Status()> run) {
      app->add_subcommand(name, description)->callback([this, exit_code, name, run = std::move(run)] {
        *exit_code = host_->End(name, run());
      });
    };
    AddRowCommands(*app, host_, exit_code);
    add("begin", "Begin a transaction: the commands up to commit happen together, or not at all.",
        [this] { return host_->Begin(); });
    add("commit", "Commit the open transaction. It is durable when the prompt comes back.",
        [this] { return host_->Commit(); });
    add("abort", "Drop the open transaction.", [this] { return host_->Abort(); });
    add("help", "Show these commands. COMMAND --help explains one.", [app = app.get()] {
      absl::PrintF("%s", HelpText(*app, ""));
      return absl::OkStatus();
    });
    add("quit", "Leave the shell, as the end of the input does.", [this] {
      done_ = true;
      return absl::OkStatus();
    });
    return app;
  }

  const std::shared_ptr<ShellHost> host_;
  const bool terminal_;
  const std::string prompt_;
  uint64_t line_ = 0;
  bool failed_ = false;
  bool done_ = false;
};

struct ShellOptions {
  std::string directory;
  uint64_t memory = 0;
  bool create = false;
};

int RunShell(const ShellOptions& options) {
  const InterruptGuard interrupts;
  auto store = RowStore::OpenToWrite(options.directory,
                                     {.memory_bytes = options.memory == 0 ? DefaultMemoryPerNode() : options.memory,
                                      .threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
                                      .create = options.create,
                                      .stop = &InterruptGuard::requested()});
  if (absl::IsNotFound(store.status())) {
    return Fail(kName, absl::NotFoundError(absl::StrCat(store.status().message(), "; --create makes a new database")));
  }
  if (!store.ok()) return Fail(kName, NameMemoryFlag(store.status()));
  auto session = (*store)->database().OpenSession();
  if (!session.ok()) return Fail(kName, session.status());
  const int exit_code = Shell(options.directory, store->get(), session->get()).Run();
  session->reset();
  const Status closed = (*store)->Close();
  return closed.ok() || exit_code != kExitOk ? exit_code : Fail(kName, closed);
}

}  // namespace

void AddShellCommand(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<ShellOptions>();
  CLI::App* command = app.add_subcommand("shell", "Read and write tables and rows, command by command.");
  command->footer(
      "Opens the directory, which no other process may have open, and reads commands from standard input: get, put, "
      "delete,\nscan, count, import, tables, create-table, drop-table, rename-table, widen-table, create-index as of "
      "gannet, without "
      "the directory; begin, commit, abort; "
      "help; quit.\nWords may be in quotes; a line that begins with # is a comment. An error does not end the shell. "
      "From a file or a pipe,\nthe exit code is 1 if a command failed. At a terminal, Tab completes, and lines are "
      "edited and kept in "
      "~/.gannet_history;\nGANNET_HISTORY names another file, or none if it is empty.\n\nExample: printf 'begin\\nput "
      "cities Oslo "
      "Norway\\ncommit\\n' | gannet shell data");
  AddPath(*command, "DIR", &options->directory, "PATH", "The data directory")->required();
  command->add_flag("--create", options->create, "Create the database if the directory holds none");
  Add(*command, "--memory-per-node", &options->memory, ParseSize, "SIZE",
      "Most memory for the rows, such as 8G. Default: three quarters of the machine's");
  command->callback([options, exit_code] { *exit_code = RunShell(*options); });
}

}  // namespace gannet::cli
