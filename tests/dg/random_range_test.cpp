#include "sparsight/dg/random_range.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/data/domainbed/seed_hash.h"

namespace sparsight::random_range_test {

// ERM on large images, hyper-parameter seed 1, trial 0.
TEST(RandomRange, G33_SamplesAreThoseOfDomainBed) {
  const auto sample = [](const std::string& name, const std::string& range) {
    NumpyRandom random(seed_hash({seed_hash({1, 0}), name}));
    return sample_range(range, random);
  };
  EXPECT_EQ(sample("lr", "10^U(-5,-3.5)").get<double>(), 2.7028930742148706e-05);
  EXPECT_EQ(sample("weight_decay", "10^U(-6,-2)").get<double>(), 0.00044832883881609976);
  EXPECT_EQ(sample("batch_size", "floor(2^U(3,5.5))"), 39);
  EXPECT_EQ(sample("resnet_dropout", "{0.0,0.1,0.5}"), 0.5);
}

TEST(RandomRange, RefusesOtherText) {
  NumpyRandom random(0);
  for (const char* text : {"", "{}", "{a}", "U(1)", "floor(U(0,1)", "10^U(0,1))", "log(3)"})
    EXPECT_THROW(sample_range(text, random), Error) << text;
  EXPECT_EQ(sample_range("{2}", random), 2);
}

}  // namespace sparsight::random_range_test
