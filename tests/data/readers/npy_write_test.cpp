#include "sparsight/data/readers/npy_write.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "sparsight/data/readers/npy.h"

namespace sparsight::npy_write_test {
namespace {

at::Tensor read_back(const at::Tensor& array) {
  const std::string file = encode_npy(array);
  return parse_npy(Bytes(file.begin(), file.end()), "test");
}

TEST(NpyWrite, ComesBackAsWritten) {
  const at::Tensor numbers = at::arange(12, at::kLong).view({3, 4}), halves = numbers.to(at::kDouble).div(2);
  EXPECT_TRUE(at::equal(read_back(numbers), numbers));
  EXPECT_TRUE(at::equal(read_back(halves.t()), halves.t())) << "not contiguous";
  EXPECT_TRUE(at::equal(read_back(numbers.view({12})), numbers.view({12})));
  EXPECT_EQ(read_back(at::zeros({0, 5}, at::kLong)).sizes(), (at::IntArrayRef{0, 5}));
}

// numpy.lib.format: magic, version 1.0, little-endian length, and values from a multiple of 64 on.
TEST(NpyWrite, IsAligned) {
  const std::string file = encode_npy(at::arange(3, at::kLong));
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t length = static_cast<unsigned char>(file[8]) + 256 * static_cast<unsigned char>(file[9]);
  EXPECT_EQ((10 + length) % 64, 0u);
  EXPECT_EQ(file[10 + length - 1], '\n');
  EXPECT_EQ(file.size(), 10 + length + 24);
}

}  // namespace
}  // namespace sparsight::npy_write_test
