// A self-contained HTML page in the making: sections with tables, charts and pictures. No address is loaded when it is
// opened, and its Content-Security-Policy forbids it; charts are drawn by the Vega scripts that it carries.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/report/charts.h"

namespace sparsight {

// Pieces of the page in order, and the specifications of its charts, which follow in one script.
struct Page {
  std::string body, contents;
  Json specs = Json::array();

  void open_section(const std::string& id, const std::string& title, const std::string& detail, bool open);
  void close_section();
  void charts(const std::vector<Chart>& charts);
};

// What stands around the sections. Titles are plain text; notices, lead and footer are HTML.
struct PageFrame {
  std::string title, heading, subtitle;
  std::string notices, lead, footer;
};

std::string html_page(const PageFrame& frame, const Page& page);

// Pieces of HTML. What is `html` has been escaped by the caller.
std::string html_text(const std::string& text);  // escaped, "-" where empty
std::string html_cell(const std::string& html, const char* kind = "");
std::string html_table(const std::string& header, const std::string& rows);
std::string html_list(const std::vector<std::string>& lines);                    // lines of plain text
std::string html_image(const std::string& png, const std::string& description);  // "" without bytes

}  // namespace sparsight
