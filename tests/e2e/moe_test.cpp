// `sparsight moe` on the published worked example of noisy top-k gating: 3 tokens, 4 toy experts E_i(x) = (i+1) x, k =
// 2, and the loss sum_j <y_j, (1, 2, -1)>. Values of the specification, six decimals, computed in float64.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <fstream>

#include "tests/e2e/moe_verb.h"

namespace sparsight::testing::moe_test {
namespace {

at::Tensor tokens() { return matrix({1.0, -0.5, 0.25, 0.5, 1.5, -1.0, -1.25, 0.75, 0.5}, 3); }
at::Tensor noise() { return matrix({0.5, -1.2, 0.3, 0.8, -0.7, 0.4, 1.1, -0.2, 1.5, -0.6, 0.2, -0.9}, 3); }

// Weights are stored [E,D] for the router and [E,D,D] for the experts; the example gives Wg and Wn as [D,E].
NamedTensors example() {
  const at::Tensor wg = matrix({0.6, -0.4, 0.2, 0.1, -0.3, 0.5, 0.7, -0.2, 0.8, 0.1, -0.5, 0.4}, 3);
  const at::Tensor wn = matrix({0.2, -0.1, 0.3, 0.0, 0.1, 0.4, -0.2, 0.3, -0.3, 0.2, 0.1, -0.4}, 3);
  const at::Tensor scale = at::arange(1, 5, at::kDouble).view({4, 1, 1});
  return {{"tokens", tokens()},
          {"noise", noise()},
          {"grad", at::tensor({1.0, 2.0, -1.0}, at::kDouble).repeat({3, 1})},
          {"router.weight", wg.t().contiguous()},
          {"router.noise_weight", wn.t().contiguous()},
          {"experts.w1", (scale * at::eye(3, at::kDouble)).contiguous()}};
}

const std::vector<std::string> kLayer{"--set", "router.name=noisy_topk", "--set", "router.k=2",
                                      "--set", "router.noise_floor=0",   "--set", "moe.experts=4",
                                      "--set", "experts.name=linear",    "--set", "experts.bias=false",
                                      "--set", "losses.importance=0",    "--set", "losses.load=0"};

Trial run_layer(const NamedTensors& input, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kLayer;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_moe(input, arguments);
}

// --mode train with these settings, in either type.
Trial train_layer(const NamedTensors& input, const std::vector<std::string>& settings, bool float64) {
  std::vector<std::string> flags{"--mode", "train"};
  if (float64) flags.push_back("--float64");
  return run_layer(input, with_settings(settings, flags));
}

NamedTensors without_gradient() {
  NamedTensors input;
  for (const auto& [name, tensor] : example())
    if (name != "grad") input.emplace_back(name, tensor);
  return input;
}

}  // namespace

TEST(MoeVerb, ReproducesTheWorkedExampleOfGatingAndOfTheLayer) {
  for (const bool float64 : {true, false}) {
    const Trial probe = train_layer(example(), {}, float64);
    ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
    const auto check = [&](const std::string& name, const Rows& values, int64_t rows) {
      expect_near(probe, name, matrix(values, rows), printed_digits(float64));
    };
    check("clean_logits", {0.95, -0.625, -0.275, 0.3, -0.95, 0.45, 1.65, -0.65, -0.575, 0.925, 0.025, -0.075}, 3);
    check("noise_scale",
          {0.731350, 0.575939, 0.928057, 0.575939, 1.005492, 0.883382, 0.575939, 1.205865, 0.543793, 0.989712, 0.483589,
           0.705725},
          3);
    check("noisy_logits",
          {1.315675, -1.316127, 0.003417, 0.760752, -1.653845, 0.803353, 2.283533, -0.891173, 0.240689, 0.331173,
           0.121718, -0.710153},
          3);
    check("scores",  // the softmax over all experts
          {0.522118, 0.037566, 0.140560, 0.299756, 0.015129, 0.176582, 0.775854, 0.032436, 0.296828, 0.324939, 0.263534,
           0.114699},
          3);
    EXPECT_TRUE(at::equal(probe.tensors.at("expert"), at::tensor({0, 3, 2, 1, 1, 0}, at::kLong)));
    EXPECT_TRUE(at::equal(probe.tensors.at("rank"), at::tensor({0, 1, 0, 1, 0, 1}, at::kLong)));
    EXPECT_TRUE(at::equal(probe.tensors.at("chosen_count"), at::tensor({2, 2, 1, 1}, at::kLong)));
    check("gates", {0.635277, 0, 0, 0.364723, 0, 0.185400, 0.814600, 0, 0.477394, 0.522606, 0, 0}, 3);
    check("output", {2.094169, -1.047084, 0.523542, 1.4073, 4.2219, -2.8146, -1.903257, 1.141954, 0.761303}, 3);
    check("grad.tokens", {2.190071, 4.157207, -2.013834, 3.336513, 5.635874, -3.221536, 1.590475, 3.008643, -1.486015},
          3);
    // dWg and dWn of the example are [D,E].
    check("grad.router.weight",
          {0.095810, -0.040108, 0.074630, -0.261845, -1.066211, 0.648435, 0.339811, 1.019432, -0.679621, -0.173775,
           0.086888, -0.043444},
          4);
    check("grad.router.noise_weight",
          {-0.003983, 0.006897, 0.030890, -0.109128, -0.221571, 0.171228, 0.163655, 0.490964, -0.327310, -0.060866,
           0.030433, -0.015217},
          4);
  }
}

// Experts map rows, y = x W: dW_i = (sum over tokens of gate * x)ᵀ (1, 2, -1).
TEST(MoeVerb, GivesTheGradientsOfTheExperts) {
  const at::Tensor gates = matrix({0.635277, 0, 0, 0.364723, 0, 0.185400, 0.814600, 0, 0.477394, 0.522606, 0, 0}, 3);
  const at::Tensor upstream = at::tensor({1.0, 2.0, -1.0}, at::kDouble);
  for (const bool float64 : {true, false}) {
    const Trial probe = train_layer(example(), {}, float64);
    ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
    // Six decimals of the gates, times numbers up to 2.
    expect_near(probe, "grad.experts.w1", gates.t().matmul(tokens()).unsqueeze(2) * upstream,
                3 * printed_digits(float64));
  }
}

TEST(MoeVerb, GivesTheLossesOfTheExample) {
  for (const bool float64 : {true, false}) {
    const Trial probe = train_layer(example(), {"losses.importance=0.1", "losses.load=0.1"}, float64);
    ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
    const double tolerance = printed_digits(float64);
    EXPECT_NEAR(probe.tensors.at("loss.importance").item<double>(), 0.127069, tolerance);
    EXPECT_NEAR(probe.tensors.at("loss.load").item<double>(), 0.041448, tolerance);
    expect_near(probe, "importance", at::tensor({1.112672, 0.708006, 0.814600, 0.364723}, at::kDouble), tolerance);
    expect_near(probe, "load", at::tensor({1.042876, 1.735082, 1.459989, 1.138084}, at::kDouble), tolerance);
    EXPECT_NE(probe.result.out.find("CV(importance) 0.3565"), std::string::npos) << probe.result.out;
    EXPECT_NE(probe.result.out.find("max/mean load 1.291"), std::string::npos) << probe.result.out;
    EXPECT_NE(probe.result.out.find("experts per token 2.00\n"), std::string::npos) << probe.result.out;
  }
}

// 0.1 times the example's gradients of the importance loss and 0.25 times those of the load loss; the losses themselves
// stay unweighted.
TEST(MoeVerb, GradientsAreThoseOfTheLossesTimesTheirWeights) {
  const auto sum = [](const Rows& importance, const Rows& load) {
    return 0.1 * matrix(importance, 3) + 0.25 * matrix(load, 3);
  };
  const at::Tensor weight = sum({0.041867, 0.105022, 0.007155, -0.154044, -0.009716, -0.088771, 0.021465, 0.077022,
                                 0.083382, -0.030561, -0.014310, -0.038511},
                                {-0.018462, -0.013391, 0.049307, -0.017454, -0.006677, 0.068507, -0.022473, -0.039357,
                                 -0.000916, -0.019049, 0.026490, -0.006524}),
                   noise_weight = sum({-0.030626, -0.043969, 0.003446, -0.053955, 0.022371, 0.020337, 0.010338,
                                       0.026978, 0.038221, 0.020274, -0.006892, -0.013489},
                                      {0.013009, 0.017375, 0.011655, 0.013832, -0.023294, -0.022764, -0.005516,
                                       -0.021841, 0.012551, 0.001136, 0.004956, 0.005564}),
                   of_tokens = sum(
                       {0.085013, -0.027596, 0.071213, 0.010989, 0.000141, -0.008568, 0.097652, -0.052614, 0.052646},
                       {0.000868, 0.071109, -0.079774, -0.022172, 0.018085, -0.008846, -0.013579, 0.026587, -0.025327});
  for (const bool float64 : {true, false}) {
    const Trial probe = train_layer(without_gradient(), {"losses.importance=0.1", "losses.load=0.25"}, float64);
    ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
    const double tolerance = printed_digits(float64);
    EXPECT_NEAR(probe.tensors.at("loss.importance").item<double>(), 0.127069, tolerance);
    EXPECT_NEAR(probe.tensors.at("loss.load").item<double>(), 0.041448, tolerance);
    EXPECT_EQ(probe.tensors.at("loss_weight.importance").item<double>(), 0.1);
    EXPECT_EQ(probe.tensors.at("loss_weight.load").item<double>(), 0.25);
    expect_near(probe, "grad.router.weight", weight.t(), tolerance);
    expect_near(probe, "grad.router.noise_weight", noise_weight.t(), tolerance);
    expect_near(probe, "grad.tokens", of_tokens, tolerance);
    EXPECT_FALSE(probe.tensors.count("grad.experts.w1"));  // balance losses do not depend on the experts
  }
}

TEST(MoeVerb, ALossOfWeightZeroIsNotThere) {
  const Trial probe = train_layer(example(), {"losses.load=0.1"}, /*float64=*/true);
  ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
  for (const std::string name : {"loss.", "loss_weight."}) {
    EXPECT_TRUE(probe.tensors.count(name + "load")) << name;
    EXPECT_FALSE(probe.tensors.count(name + "importance")) << name;
  }
}

// Without token 2: its row is in no sum, and the load is that of the other rows of probabilities, .902218 + .040599 for
// expert 0 and so on.
TEST(MoeVerb, PaddingTakesPartInNothing) {
  for (const auto type : {at::kLong, at::kBool})
    for (const bool float64 : {true, false}) {
      NamedTensors input = example();
      input.emplace_back("valid", at::tensor({1, 1, 0}, at::kLong).to(type));
      const Trial probe = train_layer(input, {"losses.importance=0.1", "losses.load=0.1"}, float64);
      ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
      const double tolerance = printed_digits(float64);
      EXPECT_NEAR(probe.tensors.at("loss.importance").item<double>(), 0.234546, tolerance);
      EXPECT_NEAR(probe.tensors.at("loss.load").item<double>(), 0.014310, tolerance);
      expect_near(probe, "importance", at::tensor({0.635277, 0.185400, 0.814600, 0.364723}, at::kDouble), tolerance);
      expect_near(probe, "load", at::tensor({0.942817, 0.943584, 1.132197, 0.810764}, at::kDouble), 2 * tolerance);
      expect_whole(probe, "token", {0, 0, 1, 1});
      expect_whole(probe, "expert", {0, 3, 2, 1});
      expect_whole(probe, "chosen_count", {1, 1, 1, 1});
      expect_near(probe, "gates", matrix({0.635277, 0, 0, 0.364723, 0, 0.185400, 0.814600, 0, 0, 0, 0, 0}, 3),
                  tolerance);
      expect_near(probe, "output", matrix({2.094169, -1.047084, 0.523542, 1.4073, 4.2219, -2.8146, 0, 0, 0}, 3),
                  tolerance);
      EXPECT_TRUE(probe.tensors.at("grad.tokens")[2].equal(at::tensor({0, 0, 0}, float64 ? at::kDouble : at::kFloat)));
    }
}

// The specification counts gates before drops, whether or not kept gates are renormalised.
TEST(MoeVerb, LossesAreOfGatesBeforeDrops) {
  for (const bool float64 : {true, false}) {
    const Trial probe = train_layer(
        example(), {"losses.importance=0.1", "losses.load=0.1", "capacity.factor=0.5", "capacity.renormalize=true"},
        float64);
    ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
    EXPECT_NEAR(probe.tensors.at("loss.importance").item<double>(), 0.127069, printed_digits(float64));
    EXPECT_NEAR(probe.tensors.at("loss.load").item<double>(), 0.041448, printed_digits(float64));
    EXPECT_FALSE(probe.tensors.at("kept").all().item<bool>());
  }
}

TEST(MoeVerb, TakesImagesWithAClassTokenAndAMap) {
  const NamedTensors images{{"tokens", at::arange(2 * 5 * 3, at::kDouble).view({2, 5, 3}) / 30}};
  std::vector<std::string> arguments{"--set", "moe.experts=4",         "--set", "experts.name=linear",
                                     "--set", "router.name=per_image", "--set", "router.input=class_token"};
  const TemporaryFolder folder;
  write_safetensors(folder.path("in.safetensors"), {images, {}});
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"moe", folder.path("in.safetensors")};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
  };
  EXPECT_EQ(run({}).exit_code, 2);
  EXPECT_EQ(run({"--prefix", "1"}).exit_code, 0);
  EXPECT_EQ(run({"--prefix", "1", "--grid", "2,2"}).exit_code, 0);
  EXPECT_EQ(run({"--prefix", "1", "--grid", "2,3"}).exit_code, 2);
  EXPECT_EQ(run({"--prefix", "6"}).exit_code, 2);
}

