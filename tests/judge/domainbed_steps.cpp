// Takes steps of an algorithm of domain generalisation on random images, and writes down what another implementation
// needs to take the same ones: the weights at the start, the images, the random numbers in the order in which DomainBed
// asks for them, and what came of each step. domainbed_steps_test.py reads the file.
//
//   sparsight_domainbed_steps list
//   sparsight_domainbed_steps hparams irm '{"algorithm.anneal": 3}'
//   sparsight_domainbed_steps irm '{"algorithm.anneal": 3}' 6 steps.safetensors
//
// Tensors: start/model/NAME, start/state/NAME, batch/STEP/DOMAIN/images and labels, draws/STEP/NUMBER/FUNCTION,
// after/STEP/model/NAME, after/STEP/state/NAME, probe/images, probe/start and probe/end. Metadata: hparams, by
// DomainBed's names, and losses, one object per step.
#include <exception>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/tensor.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/shuffle.h"
#include "sparsight/data/transforms/batch_transform.h"
#include "sparsight/dg/algorithms/dann.h"
#include "sparsight/dg/algorithms/domain_mixup.h"
#include "sparsight/dg/algorithms/register_domain_algorithms.h"
#include "sparsight/dg/algorithms/selfreg.h"
#include "sparsight/dg/hyperparameters.h"
#include "sparsight/ops/random_fill.h"
#include "tests/dg/algorithms/hand_case.h"

namespace sparsight {
namespace {

constexpr int64_t kDomains = 3, kImages = 8, kChannels = 2, kSide = 8, kClasses = 3;
constexpr int64_t kFeatures = 128;  // of DomainBed's CNN
constexpr const char* kDataset = "rotated_mnist";
constexpr uint64_t kSeed = 5;  // of the steps' random streams

// Images of every class in each domain; the domains differ in contrast.
std::vector<Batch> random_domains(uint64_t step) {
  std::vector<Batch> domains;
  for (int64_t e = 0; e < kDomains; ++e) {
    const RandomStream stream(static_cast<uint64_t>(e), "domainbed_steps.images", step);
    Batch batch;
    batch.images =
        uniform_like(at::empty({0}), {kImages, kChannels, kSide, kSide}, stream) * (1 + 0.5 * static_cast<double>(e));
    batch.labels = at::arange(kImages).add(e).remainder(kClasses);
    batch.domains = at::full({kImages}, e, at::kLong);
    domains.push_back(batch);
  }
  return domains;
}

// How both implementations are set up. given: values by our keys, "algorithm.lambda" or "optimizer.lr"; the others are
// the defaults for small images. What DomainBed calls them is what the algorithm declares. "start.bn3.weight": 0.1
// makes all entries of that weight 0.1 at the start.
struct Setup {
  Json settings = Json::object(), hparams = Json::object();
  std::vector<std::string> config{"model.name=mnist_cnn", "moe.blocks=[]", "train.no_decay=[]", "optimizer.name=adam"};
  std::map<std::string, double> start;

  Setup(const std::string& algorithm, const Json& given) {
    Json values = given;
    for (const Hyperparameter& parameter : all_hyperparameters(algorithm, kDataset, 0, 0)) {
      const bool is_given = !parameter.key.empty() && given.contains(parameter.key);
      const Json value = is_given ? given.at(parameter.key) : parameter.value;
      hparams[parameter.name] = value;
      if (!parameter.key.empty()) values[parameter.key] = value;
    }
    const std::string own = "algorithm.", of_optimizer = "optimizer.", of_start = "start.";
    for (const auto& [key, value] : values.items()) {
      if (key.starts_with(own)) settings[key.substr(own.size())] = value;
      if (key.starts_with(of_start)) start[key.substr(of_start.size())] = value.get<double>();
      if (key.starts_with(of_optimizer)) config.push_back(cat(key, "=", value.dump()));
    }
  }
};

// The random numbers of one step, for DomainBed's calls of numpy and torch.
struct StepDraws {
  NamedTensors& out;
  uint64_t step;
  StepRandom random;
  const std::vector<Batch>& domains;
  const Json& settings;
  int64_t count = 0;

