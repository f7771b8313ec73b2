#include <gtest/gtest.h>

#include <cmath>

#include "sparsight/papers/pmoe/theory/pmoe_bounds.h"
#include "tests/support/errors.h"

namespace sparsight::pmoe::pmoe_bounds_test {

using testing::error_text;

const PmoeTraining kAll[] = {PmoeTraining::separate, PmoeTraining::joint, PmoeTraining::cnn};

TEST(PmoeBounds, P62_TheoremsAsPrinted) {
  const PmoeBounds separate = pmoe_bounds(PmoeTraining::separate);
  EXPECT_EQ(separate.samples.text(), "delta^6 l^8 p^12 / eps^16");
  EXPECT_EQ(separate.neurons.text(), "delta^6 l^10 p^12 / eps^16");
  EXPECT_EQ(separate.batch.text(), "delta^3 l^4 p^6 / eps^8");
  EXPECT_EQ(separate.learning_rate.text(), "eps^4 / delta^1.5 l^2 m p^3");
  const PmoeBounds joint = pmoe_bounds(PmoeTraining::joint);
  EXPECT_EQ(joint.samples.text(), "delta^6 k^4 l^6 p^12 / eps^16");
  EXPECT_EQ(joint.neurons.text(), "delta^6 k^3 l^6 n^2 p^12 / eps^16");
  EXPECT_EQ(joint.batch.text(), "delta^3 k^2 l^4 p^6 / eps^8");
  EXPECT_EQ(joint.iterations.text(), "delta^3 k^2 l^2 p^6 / eps^8");
  EXPECT_EQ(joint.learning_rate.text(), "eps^4 l / delta^1.5 k^2 m p^3");
  EXPECT_EQ(pmoe_bounds(PmoeTraining::cnn).samples.text(), "delta^6 n^8 p^12 / eps^16");
  EXPECT_EQ(router_bounds().samples.text(), "n^2 / gap^3");
  EXPECT_EQ(router_samples_of_classes().text(), "c^2 n^2 / gap^2");  // as printed: the exponent of the gap is disputed
}

TEST(PmoeBounds, P62_SamplesAreBatchTimesIterations) {
  for (const PmoeTraining training : kAll) {
    const PmoeBounds bounds = pmoe_bounds(training);
    EXPECT_TRUE(bounds.samples == bounds.batch * bounds.iterations) << bounds.samples.text();
  }
  for (const PmoeTraining training : {PmoeTraining::separate, PmoeTraining::joint}) {
    const PmoeBounds bounds = pmoe_bounds_of_classes(training);
    EXPECT_TRUE(bounds.samples == bounds.batch * bounds.iterations) << bounds.samples.text();
  }
  EXPECT_NE(error_text([] { pmoe_bounds_of_classes(PmoeTraining::cnn); }), "");
}

// l = 2, p = 3, delta = 4/3, eps = 1/2: 2^8 3^12 (4/3)^6 2^16 = 256 * 531441 * 4096 / 729 * 65536.
TEST(PmoeBounds, P62_ValuesByHand) {
  const std::map<std::string, double> values{{"l", 2}, {"p", 3}, {"delta", 4.0 / 3}, {"eps", 0.5}};
  EXPECT_NEAR(pmoe_bounds(PmoeTraining::separate).samples.at(values) / (256.0 * 531441 * 4096 / 729 * 65536), 1, 1e-12);
  EXPECT_NE(error_text([&] { pmoe_bounds(PmoeTraining::cnn).samples.at(values); }).find("needs a value of n"),
            std::string::npos);
  EXPECT_NE(error_text([&] {
              router_bounds().batch.at({{"n", 16}, {"gap", 0}});
            }).find("needs gap above 0, got 0"),
            std::string::npos);
}

// n = 16, l = 2, k = 8: (16/2)^8 = 2^24; n^8 / (k^4 l^6) = 2^32 / (2^12 2^6) = 2^14; n^8 / (k^3 l^6) = 2^17.
TEST(PmoeBounds, P63_Savings) {
  const std::map<std::string, double> values{{"n", 16}, {"l", 2}, {"k", 8}};
  EXPECT_DOUBLE_EQ(pmoe_savings(PmoeTraining::separate).samples.at(values), std::ldexp(1, 24));
  EXPECT_DOUBLE_EQ(pmoe_savings(PmoeTraining::separate).neurons.at(values), std::ldexp(1, 30));
  EXPECT_DOUBLE_EQ(pmoe_savings(PmoeTraining::joint).samples.at(values), std::ldexp(1, 14));
  EXPECT_DOUBLE_EQ(pmoe_savings(PmoeTraining::joint).neurons.at(values), std::ldexp(1, 17));
  EXPECT_EQ(pmoe_savings(PmoeTraining::cnn).samples.text(), "1");
  EXPECT_EQ(error_at_fixed_samples(PmoeTraining::joint).text(), "k^0.25 l^0.375");
  EXPECT_EQ(error_at_fixed_samples(PmoeTraining::separate).text(), "l^0.5");
  EXPECT_EQ(error_at_fixed_samples(PmoeTraining::cnn).text(), "n^0.5");
}

// Table 1, and the reduction against the CNN: n^5 / l^5 and n^5 / (k^2 l^3).
TEST(PmoeBounds, P64_Compute) {
  const PmoeCompute separate = pmoe_compute(PmoeTraining::separate), joint = pmoe_compute(PmoeTraining::joint),
                    cnn = pmoe_compute(PmoeTraining::cnn);
  EXPECT_EQ(separate.total.text(), "B d l^5 m / eps^8");
  EXPECT_EQ(joint.total.text(), "B d k^2 l^3 m / eps^8");
  EXPECT_EQ(cnn.total.text(), "B d m n^5 / eps^8");
  EXPECT_EQ(joint.routers_forward.text(), "B d k n");
  EXPECT_EQ(joint.routers_backward.text(), "B d k l^2");
  EXPECT_EQ((cnn.total / separate.total).text(), "n^5 / l^5");
  EXPECT_EQ((cnn.total / joint.total).text(), "n^5 / k^2 l^3");
}

}  // namespace sparsight::pmoe::pmoe_bounds_test
