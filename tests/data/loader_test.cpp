#include "sparsight/data/loader.h"

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/data/sampler.h"
#include "tests/support/errors.h"
#include "tests/support/warnings.h"

namespace sparsight::loader_test {
namespace {

using testing::collect_warnings;
using testing::error_text;

// Image i is 6x6 and filled with i; classes 0, 1, 2 hold 60 %, 30 % and 10 % of the images, domains alternate.
class Numbers : public DataSet {
 public:
  explicit Numbers(int64_t size, int64_t unreadable = -1) : size_(size), unreadable_(unreadable) {
    info_.name = "numbers";
    info_.classes = {"a", "b", "c"};
    info_.domains = {"even", "odd"};
    info_.channels = 1;
    info_.height = info_.width = 6;
  }
  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return size_; }
  int64_t label(int64_t i) const override { return i % 10 < 6 ? 0 : i % 10 < 9 ? 1 : 2; }
  int64_t domain(int64_t i) const override { return i % 2; }
  Sample get(int64_t i) const override {
    if (i == unreadable_) fail("cannot read number ", i);
    const int64_t side = i == odd_shape ? 5 : 6;
    return {at::full({1, side, side}, i % 256, at::kByte), label(i), domain(i), {}, cat("number ", i)};
  }
  int64_t odd_shape = -1;

 private:
  DataInfo info_;
  int64_t size_, unreadable_;
};

LoaderOptions options(int64_t batch, int64_t workers) {
  LoaderOptions options;
  options.batch = batch;
  options.workers = workers;
  return options;
}

TransformPipeline random_crops() {
  return TransformPipeline(Json::parse(R"([{"op": "random_crop", "size": 6, "padding": 2}])"), "transforms.train");
}

std::vector<Batch> all_batches(Loader& loader, int64_t epoch, int64_t first = 0) {
  loader.start(epoch, first);
  std::vector<Batch> batches;
  while (std::optional<Batch> batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

void expect_equal(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(at::equal(a[i].images, b[i].images));
    EXPECT_TRUE(at::equal(a[i].labels, b[i].labels));
    EXPECT_TRUE(at::equal(a[i].indices, b[i].indices));
  }
}

TEST(Loader, VisitsEveryImageOnceInADifferentOrderEachEpoch) {
  Loader loader(std::make_shared<Numbers>(40), {}, {}, options(8, 2), 1);
  std::vector<std::vector<int64_t>> orders;
  for (const int64_t epoch : {0, 1}) {
    std::vector<int64_t> seen;
    for (const Batch& batch : all_batches(loader, epoch)) {
      for (int64_t i = 0; i < 8; ++i) {
        seen.push_back(batch.indices[i].item<int64_t>());
        EXPECT_FLOAT_EQ(batch.images[i][0][0][0].item<float>(), static_cast<float>(seen.back()) / 255);
        EXPECT_EQ(batch.domains[i].item<int64_t>(), seen.back() % 2);
      }
    }
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 40u);
    orders.push_back(seen);
  }
  EXPECT_NE(orders[0], orders[1]);
}

TEST(Loader, TheNumberOfWorkersChangesNothing) {
  Loader none(std::make_shared<Numbers>(50), random_crops(), {}, options(8, 0), 7);
  const std::vector<Batch> expected = all_batches(none, 3);
  EXPECT_EQ(expected.size(), 6u);  // 50 / 8, the last two images are left out
  for (const int64_t workers : {1, 3}) {
    Loader loader(std::make_shared<Numbers>(50), random_crops(), {}, options(8, workers), 7);
    expect_equal(all_batches(loader, 3), expected);
  }
}

TEST(Loader, StartsInTheMiddleOfAnEpochAsIfItHadNeverStopped) {
  Loader loader(std::make_shared<Numbers>(50), random_crops(), {}, options(8, 2), 7);
  std::vector<Batch> whole = all_batches(loader, 2);
  whole.erase(whole.begin(), whole.begin() + 4);
  expect_equal(all_batches(loader, 2, 4), whole);
}

TEST(Loader, KeepsTheLastSmallerBatchOnlyWhenAsked) {
  LoaderOptions keep = options(8, 1);
  keep.drop_last = false;
  Loader loader(std::make_shared<Numbers>(20), {}, {}, keep, 1);
  const std::vector<Batch> batches = all_batches(loader, 0);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[2].labels.size(0), 4);
}

TEST(Loader, RaisesAWorkersErrorWhereItsBatchIsDue) {
  LoaderOptions sequential = options(4, 2);
  sequential.sampling = "sequential";
  Loader loader(std::make_shared<Numbers>(20, /*unreadable=*/6), {}, {}, sequential, 1);
  loader.start(0);
  EXPECT_TRUE(loader.next().has_value());
  EXPECT_THROW(loader.next(), Error);
}

// Counts the compute threads that get() sees.
class ThreadCounter : public Numbers {
 public:
  using Numbers::Numbers;
  Sample get(int64_t i) const override {
    most = std::max(most.load(), at::get_num_threads());
    return Numbers::get(i);
  }
  mutable std::atomic<int> most = 0;
};

