// The verbs export and inspect, and the verbs that take what they wrote like a run.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/data/readers/png_write.h"
#include "sparsight/infer/export_model.h"
#include "sparsight/io/atomic_file.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/errors.h"

namespace sparsight::testing::export_test {
namespace {

class ExportVerb : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult trained =
        run_program({"train", tiny_config(*folder_), "--set", "train.epochs=1", "--out", run(), "--quiet"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    folder_->write("image.png", encode_png(at::full({3, 16, 16}, 200, at::kByte)));
    for (const std::string type : {"fp32", "bf16", "int8"}) {
      const ProgramResult exported = run_program({"export", run(), "--weights", type, "--out", file(type), "--json"});
      ASSERT_EQ(exported.exit_code, 0) << exported.err;
      results_[type] = json_lines(exported.out).at(0);
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string run() { return folder_->path("run"); }
  static std::string file(const std::string& type) { return folder_->path(type + ".sparsight"); }
  static Json output_json(const std::vector<std::string>& arguments) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out, nullptr, false);
  }
  static TemporaryFolder* folder_;
  static std::map<std::string, Json> results_;
};

TemporaryFolder* ExportVerb::folder_ = nullptr;
std::map<std::string, Json> ExportVerb::results_;

TEST_F(ExportVerb, ComparesTheAnswersWithThoseOfFp32) {
  for (const auto& [type, result] : results_) {
    EXPECT_EQ(result["weights"], type);
    EXPECT_EQ(result["images"], 64);
    EXPECT_EQ(result["split"], "val");
    EXPECT_EQ(result["bytes"], std::filesystem::file_size(file(type)));
    EXPECT_NEAR(result["drop"].get<double>(),
                100 * (result["fp32_accuracy"].get<double>() - result["accuracy"].get<double>()), 1e-9);
  }
  EXPECT_EQ(results_["fp32"]["agreement"], 1);
  EXPECT_GE(results_["bf16"]["agreement"].get<double>(), 0.9);
  EXPECT_LT(results_["bf16"]["bytes"], results_["fp32"]["bytes"]);
  EXPECT_LT(results_["int8"]["bytes"], results_["bf16"]["bytes"]);
}

TEST_F(ExportVerb, GivesFilesThatPredictAndEvalTakeLikeRuns) {
  for (const std::string type : {"fp32", "bf16", "int8"}) {
    const std::vector<std::string> image{folder_->path("image.png"), "--json"};
    const auto predict = [&](std::vector<std::string> from) {
      from.insert(from.begin(), "predict");
      from.insert(from.end(), image.begin(), image.end());
      return output_json(from);
    };
    EXPECT_EQ(predict({file(type)}), predict({run(), "--weights", type}));
    const Json of_file = output_json({"eval", file(type), "--json"}),
               of_run = output_json({"eval", run(), "--weights", type, "--json"});
    for (const char* key : {"loss", "accuracy", "images", "step", "layers", "touched"})
      EXPECT_EQ(of_file[key], of_run[key]) << key;
  }
  EXPECT_NE(output_json({"eval", file("int8"), "--json"})["loss"], output_json({"eval", run(), "--json"})["loss"]);
}

TEST_F(ExportVerb, KeepsPackedWeightsBesideItsFileOnRequest) {
  const std::string image = folder_->path("image.png");
  const auto packed_files = [&] {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_->path()))
      if (entry.path().extension() == ".packed") found.push_back(entry.path());
    return found;
  };
  const Json expected = output_json({"predict", file("int8"), image, "--json"});
  EXPECT_TRUE(packed_files().empty());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(output_json({"predict", file("int8"), image, "--json", "--pack-cache"}), expected);
  EXPECT_EQ(output_json({"eval", file("int8"), "--json", "--pack-cache"})["loss"],
            output_json({"eval", file("int8"), "--json"})["loss"]);
  const auto packed = packed_files();
  ASSERT_EQ(packed.size(), 1U);
  std::filesystem::remove(packed[0]);
  std::filesystem::create_directory(packed[0]);  // and so it cannot be written
  const ProgramResult without = run_program({"predict", file("int8"), image, "--json", "--pack-cache"});
  EXPECT_EQ(Json::parse(without.out, nullptr, false), expected);
  EXPECT_NE(without.err.find("packed weights are not kept: cannot write"), std::string::npos) << without.err;
  std::filesystem::remove(packed[0]);
  const ProgramResult refused = run_program({"predict", run(), image, "--pack-cache"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--pack-cache is for models that sparsight export wrote"), std::string::npos);
}

TEST_F(ExportVerb, GivesFilesThatExplainAndCompareTake) {
  const ProgramResult explained = run_program({"explain", file("fp32"), "--images", "16"});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_TRUE(std::filesystem::exists(file("fp32") + ".explained/explain.json"));
  EXPECT_NE(run_program({"compare", file("fp32"), run()}).err.find("records"), std::string::npos);
  output_json({"eval", file("fp32"), "--records", file("fp32") + ".records", "--json"});
  output_json({"eval", run(), "--records", run() + "/records", "--json"});
  const Json compared = output_json({"compare", file("fp32"), run(), "--json"});
  EXPECT_EQ(compared["images"], 64);
}

TEST_F(ExportVerb, DescribesAFile) {
  const Json about = output_json({"inspect", file("int8"), "--json"});
  EXPECT_EQ(about["provenance"]["run"], "best.safetensors");
  EXPECT_EQ(about["provenance"]["measured"]["agreement"], results_["int8"]["agreement"]);
  EXPECT_EQ(about["classes"].size(), 4U);
  EXPECT_EQ(about["expert_columns"].size(), 4U);
  const ProgramResult text = run_program({"inspect", file("int8")});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* part : {"all with their checksums", "route", "blocks.1.mlp", "expert columns: 4"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part;
}

TEST_F(ExportVerb, EndsAsBeforeWhereItsFileIsThereAlready) {
  for (const std::string type : {"fp32", "int8"}) {
    const auto written = std::filesystem::last_write_time(file(type));
    EXPECT_EQ(output_json({"export", run(), "--weights", type, "--out", file(type), "--json"}), results_[type]);
    EXPECT_EQ(std::filesystem::last_write_time(file(type)), written);
  }
}

TEST_F(ExportVerb, RefusesWhatItCannotDo) {
  const auto refused = [](std::vector<std::string> arguments, int exit_code, const std::string& part) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  refused({"export", run(), "--weights", "bf16", "--out", file("fp32")}, 1, "exists already and is of another model");
  refused({"export", run(), "--format", "onnx", "--no-compare", "--out", file("fp32")}, 1,
          "already with other content");
  refused({"export", run(), "--max-drop", "1", "--no-compare"}, 2, "--max-drop");
  refused({"export", run(), "--smooth", "0.5", "--no-compare", "--out", folder_->path("s.sparsight")}, 2, "--smooth");
  refused({"export", run(), "--smooth", "1.5"}, 2, "--smooth");
  refused({"export", file("fp32"), "--out", folder_->path("again.sparsight")}, 1, "is exported already");
  refused({"predict", file("fp32"), "--weights", "int8", folder_->path("image.png")}, 2,
          "export the run with --weights");
  refused({"eval", file("fp32"), "--set", "router.eval_k=1"}, 2, "is a frozen model, whose [router] stays as it is");
  refused({"attack", file("fp32")}, 1, "has no gradients");
  refused({"inspect", run()}, 1, "it is a folder");
  refused({"inspect", folder_->path("image.png")}, 1, "is not a frozen model");
  const std::string cut = folder_->write("cut.sparsight", read_file(file("fp32"), 1 << 26).substr(0, 5000));
  refused({"predict", cut, folder_->path("image.png")}, 1, "damaged");
  refused({"export", run(), "--out", "/dev/full/x.sparsight", "--quiet"}, 1, "cannot");
}

// What is in it is compared in ONNX Runtime by tests/engine/onnx (tests/README.md).
TEST_F(ExportVerb, WritesOnnx) {
  const std::string out = folder_->path("model.onnx");
  const ProgramResult result = run_program({"export", run(), "--format", "onnx", "--out", out});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string bytes = read_file(out, 1 << 26);
  for (const char* name : {"images", "logits", "routing.blocks.1.mlp.experts"})
    EXPECT_NE(bytes.find(name), std::string::npos) << name;
  EXPECT_EQ(run_program({"predict", out, folder_->path("image.png")}).exit_code, 1);
}

TEST_F(ExportVerb, ChoosesTypesStepByStep) {
  const Json loose = output_json(
      {"export", run(), "--weights", "auto", "--max-drop", "100", "--out", folder_->path("loose.sparsight"), "--json"});
  EXPECT_GT(loose["types"]["int8"], 3);
  EXPECT_EQ(loose["types"]["bf16"], 0);
  const Json strict = output_json(
      {"export", run(), "--weights", "auto", "--max-drop", "0", "--out", folder_->path("strict.sparsight"), "--json"});
  EXPECT_LE(strict["drop"], 0);
  const Json& types = strict["types"];
  EXPECT_EQ(types["int8"].get<int>() + types["bf16"].get<int>() + types["fp32"].get<int>(), loose["types"]["int8"]);
  EXPECT_EQ(output_json({"eval", folder_->path("strict.sparsight"), "--split", "val", "--json"})["accuracy"],
            strict["accuracy"]);
}

// In fp32 smoothed weights give the answers of the run.
TEST_F(ExportVerb, SmoothsOutlierChannels) {
  const auto smoothed = [&](const std::string& type) {
    return output_json({"export", run(), "--weights", type, "--smooth", "0.5", "--out",
                        folder_->path("smooth_" + type + ".sparsight"), "--json"});
  };
  EXPECT_GT(smoothed("fp32")["smoothed_layers"], 0);
  EXPECT_EQ(
      output_json({"inspect", folder_->path("smooth_fp32.sparsight"), "--json"})["provenance"]["measured"]["agreement"],
      1);
  EXPECT_EQ(
      output_json({"inspect", folder_->path("smooth_fp32.sparsight"), "--json"})["provenance"]["measured"]["smooth"],
      0.5);
  EXPECT_GE(smoothed("int8")["agreement"].get<double>(), 0.9);
  EXPECT_NE(read_file(folder_->path("smooth_int8.sparsight"), 1 << 26), read_file(file("int8"), 1 << 26));
}

TEST_F(ExportVerb, WritesNothingWhereTheAccuracyDropsTooMuch) {
  ExportRequest request;
  request.path = run(), request.out = folder_->path("dropped.sparsight");
  request.max_drop = -1;  // no file reaches it: that takes a gain of a point
  EXPECT_NE(error_text([&] { export_model(request); }).find("more than --max-drop -1; nothing was written"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(request.out));
  request.max_drop = 0;
  EXPECT_EQ(export_model(request)["drop"], 0);
  EXPECT_TRUE(std::filesystem::exists(request.out));
}

}  // namespace
}  // namespace sparsight::testing::export_test
