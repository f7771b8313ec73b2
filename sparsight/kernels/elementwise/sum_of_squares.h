// The sum of the squares of all elements of some arrays.
#pragma once

#include <span>
#include <variant>

#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

using Elements = std::variant<std::span<const float>, std::span<const double>>;

// Chunks of a fixed size are summed in order, each in the type of its elements: the same bits for any number of
// threads.
double sum_of_squares(Threads& threads, std::span<const Elements> arrays);

}  // namespace sparsight::cpu
