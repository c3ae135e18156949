#include "cli/data/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/common/command.h"
#include "cli/common/data_directory.h"
#include "cli/common/exit_codes.h"
#include "cli/common/flags.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_text.h"
#include "cli/common/machine_memory.h"
#include "cli/common/output_file.h"
#include "cli/common/parse.h"
#include "cli/common/progress.h"
#include "cli/common/salvage_flag.h"
#include "cli/data/log_dump.h"
#include "cli/data/recover.h"
#include "cli/data/table_export.h"
#include "cli/data/text.h"
#include "cli/rows/row_text.h"
#include "cli/tpcc/options.h"
#include "nlohmann/json.hpp"
#include "txn/durable/backup.h"
#include "txn/offline.h"

namespace gannet::cli {
namespace {

struct DataOptions {
  std::string directory;
  std::string other;  // of backup and restore
  RecoverOptions recover = {.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))};
  DumpOptions dump;
  ExportOptions rows;
  std::string out;
  bool csv = false;  // of export; the default
  bool json = false;
};

constexpr const char* kClusters =
    "A directory of several nodes has sub-directories node-0, node-1, ...; name their parent.";

constexpr const char* kNothingChanged = "nothing was changed";

int RunRecover(const DataOptions& options) {
  RecoverOptions recover = options.recover;
  if (recover.memory_per_node == 0) recover.memory_per_node = DefaultMemoryPerNode();
  recover.stop = &InterruptGuard::requested();
  const Progress progress("recovering " + options.directory);
  const StatusOr<std::vector<NodeRecovery>> nodes = RecoverDataDirectory(*DiskFiles(), options.directory, recover);
  if (!nodes.ok()) return Fail("recover", NameMemoryFlag(WithRest(nodes.status(), kNothingChanged)));
  absl::PrintF("%s", options.json ? JsonText(ToJson(*nodes)) : ToText(*nodes));
  return LeftOut(*nodes).empty() ? kExitOk : kExitFailed;
}

int Report(const char* name, const DataOptions& options, const StatusOr<txn::Verification>& verification) {
  if (!verification.ok()) return Fail(name, verification.status());
  absl::PrintF("%s", options.json ? JsonText(ToJson(*verification)) : ToText(*verification));
  return verification->problems.empty() ? kExitOk : kExitFailed;
}

int RunVerify(const DataOptions& options) {
  const Progress progress("verifying " + options.directory);
  const StatusOr<txn::Verification> verified =
      txn::VerifyDataDirectory(*DiskFiles(), options.directory, options.recover.threads, &InterruptGuard::requested());
  if (absl::IsCancelled(verified.status())) return Fail("verify", WithRest(verified.status(), kNothingChanged));
  return Report("verify", options, verified);
}

int RunDump(const DataOptions& options) {
  DumpOptions dump = options.dump;
  dump.stop = &InterruptGuard::requested();
  const Status dumped = DumpLog(*DiskFiles(), options.directory, dump, stdout);
  return dumped.ok() ? kExitOk : Fail("log dump", WithRest(dumped, "the output is not complete"));
}

// Writes the rows to the file `out`. A regular file gets its name when it is complete, so an error, or Ctrl-C, leaves
// the old file unchanged. A device or a pipe is written directly.
Status ExportToFile(const std::string& directory, const ExportOptions& rows, const std::string& out, uint64_t* count,
                    std::vector<std::string>* left_out) {
  const auto wrong = [&out](const char* what) {
    return absl::InvalidArgumentError(absl::StrFormat("--out %s: %s: %s", out, what, std::strerror(errno)));
  };
  GANNET_RETURN_IF_ERROR(CheckNotInDatabase(out));
  std::error_code error;
  const bool in_place = std::filesystem::exists(out, error) && !std::filesystem::is_regular_file(out, error);
  const std::string path = in_place ? out : out + ".unfinished";
  std::FILE* const to = std::fopen(path.c_str(), "we");
  if (to == nullptr) return wrong("cannot be written");
  Status exported = ExportTable(*DiskFiles(), directory, rows, to, count, left_out);
  errno = 0;
  if (std::fclose(to) != 0 && exported.ok()) exported = absl::UnavailableError(wrong("cannot be finished").message());
  if (in_place) return WithRest(exported, out + " has only a part of the rows");
  if (exported.ok() && std::rename(path.c_str(), out.c_str()) != 0) exported = wrong("cannot get its name");
  if (!exported.ok()) std::filesystem::remove(path, error);
  return WithRest(exported, out + " is unchanged");
}

