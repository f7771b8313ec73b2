#include "sparsight/data/readers/cifar.h"

#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] {
    parse_cifar({data, size}, 1, "x");
    parse_cifar({data, size}, 2, "x");
  });
}
