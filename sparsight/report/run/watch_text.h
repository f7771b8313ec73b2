// What `sparsight watch` shows of a run that trains: pure functions of the records of metrics.jsonl.
#pragma once

#include <string>
#include <vector>

#include "sparsight/report/run/run_metrics.h"

namespace sparsight {

// The numbers as a line of at most `columns` blocks, between the smallest and the largest: "█▅▃▂▁". Longer histories
// are means of neighbours. "" without numbers.
std::string curve_bars(const std::vector<double>& values, size_t columns = 40);

// Epoch, step and steps per second; curves of the loss and of each split's accuracy; the load of each MoE layer's
// experts, and layers that collapse. config: {section: {key: value}}, or null. Ends with a newline.
std::string watch_text(const RunMetrics& log, const Json& config);

}  // namespace sparsight
