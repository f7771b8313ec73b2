// Shortens the busy waiting of torch's OpenMP threads.
#pragma once

#include <CLI/CLI.hpp>

namespace sparsight::cli {

// Marks a verb as compute-heavy. Idle libgomp threads spin for some 10 ms before they sleep. If another program is
// running, they occupy the cores that the threads they wait for need, and training becomes ten times slower instead of
// two. For this verb they spin for 1 ms. libgomp reads its environment when it is loaded, so the program restarts
// itself once, unless GOMP_SPINCOUNT or OMP_WAIT_POLICY is set. This takes about 0.3 s, too long for verbs that only
// look something up.
void spin_briefly(CLI::App* verb);

}  // namespace sparsight::cli
