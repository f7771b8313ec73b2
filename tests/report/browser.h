// A report opened in a real headless browser.
#pragma once

#include <string>

namespace sparsight::testing {

struct BrowserPage {
  std::string dom;      // the document after its scripts ran
  std::string console;  // errors and warnings of the page and the browser
  int charts = -1;      // charts drawn, -1 if the page did not finish
};

// The path of chromium (SPARSIGHT_BROWSER, or the first of the usual names on the PATH); "" if there is none.
std::string find_browser();

BrowserPage open_in_browser(const std::string& browser, const std::string& html_path);

// How often `word` occurs in `text`.
int count(const std::string& text, const std::string& word);

}  // namespace sparsight::testing
