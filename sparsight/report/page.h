// Builds a self-contained HTML page: sections with tables, charts and images. Opening it makes no network requests, and
// its Content-Security-Policy forbids them; charts are drawn by the embedded Vega scripts.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/report/charts/charts.h"
#include "sparsight/report/text_table.h"

namespace sparsight {

// The page's HTML so far, and the specifications of its charts, which follow in one script.
struct Page {
  std::string body, contents;
  Json specs = Json::array();
  Json photos;  // the cells of read_confused(), for photos.js; null: none

  void open_section(const std::string& id, const std::string& title, const std::string& detail, bool open);
  void close_section();
  void charts(const std::vector<Chart>& charts);
};

// What surrounds the sections. Titles are plain text; notices, lead and footer are HTML.
struct PageFrame {
  std::string title, heading, subtitle;
  std::string notices = {}, lead = {}, footer = {};
};

std::string html_page(const PageFrame& frame, const Page& page);

// HTML fragments. Arguments named `html` have been escaped by the caller.
std::string html_text(const std::string& text);  // escaped, "-" if empty
std::string html_cell(const std::string& html, const char* kind = "");
std::string html_table(const std::string& header, const std::string& rows);
std::string html_rows(const Rows& rows);                                         // plain text; "" without any
std::string html_list(const std::vector<std::string>& lines);                    // lines of plain text
std::string html_image(const std::string& png, const std::string& description);  // "" if empty

}  // namespace sparsight
