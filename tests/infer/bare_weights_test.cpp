// What files of weights alone do not say. tests/e2e/attack_test.cpp uses one.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/infer/bare_weights.h"
#include "sparsight/io/checkpoint.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::bare_weights_test {

TEST(BareWeights, NormalisationsAreNamedOrGiven) {
  EXPECT_TRUE(parse_normalize("none").empty());
  EXPECT_EQ(parse_normalize("imagenet").mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(parse_normalize("0.5:0.25").std, std::vector<double>{0.25});
  EXPECT_EQ(parse_normalize("0.1,0.2,0.3:1,2,3").mean, (std::vector<double>{0.1, 0.2, 0.3}));
  for (const char* wrong : {"imagenett", "0.5", "0.5:", ":0.5", "0.5;0.5", "0.1,0.2:1", "0.5:0", "nan:1", "0.5,:1,1"})
    EXPECT_THROW(parse_normalize(wrong), UsageError) << wrong;
}

TEST(BareWeights, AreToldFromCheckpoints) {
  const testing::TemporaryFolder folder;
  write_safetensors(folder.path("bare.safetensors"), {{{"w", torch::zeros({2})}}, {}});
  write_checkpoint(folder.path("run.safetensors"), {{{"w", torch::zeros({2})}}, {}, Json::object(), Json::object()});
  EXPECT_TRUE(is_bare_weights(folder.path("bare.safetensors")));
  EXPECT_FALSE(is_bare_weights(folder.path("run.safetensors")));
  EXPECT_TRUE(is_bare_weights(folder.write("model.pth", "x")));
  EXPECT_FALSE(is_bare_weights(folder.path()));
  EXPECT_FALSE(is_bare_weights(folder.path("missing.safetensors")));
  EXPECT_THROW(is_bare_weights(folder.write("cut.safetensors", "x")), Error);
  EXPECT_NE(testing::message_of<UsageError>([&] {
              load_bare_weights({.path = folder.path("bare.safetensors")});
            }).find("give --config"),
            std::string::npos);
}

}  // namespace sparsight::bare_weights_test
