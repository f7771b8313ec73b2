// The attack verb as a user runs it: results, files, kills, refusals.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include <ATen/TensorOperators.h>

#include "sparsight/analysis/expert_usage.h"
#include "sparsight/analysis/routing_change.h"
#include "sparsight/core/error.h"
#include "sparsight/eval/records.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/models/routing_file.h"
#include "sparsight/models/routing_record.h"
#include "tests/e2e/attack_fixture.h"
#include "tests/e2e/output.h"

namespace sparsight::testing::attack_verb_test {
namespace {

namespace fs = std::filesystem;

class AttackVerb : public AttackFixture {};

// The standard cascade, shortened.
std::string short_cascade(const std::string& out, const std::string& eps = "8/255") {
  return " --set attack.steps=4 --set attack.queries=20 --set attack.targets=2 --eps " + eps + " --out " + out;
}

}  // namespace

TEST_F(AttackVerb, A40_RatesAgreeWithTheRecords) {
  const Json found = result("--attack pgd --eps 8/255 --set attack.steps=8 --out " + at("pgd"));
  const Records after = read_records(at("pgd/records")), before = read_records(at("pgd/clean_records"));
  ASSERT_EQ(after.images(), 64);
  EXPECT_EQ(after.ids.at(63), "test/63");
  const at::Tensor clean = before.prediction.eq(before.label), robust = clean & after.prediction.eq(after.label);
  const auto count = [](const at::Tensor& flags) { return flags.sum().item<int64_t>(); };
  const auto share = [&](const char* name) {
    return std::pair<int64_t, int64_t>{found[name]["count"], found[name]["of"]};
  };
  EXPECT_EQ(share("clean_accuracy"), std::pair(count(clean), int64_t{64}));
  EXPECT_EQ(share("robust_accuracy"), std::pair(count(robust), int64_t{64}));
  EXPECT_EQ(share("success_rate"), std::pair(count(clean & ~robust), count(clean)));
  EXPECT_EQ(share("prediction_change"), std::pair(count(before.prediction.ne(after.prediction)), int64_t{64}));
  EXPECT_LT(count(robust), count(clean));
  EXPECT_LT(found["random_noise"]["value"].get<double>(), found["success_rate"]["value"].get<double>());
  const Json& accuracy = found["robust_accuracy"];
  EXPECT_LE(accuracy["interval"][0].get<double>(), accuracy["value"].get<double>());
  EXPECT_GE(accuracy["interval"][1].get<double>(), accuracy["value"].get<double>());
  EXPECT_GT(found["loss"]["attacked"].get<double>(), found["loss"]["clean"].get<double>());
  // As evaluation counts.
  const Json line = Json::parse(run_program({"eval", run(), "--json", "--quiet"}).out);
  EXPECT_DOUBLE_EQ(found["clean_accuracy"]["value"], line["accuracy"]);
  ASSERT_EQ(after.layers.size(), 1u);
  EXPECT_TRUE(after.layers[0].kept.sum(1).eq(34).all().item<bool>());
}

TEST_F(AttackVerb, A60_TheReportSaysWhatWasDone) {
  const ProgramResult ended =
      attack("--attack pgd --eps 10 --range 0..255 --seed 5 --set attack.steps=3 --out " + at("said"));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  for (const char* part :
       {"epsilon 10 of pixels in 0..255, which is 0.0392157 of pixels in 0..1, clipped to them", "pgd, linf", "seed 5",
        "without router noise", "batch ", "fp32", "normalised by mean [0.5", "experts' capacity: no limit",
        "preset strict, steps 3, relative_step 0, start none, restarts 1",
        "64 of 64 images of the test split of glyphs", "  clean ", "  pgd ", "mean cross entropy", "read again, ",
        "random noise of the same size, on the first images, fools "})
    EXPECT_NE(ended.out.find(part), std::string::npos) << part << " in\n" << ended.out;
  const Json found = Json::parse(bytes(at("said/result.json")));
  EXPECT_NEAR(found["threat"]["epsilon"].get<double>(), 10.0 / 255, 1e-12);
  EXPECT_EQ(found["model"]["fingerprint"].get<std::string>().size(), 16u);
  EXPECT_EQ(found["data"]["fingerprint"].get<std::string>().size(), 16u);
  EXPECT_EQ(found["gradient_counts"]["not_finite"], 0);
  const std::string page = bytes(at("said/examples.html"));
  EXPECT_NE(page.find("times as large"), std::string::npos);
  EXPECT_NE(page.find("experts, attacked"), std::string::npos);
  EXPECT_EQ(bytes(at("said/stages.csv")).rfind("name,attack,robust_before,gained,robust_after,queries", 0), 0u);
}

// The routing in the result is that of the saved decisions.
TEST_F(AttackVerb, A38_TheReportSaysHowRoutingChanged) {
  const ProgramResult ended = attack("--attack pgd --eps 16/255 --set attack.steps=4 --out " + at("routed"));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json found = Json::parse(bytes(at("routed/result.json")));
  ASSERT_EQ(found["routing"].size(), 1u);
  EXPECT_EQ(found["moved_images"], 64);
  const Json& layer = found["routing"][0];
  const Routing clean = read_routings(at("routed/clean_routing.safetensors")).begin()->second,
                attacked = read_routings(at("routed/routing.safetensors")).begin()->second;
  EXPECT_DOUBLE_EQ(layer["change"], routing_change(kept_sets(clean), kept_sets(attacked)).rate());
  EXPECT_GT(layer["change"].get<double>(), 0);
  EXPECT_DOUBLE_EQ(layer["chance"], chance_change_rate(clean.experts, clean.per_token));
  EXPECT_NEAR(layer["of_chance"].get<double>(), layer["change"].get<double>() / layer["chance"].get<double>(), 1e-12);
  EXPECT_EQ(layer["load"], expert_usage({clean}).count);
  EXPECT_EQ(layer["attacked_load"], expert_usage({attacked}).count);
  EXPECT_DOUBLE_EQ(layer["attacked_entropy"], expert_usage({attacked}).relative_entropy);
  EXPECT_NE(ended.out.find("  MoE layer"), std::string::npos) << ended.out;
  EXPECT_NE(bytes(at("routed/examples.html")).find("<h3>Routing</h3>"), std::string::npos);
  const std::string csv = bytes(at("routed/routing.csv"));
  EXPECT_NE(csv.find("\n" + layer["layer"].get<std::string>() + ","), std::string::npos) << csv;
}

TEST_F(AttackVerb, SavedImagesAreWhatTheRecordsSay) {
  result("--attack fgsm --norm l2 --eps 1.5 --out " + at("saved"));
  const TensorFile file = read_safetensors(at("saved/adversarial.safetensors"));
  const std::map<std::string, at::Tensor> saved(file.tensors.begin(), file.tensors.end());
  EXPECT_EQ(saved.at("pixels").size(0), 64);
  EXPECT_EQ(saved.at("pixels").scalar_type(), at::kFloat);
  EXPECT_LE(saved.at("norm").max().item<double>(), 1.5 * (1 + 1e-6));
  EXPECT_GT(saved.at("norm").min().item<double>(), 0);
  const Records records = read_records(at("saved/records"));
  EXPECT_TRUE(saved.at("logits").argmax(1).equal(records.prediction));
  EXPECT_TRUE(saved.at("label").equal(records.label));
  // One query to see whether it is right, and one in the attack, with its gradient, and one to see whether it still is.
  EXPECT_TRUE(saved.at("queries").eq(3).all().item<bool>());
  // Routing records name the images as the evaluation's do.
  for (const char* name : {"saved/routing.safetensors", "saved/clean_routing.safetensors"}) {
    const RoutingRecord routed = read_routing_record(at(name));
    EXPECT_EQ(routed.routings.size(), 1u);
    EXPECT_EQ(routed.manifest.at("split"), "test");
    EXPECT_EQ(routed.manifest.at("classes"), Json(records.classes));
    ASSERT_EQ(routed.images.size(), 64u);
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(routed.images[i].id, records.ids.at(i));
      EXPECT_EQ(routed.images[i].label, records.label[static_cast<int64_t>(i)].item<int64_t>());
      EXPECT_EQ(routed.images[i].domain, records.domain[static_cast<int64_t>(i)].item<int64_t>());
    }
  }
}

