#include "sparsight/data/readers/idx.h"

#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] {
    // The compressor's bound keeps the memory of one input small.
    if (size < 1 << 16) parse_idx(Bytes(data, data + size), "x");
  });
}
