#include "cli/cmd_watch.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/output.h"
#include "sparsight/core/config.h"
#include "sparsight/core/log.h"
#include "sparsight/core/progress.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/run/watch_text.h"

namespace sparsight::cli {
namespace {

// On a terminal each text replaces the one before, so it is cut to the screen.
class Screen {
 public:
  void show(const std::string& text) {
    if (text == shown_) return;
    if (terminal_ && lines_ > 0) std::cout << "\033[" << lines_ << "A\033[J";
    const std::string visible = terminal_ ? fit_to_screen(text) : text;
    output() << visible << std::flush;
    lines_ = std::ranges::count(visible, '\n');
    shown_ = text;
  }

 private:
  static std::string fit_to_screen(const std::string& text) {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row < 2) return text;
    std::istringstream lines(text);
    std::string visible;
    int rows = 1;
    for (std::string line; std::getline(lines, line) && rows < size.ws_row; ++rows)
      visible += cut_to(line, size.ws_col) + "\n";
    return visible;
  }

  bool terminal_ = isatty(STDOUT_FILENO) != 0;
  std::string shown_;
  int64_t lines_ = 0;
};

// What changes when records are added: a log may have gigabytes, and is read again only then. The default: no log.
using LogState = std::pair<std::uintmax_t, std::filesystem::file_time_type>;
LogState log_state(const std::string& path) {
  std::error_code error;
  const LogState state{std::filesystem::file_size(path, error), std::filesystem::last_write_time(path, error)};
  return error ? LogState() : state;
}

}  // namespace

void run_watch(const WatchArguments& arguments) {
  const RunFolder run = RunFolder::open(arguments.run);
  const Json config = Config::from_file(run.config()).tree();
  Screen screen;
  std::string warned;
  std::optional<LogState> shown;
  while (true) {
    const bool last = arguments.once || run.is_done();  // before the last look at its records
    if (const LogState state = log_state(run.metrics()); last || state != shown) {
      const RunMetrics log = state == LogState() ? RunMetrics() : read_run_metrics(run.metrics());
      if (log.damage != warned) log_warning(warned = log.damage);
      screen.show(watch_text(log, config));
      shown = state;
    }
    if (last) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.every));
  }
}

}  // namespace sparsight::cli
