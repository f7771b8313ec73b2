#include "sparsight/models/upcycle.h"

#include <gtest/gtest.h>

#include "sparsight/models/register_models.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"

namespace sparsight::upcycle_test {
namespace {

// A ViT of two blocks; `moe` holds further settings of the configuration.
std::shared_ptr<ImageModel> small_vit(const std::string& moe, uint64_t seed) {
  const Json resolved = resolve(
      Config::from_text("[model]\nwidth = 8\ndepth = 2\nheads = 2\npatch = 4\n" + moe, "test"), config_sections());
  auto model = make_component(models(), resolved, "model", ModelContext{{1, 8, 8, 3}, read_moe_spec(resolved)});
  initialize(*model, seed);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : model->parameters()) p.mul_(10);  // so that the MLPs matter
  return model;
}

// The gates of a token sum to 1, so the copies together compute the same as the MLP.
const char* const kMoe = "[moe]\nblocks = [1]\nexperts = 4\n[router]\nname = \"softmax_topk\"\nrenormalize = true\n";

LoadReport load_into(ImageModel& target, const ImageModel& source, UpcycleOptions upcycle = {}) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : named_weights(source)) tensors.emplace_back(name, tensor.detach().clone());
  LoadOptions options;
  options.derive = upcycle_dense_mlps(target, upcycle);
  return load_weights(target, tensors, options);
}

at::Tensor parameter(ImageModel& model, const std::string& name) { return model.named_parameters()[name]; }

}  // namespace

TEST(Upcycle, AnUpcycledModelComputesTheSameAsTheDenseOne) {
  const auto dense = small_vit("", 1), sparse = small_vit(kMoe, 2);
  const at::Tensor images = at::rand({3, 1, 8, 8});
  const LoadReport report = load_into(*sparse, *dense);
  EXPECT_EQ(report.adapted.size(), 4u) << describe(report);
  EXPECT_EQ(report.fresh, std::vector<std::string>{"blocks.1.mlp.router.weight"});
  EXPECT_TRUE(report.unused.empty()) << describe(report);
  EXPECT_EQ(std::count(report.adapted.begin(), report.adapted.end(),
                       "blocks.1.mlp.experts.w1 (upcycled: 4 copies of blocks.1.mlp.fc1.weight)"),
            1);
  EXPECT_TRUE(at::allclose(sparse->forward({images}).logits, dense->forward({images}).logits, 1e-4, 1e-5));
}

TEST(Upcycle, NoiseMakesExpertsDifferByTheStatedAmount) {
  const auto dense = small_vit("", 1), sparse = small_vit(kMoe, 2);
  load_into(*sparse, *dense, {0.1, 5});
  const at::Tensor experts = parameter(*sparse, "blocks.1.mlp.experts.w1").detach();
  const at::Tensor source = parameter(*dense, "blocks.1.mlp.fc1.weight").detach();
  EXPECT_FALSE(at::equal(experts[0], experts[1]));
  EXPECT_NEAR(((experts - source.t()).std() / source.std()).item<double>(), 0.1, 0.01);
  const at::Tensor biases = parameter(*sparse, "blocks.1.mlp.experts.b1");
  EXPECT_TRUE(at::equal(biases[0], biases[1]));
}

TEST(Upcycle, ExpertsOfAnotherShapeStayFreshAsAWhole) {
  const auto dense = small_vit("", 1), sparse = small_vit(std::string("[moe]\nhidden = 12\n") + (kMoe + 6), 2);
  const LoadReport report = load_into(*sparse, *dense);
  EXPECT_TRUE(report.adapted.empty());
  EXPECT_EQ(report.fresh.size(), 5u) << describe(report);   // router and four tensors of the experts
  EXPECT_EQ(report.unused.size(), 4u) << describe(report);  // the MLP of block 1
}

// The rest is the file's; the layer's MLP is known to be left out.
TEST(Upcycle, ExpertsMayStayRandom) {
  const auto dense = small_vit("", 1), sparse = small_vit(kMoe, 2);
  const at::Tensor before = parameter(*sparse, "blocks.1.mlp.experts.w1").detach().clone();
  UpcycleOptions random;
  random.random = true;
  const LoadReport report = load_into(*sparse, *dense, random);
  EXPECT_TRUE(at::equal(parameter(*sparse, "blocks.1.mlp.experts.w1"), before));
  EXPECT_TRUE(at::equal(parameter(*sparse, "blocks.0.mlp.fc1.weight"), parameter(*dense, "blocks.0.mlp.fc1.weight")));
  EXPECT_TRUE(report.unused.empty()) << describe(report);
  EXPECT_EQ(report.fresh, std::vector<std::string>{"blocks.1.mlp.router.weight"});
}

}  // namespace sparsight::upcycle_test
