// Layers whose routers send nearly everything to a few experts, which trains the others no further: the most frequent
// failure of sparse mixtures of experts (Shazeer et al. 2017, section 4).
#pragma once

#include <string>
#include <vector>

#include "sparsight/report/run/run_metrics.h"

namespace sparsight {

// What is wrong with the layers of an evaluation ("layers" of its record), a line each: experts with less than a
// hundredth of an even share, routers that always choose nearly the same experts, and more than a fifth of the
// assignments dropped by capacity. None where all is well.
std::vector<std::string> find_collapse(const Json& layers);

// The same of a run's last evaluation, and which settings fix it. config: {section: {key: value}}, or null.
std::vector<std::string> find_collapse(const RunMetrics& log, const Json& config = {});

}  // namespace sparsight
