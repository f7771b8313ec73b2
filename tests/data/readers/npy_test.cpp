#include "sparsight/data/readers/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/data/readers/fixtures.h"

namespace sparsight::npy_test {

using testing::complaint;
using testing::npy_file;
using testing::says;
using testing::to_bytes;

std::string npy_header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape +
         ", }    \n";
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

TEST(Npy, ReadsEveryTypeAndVersion) {
  const auto read = [](const std::string& descr, const std::string& values, char version) {
    return parse_npy(to_bytes(npy_file(npy_header(descr, "(3,)"), values, version)), "x");
  };
  for (const char version : {1, 2, 3}) {
    EXPECT_EQ(read("|u1", raw<uint8_t>({1, 2, 250}), version)[2].item<int>(), 250);
    EXPECT_EQ(read("|i1", raw<int8_t>({1, 2, -3}), version)[2].item<int>(), -3);
    EXPECT_EQ(read("<i4", raw<int32_t>({1, 2, -70000}), version)[2].item<int>(), -70000);
    EXPECT_EQ(read("<i8", raw<int64_t>({1, 2, int64_t{1} << 40}), version)[2].item<int64_t>(), int64_t{1} << 40);
    EXPECT_EQ(read("<f4", raw<float>({1, 2, 0.5f}), version)[2].item<double>(), 0.5);
    EXPECT_EQ(read("<f8", raw<double>({1, 2, 1e300}), version)[2].item<double>(), 1e300);
  }
}

TEST(Npy, ReadsShapesInBothOrders) {
  const std::string values("\0\1\2\3\4\5", 6);
  const at::Tensor c = parse_npy(to_bytes(npy_file(npy_header("|u1", "(2, 3)"), values)), "x");
  EXPECT_EQ(c.sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(c[1][0].item<int>(), 3);
  // Fortran order: the first axis runs fastest, so [1][0] is the second value.
  const at::Tensor f = parse_npy(to_bytes(npy_file(npy_header("|u1", "(2, 3)", true), values)), "x");
  EXPECT_EQ(f.sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(f[1][0].item<int>(), 1);
  EXPECT_EQ(f[1][2].item<int>(), 5);
  EXPECT_TRUE(f.is_contiguous());
  EXPECT_EQ(parse_npy(to_bytes(npy_file(npy_header("<f4", "()"), raw<float>({7}))), "x").item<float>(), 7);
  EXPECT_EQ(parse_npy(to_bytes(npy_file(npy_header("<f8", "(0, 3)"), "")), "x").sizes(), at::IntArrayRef({0, 3}));
}

TEST(Npy, RefusesDamagedFiles) {
  const std::string good = npy_file(npy_header("|u1", "(2, 3)"), "abcdef");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(complaint([&] { parse_npy(to_bytes(good.substr(0, length)), "x"); }), "") << length;
  const auto message = [](const std::string& file) { return complaint([&] { parse_npy(to_bytes(file), "x"); }); };
  EXPECT_TRUE(says(message(good + "g"), "holds more than its header promises"));
  EXPECT_TRUE(says(message(good.substr(0, good.size() - 1)), "cut off"));
  EXPECT_TRUE(says(message(npy_file(npy_header(">f4", "(1,)"), "abcd")), "type \">f4\" is not read"));
  EXPECT_TRUE(says(message(npy_file(npy_header("|O", "(1,)"), "abcd")), "type \"|O\""));
  EXPECT_TRUE(
      says(message(npy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "abcd")), "records"));
  EXPECT_TRUE(says(message(npy_file(npy_header("|u1", "(-1,)"), "")), "damaged"));
  EXPECT_TRUE(says(message(npy_file(npy_header("<f8", "(4294967296, 4294967296, 4)"), "")), "claims more than"));
  EXPECT_TRUE(says(message(npy_file(npy_header("<f8", "(0, 4294967296, 4294967296, 4)"), "")), "claims more than"));
  EXPECT_TRUE(says(message(npy_file(npy_header("|u1", "(99999999999999999999999,)"), "")), "claims an axis"));
  EXPECT_TRUE(says(message(npy_file("{'descr': '|u1'}", "")), "damaged"));
  EXPECT_TRUE(says(message(npy_file(npy_header("|u1", "(1,)"), "a", 4)), "version 4"));
}

}  // namespace sparsight::npy_test