int RunExport(const DataOptions& options) {
  ExportOptions rows = options.rows;
  if (options.json) {
    rows.format = RowFormat::kJson;
  } else if (!options.csv) {
    rows.format = FormatOfName(options.out).value_or(RowFormat::kCsv);
  }
  rows.recover = options.recover;
  if (rows.recover.memory_per_node == 0) rows.recover.memory_per_node = DefaultMemoryPerNode();
  rows.recover.stop = &InterruptGuard::requested();
  const Progress progress("exporting from " + options.directory);
  uint64_t count = 0;
  std::vector<std::string> left_out;
  const Status exported = options.out.empty() || options.out == "-"
                              ? WithRest(ExportTable(*DiskFiles(), options.directory, rows, stdout, &count, &left_out),
                                         "the output is not complete")
                              : ExportToFile(options.directory, rows, options.out, &count, &left_out);
  if (!exported.ok()) return Fail("export", NameMemoryFlag(exported));
  absl::FPrintF(stderr, "%s: %s of table %s\n", options.directory, Count(count, "row"), rows.table);
  return TellLeftOut(left_out) ? kExitFailed : kExitOk;
}

// InvalidArgument, with the reason, if this process may not make the directory `to`, which may be there.
Status CheckMayMake(const std::string& to) {
  std::error_code error;
  std::filesystem::path path = to;
  if (std::filesystem::exists(path, error)) return absl::OkStatus();
  if (!path.has_filename()) path = path.parent_path();  // "copy/"
  return CheckMayMakeIn(path.parent_path());
}

// Exit code 1 if anything is left out, as of the other commands.
int RunSalvagedBackup(const DataOptions& options) {
  RecoverOptions recover = options.recover;
  if (recover.memory_per_node == 0) recover.memory_per_node = DefaultMemoryPerNode();
  recover.stop = &InterruptGuard::requested();
  const std::shared_ptr<log::FileSystem> files = DiskFiles();
  std::vector<std::string> left_out;
  const auto recover_nodes = [&](const std::function<Status(const txn::LocalNode&)>& visit) -> Status {
    const StatusOr<std::vector<NodeRecovery>> nodes =
        RecoverDataDirectory(*files, options.directory, recover,
                             [&visit](txn::Database& database) { return visit(txn::LocalNodeOf(database)); });
    if (nodes.ok()) left_out = LeftOut(*nodes);
    return nodes.status();
  };
  const int ended = Report("backup", options,
                           txn::BackUpSalvaged(*files, options.directory, options.other, recover_nodes, recover.stop));
  return TellLeftOut(left_out) && ended == kExitOk ? kExitFailed : ended;
}

int RunBackup(const DataOptions& options) {
  const Progress progress("copying " + options.directory);
  if (const Status may = CheckMayMake(options.other); !may.ok()) return Fail("backup", may);
  if (options.recover.salvage) return RunSalvagedBackup(options);
  return Report("backup", options,
                txn::BackUp(*DiskFiles(), options.directory, options.other, &InterruptGuard::requested()));
}

int RunRestore(const DataOptions& options) {
  const Progress progress("restoring " + options.directory);
  if (const Status may = CheckMayMake(options.other); !may.ok()) return Fail("restore", may);
  return Report("restore", options,
                txn::Restore(*DiskFiles(), options.directory, options.other, &InterruptGuard::requested()));
}

// A command whose options are passed to `run`, with an InterruptGuard.
CLI::App* AddCommand(CLI::App& app, const char* name, const char* description, const std::string& footer,
                     const std::shared_ptr<DataOptions>& options, int (*run)(const DataOptions&), int* exit_code) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer(footer);
  command->callback([options, run, exit_code] {
    const InterruptGuard interrupts;
    *exit_code = run(*options);
  });
  return command;
}

void AddDirectory(CLI::App& command, const char* name, std::string* target, const char* description) {
  AddPath(command, name, target, "PATH", description)->required();
}

void AddThreads(CLI::App& command, DataOptions* options) {
  AddInteger(command, "--threads", &options->recover.threads, 1, 256, "Threads that read. Default: one per CPU");
}

void AddMemory(CLI::App& command, DataOptions* options) {
  Add(command, "--memory-per-node", &options->recover.memory_per_node, ParseSize, "SIZE",
      "Most memory for the records of a node, such as 8G. Default: three quarters of the machine's");
}

void AddJson(CLI::App& command, DataOptions* options) {
  command.add_flag("--json", options->json, "Print the report as one JSON object");
}

void AddRecover(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<DataOptions>();
  CLI::App* command = AddCommand(app, "recover", "Recover a data directory into memory, and report the result.",
                                 absl::StrFormat("Changes nothing, and needs no other program: the directory describes "
                                                 "its tables. Of a directory in use, recover a backup.\n%s",
                                                 kClusters),
                                 options, RunRecover, exit_code);
  AddDirectory(*command, "DIR", &options->directory, "The data directory");
  AddThreads(*command, options.get());
  AddSalvage(*command, &options->recover.salvage);
  AddJson(*command, options.get());
  AddMemory(*command, options.get());
}

