#include "sparsight/core/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace sparsight {
namespace {

std::atomic<bool> stop_wanted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // used in a signal handler

void on_signal(int) {
  if (stop_wanted.exchange(true)) _exit(130);
  const int before = errno;
  static constexpr char message[] = "\nstopping after this step; press Ctrl-C again to stop at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message, sizeof(message) - 1);
  errno = before;
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // restarts reads and writes that the signal interrupts
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return stop_wanted.load(); }

void set_interrupted(bool value) { stop_wanted.store(value); }

}  // namespace sparsight
