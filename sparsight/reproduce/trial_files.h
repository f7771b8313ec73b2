// What every single trial of a figure measured, as text: pure functions.
#pragma once

#include <string>

#include "sparsight/reproduce/run_figure.h"

namespace sparsight {

// A line for each trial: axes, seed, measures.
std::string trials_csv(const FigureOutcome& outcome);

// A JSON object for each finished job: {"settings", "result"}, with all constants and, of a training, its epochs.
std::string trials_jsonl(const FigureOutcome& outcome);

}  // namespace sparsight