void AddVerify(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<DataOptions>();
  CLI::App* command =
      AddCommand(app, "verify", "Check everything in a data directory.",
                 absl::StrFormat("Every checksum, every file that the manifest names, every record against its table. "
                                 "Exit code 1, with file and\noffset, if something is wrong. Of a directory in use, "
                                 "verify a backup: a file that is being written may look\ndamaged. %s",
                                 kClusters),
                 options, RunVerify, exit_code);
  AddDirectory(*command, "DIR", &options->directory, "The data directory");
  AddThreads(*command, options.get());
  AddJson(*command, options.get());
}

void AddExport(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<DataOptions>();
  CLI::App* command =
      AddCommand(app, "export", "Write the rows of a table as CSV or JSON.",
                 absl::StrFormat(
                     "Recovers the directory into memory, from its checkpoints and its log, and changes nothing. A row "
                     "is a line: key,payload\n(or a JSON object). gannet import reads it. Rows come in the order of "
                     "their keys if the table's index keeps one,\nelse in any order. Of a directory in use, export a "
                     "backup.\n%s\n\nExample: gannet export data district --out district.csv",
                     kClusters),
                 options, RunExport, exit_code);
  AddDirectory(*command, "DIR", &options->directory, "The data directory");
  AddPath(*command, "TABLE,--table", &options->rows.table, "NAME", "Name of the table; TABLE and --table are the same")
      ->required();
  CLI::Option* csv =
      command->add_flag("--csv", options->csv,
                        "CSV (RFC 4180), which begins with a line that names the two columns. Default: what "
                        "the name of --out says, else this");
  command->add_flag("--json", options->json, "One JSON object per line and row")->excludes(csv);
  Add(*command, "--keys", &options->rows.forms.keys, ParseKeyForm, "FORM", kKeyFormHelp);
  Add(*command, "--payloads", &options->rows.forms.payloads, ParsePayloadForm, "FORM",
      "How payloads are written: text or hex. Default: text");
  AddPath(*command, "--out", &options->out, "FILE",
          "Write to this file, which appears when it is complete; -, and the default: to standard output");
  AddSalvage(*command, &options->recover.salvage);
  AddThreads(*command, options.get());
  AddMemory(*command, options.get());
}

void AddDump(CLI::App& app, int* exit_code) {
  CLI::App* log = app.add_subcommand("log", "The redo log of a data directory.");
  log->require_subcommand(1);
  const auto options = std::make_shared<DataOptions>();
  CLI::App* command = AddCommand(*log, "dump", "Print the transactions in the log (rows: gannet export).", kClusters,
                                 options, RunDump, exit_code);
  AddDirectory(*command, "DIR", &options->directory, "The data directory");
  command->add_flag("--json", options->dump.json, "One JSON object per line and transaction");
  AddInteger(*command, "--from-epoch", &options->dump.from_epoch, 0, INT64_MAX, "Leave out earlier epochs. Default: 0");
  AddPath(*command, "--table", &options->dump.table, "NAME", "Only changes of this table");
}

void AddCopies(CLI::App& app, int* exit_code) {
  const auto backup = std::make_shared<DataOptions>();
  CLI::App* command = AddCommand(
      app, "backup", "Copy a data directory, also while it is in use.",
      absl::StrFormat("The copy is what a crash at some moment would have left, so it is consistent; it is verified at "
                      "the end. %s",
                      kClusters),
      backup, RunBackup, exit_code);
  AddDirectory(*command, "DIR", &backup->directory, "The data directory");
  AddDirectory(*command, "OUT", &backup->other, "A new or empty directory");
  command->add_flag("--salvage", backup->recover.salvage,
                    "Of a damaged directory, not in use: make a new database of what is left, and list what is left "
                    "out.\nSecondary indexes are to be made again. Exit code 1 if anything is left out");
  AddJson(*command, backup.get());

  const auto restore = std::make_shared<DataOptions>();
  command = AddCommand(app, "restore", "Make a data directory from a backup.",
                       "The backup is verified before anything is written, the directory at the end.", restore,
                       RunRestore, exit_code);
  AddDirectory(*command, "BACKUP", &restore->directory, "A directory made by gannet backup");
  AddDirectory(*command, "DIR", &restore->other, "A new or empty directory");
  AddJson(*command, restore.get());
}

}  // namespace

void AddDataCommands(CLI::App& app, int* exit_code) {
  AddRecover(app, exit_code);
  AddVerify(app, exit_code);
  AddExport(app, exit_code);
  AddDump(app, exit_code);
  AddCopies(app, exit_code);
}

}  // namespace gannet::cli
