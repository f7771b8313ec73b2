#include "tests/report/browser.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "tests/support/program.h"

namespace sparsight::testing {

std::string find_browser() {
  if (const char* named = std::getenv("SPARSIGHT_BROWSER")) return named;
  const char* folders = std::getenv("PATH");
  for (const char* name : {"chromium", "chromium-browser", "google-chrome", "chrome"}) {
    std::istringstream path(folders ? folders : "");
    for (std::string folder; std::getline(path, folder, ':');)
      if (access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
  }
  return "";
}

BrowserPage open_in_browser(const std::string& browser, const std::string& html_path) {
  const TemporaryFolder profile;
  ProgramOptions options;
  options.environment["HOME"] = profile.path();
  options.timeout_seconds = 120;
  Program program(
      {"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
       "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
       "--user-data-dir=" + profile.path("profile"), "--enable-logging=stderr", "--v=0", "--window-size=1200,1000",
       "--virtual-time-budget=20000", "--dump-dom", "file://" + html_path},
      options, browser);
  const ProgramResult result = program.wait();
  BrowserPage page;
  page.dom = result.out;
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);)
    if (line.find("CONSOLE") != std::string::npos) page.console += line + "\n";
  const std::string mark = "data-charts=\"";
  const size_t at = page.dom.find(mark);
  if (at != std::string::npos) page.charts = std::atoi(page.dom.c_str() + at + mark.size());
  return page;
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++found;
  return found;
}

}  // namespace sparsight::testing
