#include "sparsight/io/metrics_log.h"
#include "sparsight/report/run/run_metrics.h"
#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = as_file(data, size);
  try_reader([&] {
    const RunMetrics log = read_run_metrics(path);
    last_evals(log);
    part_of_eval(final_eval(log, true));
  });
  try_reader([&] { read_metrics(path); });
  return try_reader([&] { MetricsLog(path, 3).write({{"kind", "train"}, {"step", 4}}); });
}
