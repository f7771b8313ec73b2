#include "sparsight/data/readers/idx.h"

#include <gtest/gtest.h>

#include "tests/data/readers/fixtures.h"

namespace sparsight::idx_test {

using testing::complaint;
using testing::gzip;
using testing::idx_file;
using testing::says;
using testing::to_bytes;

TEST(Idx, ReadsPlainAndGzipFiles) {
  const std::string file = idx_file({2, 1, 3}, std::string("\x01\x02\x03\x04\x05\xFF", 6));
  for (const std::string& stored : {file, gzip(file)}) {
    const at::Tensor tensor = parse_idx(to_bytes(stored), "x");
    EXPECT_EQ(tensor.sizes(), at::IntArrayRef({2, 1, 3}));
    EXPECT_EQ(tensor[1][0][2].item<int>(), 255);
    EXPECT_EQ(tensor[0][0][1].item<int>(), 2);
  }
  EXPECT_EQ(parse_idx(to_bytes(idx_file({0, 28, 28}, "")), "x").numel(), 0);
}

TEST(Idx, RefusesEveryCutOffFile) {
  const std::string file = idx_file({2, 1, 3}, "abcdef");
  for (size_t length = 0; length < file.size(); ++length)
    EXPECT_NE(complaint([&] { parse_idx(to_bytes(file.substr(0, length)), "x"); }), "") << length;
  EXPECT_TRUE(says(complaint([&] { parse_idx(to_bytes(file.substr(0, 20)), "x"); }),
                   "x is cut off: its header promises 22 bytes, it has 20"));
  const std::string packed = gzip(file.substr(0, 20));  // a whole gzip stream of a cut-off file
  EXPECT_TRUE(says(complaint([&] { parse_idx(to_bytes(packed), "x"); }), "promises 22 bytes (unpacked), it has 20"));
}

TEST(Idx, RefusesWhatIsLongerThanItsHeader) {
  const std::string file = idx_file({2, 1, 3}, "abcdefg");
  EXPECT_TRUE(says(complaint([&] { parse_idx(to_bytes(file), "x"); }), "more than the 22 bytes"));
  EXPECT_TRUE(says(complaint([&] { parse_idx(to_bytes(gzip(file)), "x"); }), "more than the 22 bytes"));
}

// 16 MB that would unpack to 16 GB.
TEST(Idx, AGzipFileUnpacksNoFurtherThanItMay) {
  EXPECT_TRUE(says(complaint([&] {
                     parse_idx(to_bytes(gzip(idx_file({1 << 20, 100, 100}, "abc"))), "x");
                   }),
                   "declares 10485760016 bytes, at most 1073741824 are decompressed"));
  const std::string zeros(50 << 20, '\0');
  EXPECT_TRUE(says(complaint([&] {
                     parse_idx(to_bytes(gzip(idx_file({10, 10}, zeros))), "x");
                   }),
                   "more than the 112 bytes (unpacked)"));
}

TEST(Idx, RefusesOtherFilesAndImpossibleSizes) {
  EXPECT_TRUE(says(complaint([] { parse_idx(to_bytes("\x89PNG...."), "x"); }), "is not an idx file"));
  const std::string floats("\0\0\x0D\x01\0\0\0\1abcd", 12);
  EXPECT_TRUE(says(complaint([&] { parse_idx(to_bytes(floats), "x"); }), "type 13"));
  EXPECT_TRUE(says(complaint([] { parse_idx(to_bytes(std::string("\0\0\x08\x05", 4)), "x"); }), "axes, got 5"));
  // No values, but sizes whose product overflows.
  EXPECT_TRUE(says(complaint([] { parse_idx(to_bytes(idx_file({0, ~0u, ~0u}, "")), "x"); }), "claims more than"));
  // 2^32 - 1 four times: a product that overflows 64 bits.
  const std::string huge = idx_file({~0u, ~0u, ~0u, ~0u}, "");
  EXPECT_TRUE(says(complaint([&] { parse_idx(to_bytes(huge), "x"); }), "claims more than"));
  EXPECT_TRUE(says(complaint([] { parse_idx(to_bytes(gzip(idx_file({60000, 28, 280}, ""))), "x"); }), "it has 16"));
}

}  // namespace sparsight::idx_test
