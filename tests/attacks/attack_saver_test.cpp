// Attacks that are killed and go on where they were, to the bit and to the count.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <limits>
#include <sstream>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/cascade.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/core/log.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/safetensors.h"
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
  const std::string other = testing::error_text([&] { attack("square"); });
  EXPECT_NE(other.find("is of another --batch, or of another version of this program; give"), std::string::npos)
      << other;
  write_file_atomically(path, read_file(path, 1 << 20).substr(0, 300));
  const std::string cut = testing::error_text([&] { attack("pgd"); });
  EXPECT_NE(cut.find("is damaged ("), std::string::npos) << cut;
  EXPECT_NE(cut.find("remove that file and run the same command again"), std::string::npos) << cut;
}

// A folder cannot be made below a file.
TEST(AttackSaver, AFailedSaveIsOneWarning) {
  const testing::TemporaryFolder folder;
  write_file_atomically(folder.path("file"), "");
  AttackedFunction model(network);
  const AttackBatch batch = images_of_network(3);
  AttackContext context{{Norm::linf, .03, {}}, 1};
  const AttackResult expected = attacks().make("pgd", {{"steps", 3}}, "pgd", context)->run(model, batch);
  AttackSaver saver(folder.path("file/state"), model, 0);
  context.saver = &saver;
  const LogSettings before = log_settings();
  std::ostringstream log;
  set_log({.stream = &log});
  const AttackResult found = attacks().make("pgd", {{"steps", 3}}, "pgd", context)->run(model, batch);
  set_log(before);
  EXPECT_TRUE(torch::equal(found.pixels, expected.pixels));
  const std::string said = log.str();
  EXPECT_EQ(said.find("warning: the state of the attack cannot be saved ("), 0u) << said;
  EXPECT_NE(said.find("); it goes on, but if it is killed, all since the last save is run again\n"), std::string::npos);
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

// A file of "apgd" with 2 restarts of 8 steps as of its last step: levels "apgd.runs" and the run within.
class StateFile : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(complaint(), "");
    file_ = read_safetensors(path_);
    levels_ = Json::parse(file_.metadata["levels"]);
    ASSERT_EQ(levels_.size(), 2u);
    ASSERT_EQ(levels_[1]["done"], 8);
  }
  std::string complaint() {
    return testing::error_text([&] {
      AttackSaver saver(path_, model_, 0);
      const AttackContext context{{Norm::linf, .03, {}}, 1, {}, &saver};
      attacks().make("apgd", short_settings("apgd"), "apgd", context)->run(model_, images_of_network(3));
      saver.check_finished();
    });
  }
  // The complaint about the file with one value changed.
  std::string complaint_with(const std::string& pointer, const Json& value) {
    Json levels = levels_;
    levels[Json::json_pointer(pointer)] = value;
    return load_complaint("sparsight-attack-state", "1", levels);
  }
  std::string load_complaint(const std::string& format, const std::string& version, const Json& levels) {
    write_safetensors(path_, {file_.tensors, {{"format", format}, {"version", version}, {"levels", levels.dump()}}});
    return complaint();
  }
  void expect_damaged(const std::string& pointer, const Json& value, const std::string& why) {
    const std::string message = complaint_with(pointer, value);
    EXPECT_NE(message.find("is damaged (" + why), std::string::npos) << pointer << ": " << message;
    EXPECT_NE(message.find("; remove that file and run the same command again"), std::string::npos) << message;
  }

  testing::TemporaryFolder folder_;
  std::string path_ = folder_.path("state");
  AttackedFunction model_{network};
  TensorFile file_;
  Json levels_;
};

TEST_F(StateFile, CountsMustBeThoseOfTheLoops) {
  EXPECT_EQ(complaint_with("/1/done", 7), "");
  expect_damaged("/1/done", 9, "9 iterations of a loop of 8");
  expect_damaged("/1/done", 999'999'999'999'999, "999999999999999 iterations of a loop of 8");
  expect_damaged("/1/done", -1, "a count of -1");
  expect_damaged("/1/done", 1e300, "a count of 1e+300");
  expect_damaged("/0/done", 2, "the attack ended without what it holds");  // the run within is not reached
  expect_damaged("/0/done", 3, "3 iterations of a loop of 2");
  expect_damaged("/1/cost/0", std::numeric_limits<int64_t>::max(), "a count of 9223372036854775807");
  expect_damaged("/1/seconds", -1, "-1 seconds");
  expect_damaged("/1/key", 1.5, "a key of 1.5");
}

// Points are [n,2,5,5]; n <= 3 are attacked. 2 * 5 * 5 n entries: of (n - 1, 1, 4, 4) steps, one of 50 n - 1 along the
// second dimension ends at the last entry too.
TEST_F(StateFile, StridesMustBeThoseOfATensor) {
  at::Tensor x;
  for (const auto& [name, tensor] : file_.tensors)
    if (name == "1.0") x = tensor;
  ASSERT_EQ(x.dim(), 4);
  const int64_t n = x.size(0), all = x.numel();
  ASSERT_EQ(all, 50 * n);
  const Json usual = x.strides().vec(), channels_last{50, 1, 10, 2};
  EXPECT_EQ(complaint_with("/1/strides/0", usual), "");
  EXPECT_EQ(complaint_with("/1/strides/0", channels_last), "");
  expect_damaged("/1/strides/0", {0, all - 1, 0, 0}, "strides that overlap");
  const int64_t large = 999'999'999'999'999;
  expect_damaged("/1/strides/0", {large, large, large, large}, "strides that do not fit");
  expect_damaged("/1/strides/0", {50, 25, 5}, "strides that do not fit");
  expect_damaged("/1/strides/0", {50, -25, 5, 1}, "a count of -25");
  expect_damaged("/1/strides/0", {int64_t{1} << 62, 25, 5, 1}, "a count of 4611686018427387904");
}

TEST_F(StateFile, OtherFormatsAndVersionsAreRefused) {
  const std::string version = load_complaint("sparsight-attack-state", "2", levels_);
  EXPECT_NE(version.find("has format version \"2\", this program reads version 1; remove that file"), std::string::npos)
      << version;
  const std::string format = load_complaint("sparsight-records", "1", levels_);
  EXPECT_NE(format.find("is damaged (no format sparsight-attack-state)"), std::string::npos) << format;
}

// Their tensor "0.1" has a row per attack of the cascade.
TEST(AttackSaver, NumbersOfFinishedAttacksMustBeNumbers) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("state");
  AttackedFunction model(network);
  const std::vector<CascadeStage> stages{{"pgd", "pgd", {{"steps", 3}}}, {"again", "pgd", {{"steps", 3}}}};
  const auto complaint = [&] {
    return testing::error_text([&] {
      AttackSaver saver(path, model, 0);
      run_stages(model, images_of_network(4), {{Norm::linf, .01, {}}, 1, {}, &saver}, stages, 4);
    });
  };
  ASSERT_EQ(complaint(), "");
  const TensorFile file = read_safetensors(path);
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity(), -1e300, 12.0}) {
    TensorFile changed = file;
    for (auto& [name, tensor] : changed.tensors)
      if (name == "0.1") tensor = tensor.clone(), tensor[0][2] = value;
    write_safetensors(path, changed);
    const std::string message = complaint();
    EXPECT_EQ(message.empty(), value == 12.0) << value;
    EXPECT_EQ(message.find("is damaged (numbers of a finished attack)") == std::string::npos, value == 12.0) << message;
  }
}

}  // namespace sparsight::attack_saver_test
