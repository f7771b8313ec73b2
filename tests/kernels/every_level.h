// Runs a test at every instruction-set level of this CPU, on one thread and on three.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/threads/own_threads.h"

namespace sparsight::testing {

// Whether a level has fused multiply-add.
inline bool fuses(const std::string& level) { return level != "baseline" && level != "simd128"; }
inline bool any_level_fuses() { return std::ranges::any_of(isa_names(), fuses); }

// The level alone.
inline void for_every_level(const std::function<void()>& test) {
  for (const std::string& level : isa_names()) {
    SCOPED_TRACE(level);
    set_isa(level);
    test();
  }
  set_isa("");
}

inline void at_every_level(const std::function<void(cpu::Threads& threads)>& test) {
  for_every_level([&] {
    for (const int64_t count : {1, 3}) {
      SCOPED_TRACE(std::to_string(count) + " threads");
      cpu::OwnThreads threads(count);
      test(threads);
    }
  });
}

}  // namespace sparsight::testing