  // function: "randperm", "rand", "normal_" of torch, "beta", "randint" of numpy
  void add(const char* function, const at::Tensor& value) {
    out.emplace_back(cat("draws/", step, "/", count++, "/", function), value);
  }
};

at::Tensor random_order(int64_t count, RandomStream random) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  shuffle(order, random);
  return at::tensor(order);
}

void draw_mixup(StepDraws& draws) {
  const std::vector<MixedPair> pairs =
      random_pairs(draws.domains, draws.settings.at("alpha").get<double>(), draws.random);
  std::vector<int64_t> order;
  for (const MixedPair& pair : pairs) order.push_back(pair.of.a.domains[0].item<int64_t>());
  draws.add("randperm", at::tensor(order));
  for (const MixedPair& pair : pairs) draws.add("beta", at::scalar_tensor(pair.lambda, at::kDouble));
}

void draw_mldg(StepDraws& draws) { draws.add("randperm", random_order(kDomains, draws.random.stream("mldg.order"))); }

void draw_caus_irl(StepDraws& draws) {
  RandomStream random = draws.random.stream("caus_irl.position");
  for (int64_t e = 0; e < kDomains; ++e) draws.add("randint", at::scalar_tensor(random.below(kImages), at::kLong));
}

// DomainBed draws alpha for contents too, without use: NaN would show in the results.
void draw_sagnet(StepDraws& draws) {
  constexpr int64_t kAll = kDomains * kImages;
  draws.add("rand", uniform_like(at::empty({0}), {kAll, 1}, draws.random.stream("sagnet.alpha")));
  draws.add("randperm", random_order(kAll, draws.random.stream("sagnet.style_of")));
  for (const char* stream : {"sagnet.content_of", "sagnet.adversary_content_of"}) {
    draws.add("rand", at::full({kAll, 1}, std::numeric_limits<double>::quiet_NaN(), at::kFloat));
    draws.add("randperm", random_order(kAll, draws.random.stream(stream)));
  }
}

// Orders are within the classes.
void draw_selfreg(StepDraws& draws) {
  RandomStream of_lambda = draws.random.stream("selfreg.lambda");
  draws.add("beta", at::scalar_tensor(sample_beta(SelfRegOptions{}.alpha, of_lambda), at::kDouble));
  const at::Tensor labels = join_batches(draws.domains).labels;
  const at::Tensor partners[] = {same_class_partners(labels, draws.random.stream("selfreg.1")),
                                 same_class_partners(labels, draws.random.stream("selfreg.2"))};
  for (int64_t c = 0; c < kClasses; ++c) {
    const at::Tensor own = at::nonzero(labels.eq(c)).squeeze(1);
    for (const at::Tensor& partner : partners)
      draws.add("randperm", at::searchsorted(own, partner.index_select(0, own)));
  }
}

void draw_mtl(StepDraws& draws) {
  for (int64_t e = 0; e < kDomains; ++e)
    draws.add("normal_", normal_like(at::empty({0}), {kImages, kFeatures}, draws.random.stream(cat("mtl.noise.", e))));
}

// The pairs of its remix, which has the weight 0 here.
void draw_adrmx(StepDraws& draws) {
  if (discriminator_turn(static_cast<int64_t>(draws.step) + 1, draws.settings.at("d_steps").get<int64_t>())) return;
  const at::Tensor labels = join_batches(draws.domains).labels;
  for (int64_t c = 0; c < kClasses; ++c) draws.add("randperm", at::arange(labels.eq(c).sum().item<int64_t>()));
}

const std::map<std::string, std::function<void(StepDraws&)>>& draws_of_algorithms() {
  static const std::map<std::string, std::function<void(StepDraws&)>> draws{{"domain_mixup", draw_mixup},
                                                                            {"mldg", draw_mldg},
                                                                            {"caus_irl_coral", draw_caus_irl},
                                                                            {"caus_irl_mmd", draw_caus_irl},
                                                                            {"sagnet", draw_sagnet},
                                                                            {"selfreg", draw_selfreg},
                                                                            {"mtl", draw_mtl},
                                                                            {"adrmx", draw_adrmx}};
  return draws;
}

void add_copies(NamedTensors& out, const std::string& prefix, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) out.emplace_back(prefix + name, tensor.detach().clone());
}

// Without the state of optimisers.
void add_state(NamedTensors& out, const std::string& prefix, const Algorithm& algorithm) {
  NamedTensors kept;
  const AlgorithmState state = algorithm.state();
  for (const auto& [name, tensor] : state.tensors)
    if (name.find("optimizer/") == std::string::npos) kept.emplace_back(name, tensor);
  add_copies(out, prefix, kept);
}

