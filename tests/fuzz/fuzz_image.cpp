#include "sparsight/data/readers/image.h"

#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] { decode_image({data, size}, "x", {size % 2 ? 1 : 3, 1 << 18}); });
}
