// Log lines and the status line. Everything here goes to stderr; stdout carries only results.
//
// Plain lines, or with --log-json one JSON object per line ({"level": "info", "time": ..., "message": ...}). A status
// is the line at the bottom of a terminal that a progress bar rewrites; log lines appear above it. Thread-safe.
#pragma once

#include <iosfwd>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/options.h"

namespace sparsight {

struct LogSettings {
  bool quiet = false;              // only warnings and errors
  bool json = false;               // one JSON object per line
  bool terminal = false;           // may rewrite a line in place
  int columns = 80;                // of the terminal
  std::ostream* stream = nullptr;  // nullptr: std::cerr
};

// Default settings for this process: `terminal` and `columns` are those of stderr.
LogSettings default_log_settings();
void set_log(const LogSettings& settings);
LogSettings log_settings();  // `columns` as they are now: a terminal can be resized

// One line of level "info", "warning" or "error". Info is silent under --quiet. `fields` are added to the JSON form.
void log_line(const std::string& level, const std::string& message, const Json& fields);
void log_line(const std::string& level, const std::string& message);

template <class... Parts>
void log_info(const Parts&... parts) {
  log_line("info", cat(parts...));
}

template <class... Parts>
void log_warning(const Parts&... parts) {
  log_line("warning", cat(parts...));
}

// While one of these exists, a warning is not repeated: a second one of the same text is left out.
class OnceEachWarning {
 public:
  OnceEachWarning();
  ~OnceEachWarning();
  OnceEachWarning(const OnceEachWarning&) = delete;
  OnceEachWarning& operator=(const OnceEachWarning&) = delete;
};

// Rewrites the status line of a terminal; "" removes it. Does nothing elsewhere, when quiet and in JSON mode.
void show_status(const std::string& text);

}  // namespace sparsight
