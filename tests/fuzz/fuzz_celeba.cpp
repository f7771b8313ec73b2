// The input is both lists, with a zero byte between them.
#include <algorithm>

#include "sparsight/data/readers/celeba.h"
#include "tests/fuzz/fuzz.h"

using namespace sparsight;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = as_text(data, size), attributes = text.substr(0, text.find('\0')),
                         partition = text.substr(std::min(text.size(), attributes.size() + 1));
  return try_reader([&] { parse_celeba(attributes, "x", partition, "y"); });
}
