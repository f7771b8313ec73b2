// How long the threads of torch wait for each other.
#pragma once

#include <CLI/CLI.hpp>

namespace sparsight::cli {

// Declares of a verb that it computes for long. libgomp's threads spin for some 10 ms before they sleep, and so hold
// the cores that the threads they wait for need as soon as another program runs: training is then ten times slower, not
// two. For this verb it is 1 ms. libgomp reads its environment while it is loaded, so the program starts itself again,
// once, where neither GOMP_SPINCOUNT nor OMP_WAIT_POLICY says otherwise; about 0.3 s, too long for verbs that
// only look something up.
void spin_briefly(CLI::App* verb);

}  // namespace sparsight::cli
