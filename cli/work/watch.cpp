#include "cli/cmd_watch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "sparsight/core/config.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/run/watch_text.h"

namespace sparsight::cli {
namespace {

// On a terminal each text replaces the one before.
class Screen {
 public:
  void show(const std::string& text) {
    if (text == shown_) return;
    if (terminal_ && !shown_.empty()) std::cout << "\033[" << std::ranges::count(shown_, '\n') << "A\033[J";
    output() << text << std::flush;
    shown_ = text;
  }

 private:
  bool terminal_ = isatty(STDOUT_FILENO) != 0;
  std::string shown_;
};

void wait_for(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (!interrupted() && Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace

void run_watch(const WatchArguments& arguments) {
  begin_interruptible_work();
  const RunFolder run = RunFolder::open(arguments.run);
  const Json config = Config::from_file(run.config()).tree();
  Screen screen;
  std::string warned;
  while (!interrupted()) {
    const RunMetrics log = read_run_metrics(run.metrics());
    if (log.damage != warned) log_warning(warned = log.damage);
    screen.show(watch_text(log, config));
    if (arguments.once || run.is_done()) return;
    wait_for(arguments.every);
  }
}

}  // namespace sparsight::cli
