#include "cli/shell/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/stop.h"
#include "cli/common/line_input.h"

namespace gannet::cli {

struct LineEditor::State {
  const std::atomic<bool>* stop = nullptr;
  std::string history_file;
  Complete complete;
  std::string prompt;
  std::mbstate_t bytes{};  // of a character that has not come whole
  EditLine* editor = nullptr;
  History* history = nullptr;
};

namespace {

constexpr int kMostLines = 1000;

LineEditor::State* StateOf(EditLine* editor) {
  void* data = nullptr;
  el_get(editor, EL_CLIENTDATA, &data);
  return static_cast<LineEditor::State*>(data);
}

char* Prompt(EditLine* editor) {
  return StateOf(editor)->prompt.data();
}

// Reads one character: 1, or 0 at the end of the input and when the program is to stop, or -1.
int ReadCharacter(EditLine* editor, wchar_t* character) {
  LineEditor::State* const state = StateOf(editor);
  for (;;) {
    if (IsStopRequested(state->stop)) return 0;
    if (!AwaitInput()) continue;
    char byte = 0;
    const ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return static_cast<int>(got);
    const size_t used = std::mbrtowc(character, &byte, 1, &state->bytes);
    if (used == static_cast<size_t>(-2)) continue;
    if (used == static_cast<size_t>(-1)) {  // no UTF-8: the character is dropped, the line goes on
      state->bytes = {};
      continue;
    }
    return 1;
  }
}

// Returns the longest prefix that all choices share.
std::string CommonBegin(const std::vector<std::string>& choices) {
  std::string common = choices.front();
  for (const std::string& choice : choices) {
    const auto [end, other] = std::ranges::mismatch(common, choice);
    common.erase(end, common.end());
  }
  return common;
}

// Tab: completes the word before the cursor as far as it is certain, and else shows what it may become.
unsigned char CompleteWord(EditLine* editor, int) {
  LineEditor::State* const state = StateOf(editor);
  const LineInfo* const info = el_line(editor);
  const std::string line(info->buffer, info->cursor);
  const std::vector<std::string> choices = state->complete(line);
  if (choices.empty()) return CC_REFRESH_BEEP;
  const std::string typed = line.substr(line.find_last_of(' ') + 1);  // 0 if there is no blank
  const std::string more = CommonBegin(choices).substr(typed.size()) + (choices.size() == 1 ? " " : "");
  if (!more.empty()) return el_insertstr(editor, more.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  std::fputc('\n', stdout);
  for (const std::string& choice : choices) absl::PrintF("%s  ", choice);
  std::fputc('\n', stdout);
  return CC_REDISPLAY;
}

}  // namespace

LineEditor::LineEditor(const std::atomic<bool>* stop, std::string history, Complete complete)
    : state_(std::make_unique<State>()) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  state_->stop = stop;
  state_->history_file = std::move(history);
  state_->complete = std::move(complete);
  state_->editor = el_init("gannet", stdin, stdout, stderr);
  state_->history = history_init();
  GANNET_CHECK(state_->editor != nullptr && state_->history != nullptr, "no memory for the editor of lines");
  EditLine* const editor = state_->editor;
  el_set(editor, EL_CLIENTDATA, state_.get());
  el_set(editor, EL_PROMPT, &Prompt);
  el_set(editor, EL_GETCFN, &ReadCharacter);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_ADDFN, "gannet-complete", "completes the word before the cursor", &CompleteWord);
  el_set(editor, EL_BIND, "^I", "gannet-complete", nullptr);
  HistEvent event;
  ::history(state_->history, &event, H_SETSIZE, kMostLines);
  ::history(state_->history, &event, H_SETUNIQUE, 1);
  el_set(editor, EL_HIST, &::history, state_->history);
  el_source(editor, nullptr);  // the user's own ~/.editrc
  if (state_->history_file.empty()) return;
  // A file that is not there is an empty history.
  ::history(state_->history, &event, H_LOAD, state_->history_file.c_str());
}

LineEditor::~LineEditor() {
  HistEvent event;
  if (!state_->history_file.empty() && ::history(state_->history, &event, H_SAVE, state_->history_file.c_str()) < 0) {
    absl::FPrintF(stderr, "gannet shell: the history is not kept: cannot write %s; GANNET_HISTORY names another file\n",
                  state_->history_file);
  }
  el_end(state_->editor);
  history_end(state_->history);
}

StatusOr<bool> LineEditor::Next(const std::string& prompt, std::string* line) {
  state_->prompt = prompt;
  int length = 0;
  const char* const typed = el_gets(state_->editor, &length);
  GANNET_RETURN_IF_ERROR(CheckStop(state_->stop, "it waited for a command"));
  if (typed == nullptr || length <= 0) {
    if (length < 0)
      return absl::UnavailableError(absl::StrFormat("cannot read the terminal: %s", std::strerror(errno)));
    std::fputc('\n', stdout);  // the shell's next words begin a line
    return false;
  }
  line->assign(typed, static_cast<size_t>(length));
  while (!line->empty() && (line->back() == '\n' || line->back() == '\r')) line->pop_back();
  if (line->find_first_not_of(' ') != std::string::npos) {
    HistEvent event;
    ::history(state_->history, &event, H_ENTER, line->c_str());
  }
  return true;
}

std::string HistoryFile() {
  if (const char* const file = std::getenv("GANNET_HISTORY"); file != nullptr) return file;
  const char* const home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.gannet_history";
}

}  // namespace gannet::cli
