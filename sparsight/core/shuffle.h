// Random order.
#pragma once

#include <cstdint>
#include <ranges>
#include <utility>

#include "sparsight/core/random.h"

namespace sparsight {

// Every order is as likely as any other (Fisher-Yates).
template <std::ranges::random_access_range Items>
void shuffle(Items&& items, RandomStream& random) {
  const auto first = std::ranges::begin(items);
  for (int64_t i = std::ranges::ssize(items) - 1; i > 0; --i) std::swap(first[i], first[random.below(i + 1)]);
}

}  // namespace sparsight
