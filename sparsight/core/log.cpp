#include "sparsight/core/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <set>

#include <nlohmann/json.hpp>

#include "sparsight/core/printable.h"
#include "sparsight/core/shortened.h"

namespace sparsight {
namespace {

// The limit of warnings and errors, which may quote what the user gave, such as a value of a megabyte.
constexpr size_t kMaxMessageBytes = 1000;

struct LogState {
  std::mutex mutex;
  LogSettings settings = default_log_settings();
  std::string status;
  int once_each = 0;             // how many OnceEachWarning there are
  std::set<std::string> warned;  // while there is one

  std::ostream& stream() { return settings.stream ? *settings.stream : std::cerr; }
  void erase_status() {
    if (!status.empty()) stream() << "\r\x1b[K";
  }
};

LogState& log_state() {
  static LogState state;
  return state;
}

// Columns of the terminal on stderr; 0 if there is none.
int columns_now() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::round(std::chrono::duration<double>(now).count() * 1000) / 1000;
}

}  // namespace

LogSettings default_log_settings() {
  LogSettings settings;
  const char* kind = std::getenv("TERM");
  settings.terminal = isatty(STDERR_FILENO) == 1 && kind && std::string(kind) != "dumb";
  if (const int columns = columns_now(); columns > 0) settings.columns = columns;
  return settings;
}

void set_log(const LogSettings& settings) {
  LogState& state = log_state();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.settings = settings;
  state.status.clear();
}

LogSettings log_settings() {
  LogState& state = log_state();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (const int columns = state.settings.stream ? 0 : columns_now(); columns > 0) state.settings.columns = columns;
  return state.settings;
}

// A line is one write: those of other processes on the same terminal stay apart from it.
void log_line(const std::string& level, const std::string& whole, const Json& fields) {
  LogState& state = log_state();
  const bool shortens = level != "info" && whole.size() > kMaxMessageBytes;
  const std::string message = shortens ? shortened(printable(whole), kMaxMessageBytes) : whole;
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.settings.quiet && level == "info") return;
  if (state.once_each > 0 && level == "warning" && !state.warned.insert(whole).second) return;
  if (state.settings.json) {
    Json line{{"level", level}, {"time", seconds_since_1970()}, {"message", message}};
    line.update(fields);
    state.stream() << printable(line.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n" << std::flush;
    return;
  }
  state.erase_status();
  state.stream() << (level == "info" ? "" : level + ": ") + printable(message) + "\n" + state.status << std::flush;
}

void log_line(const std::string& level, const std::string& message) { log_line(level, message, Json::object()); }

OnceEachWarning::OnceEachWarning() {
  LogState& state = log_state();
  const std::lock_guard<std::mutex> lock(state.mutex);
  ++state.once_each;
}

OnceEachWarning::~OnceEachWarning() {
  LogState& state = log_state();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (--state.once_each == 0) state.warned.clear();
}

void show_status(const std::string& text) {
  LogState& state = log_state();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.settings.quiet || state.settings.json || !state.settings.terminal) return;
  state.erase_status();
  state.status = printable(text);
  state.stream() << state.status << std::flush;
}

}  // namespace sparsight
