// The sparsight program as a function, for programs that register a router, expert, loss, model, dataset or optimiser
// of their own first: all verbs then know it. Link sparsight::cli. docs/add_your_router.md
#pragma once

namespace sparsight {

// Runs the command line and returns the exit code: 0 success, 1 failure, 2 usage error. Throws nothing. Call it once.
int main(int argc, char** argv);

}  // namespace sparsight
