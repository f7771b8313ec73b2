#include "cli/work/interruptible.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "sparsight/core/interrupt.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::cli {
namespace {

void stop_quietly(int) {
  if (interrupted()) _exit(130);
  set_interrupted(true);
}

}  // namespace

void begin_interruptible_work() {
  install_interrupt_handler();
  if (std::getenv("SPARSIGHT_STORE"))  // a rank of --processes, whose launcher says that it stops
    for (const int number : {SIGINT, SIGTERM}) signal(number, stop_quietly);
  cpu::adapt_thread_waiting();
}

}  // namespace sparsight::cli
