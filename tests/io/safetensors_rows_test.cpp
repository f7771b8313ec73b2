#include "sparsight/io/safetensors_rows.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/io/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/live_bytes.h"
#include "tests/support/small_disk.h"

namespace sparsight::safetensors_rows_test {
namespace {

at::Tensor named(const TensorFile& file, const std::string& name) {
  for (const auto& [key, tensor] : file.tensors)
    if (key == name) return tensor;
  return {};
}

}  // namespace

TEST(SafetensorsRows, AreWhatWasAppended) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("rows.safetensors");
  const at::Tensor whole = at::arange(30).reshape({10, 3}).to(at::kFloat);
  {
    SafetensorsRowWriter rows(path);
    for (const auto& [begin, end] : {std::pair(0, 4), std::pair(4, 4), std::pair(4, 10)}) {
      rows.append("x", whole.slice(0, begin, end));
      rows.append("turned", whole.t().contiguous().t().slice(0, begin, end));
      rows.append("byte", whole.select(1, 0).to(at::kByte).slice(0, begin, end));
      rows.append("number", whole.select(1, 1).to(at::kLong).slice(0, begin, end));
    }
    EXPECT_EQ(rows.bytes(), 10 * (12 + 12 + 1 + 8));
    EXPECT_EQ(testing::count_entries(folder), 0u) << "nothing appears before the end";
    rows.commit({{"format", "test"}});
  }
  EXPECT_EQ(testing::count_entries(folder), 1u);
  const TensorFile file = read_safetensors(path);
  EXPECT_EQ(file.metadata.at("format"), "test");
  EXPECT_TRUE(at::equal(named(file, "x"), whole));
  EXPECT_TRUE(at::equal(named(file, "turned"), whole));
  EXPECT_TRUE(at::equal(named(file, "byte"), whole.select(1, 0).to(at::kByte)));
  EXPECT_TRUE(at::equal(named(file, "number"), whole.select(1, 1).to(at::kLong)));
}

TEST(SafetensorsRows, AreReadInParts) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("rows.safetensors");
  const at::Tensor whole = at::arange(30).reshape({10, 3}).to(at::kFloat);
  SafetensorsRowWriter writer(path);
  writer.append("x", whole);
  writer.append("number", at::arange(10));
  writer.commit({});
  const SafetensorsRowReader rows(path);
  EXPECT_TRUE(at::equal(rows.rows("x", 4, 7), whole.slice(0, 4, 7)));
  EXPECT_TRUE(at::equal(rows.rows("number", 0, 10), at::arange(10)));
  EXPECT_EQ(rows.rows("x", 3, 3).size(0), 0);
  EXPECT_NE(testing::error_text([&] { rows.rows("x", 8, 11); }).find("has no rows 8 to 11 of a tensor x"),
            std::string::npos);
  EXPECT_NE(testing::error_text([&] { rows.rows("y", 0, 1); }).find("of a tensor y"), std::string::npos);
}

TEST(SafetensorsRows, WithoutCommitThereIsNoFile) {
  const testing::TemporaryFolder folder;
  { SafetensorsRowWriter(folder.path("a")).append("x", at::ones({3})); }
  EXPECT_EQ(testing::count_entries(folder), 0u);
}

TEST(SafetensorsRows, MemoryDoesNotGrowWithTheRows) {
  const testing::TemporaryFolder folder;
  const test::LiveBytes live;
  SafetensorsRowWriter rows(folder.path("a"));
  for (int i = 0; i < 64; ++i) rows.append("x", at::zeros({1024, 64}));  // 16 MB
  EXPECT_EQ(live.count(), 0);
  rows.commit({});
  EXPECT_EQ(read_safetensors_header(folder.path("a")).tensors.at(0).shape, (std::vector<int64_t>{65536, 64}));
}

TEST(SafetensorsRows, OtherShapesOrTypesAreABug) {
  const testing::TemporaryFolder folder;
  SafetensorsRowWriter rows(folder.path("a"));
  rows.append("x", at::zeros({2, 3}));
  EXPECT_THROW(rows.append("x", at::zeros({2, 4})), std::logic_error);
  EXPECT_THROW(rows.append("x", at::zeros({2})), std::logic_error);
  EXPECT_THROW(rows.append("x", at::zeros({2, 3}, at::kLong)), std::logic_error);
}

TEST(SafetensorsRows, AFullDiskIsAnErrorThatLeavesNothing) {
  testing::SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  const std::string path = disk.folder().path("a");
  {
    SafetensorsRowWriter rows(path);
    const auto fill = [&] {
      for (int i = 0; i < 9; ++i) rows.append("x", at::zeros({1 << 15}));  // 128 KiB each, beyond the megabyte
    };
    EXPECT_NE(testing::error_text(fill).find("No space left on device"), std::string::npos);
  }
  SafetensorsRowWriter rows(path);  // the rows fit, the final file does not
  for (int i = 0; i < 5; ++i) rows.append("x", at::zeros({1 << 15}));
  EXPECT_NE(testing::error_text([&] { rows.commit({}); }).find("No space left on device"), std::string::npos);
  EXPECT_EQ(testing::count_entries(disk.folder()), 0u);
}

}  // namespace sparsight::safetensors_rows_test
