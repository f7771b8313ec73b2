// The verb dg as a user runs it: results, kills, sweeps, tables, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/data/domainbed/domainbed.h"
#include "sparsight/dg/ablations.h"
#include "sparsight/dg/dg_models.h"
#include "sparsight/dg/hyperparameters.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/report/format.h"
#include "tests/data/sets/set_files.h"
#include "tests/e2e/dg_verb.h"
#include "tests/support/program.h"

#include <nlohmann/json.hpp>

namespace sparsight::testing::dg_verb_test {

TEST_F(DgVerb, TrainsAndEvaluatesOnEveryEnvironment) {
  const ProgramResult ended = dg(std::string("train --test-envs 1") + kSmall, {"--out", at("run")});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::vector<Json> lines = results(at("run"));
  ASSERT_EQ(lines.size(), 4u);  // after updates 1, 3, 5, 6
  EXPECT_EQ(lines[0].at("step"), 0);
  EXPECT_EQ(lines[1].at("step"), 2);
  EXPECT_EQ(lines[3].at("step"), 5);
  for (const Json& line : lines)
    for (int e = 0; e < 4; ++e)
      for (const char* half : {"in", "out"}) {
        const double accuracy = line.at(cat("env", e, "_", half, "_acc"));
        EXPECT_GE(accuracy, 0);
        EXPECT_LE(accuracy, 1);
      }
  EXPECT_EQ(lines[0].at("args").at("test_envs"), Json({1}));
  // All that DomainBed draws, also what nothing follows; kSmall replaces the batch size.
  Json drawn = Json::object();
  for (const Hyperparameter& parameter : all_hyperparameters("erm", "folder", 0, 0))
    drawn[parameter.name] = parameter.value;
  drawn["batch_size"] = 8;
  EXPECT_EQ(lines[0].at("hparams"), drawn);
  EXPECT_EQ(drawn.at("lr"), 5e-5);
  EXPECT_EQ(drawn.at("linear_steps"), 500);
  EXPECT_EQ(drawn.size(), 16u);  // 4 that settings follow and 12 more
  EXPECT_NE(ended.out.find("| 1 "), std::string::npos) << ended.out;
}

// DomainBed's scripts read them, and there they choose the network.
TEST_F(DgVerb, ResultsSayWhichResnetWasTrainedAndWhetherItsBatchNormIsFrozen) {
  const auto hparams = [](const std::string& name, const std::string& settings) {
    const ProgramResult run =
        dg("train --algorithm erm --test-envs 0 --dataset folder --data DOMAINS --image-size 16 "
           "--set loader.batch=4 --steps 1 --eval-every 1 " +
               settings,
           {"--out", at(name)});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const Json drawn = results(at(name)).front().at("hparams");
    return std::pair<bool, bool>(drawn.at("resnet18"), drawn.at("freeze_bn"));
  };
  EXPECT_EQ(hparams("resnet18", "--model resnet18 --set model.base_width=8"), std::pair(true, true));
  EXPECT_EQ(hparams("thawed", "--model resnet18 --set model.base_width=8 --set model.frozen_batch_norm=false"),
            std::pair(true, false));
  EXPECT_EQ(hparams("resnet50", "--model resnet50 --set model.base_width=8"), std::pair(false, true));
}

TEST_F(DgVerb, G21_AKilledRunGoesOnAndEndsWithTheSameBits) {
  const std::string train = std::string("train --algorithm irm --test-envs 2") + kSmall;
  ASSERT_EQ(dg(train, {"--out", at("whole")}).exit_code, 0);
  std::vector<std::string> arguments = words(train);
  arguments.insert(arguments.end(), {"--out", at("killed"), "--quiet"});
  {
    Program killed(arguments);
    for (int wait = 0; wait < 3000 && !std::filesystem::exists(at("killed/checkpoints/last.safetensors")); ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    killed.send(SIGKILL);
    killed.wait();
  }
  ASSERT_EQ(run_program(arguments).exit_code, 0);
  EXPECT_EQ(without_times(results(at("whole"))), without_times(results(at("killed"))));
  const ProgramResult other = dg(std::string("train --algorithm erm --test-envs 2") + kSmall, {"--out", at("killed")});
  EXPECT_NE(other.exit_code, 0) << "that folder has another run";
}

TEST_F(DgVerb, SweepsAndTables) {
  const std::string sweep = std::string("sweep --algorithms erm,group_dro --trials 2 --hparams 1 --no-pairs") + kSmall;
  const ProgramResult plan = dg(sweep, {"--plan"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_NE(plan.out.find("16 jobs"), std::string::npos) << plan.out;
  const ProgramResult done = dg(sweep, {"--out", at("sweep")});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("training-domain validation"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("| GroupDRO (vit) |"), std::string::npos) << done.out;
  const ProgramResult csv = run_program({"dg", "table", at("sweep"), "--format", "csv"});
  EXPECT_EQ(csv.out.substr(0, csv.out.find('\n')), "dataset,selection,algorithm,test_env,mean,error");
  // Two rules and algorithms, 4 + average; then eight columns of time, memory and cost.
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 1 + 2 * 2 * 5 + 2 * 8);
  EXPECT_NE(csv.out.find("folder,\"folder, time and memory, means over runs\",GroupDRO (vit),s per step,"),
            std::string::npos)
      << csv.out;
  // The layout of DomainBed's sweeps: a folder of each run, named by a hash, with results.jsonl and done.
  ASSERT_EQ(run_program({"dg", "export", at("sweep"), "--out", at("domainbed")}).exit_code, 0);
  int64_t runs = 0;
  for (const auto& run : std::filesystem::directory_iterator(at("domainbed"))) {
    ++runs;
    EXPECT_EQ(run.path().filename().string().size(), 32u);
    EXPECT_TRUE(std::filesystem::exists(run.path() / "results.jsonl") && std::filesystem::exists(run.path() / "done"));
  }
  EXPECT_EQ(runs, 16);
  EXPECT_EQ(run_program({"dg", "table", at("domainbed"), "--format", "csv"}).out, csv.out);
  EXPECT_EQ(run_program({"dg", "export", at("sweep"), "--out", at("domainbed")}).exit_code, 1) << "it exists";
}

// One setting at a time of a small model: rows and files; done runs are not repeated, and a further factor adds to
// them.
TEST_F(DgVerb, G57_Ablates) {
  const std::string ablate = std::string("ablate --trials 2 --test-envs 1") + kAblated;
  const std::string all = ablate + " --only router,temperature,placement,noise --vary router.k=1,2";
  const ProgramResult plan = dg(all, {"--plan"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_NE(plan.out.find("12 jobs"), std::string::npos) << plan.out;  // baseline and five others, two trials each
  const ProgramResult first = dg(ablate + " --only router --format csv", {"--out", at("ablations")});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const ProgramResult done = dg(all + " --format markdown", {"--out", at("ablations")});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  for (const char* row :
       {"| baseline | ", "| router: cosine | ", "| router: linear | ", "| temperature: fixed | ",
        "| placement: last two | ", "| placement: every two | ", "| noise: off | ", "| router.k: 2 | "})
    EXPECT_NE(done.out.find(row), std::string::npos) << row << done.out;
  EXPECT_EQ(done.out.find("|  |  |  |"), std::string::npos) << done.out;
  int64_t jobs = 0;
  const std::string baseline = find_row(done.out, "| baseline |");
  for (const auto& job : std::filesystem::directory_iterator(at("ablations/jobs"))) {
    jobs += std::filesystem::exists(job.path() / "result.json");
    const Json line = results((job.path() / "run").string()).back();
    if (line.at("args").contains("variation")) continue;
    for (const char* key : {"parameters", "active_parameters", "multiply_adds"})  // counted in the run, and in advance
      EXPECT_NE(baseline.find("| " + grouped(line.at("cost").at(key).get<int64_t>()) + " |"), std::string::npos)
          << baseline << key;
  }
  EXPECT_EQ(jobs, 12);
  const ProgramResult latex = dg(ablate + " --only router --format latex", {"--out", at("ablations")});
  EXPECT_NE(latex.out.find("router: linear & "), std::string::npos) << latex.out;
  const ProgramResult table = run_program({"dg", "table", at("ablations")});  // also as a sweep
  EXPECT_NE(table.out.find("| ERM (gmoe, router.name=softmax_topk) |"), std::string::npos) << table.out;
}

TEST_F(DgVerb, G46_TrainsOnASingleSource) {
  const ProgramResult done =
      dg(std::string("sweep --single-source --trials 1 --hparams 1 --published") + kSmall, {"--out", at("single")});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  for (const char* title :
       {"folder, trained on environment clean alone", "folder, trained on environment textured alone"})
    EXPECT_NE(done.out.find(title), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("| inverted (source) |"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("| parameters | active parameters | MACs |"), std::string::npos) << done.out;
  EXPECT_EQ(done.out.find("validation"), std::string::npos) << "no usual table:\n" << done.out;
  const ProgramResult wrong = run_program({"dg", "table", at("single"), "--baseline", "erm (resnet50)"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("its rows are ERM (vit)"), std::string::npos) << wrong.err;
}

TEST_F(DgVerb, G41_MakesCubDg) {
  const TemporaryFolder folder;
  folder.write("cub/images.txt", "1 001.Albatross/a.png\n");
  folder.write("cub/image_class_labels.txt", "1 1\n");
  folder.write("cub/train_test_split.txt", "1 1\n");
  folder.write("cub/bounding_boxes.txt", "1 0 0 5 4\n");
  folder.write("cub/parts/parts.txt", "1 beak\n");
  folder.write("cub/parts/part_locs.txt", "1 1 2 3 1\n");
  for (const char* copies : {"cub/images", "candy", "mosaic", "udnie"})
    folder.write(std::string(copies) + "/001.Albatross/a.png", grey_png(7));
  const std::vector<std::string> make{"dg",
                                      "cub-dg",
                                      folder.path("cub"),
                                      "--candy",
                                      folder.path("candy"),
                                      "--mosaic",
                                      folder.path("mosaic"),
                                      "--udnie",
                                      folder.path("udnie"),
                                      "--out",
                                      folder.path("made"),
                                      "--quiet"};
  const ProgramResult made = run_program(make);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("4 images in 4 domains"), std::string::npos) << made.out;
  EXPECT_TRUE(std::filesystem::exists(folder.path("made/Udnie/001.Albatross/a.png")));
  EXPECT_NE(read_file(folder.path("made/keypoints.csv"), 1000).find("Mosaic,\"001.Albatross/a.png\",beak,2,3"),
            std::string::npos);
  EXPECT_EQ(run_program(make).exit_code, 1) << "there is something at --out";
}

// The command line is read without the library, so its lists are written by hand.
TEST_F(DgVerb, HelpNamesAllThatThereIs) {
  const std::string help = run_program({"dg", "ablate", "--help"}).out;
  std::string words;  // lines are wrapped
  for (const char c : help)
    if (c != '\n' && !(c == ' ' && words.ends_with(' '))) words += c;
  const auto expect_named = [&](const std::string& name) {
    EXPECT_NE(words.find(name), std::string::npos) << name << "\n" << help;
  };
  for (const Ablation& factor : gmoe_ablations()) expect_named(factor.name);
  for (const DgModel& model : dg_models()) expect_named(model.name);
  for (const std::string& set : domainbed_names()) expect_named(set);
}

namespace {

// keypoints.csv with three parts of every image in a folder of domains.
std::string planted_keypoints(const std::string& birds) {
  std::string lines = "domain,image,part,x,y\n";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(birds))
    if (entry.is_regular_file() && entry.path().extension() == ".png") {
      const std::string id = entry.path().lexically_relative(birds).string();
      const size_t slash = id.find('/');
      for (const char* part : {"left eye,4,4", "right eye,12,4", "tail,16,16"})
        lines += id.substr(0, slash) + ",\"" + id.substr(slash + 1) + "\"," + part + "\n";
    }
  return lines;
}

}  // namespace

// Keypoints planted in a copy of the domains: explain counts nine patches for each, and writes maps.
TEST_F(DgVerb, G54_ExplainShowsPartsAndDomains) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const std::string birds = folder.path("birds"), run = folder.path("run"), out = folder.path("out");
  fs::copy(domains(), birds, fs::copy_options::recursive);
  const std::string lines = planted_keypoints(birds);
  folder.write("birds/keypoints.csv", lines);
  std::string train = std::string("train --test-envs 1") + kSmall;
  train.replace(train.find("DOMAINS"), 7, birds);
  const ProgramResult trained = dg(train, {"--out", run});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto explain = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"explain", run, "--split", "train", "--images", "30", "--examples", "2", "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
  };
  const ProgramResult text = explain({"--out", out});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("tell about the part: "), std::string::npos) << text.out;
  const Json json = Json::parse(read_file(out + "/explain.json", size_t{1} << 22));
  EXPECT_EQ(json.at("parts"), Json({"left eye", "right eye", "tail", "background"}));
  const Json& all = json.at("part_experts").at(0);
  EXPECT_TRUE(all.at("domain").is_null());
  EXPECT_EQ(all.at("keypoints"), Json({30, 30, 30}));
  for (int part = 0; part < 3; ++part)
    EXPECT_EQ(all.at("counts").at(part).at(0).get<int>() + all.at("counts").at(part).at(1).get<int>(), 9 * 30);
  EXPECT_EQ(all.at("pairs").at(0).at("pair"), "eye");
  EXPECT_EQ(json.at("domains").size(), 4u);       // halves of an environment are one domain
  EXPECT_EQ(json.at("part_experts").size(), 4u);  // of all images, and of the three domains that train
  for (const char* file :
       {"part_expert_0_blocks.1.mlp.png", "domain_expert_0_blocks.1.mlp.png", "part_expert.csv", "000_experts.png"})
    EXPECT_TRUE(fs::exists(out + "/" + file)) << file;
  ASSERT_EQ(explain({}).exit_code, 0);  // into the run folder, and its report
  const std::string page = read_file(run + "/report.html", size_t{1} << 24);
  for (const char* shown : {"Class by expert: blocks.1.mlp<small>", "Domain by expert: blocks.1.mlp<small>",
                            "Part by expert: blocks.1.mlp<small>", "Part by expert: blocks.1.mlp, only "})
    EXPECT_NE(page.find(shown), std::string::npos) << shown;
  const std::string first = lines.substr(lines.find('\n') + 1), row = first.substr(0, first.find(",left"));
  for (const auto& [bad, message] : {std::pair{row + ",beak,nan,3", "is no pixel of an image"},
                                     {row + ",beak,3,-1", "is no pixel of an image"},
                                     {row + ",left eye,3,3", "is there twice"},
                                     {row + ",beak", "expected the columns domain,image,part,x,y"},
                                     {std::string("a,\"b/c.png\",beak,3,3"), "which is not there"}}) {
    folder.write("birds/keypoints.csv", lines + bad + "\n");
    const ProgramResult refused = explain({"--out", folder.path("none")});
    EXPECT_EQ(refused.exit_code, 1) << bad;
    EXPECT_NE(refused.err.find(message), std::string::npos) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_FALSE(fs::exists(folder.path("none/explain.json")));
  }
  std::string outside = lines;
  for (size_t at = 0; (at = outside.find("tail,16,16", at)) != std::string::npos; at += 10)
    outside.replace(at, 10, "tail,16,17");
  folder.write("birds/keypoints.csv", outside);
  const ProgramResult refused = explain({"--out", folder.path("none")});
  EXPECT_NE(refused.err.find("is outside of its 16x16 pixels"), std::string::npos) << refused.err;
}

// Rows "| name | setting | default | range |", with single spaces.
TEST_F(DgVerb, PrintsHyperparametersOfModelsAndDatasets) {
  const auto find_row = [&](const std::string& text, const std::string& name) {
    const ProgramResult ended = dg("hparams " + text);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream cells(line);
      std::string row;
      for (std::string word; cells >> word;) row += (row.empty() ? "" : " ") + word;
      if (row.starts_with("| " + name + " |")) return row;
    }
    return "no row of " + name + " in " + ended.out;
  };
  EXPECT_EQ(find_row("erm --dataset domain_net --model gmoe", "lr"), "| lr | optimizer.lr | 5e-05 | 10^U(-5,-3.5) |");
  EXPECT_EQ(find_row("erm --dataset office_home --model gmoe", "lr"), "| lr | optimizer.lr | 1e-05 | 10^U(-5,-3.5) |");
  EXPECT_EQ(find_row("erm --dataset domain_net --model gmoe", "max_steps"),
            "| max_steps | train.max_steps | 15001 | - |");
  EXPECT_EQ(find_row("swad --dataset vlcs", "tolerance_ratio"), "| tolerance_ratio | algorithm.tolerance | 0.2 | - |");
  EXPECT_EQ(find_row("swad --dataset vlcs", "eval_every"), "| eval_every | train.eval_every | 50 | - |");
  EXPECT_EQ(find_row("erm --dataset pacs --model vit", "resnet_dropout"),
            "| resnet_dropout | not used | 0.0 | {0.0,0.1,0.5} |");
  EXPECT_EQ(find_row("dann --dataset pacs --hparams-seed 1", "lr_g"),
            "| lr_g | optimizer.lr | 5e-05 | 10^U(-5,-3.5) | 0.00018927227584350511 |");
  EXPECT_EQ(find_row("dann --dataset pacs", "lr"), "| lr | not used | 5e-05 | 10^U(-5,-3.5) |");
}

TEST_F(DgVerb, RefusesInOneLine) {
  const auto refused = [&](const std::string& text, const std::string& what, int code = 2) {
    const ProgramResult ended = dg(text);
    EXPECT_EQ(ended.exit_code, code) << text << ended.err;
    EXPECT_NE(ended.err.find(what), std::string::npos) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  };
  const std::string small = kSmall;
  refused("hparams irmm --dataset pacs", "did you mean \"irm\"");
  refused("hparams irm --dataset pac", "did you mean \"pacs\"");
  refused("hparams irm --dataset pacs --model gmeo", "did you mean \"gmoe\"");
  refused("train --dataset pacs --data DOMAINS --model vit", "is not pacs as published", 1);
  refused("train --test-envs 9" + small, "has the environments 0 to 3");
  refused("train" + small + " --set loader.batch=1000 --out " + at("refused"),
          "fewer than its batch size of 1000; lower loader.batch");
  refused("train --test-envs 0,0" + small, "the test environment 0 is named twice");
  refused("sweep --algorithms erm,irmm --plan" + small, "did you mean \"irm\"");
  refused("sweep --set optimizer.lrr=1 --plan" + small, "optimizer.lr");

  refused("train --algorithm irmm" + small, "did you mean \"irm\"");
  refused("sweep" + small, "--out DIR, or --plan");
  refused("sweep --datasets pacs,vlcs" + small, "--data is the folder of one dataset");
  refused(std::string("ablate --only routr") + kAblated, "did you mean \"router\"");
  refused(std::string("ablate --only k") + kAblated, "k 4: ");
  refused(std::string("ablate --vary router.k") + kAblated, "what to vary is SECTION.KEY=VALUE");
  const ProgramResult empty = run_program({"dg", "table", domains()});
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_NE(empty.err.find("has no results.jsonl"), std::string::npos) << empty.err;
}

}  // namespace sparsight::testing::dg_verb_test
