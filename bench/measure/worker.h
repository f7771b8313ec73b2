// A process that bench/peers/models.py times: a line of JSON answers each line of standard input.
#pragma once

#include <functional>

namespace sparsight::bench {

// Each line says how often to call `work`. The answer has the "seconds" of a call and the "peak" that `peak` measures
// afterwards, in operations per second: a busy neighbour on the host may lower one of them, not all.
void answer_runs(const std::function<void()>& work, const std::function<double()>& peak);

}  // namespace sparsight::bench
