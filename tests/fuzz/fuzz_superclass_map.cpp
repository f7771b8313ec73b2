#include <string_view>

#include "sparsight/analysis/superclasses/map_file.h"
#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] { parse_superclass_map({reinterpret_cast<const char*>(data), size}, "map.txt"); });
}
