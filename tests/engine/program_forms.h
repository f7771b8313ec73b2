// Small programs which together have every kind of step, router and experts, with each of their settings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/engine/program.h"
#include "sparsight/kernels/types.h"

namespace sparsight::engine_test {

struct ProgramForm {
  std::string name;
  std::function<engine::Program(WeightType)> make;
};
std::vector<ProgramForm> program_forms();

constexpr int64_t kFormPixels = 3 * 8 * 8;  // of an image

}  // namespace sparsight::engine_test
