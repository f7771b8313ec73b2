// How long the threads of torch wait for each other.
#pragma once

namespace sparsight::cli {

// libgomp's threads spin for some 10 ms before they sleep, and so hold the cores that the threads they wait for need as
// soon as another program runs: training is then ten times slower, not two. This makes it 1 ms. libgomp reads its
// environment while it is loaded, so the program starts itself again, once, where neither GOMP_SPINCOUNT nor
// OMP_WAIT_POLICY says otherwise. For the verbs that compute for long; returns where there is nothing to do.
void spin_briefly(int argc, char** argv);

}  // namespace sparsight::cli
