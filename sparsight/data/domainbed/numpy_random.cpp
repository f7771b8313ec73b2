#include "sparsight/data/domainbed/numpy_random.h"

#include <bit>
#include <numeric>
#include <utility>

#include "sparsight/core/error.h"

namespace sparsight {

double NumpyRandom::uniform() {
  const uint64_t high = bits() >> 5, low = bits() >> 6;
  return static_cast<double>(high * 67108864 + low) / 9007199254740992.0;
}

int64_t NumpyRandom::below(int64_t n) {
  SPARSIGHT_CHECK(n >= 1 && n <= int64_t{1} << 32);
  const auto last = static_cast<uint32_t>(n - 1);
  if (last == 0) return 0;
  const auto mask = static_cast<uint32_t>((uint64_t{1} << std::bit_width(last)) - 1);
  uint32_t value;
  while ((value = bits() & mask) > last) {
  }
  return value;
}

std::vector<int64_t> NumpyRandom::permutation(int64_t n) {
  std::vector<int64_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(values[static_cast<size_t>(i)], values[static_cast<size_t>(below(i + 1))]);
  return values;
}

}  // namespace sparsight
