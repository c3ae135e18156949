#include "txn/message_terms.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace gannet::txn {
namespace {

struct Term {
  std::string_view cpp;
  std::string_view c;
  std::string_view python;
};

// Longer terms win over those that they contain.
constexpr Term kTerms[] = {
    {"set DatabaseOptions::create_if_missing (--create of the program)",
     "call gannet_options_set_create_if_missing(options, 1)", "give create=True"},
    {"give nodes more memory (DatabaseOptions::memory_bytes)",
     "give the database more memory (gannet_options_set_memory_bytes)", "give the database more memory (memory_bytes)"},
    {"DatabaseOptions::memory_bytes", "gannet_options_set_memory_bytes", "memory_bytes"},
    {" (--memory-per-node of the program)", "", ""},
    {"DatabaseOptions::durability", "gannet_options_set_durability", "durability"},
    {"DatabaseOptions::group_commit", "gannet_options_set_group_commit_microseconds", "group_commit"},
    {"DatabaseOptions::durable_within", "gannet_options_set_durable_within_milliseconds", "durable_within"},
    {"DatabaseOptions::checkpoint_every", "gannet_options_set_checkpoint_every_milliseconds", "checkpoint_every"},
    {"DatabaseOptions::log_large_buffer_bytes", "gannet_options_set_largest_transaction_bytes",
     "largest_transaction_bytes"},
    {"DatabaseOptions::recovery_threads", "gannet_options_set_recovery_threads", "recovery_threads"},
    {"DatabaseOptions::run_sessions", "gannet_options_set_open_transactions", "open_transactions"},
    {"DatabaseOptions::application", "gannet_options_set_application", "application"},
    {"DatabaseOptions::directory", "the directory of gannet_open", "directory"},
    {"TableOptions::name", "the name of the table", "the name of the table"},
    {"TableOptions::application; create it before Database::Start",
     "gannet_table_options_set_application; leave it out, or give what gannet_table_application returns",
     "application; leave it out, or give the table's"},
    {"Database::Open", "gannet_open", "gannet.open"},
    {"Database::Close", "gannet_close", "close"},
    {"Database::Checkpoint", "gannet_checkpoint", "checkpoint"},
    {"Database::CreateIndex", "gannet_create_index", "create_index"},
    {"call Database::CreateIndex with that function before the table is written",
     "only a program in C++ that has this function may write the table",
     "only a program in C++ that has this function may write the table"},
    {"session is open (opened by OpenSession, or used by a Run in progress); destroy each, and let each Run return, "
     "before Close",
     "transaction is open; free each of gannet_begin, and let each gannet_run return, before gannet_close",
     "transaction is open; let its block, or the call of run, end before close"},
    {"sessions are open (opened by OpenSession, or used by a Run in progress); destroy each, and let each Run return, "
     "before Close",
     "transactions are open; free each of gannet_begin, and let each gannet_run return, before gannet_close",
     "transactions are open; let their blocks, and calls of run, end before close"},
    {"Database::Run", "gannet_begin and gannet_run", "begin and run"},
    {"sessions of Run were busy", "transactions were open", "transactions were open"},
    {"do not call Run within a body of Run", "do not call gannet_run within a body of gannet_run",
     "do not begin a transaction within another one"},
    {"the body called Commit, so nothing is committed: return Ok, and Run commits",
     "the body called gannet_commit, so nothing is committed: return GANNET_OK, and gannet_run commits",
     "the body called commit, so nothing is committed: return from it, and run commits"},
    {"the body called Rollback, so nothing is committed: return an error, and Run rolls back",
     "the body called gannet_rollback, so nothing is committed: return an error, and gannet_run rolls back",
     "the body called rollback, so nothing is committed: raise an exception, and run rolls back"},
    {"use an IndexCursor", "use gannet_index_cursor_open", "scan it"},
    {"Key::Signed", "gannet_key_signed", "gannet.signed"},
    {"a Key::Tuple", "a gannet_tuple", "a tuple"},
    {"Key::Tuple", "gannet_tuple", "a tuple"},
};

// Most messages are about rows, and have no term.
bool MayHaveTerm(std::string_view message) {
  return message.find("::") != message.npos || message.find("Run") != message.npos ||
         message.find("IndexCursor") != message.npos;
}

using Replacements = std::vector<std::pair<absl::string_view, absl::string_view>>;

const Replacements& ReplacementsOf(Language language) {
  static const auto* const all = [] {
    auto* const made = new std::array<Replacements, 2>;
    for (const Term& term : kTerms) {
      const absl::string_view cpp(term.cpp.data(), term.cpp.size());
      (*made)[0].emplace_back(cpp, absl::string_view(term.c.data(), term.c.size()));
      (*made)[1].emplace_back(cpp, absl::string_view(term.python.data(), term.python.size()));
    }
    return made;
  }();
  return (*all)[static_cast<size_t>(language)];
}

}  // namespace

std::string InLanguage(std::string_view message, Language language) {
  if (!MayHaveTerm(message)) [[likely]]
    return std::string(message);
  return absl::StrReplaceAll(absl::string_view(message.data(), message.size()), ReplacementsOf(language));
}

}  // namespace gannet::txn