TEST(Loader, ReadsWithOneComputeThreadAndLeavesThoseOfTheCaller) {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  for (const int64_t workers : {0, 2}) {
    const auto data = std::make_shared<ThreadCounter>(16);
    Loader loader(data, {}, {}, options(4, workers), 1);
    EXPECT_EQ(all_batches(loader, 0).size(), 4u);
    EXPECT_EQ(data->most, 1) << workers;
    EXPECT_EQ(at::get_num_threads(), 3);
    int elsewhere = 0;
    std::thread([&] { elsewhere = at::get_num_threads(); }).join();
    EXPECT_EQ(elsewhere, 3);  // of a thread that starts later
  }
  at::set_num_threads(before);
}

TEST(Loader, SkipsAnUnreadableImageWhenAsked) {
  LoaderOptions skip = options(4, 2);
  skip.sampling = "sequential";
  skip.on_bad_image = "skip";
  Loader loader(std::make_shared<Numbers>(20, /*unreadable=*/6), {}, {}, skip, 1);
  const std::vector<Batch> batches = all_batches(loader, 0);
  ASSERT_EQ(batches.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(batches[i].images.size(0), i == 1 ? 3 : 4);
    EXPECT_EQ(batches[i].labels.size(0), batches[i].images.size(0));
  }
  EXPECT_EQ(batches[1].indices[2].item<int64_t>(), 7);  // 4, 5, 7
  EXPECT_FLOAT_EQ(batches[1].images[2][0][0][0].item<float>(), 7.f / 255);

  LoaderOptions one = skip;
  one.batch = 1;
  Loader alone(std::make_shared<Numbers>(8, /*unreadable=*/0), {}, {}, one, 1);
  alone.start(0);
  EXPECT_THROW(alone.next(), Error);  // nothing is left of the batch
}

TEST(Loader, AnUnreadableImageSaysHowToFindAllAndHowToGoOn) {
  Loader loader(std::make_shared<Numbers>(8, /*unreadable=*/6), {}, {}, options(8, 0), 1);
  loader.start(0);
  EXPECT_EQ(
      error_text([&] { loader.next(); }),
      "cannot read number 6; `sparsight data verify` lists all such images, and loader.on_bad_image = \"skip\" goes "
      "on without them");
}

TEST(Loader, NamesAndCountsAnUnreadableImageOnce) {
  for (const int64_t workers : {0, 2}) {
    LoaderOptions skip = options(4, workers);
    skip.on_bad_image = "skip";
    Loader loader(std::make_shared<Numbers>(20, /*unreadable=*/6), {}, {}, skip, 1);
    EXPECT_EQ(loader.unreadable(), 0);
    const std::string first = collect_warnings([&] { all_batches(loader, 0); });
    EXPECT_EQ(first, "warning: skipped an image: cannot read number 6\n") << workers;
    EXPECT_EQ(collect_warnings([&] { all_batches(loader, 1); }), "") << workers;
    EXPECT_EQ(loader.unreadable(), 1);
  }
}

TEST(Loader, NamesTheImageThatATransformRefuses) {
  Loader loader(std::make_shared<Numbers>(8),
                TransformPipeline(Json::parse(R"([{"op": "center_crop", "size": 9}])"), "transforms.train"), {},
                options(4, 2), 1);
  loader.start(0);
  try {
    loader.next();
    FAIL() << "expected an error";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("(image number "), std::string::npos) << error.what();
  }
}

TEST(Loader, CanBeDroppedAndRestartedWithBatchesUnderWay) {
  Loader loader(std::make_shared<Numbers>(64), {}, {}, options(4, 3), 1);
  for (int64_t i = 0; i < 20; ++i) {
    loader.start(i);
    EXPECT_TRUE(loader.next().has_value());
  }
}

TEST(Loader, NamesTheImageWhoseShapeDiffers) {
  auto data = std::make_shared<Numbers>(8);
  data->odd_shape = 3;
  LoaderOptions sequential = options(8, 0);
  sequential.sampling = "sequential";
  Loader loader(data, {}, {}, sequential, 1);
  loader.start(0);
  try {
    loader.next();
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("number 3"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("resize"), std::string::npos) << error.what();
  }
}

TEST(Loader, RefusesABatchLargerThanTheDataSet) {
  EXPECT_THROW(Loader(std::make_shared<Numbers>(7), {}, {}, options(8, 0), 1), UsageError);
  EXPECT_THROW(Loader(std::make_shared<Numbers>(0), {}, {}, options(8, 0), 1), Error);
}

std::map<int64_t, int64_t> class_counts(const DataSet& data, const std::vector<int64_t>& order) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t index : order) ++counts[data.label(index)];
  return counts;
}

TEST(Sampler, BalancedSamplesEveryClassEquallyOften) {
  const Numbers data(300);
  for (const auto& [label, count] : class_counts(data, epoch_order("class_balanced", data, {}, 1, 0)))
    EXPECT_EQ(count, 100) << label;
  int64_t odd = 0;
  for (const int64_t index : epoch_order("domain_balanced", data, {}, 1, 0)) odd += index % 2;
  EXPECT_EQ(odd, 150);
}

