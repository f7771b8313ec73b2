#include "sparsight/core/config.h"

#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] { Config::from_text(std::string(as_text(data, size)), "x"); });
}
