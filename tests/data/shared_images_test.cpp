#include "sparsight/data/shared_images.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"

namespace sparsight::shared_images_test {
namespace {

// Grey pictures of 2 x 2 pixels of one level each.
class LevelSet : public DataSet {
 public:
  LevelSet(std::string name, std::vector<int64_t> levels) : name_(std::move(name)), levels_(std::move(levels)) {
    info_.name = "levels", info_.classes = {"a"}, info_.domains = {"d"}, info_.channels = 1;
  }
  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return std::ssize(levels_); }
  int64_t label(int64_t) const override { return 0; }
  Sample get(int64_t index) const override {
    const int64_t level = levels_[static_cast<size_t>(index)];
    if (level < 0) fail("cannot be read");
    Sample sample;
    sample.image = at::full({1, 2, 2}, level, at::kByte);
    sample.id = cat(name_, "/", level);
    return sample;
  }

 private:
  DataInfo info_;
  std::string name_;
  std::vector<int64_t> levels_;
};

using Positions = std::vector<int64_t>;

TEST(SharedImages, M30_AreFoundByPixelsUnderOtherNames) {
  const ImageIdentities held_out(LevelSet("val", {3, 7, 9, 7}));
  const SharedImages shared = held_out.shared_with(LevelSet("test", {1, 7, 2}));
  EXPECT_TRUE(shared.by_id.empty());
  EXPECT_EQ(shared.by_content, (Positions{1, 3}));
  EXPECT_EQ(shared.example, "val/7 = test/7");
  EXPECT_TRUE(held_out.shared_with(LevelSet("test", {1, 2})).by_content.empty());
}

TEST(SharedImages, M30_AreFoundByName) {
  const SharedImages shared = ImageIdentities(LevelSet("train", {3, 7})).shared_with(LevelSet("train", {7}));
  EXPECT_EQ(shared.by_id, (Positions{1}));
  EXPECT_TRUE(shared.by_content.empty());
}

TEST(SharedImages, AnImageThatCannotBeReadIsNobodys) {
  const SharedImages shared = ImageIdentities(LevelSet("val", {-1, 4})).shared_with(LevelSet("test", {-1, 4}));
  EXPECT_EQ(shared.by_content, (Positions{1}));
}

}  // namespace
}  // namespace sparsight::shared_images_test
