// The threads that kernels run their tasks on, chosen by the caller: a pool of its own (own_threads.h), or torch's
// (ops/torch_threads.h). The number of threads changes no bit of a result.
#pragma once

#include <cstdint>

#include "sparsight/core/function_ref.h"

namespace sparsight::cpu {

class Threads {
 public:
  virtual ~Threads() = default;

  // How many threads run() may use, the caller among them: at least 1.
  virtual int64_t count() const = 0;

  // Whether the caller is itself work of run(): what it runs then runs on its thread alone.
  virtual bool inside() const = 0;

  // Calls work() on this thread and on up to `threads` - 1 others, and returns when all calls that began have ended:
  // work() must take tasks until none is left. Rethrows what a call has thrown.
  virtual void run(int64_t threads, FunctionRef<void()> work) = 0;
};

}  // namespace sparsight::cpu