TEST_F(AttackVerb, A25_ExactPassesGiveTheSameBitsForEveryBatch) {
  for (const auto& [norm, eps] : {std::pair{"linf", "8/255"}, {"l2", "0.5"}}) {
    for (const char* batch : {"4", "16"})
      result(cat("--exact --images 20 --norm ", norm, " --batch ", batch, short_cascade(at(cat(norm, batch)), eps)));
    expect_same_records(at(cat(norm, 4)), at(cat(norm, 16)));
  }
}

// In passes of many images fp32 sums round differently, so that the sign of a gradient near 0 may differ.
TEST_F(AttackVerb, A25_VerdictsHardlyDependOnTheBatch) {
  const Json a = result("--batch 4" + short_cascade(at("by4"))), b = result("--batch 16" + short_cascade(at("by16")));
  EXPECT_EQ(a["batch"], 4);
  const Records of_a = read_records(at("by4/records")), of_b = read_records(at("by16/records"));
  EXPECT_LE(of_a.prediction.ne(of_b.prediction).sum().item<int64_t>(), 2);
  EXPECT_LE(std::abs(a["robust_accuracy"]["count"].get<int>() - b["robust_accuracy"]["count"].get<int>()), 1);
}

TEST_F(AttackVerb, AFolderIsOfOneAttack) {
  const std::string pgd = "--attack pgd --set attack.steps=2 --images 8 --out " + at("one");
  result(pgd + " --eps 2/255");
  expect_failure(attack(pgd + " --eps 4/255"), 1,
                 "holds an attack with attack.epsilon = 0.00784313725490196, not 0.0156");
  expect_failure(attack(pgd + " --eps 2/255 --seed 1"), 1, "attack.seed = 0, not 1; choose another folder with --out");
  expect_failure(attack(pgd + " --eps 2/255 --split val"), 1, "data.split");
  expect_failure(attack(pgd + " --eps 2/255 --set attack.restarts=3"), 1,
                 "attack.stages.0.settings.restarts = 1, not 3");
  expect_failure(attack(pgd + " --eps 2/255 --set router.eval_k=1"), 1, "model.settings.router.eval_k");
  expect_failure(attack("--attack pgd --images 8 --out " + run()), 2, "cannot write an attack into");
  const std::string before = bytes(at("one/result.json"));
  write_file_atomically(at("one/result.json"), before.substr(0, 200));
  expect_failure(attack(pgd + " --eps 2/255"), 1,
                 "is damaged (is not a JSON object); remove its folder and attack again");
}

