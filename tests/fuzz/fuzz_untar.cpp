#include "sparsight/data/untar.h"

#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] {
    static const std::string out = as_file(nullptr, 0) + ".out";
    untar(as_file(data, size), {{"a", out}});
  });
}
