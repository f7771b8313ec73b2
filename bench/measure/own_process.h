// The memory of a piece of work, measured in a child process: what the parent has loaded is shared, and what the child
// adds is its own.
#pragma once

#include <functional>
#include <vector>

namespace sparsight::bench {

// What `measure` returned in a child process, `count` values. Call it before this process has started threads. Raises
// Error if the child fails.
std::vector<double> values_in_own_process(size_t count, const std::function<std::vector<double>()>& measure);

// How far the peak of this process's memory rises above what is resident now while `work` runs, in bytes.
double peak_growth(const std::function<void()>& work);

}  // namespace sparsight::bench