test::DomainCase new_case(const Setup& setup) {
  test::DomainCase made = test::domain_case(setup.config, {kChannels, kSide, kSide, kClasses});
  const at::NoGradGuard no_grad;
  for (const auto& [name, value] : setup.start) test::find_weight(*made.model, name).fill_(value);
  return made;
}

Json take_step(Algorithm& algorithm, const std::vector<Batch>& domains, uint64_t step, double lr_factor) {
  Minibatches minibatches(domains);
  UpdateContext context;
  context.random = {kSeed, step};
  context.lr_factor = lr_factor;
  const UpdateResult result = algorithm.update(minibatches, context);
  if (!result.not_finite.empty()) fail("step ", step, ": not finite: ", result.not_finite);
  return test::mean_metrics(result);
}

at::Tensor logits(ImageModel& model, const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  return model.forward({.images = images}).logits;
}

void record_inputs(NamedTensors& out, const std::vector<Batch>& domains, uint64_t step) {
  for (size_t e = 0; e < domains.size(); ++e) {
    out.emplace_back(cat("batch/", step, "/", e, "/images"), domains[e].images);
    out.emplace_back(cat("batch/", step, "/", e, "/labels"), domains[e].labels);
  }
}

// Some networks are made in the first step. A step of another copy, at a learning rate of 0, shows their first weights;
// it is a late one, so that those of a second phase are there too.
void record_start(NamedTensors& out, const std::string& name, const Setup& setup, uint64_t steps) {
  const test::DomainCase copy = new_case(setup);
  const auto algorithm = test::make_algorithm(copy, name, setup.settings);
  take_step(*algorithm, random_domains(steps), steps, /*lr_factor=*/0);
  add_copies(out, "start/model/", named_weights(*copy.model));
  add_state(out, "start/state/", *algorithm);
}

TensorFile record(const std::string& name, const Setup& setup, uint64_t steps) {
  TensorFile file;
  NamedTensors& out = file.tensors;
  record_start(out, name, setup, steps);
  const test::DomainCase made = new_case(setup);
  const auto algorithm = test::make_algorithm(made, name, setup.settings);
  const at::Tensor probe = random_domains(steps + 1)[0].images;
  out.emplace_back("probe/images", probe);
  out.emplace_back("probe/start", logits(*made.model, probe));
  Json losses = Json::array();
  for (uint64_t step = 0; step < steps; ++step) {
    const std::vector<Batch> domains = random_domains(step);
    record_inputs(out, domains, step);
    StepDraws draws{out, step, {kSeed, step}, domains, setup.settings};
    if (const auto found = draws_of_algorithms().find(name); found != draws_of_algorithms().end()) found->second(draws);
    losses.push_back(take_step(*algorithm, domains, step, /*lr_factor=*/1));
    add_copies(out, cat("after/", step, "/model/"), named_weights(*made.model));
    add_state(out, cat("after/", step, "/state/"), *algorithm);
  }
  out.emplace_back("probe/end", logits(*made.model, probe));
  file.metadata = {{"hparams", setup.hparams.dump()}, {"losses", losses.dump()}};
  return file;
}

void list_algorithms() {
  Json titles = Json::object();
  for (const std::string& name : algorithms().names()) titles[name] = algorithms().title(name);
  std::cout << titles.dump(2) << "\n";
}

int run(const std::vector<std::string>& arguments) {
  register_domain_algorithms(algorithms());
  if (arguments == std::vector<std::string>{"list"}) {
    list_algorithms();
    return 0;
  }
  if (arguments.size() == 3 && arguments[0] == "hparams") {
    std::cout << Setup(arguments[1], Json::parse(arguments[2])).hparams.dump() << "\n";
    return 0;
  }
  if (arguments.size() != 4) fail("arguments: list, hparams ALGORITHM SETTINGS, or ALGORITHM SETTINGS STEPS FILE");
  const Setup setup(arguments[0], Json::parse(arguments[1]));
  write_safetensors(arguments[3], record(arguments[0], setup, std::stoull(arguments[2])));
  return 0;
}

}  // namespace
}  // namespace sparsight

int main(int argc, char** argv) {
  try {
    return sparsight::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
