// Reads the images of tests/golden/transforms.
#pragma once

#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "tests/support/paths.h"

namespace sparsight {

// A binary PPM or PGM -> [C,H,W] uint8.
inline at::Tensor golden_image(const std::string& name) {
  std::ifstream file(test::source_path("tests/golden/transforms/" + name), std::ios::binary);
  std::string magic;
  int64_t width = 0, height = 0, levels = 0;
  file >> magic >> width >> height >> levels;
  file.get();
  if (!file || levels != 255) throw std::runtime_error("cannot read the golden picture " + name);
  const int64_t channels = magic == "P6" ? 3 : 1;
  at::Tensor pixels = at::empty({height, width, channels}, at::kByte);
  file.read(reinterpret_cast<char*>(pixels.data_ptr<uint8_t>()), pixels.numel());
  if (!file) throw std::runtime_error("the golden picture " + name + " is cut short");
  return pixels.permute({2, 0, 1}).contiguous();
}

// The largest difference in levels.
inline int64_t largest_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return 1000;
  return a.to(at::kLong).sub(b.to(at::kLong)).abs().max().item<int64_t>();
}

}  // namespace sparsight