// Odd images go through other steps, which leave the middle 2 x 2 pixels of 6 x 6.
TEST(Loader, G39_DomainsMayHaveTransformsOfTheirOwn) {
  for (const int64_t workers : {0, 2}) {
    LoaderOptions options;
    options.eval_batch = 1, options.workers = workers;
    const auto loader = evaluation_loader(std::make_shared<Numbers>(4), TransformPipeline(), options);
    const auto sides = [&] {
      std::vector<int64_t> found;
      loader->start(0);
      while (const auto batch = loader->next()) found.push_back(batch->images.size(2));
      return found;
    };
    EXPECT_EQ(sides(), (std::vector<int64_t>{6, 6, 6, 6}));
    loader->set_domain_transforms({false, true}, {Json::parse(R"([{"op": "center_crop", "size": 2}])"), "transforms"});
    EXPECT_EQ(sides(), (std::vector<int64_t>{6, 2, 6, 2}));
  }
}

TEST(Sampler, WeightedSamplesInProportion) {
  const Numbers data(10000);
  // Class sizes 6000, 3000, 1000 with weights 1, 2, 0: probabilities 1/2, 1/2, 0; 4 standard errors are 200.
  auto counts = class_counts(data, epoch_order("weighted", data, {1, 2, 0}, 1, 0));
  EXPECT_NEAR(counts[0], 5000, 200);
  EXPECT_NEAR(counts[1], 5000, 200);
  EXPECT_EQ(counts[2], 0);
  EXPECT_THROW(epoch_order("weighted", data, {1, 2}, 1, 0), UsageError);
  EXPECT_THROW(epoch_order("weighted", data, {0, 0, 0}, 1, 0), UsageError);
}

// 1000 samples of 1000 images miss an image with a probability of (1 - 1/1000)^1000 = 0.3677: standard error 0.0097.
TEST(Sampler, ReplacementMissesAThird) {
  const Numbers data(1000);
  const std::vector<int64_t> order = epoch_order("replacement", data, {}, 1, 0);
  EXPECT_EQ(order.size(), 1000u);
  EXPECT_NEAR(static_cast<double>(std::set<int64_t>(order.begin(), order.end()).size()), 632.3, 40);
  EXPECT_NE(epoch_order("replacement", data, {}, 1, 1), order);
}

// Three views of each of 16 images and two of a 17th make the 50 of an epoch.
TEST(Loader, M35_RepeatedAugmentationHasThreeViewsOfEachSampledImage) {
  LoaderOptions three = options(8, 2);
  three.views = 3;
  three.drop_last = false;
  Loader loader(std::make_shared<Numbers>(50), random_crops(), {}, three, 7);
  EXPECT_EQ(loader.batches_per_epoch(), 7);  // as without
  std::map<int64_t, std::vector<at::Tensor>> views;
  for (const Batch& batch : all_batches(loader, 0))
    for (int64_t i = 0; i < batch.labels.size(0); ++i)
      views[batch.indices[i].item<int64_t>()].push_back(batch.images[i]);
  std::map<size_t, int> images_with;  // this many views
  int different = 0;
  for (const auto& [index, seen] : views) {
    ++images_with[seen.size()];
    different += !at::equal(seen[0], seen[1]);
  }
  EXPECT_EQ(images_with, (std::map<size_t, int>{{2, 1}, {3, 16}}));
  EXPECT_GT(different, 10);  // a crop of a constant image is one of 25, some of which are alike
}

TEST(Loader, M35_EpochsSampleOtherThirds) {
  LoaderOptions three = options(8, 0);
  three.views = 3;
  Loader loader(std::make_shared<Numbers>(48), {}, {}, three, 7);
  std::set<int64_t> all;
  for (int64_t epoch = 0; epoch < 12; ++epoch) {
    std::set<int64_t> seen;
    for (const Batch& batch : all_batches(loader, epoch))
      for (int64_t i = 0; i < 8; ++i) seen.insert(batch.indices[i].item<int64_t>());
    EXPECT_EQ(seen.size(), 16u);
    all.insert(seen.begin(), seen.end());
  }
  EXPECT_GT(all.size(), 44u);  // each is missing with a probability of (2/3)^12 = 0.8 %
}

TEST(Loader, M35_RepeatedAugmentationResumesInTheMiddleOfAnEpoch) {
  LoaderOptions three = options(8, 2);
  three.views = 3;
  Loader loader(std::make_shared<Numbers>(50), random_crops(), {}, three, 7);
  std::vector<Batch> whole = all_batches(loader, 2);
  whole.erase(whole.begin(), whole.begin() + 4);
  expect_equal(all_batches(loader, 2, 4), whole);
}

TEST(Loader, M35_ViewsOfTheFirstImagesOnlyAreRefused) {
  LoaderOptions three = options(8, 0);
  three.views = 3;
  three.sampling = "sequential";
  EXPECT_THROW(Loader(std::make_shared<Numbers>(50), {}, {}, three, 7), UsageError);
  EXPECT_EQ(evaluation_loader(std::make_shared<Numbers>(50), {}, three)->batches_per_epoch(), 1);
}

}  // namespace
}  // namespace sparsight::loader_test