TEST_F(AttackVerb, DamagedPiecesAreNamed) {
  const std::string settings = "--attack fgsm --batch 32 --set data.test=128 --out " + at("cut");
  result(settings);
  // As if it had been killed before its end, with a piece that a failing disk cut.
  fs::remove(at("cut/result.json"));
  const std::string piece = at("cut/pieces/000000000-000000064");
  fs::create_directories(piece);
  write_file_atomically(piece + "/images.safetensors", bytes(at("cut/adversarial.safetensors")).substr(0, 3000));
  const ProgramResult ended = attack(settings);
  expect_failure(ended, 1, "is damaged (");
  EXPECT_NE(ended.err.find("remove that folder and run the same command again"), std::string::npos) << ended.err;
  fs::remove_all(piece);
  EXPECT_EQ(result(settings)["images"], 128);
}

TEST_F(AttackVerb, RefusesWhatMakesNoSense) {
  const auto refused = [](const std::string& text, int code, const std::string& says) {
    expect_failure(attack(text), code, says);
  };
  refused("--eps abc", 2, "epsilon must be a number or a fraction");
  refused("--eps -1", 2, "must be a number or a fraction of at least 0");
  refused("--eps 1/0", 2, "must be a number or a fraction");
  refused("--eps 8", 2, "lets every pixel have any value");
  refused("--norm l2 --eps 100", 2, "lets every pixel");
  refused("--attack pdg", 2, "did you mean \"pgd\"?");
  refused("--attack pgd --set attack.stepz=3", 2, "steps");
  refused("--set attack.stepz=3", 2, "unknown setting attack.stepz");
  refused("--set attack.version=fast", 2, "standard, plus, or rand");
  refused("--attack pgd --set attack.preset=paper --set attack.restarts=2", 2, "preset paper of pgd has no start");
  refused("--images 65", 1, "has 64 images, not 65");
  refused("--seed=-1", 2, "--seed");
  refused("--weights int8 --attack pgd", 2, "weights packed as int8 have no gradients");
  refused("--weights int8", 2, "--attack square");
  refused("--noise --attack pgd", 2, "--set attack.passes=20");
  refused("--normalize none", 2, "--normalize is for files of weights alone");
  refused("--exact --attack fgsm --set capacity.eval_factor=0.5", 2, "share the experts' capacity");
  refused("--set model.name=cnn", 2, "model.name");
  refused("--attack pgd --set attack.routing_loss=drops", 1, "capacity");  // found out in the first batch
  EXPECT_FALSE(fs::exists(run() + "/attacks"));
  expect_failure(run_program({"attack", at("nothing")}), 1, "nothing");
  fs::create_directories(at("empty"));
  expect_failure(run_program({"attack", at("empty")}), 1, "empty");
  expect_failure(run_program({"attack", tiny_config(*folder_)}), 2, "is a configuration");
}

