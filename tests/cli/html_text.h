// What tests ask of a page that --html wrote.
#pragma once

#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace gannet::cli {

// The page is whole, and a browser fetches nothing for it.
inline void ExpectSelfContained(const std::string& html) {
  EXPECT_EQ(html.rfind("<!DOCTYPE html>", 0), 0u);
  EXPECT_NE(html.find("</html>\n"), std::string::npos);
  EXPECT_NE(html.find("charset=\"utf-8\""), std::string::npos);
  for (const char* const loads :
       {"<script src", "<link rel=\"stylesheet", "@import", "url(", "<img", "<iframe", "fetch(", "XMLHttpRequest"}) {
    EXPECT_EQ(html.find(loads), std::string::npos) << loads;
  }
  for (const char* const tag : {"script", "style", "main", "body", "head"}) {
    size_t opened = 0;
    size_t closed = 0;
    const std::string open = std::string("<") + tag;
    const std::string close = std::string("</") + tag + ">";
    for (size_t at = html.find(open); at != std::string::npos; at = html.find(open, at + 1)) {
      const char next = html[at + open.size()];
      if (next == '>' || next == ' ') ++opened;
    }
    for (size_t at = html.find(close); at != std::string::npos; at = html.find(close, at + 1)) ++closed;
    EXPECT_EQ(opened, closed) << tag;
  }
}

// The plots in the page's JSON, which must parse.
inline nlohmann::json PlotsOf(const std::string& html) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t at = html.find(begin);
  if (at == std::string::npos) return nlohmann::json::array();
  const size_t from = at + begin.size();
  return nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from)).at("plots");
}

}  // namespace gannet::cli
