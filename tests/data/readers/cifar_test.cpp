#include "sparsight/data/readers/cifar.h"

#include <gtest/gtest.h>

#include "tests/data/readers/fixtures.h"

namespace sparsight::cifar_test {

using testing::complaint;
using testing::says;

TEST(Cifar, ReadsLabelsAndPlanes) {
  for (const size_t label_bytes : {1u, 2u}) {
    const size_t record = label_bytes + 3072;
    Bytes file(2 * record);
    for (size_t i = 0; i < file.size(); ++i) file[i] = static_cast<uint8_t>(i * 7 % 251);
    const CifarRecords records = parse_cifar(file, label_bytes, "x");
    EXPECT_EQ(records.images.sizes(), at::IntArrayRef({2, 3, 32, 32}));
    for (size_t k = 0; k < label_bytes; ++k) EXPECT_EQ(records.labels[k][1], file[record + k]);
    // Image 1, green, row 2, column 5: after one record and the labels, 1024 red values, two rows of 32 and 5.
    EXPECT_EQ(records.images[1][1][2][5].item<int>(), file[record + label_bytes + 1024 + 2 * 32 + 5]);
  }
}

TEST(Cifar, RefusesWhatIsNoWholeNumberOfRecords) {
  for (const size_t size : {0u, 1u, 3072u, 3074u, 6145u, 6147u})
    EXPECT_TRUE(says(complaint([&] { parse_cifar(Bytes(size), 1, "batch.bin"); }), "batch.bin has")) << size;
  EXPECT_EQ(complaint([] { parse_cifar(Bytes(6146), 1, "x"); }), "");
}

}  // namespace sparsight::cifar_test