TEST(MoeVerb, WarnsOfALossThatTheRouterCannotHave) {
  const TemporaryFolder folder;
  write_safetensors(folder.path("in.safetensors"), {{{"tokens", tokens()}}, {}});
  const ProgramResult result = run_program({"moe", folder.path("in.safetensors"), "--mode", "train", "--set",
                                            "router.name=hash", "--set", "losses.switch=1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("the loss switch is not computed"), std::string::npos) << result.err;
}

TEST(MoeVerb, RefusesAFolderAsItsFileBeforeItComputes) {
  const TemporaryFolder folder;
  write_safetensors(folder.path("in.safetensors"), {{{"tokens", tokens()}}, {}});
  const ProgramResult result = run_program({"moe", folder.path("in.safetensors"), "--out", folder.path()});
  EXPECT_NE(one_line(result, 1).find("it is a folder; name a file in it"), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(MoeVerb, SaysWhatMemoryItLacks) {
  if (char mode = 0; std::ifstream("/proc/sys/vm/overcommit_memory") >> mode && mode == '1')
    GTEST_SKIP() << "this system gives memory that it does not have";
  const auto complaint = [](const std::vector<int64_t>& sizes, const std::string& experts) {
    const Trial probe = run_moe({{"tokens", at::ones(sizes)}},
                                with_settings({"moe.hidden=1048576", "moe.experts=" + experts, "router.k=1"}));
    return one_line(probe.result, 1);
  };
  const std::string parameters = complaint({3, 64}, "65536"), hidden_layer = complaint({1 << 20, 1}, "1");
  EXPECT_NE(parameters.find("the parameter of shape [65536, 64, 1048576], 16384 GB, does not fit"), std::string::npos)
      << parameters;
  EXPECT_EQ(hidden_layer.rfind("error: not enough memory for 4194304 MB more", 0), 0u) << hidden_layer;
}

TEST(MoeVerb, DoesNotWriteOverWhatItReads) {
  const TemporaryFolder folder;
  const std::string file = folder.path("in.safetensors");
  write_safetensors(file, {example(), {}});
  const ProgramResult same = run_program({"moe", file, "--out", folder.path("./in.safetensors")});
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_NE(same.err.find("is also an input"), std::string::npos) << same.err;
  EXPECT_EQ(read_safetensors(file).tensors.size(), example().size());
  EXPECT_EQ(run_program({"moe", file, "--out", folder.path("no/such/folder/out.safetensors")}).exit_code, 1);
}

TEST(MoeVerb, EvaluationUsesNoNoiseAndImagesAreTokensInARow) {
  const Trial flat = run_layer(example(), {"--float64"});
  ASSERT_EQ(flat.result.exit_code, 0) << flat.result.err;
  expect_near(flat, "gates", matrix({0.657010, 0, 0, 0.342990, 0, 0.231475, 0.768525, 0, 0, 0.710950, 0.289050, 0}, 3),
              1e-6);
  NamedTensors images = example();
  images[0].second = tokens().view({1, 3, 3});
  images[2].second = images[2].second.view({1, 3, 3});
  const Trial shaped = run_layer(images, {"--float64"});
  ASSERT_EQ(shaped.result.exit_code, 0) << shaped.result.err;
  EXPECT_TRUE(at::equal(shaped.tensors.at("output").view({3, 3}), flat.tensors.at("output")));
}

// The published worked example of two levels with two groups for each token. The tokens are unit vectors, so that rows
// of logits are columns of weights; a group's gate is the softmax of the noisy logits 1.01 -.56 | -1.1 .62 | .82 0.
TEST(MoeVerb, WritesTheChoiceOfGroups) {
  const auto columns = [](const Rows& values) { return matrix(values, 3).t().contiguous(); };
  const auto raw = [&](const Rows& scale) { return (columns(scale).exp() - 1).log(); };  // softplus(raw) = scale
  const NamedTensors input{{"tokens", at::eye(3, at::kDouble)},
                           {"noise.group_noise", matrix({0.3, -0.4, -1.0, 0.2, 0.9, -0.6}, 3)},
                           {"noise", matrix({-0.5, 0.2, 0.4, -0.3, 0.1, 0.3, -0.9, 1.0, 1.2, -0.8, 0.2, 0.6}, 3)},
                           {"router.group_weight", columns({0.8, -0.2, -0.5, 0.4, 0.1, 0.3})},
                           {"router.group_noise_weight", raw({0.7, 0.9, 0.6, 1.1, 0.8, 0.5})},
                           {"router.weight", columns({0.5, 0.1, 0.2, -0.1, -0.4, 0.6, 0.7, 0.3, -0.3, 0.2, -0.6, 0.4})},
                           {"router.noise_weight", raw({0.6, 0.8, 0.5, 0.5, 0.9, 0.5, 0.8, 0.6, 0.7, 0.4, 1.0, 0.7})}};
  const Trial probe = run_layer(input, {"--float64", "--mode", "train", "--set", "router.name=hierarchical", "--set",
                                        "router.groups=2", "--set", "router.k_groups=2", "--set", "router.k=1"});
  ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
  EXPECT_TRUE(at::equal(probe.tensors.at("groups.token"), at::tensor({0, 0, 1, 1, 2, 2}, at::kLong)));
  EXPECT_TRUE(at::equal(probe.tensors.at("groups.expert"), at::tensor({0, 1, 1, 0, 0, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(probe.tensors.at("groups.chosen_count"), at::tensor({3, 3}, at::kLong)));
  expect_near(probe, "groups.noisy_logits", matrix({1.01, -0.56, -1.1, 0.62, 0.82, 0}, 3), 1e-12);
  expect_near(probe, "groups.gate",
              at::tensor({0.827784, 0.172216, 0.848129, 0.151871, 0.694236, 0.305764}, at::kDouble), 1e-6);
  expect_near(probe, "groups.scores", matrix({0.827784, 0.172216, 0.151871, 0.848129, 0.694236, 0.305764}, 3), 1e-6);
  EXPECT_TRUE(at::equal(probe.tensors.at("expert"), at::tensor({1, 2, 3, 1, 0, 3}, at::kLong)));
}

TEST(MoeVerb, TheSameSeedGivesTheSameFile) {
  const NamedTensors only_tokens{{"tokens", tokens()}};
  const Trial first = run_layer(only_tokens, {"--seed", "5", "--mode", "train"});
  const Trial again = run_layer(only_tokens, {"--seed", "5", "--mode", "train"});
  const Trial other = run_layer(only_tokens, {"--seed", "6", "--mode", "train"});
  ASSERT_EQ(first.result.exit_code, 0) << first.result.err;
  EXPECT_NE(first.result.err.find("sampled from the seed: experts.w1"), std::string::npos) << first.result.err;
  EXPECT_TRUE(at::equal(first.tensors.at("output"), again.tensors.at("output")));
  EXPECT_FALSE(at::equal(first.tensors.at("output"), other.tensors.at("output")));
}

TEST(MoeVerb, BadInputIsOneClearLine) {
  const auto complaint = [](const NamedTensors& input, int exit_code, const std::vector<std::string>& more = {}) {
    return one_line(run_layer(input, more).result, exit_code);
  };
  const auto with = [](const std::string& name, const at::Tensor& tensor) {
    NamedTensors input;
    for (const auto& [key, value] : example())
      if (key != name) input.emplace_back(key, value);
    input.emplace_back(name, tensor);
    return input;
  };
  const auto says = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(complaint({{"grad", tokens()}}, 1), "no tensor \"tokens\"");
  says(complaint(with("tokens", at::ones({3})), 1), "[N,D] or [B,S,D]");
  says(complaint(with("tokens", tokens() / 0), 1), "NaN or infinite");
  says(complaint(with("tokens", tokens() * 1e50), 1), "beyond the range of fp32; use --float64");
  EXPECT_EQ(run_layer(with("tokens", tokens() * 1e50), {"--float64"}).result.exit_code, 0);
  for (const std::string name : {"router.weight", "noise", "grad"}) {
    const at::Tensor huge = at::full({name == "router.weight" ? 4 : 3, name == "noise" ? 4 : 3}, 1e50, at::kDouble);
    says(complaint(with(name, huge), 1, {"--mode", "train"}), "beyond the range of fp32");
  }
  says(complaint(with("noise.noise", noise()), 1), "\"noise\" and \"noise.noise\" mean the same samples");
  says(run_layer(example(), {"--mode", "eval"}).result.err, "tensor \"noise\" is not used in --mode eval");
  for (const std::string seed : {"9223372036854775808", "99999999999999999999", "-1", "1.5", ""})
    says(complaint(example(), 2, {"--seed", seed}), "run.seed must be");
  EXPECT_EQ(run_layer(example(), {"--seed", "9223372036854775807"}).result.exit_code, 0);
  says(complaint(with("grad", at::ones({2, 3})), 1), "\"grad\" has the shape [2, 3], expected [3, 3]");
  says(complaint(with("noise", at::ones({3, 5})), 1, {"--mode", "train"}), "expected [3, 4]");
  says(complaint(with("router.weight", at::ones({5, 3})), 1),
       "\"router.weight\" has the shape [5, 3], expected [4, 3]");
  says(complaint(with("router.wieght", at::ones({4, 3})), 1), "no weight \"router.wieght\"");
  says(complaint(with("tolkens", tokens()), 1), "\"tolkens\" is unknown");
  says(complaint(with("noise.niose", noise()), 1, {"--mode", "train"}), "makes no samples \"niose\" (it makes: noise)");
  says(complaint(with("tokens", tokens().to(at::kFloat8_e4m3fn)), 1), "floating-point type of 16, 32 or 64 bits");
  says(complaint(with("router.weight", at::ones({4, 3}, at::kLong)), 1), "\"router.weight\" is of type Long");
  says(complaint(with("valid", at::ones({3})), 1), "\"valid\" is of type Float; it must have an integer type");
  says(complaint(with("target", at::ones({1, 4})), 1), "rows sum to 1");
  says(complaint(example(), 2, {"--set", "router.k=9"}), "experts");
  EXPECT_EQ(run_program({"moe", "no/such/file.safetensors"}).exit_code, 1);
  EXPECT_EQ(run_program({"moe"}).exit_code, 2);
}

}  // namespace sparsight::testing::moe_test
