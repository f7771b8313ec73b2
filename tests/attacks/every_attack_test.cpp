// Every registered attack, by name, on a small network: constraints, reproducibility, independence of the batch,
// epsilon 0.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/register_attacks.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::every_attack_test {
namespace {

at::Tensor random_network(const at::Tensor& x) {
  static const at::Tensor first = test::random_tensor({12, 50}, 3), second = test::random_tensor({5, 12}, 4);
  const at::Tensor f = first.to(x.scalar_type()), s = second.to(x.scalar_type());
  return (x.flatten(1) - 0.5).matmul(f.t()).sin().matmul(s.t());
}

AttackBatch random_images(int64_t count, at::ScalarType type = torch::kDouble) {
  const at::Tensor x = (0.5 + 0.3 * test::random_tensor({count, 2, 5, 5}, 8)).clamp(0, 1).to(type);
  at::Tensor labels = random_network(x).argmax(1);
  for (int64_t i = 0; i < count; i += 6) labels[i] = (labels[i] + 1) % 5;
  return {x, {labels}, torch::arange(count, torch::kLong) + 7};
}

std::shared_ptr<Attack> make_short(const std::string& name, const AttackContext& context) {
  Json settings = Json::object();
  attacks().get(name).describe([&](const OptionSet& set) {
    if (set.find("steps")) settings["steps"] = 8;
    if (set.find("queries")) settings["queries"] = 30;
    if (set.find("restarts")) settings["restarts"] = 2;
    if (name == "cascade") settings["version"] = "rand";
  });
  return attacks().make(name, settings, "attack", context);
}

// `count` images, or few where an attack takes long.
int64_t affordable(const std::string& name, int64_t count) { return name == "cascade" ? count / 3 : count; }

constexpr Norm kNorms[] = {Norm::linf, Norm::l2, Norm::l1};

// An attack that does not take a norm says so. Returns whether it does not.
bool is_refused(const Attack& attack) {
  const Norm norm = attack.context().threat.norm;
  if (attack.takes_norm(norm)) return false;
  AttackedFunction model(random_network);
  EXPECT_NE(
      testing::error_text([&] { attack.run(model, random_images(2)); }).find("does not take the norm " + to_text(norm)),
      std::string::npos);
  EXPECT_EQ(norm, Norm::l1);
  return true;
}

}  // namespace

class EveryAttack : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryAttack, A25_StaysWithinItsThreatAndFoolsSomeImages) {
  for (const auto type : {torch::kFloat, torch::kDouble})
    for (const Norm norm : kNorms) {
      const AttackBatch batch = random_images(affordable(GetParam(), 30), type);
      const ThreatModel threat{norm, norm == Norm::linf ? 8.0 / 255 : norm == Norm::l2 ? 0.3 : 2.2, {}};
      const auto attack = make_short(GetParam(), {threat, 1});
      if (is_refused(*attack)) continue;
      AttackedFunction model(random_network);
      const AttackResult result = attack->run(model, batch);
      EXPECT_EQ(result.distance.defined(), attack->measures_distances());
      check_perturbation(result.pixels, batch.pixels, threat, true);
      if (norm != Norm::linf) {
        EXPECT_LE(largest_perturbation(result.pixels, batch.pixels, norm), threat.epsilon);
      }
      const at::Tensor clean = classified_correctly(random_network(batch.pixels), batch.labels.label);
      const at::Tensor after = classified_correctly(random_network(result.pixels), batch.labels.label);
      EXPECT_TRUE(torch::equal(result.correct, after));
      EXPECT_LT((clean & after).sum().item<int64_t>(), clean.sum().item<int64_t>());
      EXPECT_TRUE(GetParam() == "fgsm" || !(after & ~clean).any().item<bool>());
    }
}

