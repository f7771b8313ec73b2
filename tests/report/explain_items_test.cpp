#include "sparsight/report/explain_items.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/png_write.h"
#include "tests/support/program.h"

namespace sparsight {
namespace {

// Ten images, image i of label i, one grey level each.
class TenImages : public DataSet {
 public:
  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return 10; }
  int64_t label(int64_t index) const override { return index; }
  Sample get(int64_t index) const override {
    Sample sample;
    sample.image = at::full({1, 2, 2}, index, at::kByte);
    sample.id = "test/" + std::to_string(index);
    return sample;
  }

 private:
  DataInfo info_;
};

TEST(ExplainItems, OfADataSetAtEvenDistances) {
  const auto items = data_set_items(std::make_shared<TenImages>(), 4);
  ASSERT_EQ(items.size(), 4u);  // i * 10 / 4: 0, 2, 5, 7
  EXPECT_EQ(items[2].label, 5);
  EXPECT_EQ(items[2].read().id, "test/5");
  EXPECT_EQ(data_set_items(std::make_shared<TenImages>(), 99).size(), 10u);
}

TEST(ExplainItems, OfFiles) {
  const testing::TemporaryFolder folder;
  const std::string png = encode_png(at::full({3, 2, 5}, 7, at::kByte));
  const std::string dog = folder.write("pets/dog/b.PNG", png), other = folder.write("other.png", png);
  const auto items = file_items({other, dog}, {"cat", "dog"}, 1);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].label, -1);
  EXPECT_EQ(items[1].label, 1);
  EXPECT_EQ(items[1].read().id, dog);
  EXPECT_EQ(items[0].read().image.sizes(), (std::vector<int64_t>{1, 2, 5}));
}

TEST(ExplainItems, UnreadableFiles) {
  const testing::TemporaryFolder folder;
  const std::string torn = folder.write("torn.png", "\x89PNG");
  for (const std::string& file : {torn, folder.path("absent.png")})
    EXPECT_THROW(file_items({file}, {}, 3)[0].read(), Error) << file;
}

}  // namespace
}  // namespace sparsight
