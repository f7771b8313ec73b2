#include "bench/measure/results_file.h"

#include <cstdlib>

#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"

namespace sparsight::bench {

void write_results(const std::string& path, const BenchmarkResults& results) {
  const char* const commit = std::getenv("SPARSIGHT_COMMIT");
  const nlohmann::json file = {{"benchmark", results.benchmark},        {"machine", results.machine},
                               {"environment", describe_environment()}, {"commit", commit ? commit : ""},
                               {"settings", results.settings},          {"rows", results.rows}};
  write_file_atomically(path, file.dump(1) + "\n");
}

}  // namespace sparsight::bench
