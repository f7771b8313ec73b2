#include "sparsight/io/pickle.h"

#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] { parse_pickle(as_text(data, size), "x"); });
}
