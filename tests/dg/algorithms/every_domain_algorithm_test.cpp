// Every algorithm of domain generalisation, by name, on DomainBed's CNN, a residual network and a GMoE: two steps on
// three random domains, then a copy that was saved and loaded takes the next two with the same bits.
#include <algorithm>
#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/dg/algorithms/domain_batches.h"
#include "sparsight/dg/algorithms/register_domain_algorithms.h"
#include "sparsight/dg/dg_models.h"
#include "sparsight/ops/random_fill.h"
#include "tests/dg/algorithms/hand_case.h"
#include "tests/support/errors.h"

namespace sparsight::every_domain_algorithm_test {
namespace {

using test::DomainCase;

constexpr int64_t kImages = 4, kSide = 16, kClasses = 3;
constexpr int64_t kSmallSide = 8;  // of DomainBed's CNN, whose widths are fixed

int64_t image_side(const std::string& model) { return model == "mnist_cnn" ? kSmallSide : kSide; }

DomainCase model_case(const std::string& model) {
  std::vector<std::string> settings{"optimizer.name=adam", "optimizer.lr=0.001"};
  if (model == "mnist_cnn")
    settings.insert(settings.end(), {"model.name=mnist_cnn", "moe.blocks=[]"});
  else if (model == "cnn")
    settings.insert(settings.end(), {"model.name=cnn", "model.widths=[8,16]", "moe.blocks=[]"});
  else if (model == "resnet")
    settings.insert(settings.end(), {"model.name=resnet", "model.base_width=8", "model.stem=cifar", "moe.blocks=[]"});
  else {  // GMoE, smaller: a cosine router that chooses one expert, with noise, and the two losses
    const auto& models = dg_models();
    const auto gmoe = std::ranges::find(models, "gmoe", &DgModel::name);
    settings.insert(settings.end(), gmoe->settings.begin(), gmoe->settings.end());
    settings.insert(settings.end(), {"model.size=custom", "model.width=16", "model.depth=2", "model.heads=2",
                                     "model.patch=8", "moe.blocks=[-1]", "moe.experts=3", "router.width=8"});
  }
  return test::domain_case(settings, {2, image_side(model), image_side(model), kClasses});
}

std::vector<Batch> random_domains(uint64_t step, int64_t side = kSide) {
  std::vector<Batch> domains;
  for (int64_t e = 0; e < 3; ++e) {
    Batch batch;
    const RandomStream stream(static_cast<uint64_t>(e), "test.domain", step);
    batch.images = uniform_like(at::empty({0}), {kImages, 2, side, side}, stream);
    batch.labels = at::arange(kImages).add(e).remainder(kClasses);
    batch.domains = at::full({kImages}, e, at::kLong);
    domains.push_back(batch);
  }
  return domains;
}

AlgorithmRegistry& domain_algorithms() {
  static AlgorithmRegistry registry = [] {
    AlgorithmRegistry list("algorithm");
    register_domain_algorithms(list);
    return list;
  }();
  return registry;
}

// Settings with which everything of the algorithm happens within four steps.
Json small_settings(const std::string& name) {
  Json settings = Json::object();
  domain_algorithms().get(name).describe([&](const OptionSet& set) {
    for (const char* key : {"anneal", "ib_anneal", "burn_in", "start", "linear_steps", "sma_start"})
      if (set.find(key)) settings[key] = 1;
    if (set.find("grad_penalty")) settings["grad_penalty"] = 0.1;
  });
  if (name == "sand_mask") settings["tau"] = 0.2;  // with the default of DomainBed, 1, every mask is 0
  return settings;
}

NamedTensors copied(const NamedTensors& tensors) {
  NamedTensors copy;
  for (const auto& [name, tensor] : tensors) copy.emplace_back(name, tensor.detach().clone());
  return copy;
}

bool same(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].first != b[i].first || !at::equal(a[i].second, b[i].second)) return false;
  return true;
}

void train(Algorithm& algorithm, uint64_t first, uint64_t steps, int64_t side) {
  for (uint64_t step = first; step < first + steps; ++step) {
    const UpdateResult result = test::update(algorithm, random_domains(step, side), step);
    EXPECT_EQ(result.not_finite, "") << "step " << step;
    const Json means = test::mean_metrics(result);
    for (const auto& [name, value] : means.items())
      EXPECT_TRUE(!value.is_number() || std::isfinite(value.get<double>())) << name;
    if (step % 2 == 1) algorithm.validated(1 + 0.1 * static_cast<double>(step));
  }
}

