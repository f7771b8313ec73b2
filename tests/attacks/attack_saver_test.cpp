// Attacks that are killed and go on where they were, to the bit and to the count.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/cascade.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/io/atomic_file.h"
#include "tests/attacks/routed_model.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::attack_saver_test {
namespace {

struct Killed {};

// Passes of another model, until it is killed.
class Mortal : public AttackedModel {
 public:
  explicit Mortal(AttackedModel& model, int64_t last = -1) : AttackedModel(model.range()), model_(model), last_(last) {}
  bool coupled() const override { return model_.coupled(); }
  int64_t passes = 0;

 protected:
  ModelOutput run(const at::Tensor& pixels, const AttackPass& pass) override {
    if (passes == last_) throw Killed();
    ++passes;
    return model_.forward(pixels, pass);
  }

 private:
  AttackedModel& model_;
  int64_t last_;
};

at::Tensor network(const at::Tensor& x) {
  static const at::Tensor first = test::random_tensor({12, 50}, 3), second = test::random_tensor({5, 12}, 4);
  return (x.flatten(1) - 0.5).matmul(first.t()).sin().matmul(second.t());
}

AttackBatch images_of_network(int64_t count) {
  const at::Tensor x = (0.5 + 0.3 * test::random_tensor({count, 2, 5, 5}, 8)).clamp(0, 1);
  return {x, {network(x).argmax(1)}, torch::arange(count, torch::kLong) + 7};
}

Json short_settings(const std::string& name) {
  Json settings = Json::object();
  attacks().get(name).describe([&](const OptionSet& set) {
    if (set.find("steps")) settings["steps"] = 8;
    if (set.find("queries")) settings["queries"] = 30;
    if (set.find("restarts")) settings["restarts"] = 2;
    if (set.find("passes")) settings["passes"] = 2;
    if (name == "cascade") settings["version"] = "rand", settings["batch_size"] = 3;
  });
  return settings;
}

// repeated: passes at most that a killed attack does again: those of the unsaved step, and those from which the loops
// start.
void expect_same_after_kill(AttackedModel& inner, const AttackBatch& batch, const std::string& name,
                            const Json& settings, double epsilon, int64_t repeated, int64_t kills = 7) {
  AttackContext context{{Norm::linf, epsilon, {}}, 1};
  Mortal whole(inner);
  const AttackResult expected = attacks().make(name, settings, "attack", context)->run(whole, batch);
  for (int64_t last = 1; last < whole.passes; last += std::max<int64_t>(1, whole.passes / kills)) {
    SCOPED_TRACE(cat(name, " killed after ", last, " of ", whole.passes, " passes"));
    const testing::TemporaryFolder folder;
    const std::string path = folder.path("pieces/state");
    Mortal killed(inner, last), resumed(inner);
    AttackSaver saver(path, killed, 0);
    context.saver = &saver;
    EXPECT_THROW(attacks().make(name, settings, "attack", context)->run(killed, batch), Killed);
    AttackSaver again(path, resumed, 0);
    context.saver = &again;
    const AttackResult found = attacks().make(name, settings, "attack", context)->run(resumed, batch);
    EXPECT_TRUE(torch::equal(found.pixels, expected.pixels));
    EXPECT_TRUE(torch::equal(found.correct, expected.correct));
    EXPECT_EQ(resumed.cost().queries, whole.cost().queries);
    EXPECT_EQ(resumed.cost().gradients, whole.cost().gradients);
    EXPECT_EQ(found.cost.queries, expected.cost.queries);
    EXPECT_LE(resumed.passes, whole.passes - last + repeated);
    again.remove();
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

}  // namespace

class KilledAttack : public ::testing::TestWithParam<std::string> {};

TEST_P(KilledAttack, GoesOnWithTheSameBitsAndCounts) {
  AttackedFunction model(network);
  const bool cascade = GetParam() == "cascade";  // whose steps are means of 20 passes
  expect_same_after_kill(model, images_of_network(cascade ? 5 : 12), GetParam(), short_settings(GetParam()), .03,
                         cascade ? 50 : 8, cascade ? 2 : 7);
}

INSTANTIATE_TEST_SUITE_P(Registered, KilledAttack, ::testing::ValuesIn(attacks().names()));

// The reference of these objectives is a pass of the clean images, which counts once.
TEST(AttackSaver, AttacksOnTheRoutingCountTheCleanPassOnce) {
  AttackedImageModel model(test::routed_vit(), {.mode = test::losses_mode()});
  const AttackBatch batch = test::routed_images(model, 4);
  for (const char* name : {"pgd", "apgd"})
    expect_same_after_kill(model, batch, name,
                           {{"steps", 5}, {"restarts", 2}, {"routing_loss", "kl"}, {"gradient", "experts"}}, .02, 8);
}

// Images that share capacity are attacked in whole batches.
TEST(AttackSaver, CoupledImagesStayTogether) {
  AttackedImageModel model(test::routed_vit({"capacity.eval_factor=0.5"}), {.mode = test::losses_mode()});
  const AttackBatch batch = test::routed_images(model, 6);
  ASSERT_TRUE(model.coupled());
  const std::vector<CascadeStage> stages{{"apgd-ce", "apgd", {{"steps", 4}}}, {"square", "square", {{"queries", 6}}}};
  AttackContext context{{Norm::linf, .02, {}}, 1};
  Mortal whole(model);
  const CascadeResult expected = run_stages(whole, batch, context, stages, 3);
  for (int64_t last = 1; last < whole.passes; last += 4) {
    const testing::TemporaryFolder folder;
    Mortal killed(model, last), resumed(model);
    AttackSaver saver(folder.path("state"), killed, 0);
    context.saver = &saver;
    EXPECT_THROW(run_stages(killed, batch, context, stages, 3), Killed);
    AttackSaver again(folder.path("state"), resumed, 0);
    context.saver = &again;
    const CascadeResult found = run_stages(resumed, batch, context, stages, 3);
    EXPECT_TRUE(torch::equal(found.pixels, expected.pixels)) << last;
    EXPECT_TRUE(torch::equal(found.stage, expected.stage)) << last;
    for (size_t i = 0; i < stages.size(); ++i) {
      EXPECT_EQ(found.stages[i].gained, expected.stages[i].gained) << last;
      EXPECT_EQ(found.stages[i].cost.queries, expected.stages[i].cost.queries) << last;
    }
  }
}

TEST(AttackSaver, SavesAsOftenAsAsked) {
  const testing::TemporaryFolder folder;
  AttackedFunction model(network);
  AttackSaver saver(folder.path("state"), model, 3600);
  const AttackContext context{{Norm::linf, .03, {}}, 1, {}, &saver};
  attacks().make("pgd", {{"steps", 3}}, "pgd", context)->run(model, images_of_network(3));
  EXPECT_FALSE(std::filesystem::exists(folder.path("state")));
}

TEST(AttackSaver, NamesADamagedFileAndOneOfAnotherAttack) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("state");
  AttackedFunction model(network);
  const AttackBatch batch = images_of_network(3);
  const auto attack = [&](const std::string& name) {
    AttackSaver saver(path, model, 0);
    const AttackContext context{{Norm::linf, .03, {}}, 1, {}, &saver};
    attacks().make(name, short_settings(name), name, context)->run(model, batch);
  };
  attack("pgd");
  const std::string other = testing::message_of([&] { attack("square"); });
  EXPECT_NE(other.find("is of another version of this program; remove that file and run"), std::string::npos) << other;
  write_file_atomically(path, read_file(path, 1 << 20).substr(0, 300));
  const std::string cut = testing::message_of([&] { attack("pgd"); });
  EXPECT_NE(cut.find("is damaged ("), std::string::npos) << cut;
  EXPECT_NE(cut.find("remove that file and run the same command again"), std::string::npos) << cut;
}

}  // namespace sparsight::attack_saver_test
