#include "sparsight/io/safetensors.h"

#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] { read_safetensors(as_file(data, size)); });
}
