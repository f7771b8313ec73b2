// Routings from files, layers that differ and settings with schedules, through the program.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "sparsight/core/options.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/models/routing_record.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::routing_seams_test {
namespace {

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

constexpr const char* kSeams = R"(
[router]
name = "softmax_topk"
k = 2

[[moe.layer]]
blocks = [0]
experts = 6
router = { name = "top_p", p = 0.5 }

[[moe.schedule]]
setting = "router.k"
from = 3
to = 1
end = 0.5
)";

// Records of eval on the 64 test images of four classes, and of predict on one image: 16 patches and the class token,
// 4 experts.
void expect_records(const std::string& eval_file, const std::string& predict_file, const std::string& image) {
  const RoutingRecord split = read_routing_record(eval_file), one = read_routing_record(predict_file);
  ASSERT_EQ(split.images.size(), 64u);
  EXPECT_EQ(split.images[5].id, "test/5");
  EXPECT_GE(split.images[5].label, 0);
  EXPECT_GE(split.images[5].domain, 0);
  EXPECT_LT(split.images[5].domain, std::ssize(split.manifest.at("domains")));
  EXPECT_EQ(split.manifest.at("split"), "test");
  EXPECT_EQ(split.manifest.at("classes").size(), 4u);
  EXPECT_EQ(split.clean_logits.at("blocks.1.mlp").sizes(), (std::vector<int64_t>{64, 17, 4}));
  ASSERT_EQ(one.images.size(), 1u);
  EXPECT_EQ(one.images[0].id, image);
  EXPECT_EQ(one.images[0].label, -1);
  EXPECT_EQ(one.clean_logits.at("blocks.1.mlp").sizes(), (std::vector<int64_t>{1, 17, 4}));
}

}  // namespace

TEST(RoutingReplay, PredictUsesTheExpertsOfAnotherImage) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  const ProgramResult trained =
      run_program({"train", tiny_config(folder), "--set", "train.epochs=1", "--set", "router.k=1", "--out", run});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  at::Tensor striped = at::full({3, 16, 16}, 20, at::kByte);
  striped.slice(1, 0, 16, 2).fill_(240);
  const std::string one = folder.write("one.png", encode_png(at::full({3, 16, 16}, 200, at::kByte))),
                    other = folder.write("other.png", encode_png(striped)), file = folder.path("r.safetensors");
  const ProgramResult saved = run_program({"predict", run, one, "--json", "--save-routing", file});
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  const ProgramResult plain = run_program({"predict", run, other, "--json"}),
                      replayed = run_program({"predict", run, other, "--json", "--routing", file});
  ASSERT_EQ(replayed.exit_code, 0) << replayed.err;
  const Json first = json_lines(saved.out).at(0), own = json_lines(plain.out).at(0),
             same = json_lines(replayed.out).at(0);
  EXPECT_EQ(same.at("experts"), first.at("experts"));
  EXPECT_NE(own.at("experts"), first.at("experts"));
  EXPECT_NE(same.at("probability"), own.at("probability"));

  // eval saves the routing of a split and replays it: the same accuracy with it, and another with that of other
  // weights.
  const std::string split = folder.path("split.safetensors");
  const ProgramResult evaluated = run_program({"eval", run, "--json", "--save-routing", split}),
                      again = run_program({"eval", run, "--json", "--routing", split});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json_lines(again.out).at(0).at("loss"), json_lines(evaluated.out).at(0).at("loss"));
  expect_records(split, file, one);
  const ProgramResult short_file = run_program({"eval", run, "--routing", file});
  EXPECT_EQ(short_file.exit_code, 1);
  EXPECT_NE(short_file.err.find("has routings for 1 images, but the split has 64"), std::string::npos)
      << short_file.err;

  const ProgramResult two = run_program({"predict", run, one, other, "--routing", file});
  EXPECT_EQ(two.exit_code, 1);
  EXPECT_NE(two.err.find("has routings for 1 images, but 2 were given"), std::string::npos) << two.err;
  const std::string tokens = folder.path("t.safetensors"), of_moe = folder.path("m.safetensors");
  write_safetensors(tokens, {{{"tokens", at::full({6, 4}, 0.5)}}, {}});
  ASSERT_EQ(run_program({"moe", tokens, "--save-routing", of_moe}).exit_code, 0);
  write_safetensors(tokens, {{{"tokens", at::full({3, 6, 4}, 0.5)}}, {}});
  const std::string of_three = folder.path("three.safetensors");
  ASSERT_EQ(run_program({"moe", tokens, "--save-routing", of_three}).exit_code, 0);
  const RoutingRecord record = read_routing_record(of_three);
  ASSERT_EQ(record.images.size(), 3u);
  EXPECT_EQ(record.images[2].id, "2");
  EXPECT_EQ(record.images[2].label, -1);
  const ProgramResult other_model = run_program({"predict", run, one, "--routing", of_moe});
  EXPECT_EQ(other_model.exit_code, 1);
  EXPECT_NE(other_model.err.find("the routing is for \"moe\", but the routers of the model are: blocks.1.mlp"),
            std::string::npos)
      << other_model.err;
  EXPECT_EQ(run_program({"moe", tokens, "--save-routing", tokens}).exit_code, 2);
  const ProgramResult none = run_program({"predict", run, one, "--routing", run + "/checkpoints/best.safetensors"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("is not a routing file"), std::string::npos) << none.err;
}

