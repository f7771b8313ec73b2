// The sparsight program as a function, for programs that register a router, expert, loss, model, dataset or optimiser
// of their own first: all verbs then know it. Link sparsight::cli. docs/add_your_router.md
#pragma once

namespace sparsight {

// Runs the command line and returns what main() returns: 0 done, 1 the work failed, 2 wrong usage. Raises nothing. Call
// it once; `train`, `eval`, `explain` and `reproduce` start the program again, as it was started, with a shorter spin
// of OpenMP's threads, so let nothing go before it that may not happen twice.
int main(int argc, char** argv);

}  // namespace sparsight
