// The sparsight program as a function, for programs that register a router, expert, loss, model, dataset or optimiser
// of their own first: all verbs then know it. Link sparsight::cli. docs/add_your_router.md
#pragma once

#include <functional>

namespace sparsight {

// Registers components, runs the command line and returns the exit code: 0 success, 1 failure, 2 usage error. Throws
// nothing. Call it once. An error in `register_components`, such as a name that is taken, is reported in one line like
// any other.
int main(int argc, char** argv, const std::function<void()>& register_components = {});

}  // namespace sparsight