TEST(RoutingReplay, ExplainShowsTheExpertsOfAnotherImage) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run"), file = folder.path("r.safetensors");
  ASSERT_EQ(run_program({"train", tiny_config(folder), "--set", "train.epochs=1", "--out", run}).exit_code, 0);
  at::Tensor striped = at::full({3, 16, 16}, 20, at::kByte);
  striped.slice(1, 0, 16, 2).fill_(240);
  const std::string one = folder.write("one.png", encode_png(at::full({3, 16, 16}, 200, at::kByte))),
                    other = folder.write("other.png", encode_png(striped));
  const auto load = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"explain", run, "--json"});
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out).at("layers")[0].at("load");
  };
  const Json first = load({one, "--save-routing", file});
  EXPECT_EQ(load({other, "--routing", file}), first);
  EXPECT_NE(load({other}), first);
  const ProgramResult shown = run_program({"explain", run, other, "--routing", file});
  EXPECT_NE(shown.out.find("1 image file, routing of " + file), std::string::npos) << shown.out;
  const ProgramResult two = run_program({"explain", run, one, other, "--routing", file});
  EXPECT_EQ(two.exit_code, 1);
  EXPECT_NE(two.err.find("has routings for 1 images, but 2 are explained"), std::string::npos) << two.err;
}

TEST(RoutingReplay, MoeAppliesTheRoutingOfOtherTokens) {
  const TemporaryFolder folder;
  at::Tensor tokens = at::full({6, 4}, 0.5);
  tokens.slice(0, 3).fill_(-2);
  const std::string a = folder.path("a.safetensors"), b = folder.path("b.safetensors"),
                    r = folder.path("r.safetensors"), out = folder.path("out.safetensors");
  write_safetensors(a, {{{"tokens", tokens}}, {}});
  write_safetensors(b, {{{"tokens", tokens.flip(0)}}, {}});
  ASSERT_EQ(run_program({"moe", a, "--save-routing", r}).exit_code, 0);
  const ProgramResult replayed = run_program({"moe", b, "--routing", r, "--out", out});
  ASSERT_EQ(replayed.exit_code, 0) << replayed.err;
  const auto expert = [](const std::string& path) {
    for (const auto& [name, tensor] : read_safetensors(path).tensors)
      if (name == "expert") return tensor;
    return at::Tensor();
  };
  const at::Tensor used = expert(out);
  ASSERT_EQ(run_program({"moe", a, "--out", out}).exit_code, 0);
  EXPECT_TRUE(used.equal(expert(out)));
  ASSERT_EQ(run_program({"moe", b, "--out", out}).exit_code, 0);
  EXPECT_FALSE(used.equal(expert(out)));
}

// Layers of different routers and numbers of experts, one with a varying number of experts per token, and k from 3
// to 1.
TEST(LayerSettings, TrainEvaluateAndResumeWithTheSameBits) {
  const TemporaryFolder folder;
  const std::string config = folder.write("seams.toml", std::string(kTinyConfig) + kSeams);
  const auto train = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.begin(), {"train", config, "--out", folder.path(name)});
    return run_program(more);
  };
  ASSERT_EQ(train("whole", {}).exit_code, 0);
  const std::string log = read(folder.path("whole/metrics.jsonl"));
  double first = 0, last = 0;
  for (const Json& line : json_lines(log)) {
    if (line.at("kind") != "train") continue;
    ASSERT_EQ(line.at("layers").size(), 2u);
    EXPECT_EQ(line.at("layers")[0].at("layer"), "blocks.0.mlp");
    last = line.at("layers")[1].at("experts_per_token");
    if (first == 0) first = last;
    EXPECT_GT(line.at("layers")[0].at("experts_per_token"), 1);
  }
  EXPECT_EQ(first, 3);
  EXPECT_EQ(last, 1);

  Program broken({"train", config, "--out", folder.path("broken")});
  while (!std::filesystem::exists(folder.path("broken/checkpoints/last.safetensors")))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  broken.send(SIGKILL);
  broken.wait();
  const ProgramResult resumed = run_program({"train", "--resume", folder.path("broken")});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  for (const std::string file : {"best", "last"}) {
    const auto tensors = [&](const std::string& run) {
      return read_safetensors(folder.path(run + "/checkpoints/" + file + ".safetensors")).tensors;
    };
    const auto a = tensors("whole"), b = tensors("broken");
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].second.equal(b[i].second)) << file << ": " << a[i].first;
  }

  // A model loaded from the last checkpoint has the settings of its step.
  const ProgramResult evaluated = run_program({"eval", folder.path("whole"), "--checkpoint", "last", "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(json_lines(evaluated.out).back().at("layers")[1].at("experts_per_token"), 1);
}

TEST(LayerSettings, MistakesAreOneLine) {
  const TemporaryFolder folder;
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"[[moe.layer]]\nblocks = [9]\n", "there is no block 9"},
           {"[[moe.layer]]\nexperts = 4\n", "needs blocks"},
           {"[[moe.schedule]]\nsetting = \"router.nois\"\nfrom = 1\nto = 0\n", "router.nois cannot follow a schedule"},
           {"[[moe.schedule]]\nsetting = \"capacity.multiple\"\nfrom = 1\nto = 2\n", "cannot follow a schedule"},
           {"[router]\nscope = \"modle\"\n", "scope"}}) {
    const ProgramResult result =
        run_program({"train", folder.write("a.toml", std::string(kTinyConfig) + text), "--out", folder.path("run")});
    EXPECT_EQ(result.exit_code, 2) << text << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder.path("run")));
  }
}

}  // namespace sparsight::testing::routing_seams_test
