// Whole datasets of a few images, written to a folder for tests.
#pragma once

#include <ATen/ops/full.h>

#include <string>

#include "sparsight/data/readers/png_write.h"
#include "tests/data/readers/fixtures.h"
#include "tests/support/program.h"

namespace sparsight::testing {

// A grey PNG file of 4 x 5 pixels (height x width) of one level.
inline std::string grey_png(int level) { return encode_png(at::full({1, 4, 5}, level, at::kByte)); }

// `count` images of 2 x 3 pixels; image i has label i % 10 and pixels of value i.
inline void write_mnist(const TemporaryFolder& folder, int count, const std::string& below = "", bool packed = false) {
  std::string images, labels;
  for (int i = 0; i < count; ++i) {
    images += std::string(6, static_cast<char>(i));
    labels += static_cast<char>(i % 10);
  }
  const auto n = static_cast<uint32_t>(count);
  for (const char* part : {"train", "t10k"}) {
    const std::string image_file = idx_file({n, 2, 3}, images), label_file = idx_file({n}, labels);
    const std::string ending = packed ? ".gz" : "";
    folder.write(below + part + "-images-idx3-ubyte" + ending, packed ? gzip(image_file) : image_file);
    folder.write(below + part + "-labels-idx1-ubyte" + ending, packed ? gzip(label_file) : label_file);
  }
}

// A CIFAR record: labels, then 3072 pixels of one value.
inline std::string cifar_record(const std::string& labels, int value) {
  return labels + std::string(3072, static_cast<char>(value));
}

}  // namespace sparsight::testing
