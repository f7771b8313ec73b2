// Models that several jobs of a figure measure: each is trained once, and its weights stay in the figure's folder.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sparsight/reproduce/figure.h"

namespace sparsight::gmoe {

// The checkpoint of the model that these sections of a configuration train, below `run.folder`/models. Trains it in the
// folder of the job unless it is there; other processes wait meanwhile. Raises Error on an interrupt.
std::string trained_weights(const Json& sections, const FigureRun& run);

}  // namespace sparsight::gmoe
