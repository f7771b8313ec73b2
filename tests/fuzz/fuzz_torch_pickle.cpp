#include "sparsight/io/torch_pickle.h"

#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] { read_torch_pickle(as_file(data, size)); });
}
