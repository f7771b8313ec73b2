#include "sparsight/report/run/explain_items.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/png_write.h"
#include "tests/support/program.h"

namespace sparsight::explain_items_test {
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

TEST(ExplainItems, OfADataSetAreARandomSampleThatStaysTheSame) {
  const auto labels = [](int64_t count) {
    std::vector<int64_t> labels;
    for (const ExplainItem& item : data_set_items(std::make_shared<TenImages>(), count)) labels.push_back(item.label);
    return labels;
  };
  const std::vector<int64_t> four = labels(4);
  ASSERT_EQ(four.size(), 4u);
  EXPECT_EQ(labels(4), four);
  EXPECT_TRUE(std::is_sorted(four.begin(), four.end()));
  EXPECT_EQ(std::set<int64_t>(four.begin(), four.end()).size(), 4u);
  EXPECT_EQ(labels(99), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(data_set_items(std::make_shared<TenImages>(), 99)[5].read().id, "test/5");
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
}  // namespace sparsight::explain_items_test
