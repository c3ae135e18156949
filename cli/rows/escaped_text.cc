#include "cli/rows/escaped_text.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cli/common/view.h"
#include "cli/rows/row_text_internal.h"
#include "log/format/utf8.h"

namespace gannet::cli {
namespace {

using internal::Wrong;

// Returns the number of bytes of the UTF-8 character at the begin; 0 if there is none, or if it is a control character
// (a terminal obeys U+0080 to U+009F, too).
size_t PrintableBytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return absl::ascii_iscntrl(first) ? 0 : 1;
  for (size_t bytes = 2; bytes <= 4 && bytes <= text.size(); ++bytes) {
    if (!log::IsUtf8(text.substr(0, bytes))) continue;
    return first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0 ? 0 : bytes;
  }
  return 0;
}

bool IsHex(std::string_view text) {
  return text.size() % 2 == 0 && std::ranges::all_of(text, [](unsigned char c) { return absl::ascii_isxdigit(c); });
}

}  // namespace

std::string EscapeText(std::string_view bytes, char quote) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text;
  while (!bytes.empty()) {
    const char c = bytes.front();
    size_t taken = 1;
    if (c == '\\' || (c == quote && quote != 0)) {
      text.append({'\\', c});
    } else if (const size_t printable = PrintableBytes(bytes); printable != 0) {
      text.append(bytes.substr(0, printable));
      taken = printable;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      text.append({'\\', c == '\n' ? 'n' : c == '\r' ? 'r' : 't'});
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text.append({'\\', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15]});
    }
    bytes.remove_prefix(taken);
  }
  return text;
}

StatusOr<char> TakeEscape(std::string_view* rest) {
  constexpr const char* kEscapes = R"(is no escape: write \\, \n, \r, \t, \", \' or \xNN with two hexadecimal digits)";
  if (rest->empty()) return Wrong(absl::StrCat("'\\' at the end ", kEscapes));
  const char c = rest->front();
  rest->remove_prefix(1);
  switch (c) {
    case '\\':
    case '"':
    case '\'':
      return c;
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      break;
  }
  if (c == 'x' && rest->size() >= 2 && IsHex(rest->substr(0, 2))) {
    const std::string byte = absl::HexStringToBytes(View(rest->substr(0, 2)));
    rest->remove_prefix(2);
    return byte.front();
  }
  return Wrong(absl::StrCat("'\\", std::string(1, c), View(c == 'x' ? rest->substr(0, 2) : ""), "' ", kEscapes));
}

StatusOr<std::string> UnescapeText(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '\\') {
      const StatusOr<char> escaped = TakeEscape(&text);
      if (!escaped.ok()) return escaped.status();
      c = *escaped;
    }
    bytes += c;
  }
  return bytes;
}

StatusOr<std::string> ParseHex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  if (IsHex(text)) return absl::HexStringToBytes(View(text));
  return Wrong("must be pairs of hexadecimal digits, such as 5a7f");
}

}  // namespace gannet::cli