// Each image also has the class that the network finds second, so that fooling it takes more.
TEST_P(EveryAttack, A34_TakesSeveralLabelsOrRefusesThem) {
  AttackBatch batch = random_images(30, torch::kDouble);
  const at::Tensor ranks = random_network(batch.pixels).argsort(1, /*descending=*/true);
  batch.labels.label = torch::zeros({30, 5}, torch::kBool).scatter_(1, ranks.narrow(1, 0, 2), true);
  const auto attack = make_short(GetParam(), {{Norm::linf, 24.0 / 255, {}}, 1});
  AttackedFunction model(random_network);
  if (!attack->takes_several_labels()) {
    EXPECT_NE(testing::error_text([&] { attack->run(model, batch); }).find("one label per image"), std::string::npos);
    return;
  }
  const AttackResult result = attack->run(model, batch);
  const at::Tensor after = classified_correctly(random_network(result.pixels), batch.labels.label);
  EXPECT_TRUE(torch::equal(result.correct, after));
  EXPECT_LT(after.sum().item<int64_t>(), 30);  // all 30 are correct as they are
}

TEST_P(EveryAttack, A25_FollowsFromItsSeed) {
  const AttackBatch batch = random_images(affordable(GetParam(), 12));
  const auto found = [&](uint64_t seed) {
    AttackedFunction model(random_network);
    return make_short(GetParam(), {{Norm::linf, .03, {}}, seed})->run(model, batch).pixels;
  };
  const at::Tensor first = found(1);
  EXPECT_TRUE(torch::equal(found(1), first));
  // FAB's first run starts at the image. The cascade's long runs end in the same corners of the ball from any start.
  const bool random = GetParam() == "apgd" || GetParam() == "apgd_t" || GetParam() == "square" || GetParam() == "pgd";
  EXPECT_TRUE(!random || !torch::equal(found(2), first));
}

TEST_P(EveryAttack, A25_TreatsAnImageAloneAsInABatch) {
  for (const Norm norm : kNorms) {
    const int64_t count = affordable(GetParam(), 9);
    const AttackBatch batch = random_images(count);
    AttackedFunction model(random_network);
    const auto attack = make_short(GetParam(), {{norm, norm == Norm::linf ? .02 : norm == Norm::l2 ? .1 : .5, {}}, 1});
    if (is_refused(*attack)) continue;
    const at::Tensor together = attack->run(model, batch).pixels;
    for (int64_t i = 0; i < count; ++i) {
      const at::Tensor one = torch::tensor({i}, torch::kLong);
      EXPECT_TRUE(test::near(attack->run(model, batch.select(one)).pixels, together.narrow(0, i, 1), 1e-9)) << i;
    }
    const at::Tensor order = torch::tensor({count - 1, count / 3, int64_t{0}}, torch::kLong);
    EXPECT_TRUE(test::near(attack->run(model, batch.select(order)).pixels, together.index_select(0, order), 1e-9));
  }
}

TEST_P(EveryAttack, A26_EpsilonZeroReturnsTheImages) {
  for (const auto type : {torch::kFloat, torch::kDouble})
    for (const Norm norm : kNorms) {
      const AttackBatch batch = random_images(affordable(GetParam(), 7), type);
      AttackedFunction model(random_network);
      const auto attack = make_short(GetParam(), {{norm, 0, {}}, 1});
      if (is_refused(*attack)) continue;
      const AttackResult result = attack->run(model, batch);
      EXPECT_TRUE(torch::equal(result.pixels, batch.pixels));
    }
}

TEST_P(EveryAttack, TakesNoImages) {
  const AttackBatch none = random_images(6).select(torch::arange(0, torch::kLong));
  AttackedFunction model(random_network);
  const AttackResult result = make_short(GetParam(), {{Norm::linf, .1, {}}, 1})->run(model, none);
  EXPECT_EQ(result.pixels.sizes(), none.pixels.sizes());
  EXPECT_EQ(result.correct.size(0), 0);
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryAttack, ::testing::ValuesIn(attacks().names()));

}  // namespace sparsight::every_attack_test
