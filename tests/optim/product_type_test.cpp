// Products in bf16 under autocast: who multiplies that way, and that gradients do too.
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/nn/linear.h"
#include "sparsight/nn/mlp.h"
#include "sparsight/ops/attention.h"
#include "sparsight/ops/product_type.h"
#include "sparsight/optim/precision.h"

namespace sparsight::product_type_test {
namespace {

// Chooses a level for a test.
struct Level {
  explicit Level(const std::string& name) { set_isa(name); }
  ~Level() { set_isa(""); }
};

bool multiplies_bf16() { return cpu::kernels().multiplies_bf16; }

double relative_error(const at::Tensor& got, const at::Tensor& want) {
  return ((got.to(at::kDouble) - want).norm() / want.norm()).item<double>();
}

// A layer's result and its gradients: of the input and of all parameters.
template <class Layer>
std::vector<at::Tensor> run(Layer& layer, const at::Tensor& input, bool bf16) {
  const at::Tensor x = input.detach().clone().requires_grad_();
  at::Tensor y;
  {
    const AutocastScope autocast(bf16);
    y = layer->forward(x);
  }
  std::vector<at::Tensor> leaves{x};
  for (const at::Tensor& parameter : layer->parameters()) leaves.push_back(parameter);
  std::vector<at::Tensor> out{y.detach()};
  for (const at::Tensor& grad : torch::autograd::grad({y}, leaves, {at::sin(at::arange(y.numel()).to(y)).view_as(y)}))
    out.push_back(grad);
  return out;
}

template <class Layer>
void fill(Layer& layer) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : layer->parameters())
    parameter.copy_(at::randn(parameter.sizes()) / std::sqrt(static_cast<double>(parameter.size(-1))));
}

// Rounding to 8 significant bits errs by 2^-9 / sqrt(3) = 0.0011 of each factor on average, so a product of two by
// 0.0016 and a chain of two products by a few times that.
template <class Layer>
void errs_as_bf16_does(Layer layer, const at::Tensor& x) {
  fill(layer);
  const std::vector<at::Tensor> got = run(layer, x, true);
  for (const at::Tensor& tensor : got) EXPECT_EQ(tensor.scalar_type(), at::kFloat);
  layer->to(at::kDouble);
  const std::vector<at::Tensor> want = run(layer, x.to(at::kDouble), false);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LT(relative_error(got[i], want[i]), 0.006) << i;
    if (want[i].dim() > 1) {  // biases are sums only
      EXPECT_GT(relative_error(got[i], want[i]), 5e-4) << i;
    }
  }
}

}  // namespace

TEST(ProductTypeTest, FollowsAutocastWhereTheLevelMultipliesBf16) {
  for (const std::string& name : isa_names()) {
    const Level level(name);
    EXPECT_EQ(product_type(), ProductType::fp32);
    const AutocastScope autocast(true);
    EXPECT_EQ(product_type(), multiplies_bf16() ? ProductType::bf16 : ProductType::fp32) << name;
    const NoAutocast fp32;
    EXPECT_EQ(product_type(), ProductType::fp32) << name;
  }
}

TEST(ProductTypeTest, ScopesNest) {
  const ProductScope outer(ProductType::bf16);
  {
    const ProductScope inner(ProductType::fp32);
    EXPECT_EQ(product_type(), ProductType::fp32);
  }
  EXPECT_EQ(product_type(), ProductType::bf16);
}

TEST(ProductTypeTest, LayersRoundProductsAndTheirGradients) {
  if (!multiplies_bf16()) GTEST_SKIP() << "this CPU does not multiply bf16";
  at::manual_seed(3);
  for (const int64_t rows : {40, 700}) {  // below and above the rows from which weights are packed once
    SCOPED_TRACE(rows);
    errs_as_bf16_does(Linear(100, 60), at::randn({rows, 100}));
    errs_as_bf16_does(Mlp(MlpOptions{.width = 72, .hidden = 500}), at::randn({rows, 72}));
  }
}

TEST(ProductTypeTest, AttentionRoundsProductsAndItsGradients) {
  if (!multiplies_bf16()) GTEST_SKIP() << "this CPU does not multiply bf16";
  at::manual_seed(6);
  for (const auto& [tokens, heads, size] : {std::tuple{5, 2, 7}, {197, 2, 64}, {50, 3, 16}, {400, 1, 33}}) {
    SCOPED_TRACE(tokens);
    const at::Tensor input = at::randn({2, tokens, 3 * heads * size});
    const auto grads = [&, heads = heads](const at::Tensor& from, bool bf16) {
      const at::Tensor x = from.clone().requires_grad_();
      at::Tensor y;
      {
        const AutocastScope autocast(bf16);
        y = attention(x, heads);
      }
      const at::Tensor upstream = at::sin(at::arange(y.numel()).to(y)).view_as(y);
      return std::pair{y.detach(), torch::autograd::grad({y}, {x}, {upstream})[0]};
    };
    const auto [out, grad] = grads(input, true);
    const auto [exact_out, exact_grad] = grads(input.to(at::kDouble), false);
    for (const double error : {relative_error(out, exact_out), relative_error(grad, exact_grad)}) {
      EXPECT_LT(error, 0.01);
      EXPECT_EQ(error > 5e-4, active_isa() == "avx512_bf16");  // on CPUs with AMX fp32 is faster
    }
  }
}

// The gradients follow the products of the forward pass, whatever autocast is when they are computed.
TEST(ProductTypeTest, GradientsOfAForwardPassInFp32StayInFp32) {
  at::manual_seed(4);
  Linear layer(64, 48);
  fill(layer);
  const at::Tensor input = at::randn({50, 64}), x = input.clone().requires_grad_(), y = layer->forward(x);
  const at::Tensor upstream = at::randn({50, 48});
  at::Tensor got;
  {
    const AutocastScope autocast(true);
    got = torch::autograd::grad({y}, {x}, {upstream})[0];
  }
  const at::Tensor want = upstream.to(at::kDouble).mm(layer->weight.to(at::kDouble));
  EXPECT_LT(relative_error(got, want.detach()), 1e-6);
}

TEST(ProductTypeTest, RoutersStayInFp32) {
  at::manual_seed(5);
  const at::Tensor tokens = at::randn({90, 64}), weight = at::randn({8, 64});
  const at::Tensor plain = router_logits(tokens, weight, {});
  const AutocastScope autocast(true);
  EXPECT_TRUE(at::equal(router_logits(tokens, weight, {}), plain));
}

}  // namespace sparsight::product_type_test
