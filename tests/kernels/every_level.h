// Runs a test at every instruction-set level of this CPU, on one thread and on three.
#pragma once

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/threads/own_threads.h"

namespace sparsight::testing {

inline void at_every_level(const std::function<void(cpu::Threads& threads)>& test) {
  for (const std::string& level : isa_names())
    for (const int64_t count : {1, 3}) {
      SCOPED_TRACE(level + ", " + std::to_string(count) + " threads");
      set_isa(level);
      cpu::OwnThreads threads(count);
      test(threads);
    }
  set_isa("");
}

}  // namespace sparsight::testing