// The files of a folder come class after class: the first ones would be of a single class.
TEST_F(AttackVerb, AFewImagesAreOfAllClassesAndTheResultSaysThatTheyWereResized) {
  const ProgramResult made =
      run_program({"data", "make", at("pictures"), "--set", "side=24", "--set", "classes=4", "--set", "train=40",
                   "--set", "validation=20", "--set", "test=40", "--quiet"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Json found = result("--attack fgsm --eps 1/255 --images 8 --set data.name=folder --data " + at("pictures") +
                            " --out " + at("few"));
  std::istringstream rows(bytes(at("few") + "/images.csv"));
  std::map<std::string, int> of_class;
  std::string line;
  std::getline(rows, line);
  while (std::getline(rows, line)) {  // "9,test/arrow/0000033.png,0,..."
    const size_t name = line.find(',') + 1;
    ++of_class[line.substr(name, line.rfind('/', line.find(',', name)) - name)];
  }
  EXPECT_EQ(of_class.size(), 4u) << bytes(at("few") + "/images.csv");
  for (const auto& [name, count] : of_class) EXPECT_EQ(count, 2) << name;
  EXPECT_EQ(found["data"]["resized_to"], Json({16, 16}));
  EXPECT_EQ(found["data"]["transforms"].at(0).at("op"), "normalize");
}

TEST_F(AttackVerb, QuantisedModelsAreAttackedWithoutGradients) {
  const Json found =
      result("--weights int8 --attack square --eps 16/255 --images 16 --set attack.queries=30 --out " + at("int8"));
  EXPECT_EQ(found["model"]["packed"], "int8");
  EXPECT_EQ(found["gradients"], 0);
  EXPECT_GT(found["queries"], 16 * 3);
  EXPECT_EQ(found["stages"][0]["robust_before"], found["clean_accuracy"]["count"]);
}

TEST_F(AttackVerb, A59_NoiseNeedsAveragedGradients) {
  const Json found = result(
      "--noise --set attack.version=rand --set attack.steps=2 --set attack.passes=3 --images 8 --out " + at("noise"));
  EXPECT_EQ(found["attack"]["noise"], true);
  EXPECT_EQ(found["stages"][0]["settings"]["passes"], 3);
  // With the noise in evaluation it is there without --noise, and without any noise --noise means nothing.
  const std::string short_square = "--attack square --set attack.queries=3 --images 8 --out ";
  expect_failure(attack("--set router.eval_noise=true --attack pgd --out " + at("refused")), 2,
                 "--set attack.passes=20");
  expect_failure(attack("--noise " + short_square + at("refused")), 2, "so square needs the mean of several");
  expect_failure(attack("--noise --set router.noise=0 --attack pgd --out " + at("refused")), 2,
                 "--noise: no router of this model has noise");
  EXPECT_FALSE(fs::exists(at("refused")));
  const std::string noisy = "--set router.eval_noise=true --set attack.passes=3 " + short_square + at("eval_noise");
  EXPECT_EQ(result(noisy)["attack"]["noise"], true);
  EXPECT_LE(found["robust_accuracy"]["count"], found["clean_accuracy"]["count"]);
}

TEST_F(AttackVerb, ImagesThatShareCapacityAreAttackedTogether) {
  const std::string name = at("shared");
  const Json found =
      result("--attack apgd --set attack.steps=3 --set capacity.eval_factor=0.5 --batch 16 --out " + name);
  EXPECT_EQ(found["images_share_capacity"], true);
  EXPECT_EQ(found["model"]["capacity"]["effective_factor"], 0.5);
  EXPECT_GT(found["drop_rate"]["clean"].get<double>(), 0.2);
  const Records records = read_records(name + "/records");
  EXPECT_LT(records.layers[0].kept.sum().item<int64_t>(), records.layers[0].chosen.sum().item<int64_t>());
}

// Experts that choose among all tokens of a batch, without any capacity.
TEST_F(AttackVerb, ImagesWhoseRoutersChooseTogetherAreAttackedTogether) {
  const std::string pooled = at("pooled_run");
  const ProgramResult trained = train_tiny(*folder_, pooled, {"--quiet", "--set", "router.name=expert_choice"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto arguments = [&](const std::string& text) {
    std::vector<std::string> all = words(text);
    all[1] = pooled;
    return all;
  };
  const ProgramResult ended = run_program(arguments(short_cascade(at("pooled"), "4/255")));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find("images attacked together: routers choose experts among all images of a batch\n"),
            std::string::npos)
      << ended.out;
  const Json found = Json::parse(bytes(at("pooled/result.json")));
  EXPECT_EQ(found["images_choose_together"], true);
  EXPECT_EQ(found["images_share_capacity"], false);
  EXPECT_EQ(found["stages"].back()["robust_after"]["count"], found["robust_accuracy"]["count"]);
  EXPECT_LT(found["robust_accuracy"]["count"], found["clean_accuracy"]["count"]);
  expect_failure(run_program(arguments("--exact --attack fgsm --eps 4/255 --out " + at("pooled_exact"))), 2,
                 "--exact runs each image alone, but routers of this model choose experts among all images");
  EXPECT_FALSE(fs::exists(at("pooled_exact")));
}

TEST_F(AttackVerb, RouterLossesAttackImagesTogether) {
  const std::string losses = "--attack pgd --set attack.steps=2 --set attack.router_losses=[\"vmoe_importance=0.1\"]";
  const ProgramResult ended = attack(losses + " --out " + at("losses"));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find("images attacked together: the objective is one number of a batch\n"), std::string::npos)
      << ended.out;
  expect_failure(attack(losses + " --exact --out " + at("losses_exact")), 2, "router losses are of a whole batch");
}

// A block of 32 columns and 17 tokens keeps some tens of vectors of each token: the two blocks hold tens to hundreds of
// kilobytes of an image.
TEST_F(AttackVerb, SaysTheMemoryOfAnImage) {
  for (const char* batch : {"", " --batch 16"}) {
    const Json found = result(
        cat("--attack pgd --set attack.steps=1 --images 32", batch, " --out ", at(*batch ? "memory16" : "memory")));
    ASSERT_TRUE(found["peak_bytes_per_image"].is_number()) << batch;
    EXPECT_GT(found["peak_bytes_per_image"], 20'000) << batch;
    EXPECT_LT(found["peak_bytes_per_image"], 3'000'000) << batch;
  }
}

TEST_F(AttackVerb, TheCascadeSaysWhatItReplaces) {
  const Json found = result("--set data.classes=4 --images 8" + short_cascade(at("cascade")));
  ASSERT_EQ(found["stages"].size(), 4u);
  int64_t robust = found["clean_accuracy"]["count"];
  for (const Json& stage : found["stages"]) {
    EXPECT_EQ(stage["robust_before"], robust);
    robust -= stage["gained"].get<int64_t>();
  }
  EXPECT_EQ(found["robust_accuracy"]["count"], robust);
  EXPECT_EQ(found["notes"].size(), 3u);  // steps, queries and targets are not AutoAttack's
}

TEST_F(AttackVerb, AttacksAreCompared) {
  for (const char* eps : {"2/255", "8/255"})
    result(std::string("--attack pgd --set attack.steps=5 --eps ") + eps + " --out " + at(std::string("eps") + eps[0]));
  const Json compared = Json::parse(run_program({"compare", at("eps2"), at("eps8"), "--json"}).out);
  EXPECT_EQ(compared["images"], 64);
  EXPECT_GE(compared["only_a"], compared["only_b"]);
  EXPECT_NE(compared["notes"].dump().find("the attacks differ: A linf, epsilon 0.0078"), std::string::npos);
  EXPECT_EQ(run_program({"compare", at("eps2/clean_records"), at("eps2")}).exit_code, 0);
  // By the numbers of the attacks, although the paper's preset makes wrong images right.
  const Json paper =
      result("--attack pgd --set attack.preset=paper --set attack.steps=2 --eps 40/255 --out " + at("p"));
  const Json same = Json::parse(run_program({"compare", at("p"), at("p"), "--json"}).out);
  EXPECT_EQ(same["a"]["correct"], paper["robust_accuracy"]["count"]);
}

// Weights alone, as other libraries save them.
TEST_F(AttackVerb, WeightsAloneNeedTheirNormalisation) {
  NamedTensors weights;
  for (const auto& [name, tensor] : read_checkpoint(run() + "/checkpoints/best.safetensors").weights)
    if (!name.starts_with("normalize.")) weights.emplace_back(name, tensor);
  const std::string file = at("bare.safetensors"), config = tiny_config(*folder_);
  write_safetensors(file, {weights, {}});
  std::string plain = read_file(config, 1 << 16);
  for (size_t step; (step = plain.find("{op = \"normalize\"")) != std::string::npos;)
    plain.erase(step, plain.find('}', step) + 1 - step);
  const std::string unnormalised = folder_->write("plain.toml", plain);
  const std::vector<std::string> pgd{"--attack",       "pgd",     "--eps", "4/255",   "--set",
                                     "attack.steps=3", "--batch", "32",    "--quiet", "--json"};
  const auto of = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"attack", file});
    arguments.insert(arguments.end(), pgd.begin(), pgd.end());
    return run_program(arguments);
  };
  expect_failure(of({}), 2, "whose router has settings that no shape tells; give --config");
  expect_failure(of({"--config", unnormalised}), 2, "give --normalize imagenet, MEAN:STD");
  expect_failure(of({"--config", config, "--classes", "5"}), 2, "--classes 5: ");
  expect_failure(of({"--config", config, "--set", "data.classes=6"}), 1,
                 "has 4 classes, the dataset glyphs of [data] 6");
  expect_failure(of({"--config", config, "--normalize", "0.5"}), 2, "preset");
  expect_failure(of({"--config", config, "--normalize", "a:b"}), 2, "MEAN:STD needs one number");
  expect_failure(of({"--config", config, "--set", "model.width=64"}), 1, "does not fit [model]");
  const ProgramResult ended = of({"--config", unnormalised, "--normalize", "0.5:0.5"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json found = Json::parse(ended.out),
             same = result("--attack pgd --eps 4/255 --set attack.steps=3 --batch 32 --out " + at("of_run"));
  EXPECT_EQ(found["robust_accuracy"], same["robust_accuracy"]);
  EXPECT_TRUE(fs::exists(at("bare_attacks/pgd_linf_4_255/result.json")));
}

}  // namespace sparsight::testing::attack_verb_test
