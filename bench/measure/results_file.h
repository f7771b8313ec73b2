// The results of a benchmark as a file, from which tables can be made again.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace sparsight::bench {

struct BenchmarkResults {
  std::string benchmark;  // what was measured
  std::string machine;    // machine_line() of bench/limits/peak.h
  nlohmann::json settings, rows;
};

// {"benchmark", "machine", "environment" (versions, time, command line), "commit", "settings", "rows"}; the commit is
// the environment variable SPARSIGHT_COMMIT, which ./dev bench sets, else "". Written whole or not at all. Raises Error
// if it cannot be.
void write_results(const std::string& path, const BenchmarkResults& results);

}  // namespace sparsight::bench