void check(const std::string& name, const std::string& model) {
  const DomainCase made = model_case(model), other = model_case(model);
  const auto algorithm = domain_algorithms().make(name, small_settings(name), "algorithm", made.context);
  const NamedTensors start = copied(named_weights(*made.model));
  const int64_t side = image_side(model);
  train(*algorithm, 0, 2, side);
  EXPECT_FALSE(same(named_weights(*made.model), start)) << "no weight has changed";
  // As a checkpoint keeps it.
  const AlgorithmState kept = algorithm->state();
  const AlgorithmState saved{copied(kept.tensors), Json::parse(kept.values.dump())};
  {
    const at::NoGradGuard no_grad;
    for (const auto& [weight, value] : named_weights(*other.model)) value.zero_();
  }
  const auto resumed = domain_algorithms().make(name, small_settings(name), "algorithm", other.context);
  LoadOptions strict;
  strict.strict = true;
  load_weights(*other.model, copied(named_weights(*made.model)), strict);
  resumed->load_state(saved);
  train(*algorithm, 2, 2, side);
  train(*resumed, 2, 2, side);
  EXPECT_TRUE(same(named_weights(*other.model), named_weights(*made.model)));
  EXPECT_TRUE(same(resumed->state().tensors, algorithm->state().tensors));
  EXPECT_EQ(resumed->state().values, algorithm->state().values);
  const ModelInput images{.images = random_domains(9, side)[0].images};
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(resumed->predict(images).logits, algorithm->predict(images).logits));
}

}  // namespace

class EveryDomainAlgorithm : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryDomainAlgorithm, G24_TrainsAndResumesWithTheSameBits) {
  for (const std::string& name : domain_algorithms().names()) {
    SCOPED_TRACE(name);
    EXPECT_NO_THROW(check(name, GetParam()));
  }
}
INSTANTIATE_TEST_SUITE_P(Models, EveryDomainAlgorithm, ::testing::Values("mnist_cnn", "resnet", "gmoe"),
                         [](const auto& info) { return info.param; });

// Those of section 4 of the specification, under our names; ERM is train/erm.h.
TEST(DomainAlgorithms, G24_AllOfThePaperAndDomainBedAreThere) {
  const std::vector<std::string> names = domain_algorithms().names();
  for (const char* name :
       {"irm",    "vrex",   "group_dro", "domain_mixup", "mldg", "coral",    "mmd",       "dann", "cdann",
        "mtl",    "sagnet", "arm",       "rsc",          "sd",   "and_mask", "sand_mask", "iga",  "selfreg",
        "ib_erm", "ib_irm", "fish",      "fishr",        "swad", "miro",     "erm_sma"})
    EXPECT_EQ(std::ranges::count(names, name), 1) << name;
}

TEST(DomainAlgorithms, NeedABatchOfEachDomain) {
  DomainCase made = model_case("cnn");
  made.context.config["loader"]["per_domain"] = false;
  for (const std::string& name : domain_algorithms().names())
    EXPECT_NE(testing::error_text<UsageError>([&] {
                domain_algorithms().make(name, Json::object(), "algorithm", made.context);
              }).find("set loader.per_domain = true"),
              std::string::npos)
        << name;
}

// As the algorithms declare it.
TEST(DomainAlgorithms, ASingleDomainIsRefusedOrTrainedOn) {
  for (const std::string& name : domain_algorithms().names()) {
    SCOPED_TRACE(name);
    DomainCase made = model_case("cnn");
    made.context.data.domains = {"only"};
    const auto make = [&] { return domain_algorithms().make(name, small_settings(name), "algorithm", made.context); };
    if (domain_algorithms().facts(name).domains > 1) {
      EXPECT_NE(testing::error_text<UsageError>(make).find("needs at least 2 training domains, the data set has 1"),
                std::string::npos);
      continue;
    }
    const auto algorithm = make();
    for (uint64_t step = 0; step < 3; ++step)
      EXPECT_EQ(test::update(*algorithm, {random_domains(step)[0]}, step).not_finite, "");
  }
  // Nor where the data have more, but a step sees one.
  const auto cad = domain_algorithms().make("cad", Json::object(), "algorithm", model_case("cnn").context);
  EXPECT_NE(
      testing::error_text([&] { test::update(*cad, {random_domains(0)[0]}); }).find("at least 2 training domains"),
      std::string::npos);
}

TEST(DomainAlgorithms, MixedBatchesAreRefused) {
  const auto irm = domain_algorithms().make("irm", Json::object(), "algorithm", model_case("cnn").context);
  std::vector<Batch> domains = random_domains(0);
  domains[0].domains[1] = 2;
  EXPECT_NE(testing::error_text([&] { test::update(*irm, domains); }).find("images of several domains"),
            std::string::npos);
}

TEST(DomainAlgorithms, BatchesOfTheSameDomainAreJoined) {
  const auto irm = domain_algorithms().make("irm", Json::object(), "algorithm", model_case("cnn").context);
  std::vector<Batch> twice = random_domains(0);
  for (const Batch& batch : random_domains(1)) twice.push_back(batch);
  Minibatches minibatches(twice);
  const std::vector<Batch> joined = batches_by_domain(minibatches, 1);
  ASSERT_EQ(joined.size(), 3u);
  for (size_t e = 0; e < 3; ++e) {
    EXPECT_EQ(joined[e].labels.size(0), 2 * kImages);
    EXPECT_TRUE(at::equal(joined[e].images.narrow(0, kImages, kImages), twice[3 + e].images));
  }
}

}  // namespace sparsight::every_domain_algorithm_test
