#include "cli/work/interruptible.h"

#include "sparsight/core/interrupt.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::cli {

void begin_interruptible_work() {
  install_interrupt_handler();
  cpu::adapt_thread_waiting();
}

}  // namespace sparsight::cli
