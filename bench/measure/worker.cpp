#include "bench/measure/worker.h"

#include <cstdint>
#include <iostream>

#include <nlohmann/json.hpp>

#include "bench/measure/rounds.h"

namespace sparsight::bench {

void answer_runs(const std::function<void()>& work, const std::function<double()>& peak) {
  for (int64_t runs = 0; std::cin >> runs;) {
    const double start = seconds_now();
    for (int64_t i = 0; i < runs; ++i) work();
    const double seconds = (seconds_now() - start) / static_cast<double>(runs);
    std::cout << nlohmann::json{{"seconds", seconds}, {"peak", peak()}}.dump() << std::endl;
  }
}

}  // namespace sparsight::bench
