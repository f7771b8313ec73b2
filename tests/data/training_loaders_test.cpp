#include "sparsight/data/training_loaders.h"

#include <set>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sum.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::training_loaders_test {
namespace {

// 30 images filled with their number: of every three, one is of domain "a" and two of "c". "b" has none.
class ThreeDomains : public DataSet {
 public:
  ThreeDomains() {
    info_.name = "three domains";
    info_.classes = {"x", "y"};
    info_.domains = {"a", "b", "c"};
    info_.channels = 1;
  }
  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return 30; }
  int64_t label(int64_t i) const override { return i % 2; }
  int64_t domain(int64_t i) const override { return i % 3 == 0 ? 0 : 2; }
  Sample get(int64_t i) const override {
    return {at::full({1, 2, 2}, i, at::kByte), label(i), domain(i), {}, cat("image ", i)};
  }

 private:
  DataInfo info_;
};

LoaderOptions options(bool per_domain, std::vector<int64_t> domain_batch = {}) {
  LoaderOptions options;
  options.batch = 4;
  options.per_domain = per_domain;
  options.domain_batch = std::move(domain_batch);
  return options;
}

std::vector<EndlessLoader> loaders(const LoaderOptions& options, uint64_t seed = 5) {
  return training_loaders(std::make_shared<ThreeDomains>(), {}, {}, options, seed);
}

std::vector<Batch> take(EndlessLoader& loader, int64_t from, int64_t count) {
  loader.start(from);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < count; ++i) batches.push_back(loader.next());
  return batches;
}

std::string loader_error(const LoaderOptions& options) {
  return testing::error_text<UsageError>([&] { loaders(options); });
}

TEST(TrainingLoaders, OneForEachDomainWithImagesAndABatchOfItsOwn) {
  std::vector<EndlessLoader> list = loaders(options(true, {3, 7}));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].batches_per_epoch(), 3);  // 10 images
  EXPECT_EQ(list[1].batches_per_epoch(), 2);  // 20 images
  for (size_t d = 0; d < 2; ++d) {
    std::set<int64_t> seen;
    for (const Batch& batch : take(list[d], 0, list[d].batches_per_epoch())) {
      ASSERT_EQ(batch.labels.size(0), d == 0 ? 3 : 7);
      for (int64_t i = 0; i < batch.labels.size(0); ++i) {
        const int64_t index = batch.indices[i].item<int64_t>();
        EXPECT_EQ(batch.domains[i].item<int64_t>(), d == 0 ? 0 : 2);
        EXPECT_EQ(index % 3 == 0, d == 0);  // a position in the whole set
        EXPECT_FLOAT_EQ(batch.images[i][0][0][0].item<float>(), static_cast<float>(index) / 255);
        seen.insert(index);
      }
    }
    EXPECT_EQ(seen.size(), d == 0 ? 9u : 14u);
  }
}

TEST(TrainingLoaders, GoOnAnywhereAsIfTheyHadNeverStopped) {
  for (const bool per_domain : {false, true})
    for (size_t d = 0; d < (per_domain ? 2u : 1u); ++d) {
      std::vector<EndlessLoader> first = loaders(options(per_domain)), second = loaders(options(per_domain));
      const std::vector<Batch> whole = take(first[d], 0, 20);  // several epochs
      const std::vector<Batch> rest = take(second[d], 13, 7);
      for (size_t i = 0; i < rest.size(); ++i) {
        EXPECT_TRUE(at::equal(rest[i].indices, whole[13 + i].indices));
        EXPECT_TRUE(at::equal(rest[i].images, whole[13 + i].images));
      }
    }
}

// As DomainBed's sampler, which draws a batch by weights of the classes.
TEST(TrainingLoaders, RepeatImagesOfASmallDomainInBalancedBatches) {
  LoaderOptions wanted = options(true, {14, 4});
  for (const char* sampling : {"class_balanced", "domain_balanced", "weighted"}) {
    wanted.sampling = sampling, wanted.class_weights = {1, 1};
    std::vector<EndlessLoader> list = loaders(wanted);
    EXPECT_EQ(list[0].batches_per_epoch(), 1);
    for (const Batch& batch : take(list[0], 0, 3)) {
      EXPECT_EQ(batch.images.size(0), 14) << sampling;
      if (wanted.sampling == "class_balanced") {
        EXPECT_EQ(batch.labels.sum().item<int64_t>(), 7);
      }
    }
  }
  for (const char* sampling : {"shuffle", "replacement"}) {
    wanted.sampling = sampling;
    EXPECT_NE(loader_error(wanted).find("the domain a has 10 training images"), std::string::npos) << sampling;
  }
}

TEST(TrainingLoaders, RefuseSettingsThatDoNotFitTheData) {
  EXPECT_EQ(loader_error(options(true)), "");
  EXPECT_NE(loader_error(options(true, {3})).find("has 1 numbers, but 2 domains have training images"),
            std::string::npos);
  EXPECT_NE(loader_error(options(false, {3, 3})).find("set loader.per_domain = true"), std::string::npos);
  EXPECT_NE(loader_error(options(true, {11, 4}))
                .find("the domain a has 10 training images, fewer than its batch size of 11; "
                      "lower loader.batch or loader.domain_batch, or set loader.drop_last = "
                      "false"),
            std::string::npos);
}

}  // namespace
}  // namespace sparsight::training_loaders_test
