// The predict verb on a trained run, and weights files that it and train must refuse.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/core/options.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/safetensors.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/paths.h"

namespace sparsight::testing::predict_test {
namespace {

class PredictVerb : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult trained =
        run_program({"train", tiny_config(*folder_), "--set", "train.epochs=1", "--out", run()});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    folder_->write("images/a.png", encode_png(at::full({3, 16, 16}, 200, at::kByte)));
    folder_->write("images/b.png", encode_png(at::full({1, 16, 16}, 30, at::kByte)));
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string run() { return folder_->path("run"); }
  static std::string image() { return folder_->path("images/a.png"); }
  static TemporaryFolder* folder_;
};

TemporaryFolder* PredictVerb::folder_ = nullptr;

TEST_F(PredictVerb, SaysClassProbabilityAndExperts) {
  const ProgramResult result = run_program({"predict", run(), image()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.rfind(image() + ": ", 0), 0u) << result.out;
  EXPECT_NE(result.out.find(" %"), std::string::npos);
  EXPECT_NE(result.out.find("\n  blocks.1.mlp: expert "), std::string::npos) << result.out;
}

TEST_F(PredictVerb, WritesJsonForFoldersAndLists) {
  const ProgramResult result = run_program({"predict", run(), "--json", "--top", "2", folder_->path("images"), "-"},
                                           {.input = image() + "\n", .environment = {}, .folder = ""});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> lines = json_lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  for (const Json& line : lines) {
    ASSERT_EQ(line["classes"].size(), 2u);
    EXPECT_EQ(line["classes"][0]["class"], line["class"]);
    EXPECT_GE(line["probability"], line["classes"][1]["probability"]);
    double total = 0;
    for (const Json& entry : line["experts"]["blocks.1.mlp"]) total += entry["share"].get<double>();
    EXPECT_NEAR(total, 1, 1e-9);
  }
  EXPECT_EQ(lines[0], lines[2]);  // the same image in the folder and in the list
}

TEST_F(PredictVerb, PacksExperts) {
  const std::string plain = run_program({"predict", run(), image()}).out;
  EXPECT_EQ(run_program({"predict", run(), "--weights", "fp32", image()}).out, plain);
  const ProgramResult bytes = run_program({"predict", run(), "--weights", "int8", image(), "--json"});
  EXPECT_EQ(bytes.exit_code, 0) << bytes.err;
  EXPECT_EQ(json_lines(bytes.out).size(), 1u);
  EXPECT_EQ(run_program({"predict", run(), "--weights", "int4", image()}).exit_code, 2);
  for (const char* type : {"fp32", "bf16", "int8"}) {
    const ProgramResult evaluated = run_program({"eval", run(), "--weights", type, "--json"});
    EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
    EXPECT_EQ(json_lines(evaluated.out).size(), 1u);
  }
}

TEST_F(PredictVerb, ABadImageDoesNotStopTheOthers) {
  const std::string cut = folder_->write("cut.png", read_file(image(), 1 << 20).substr(0, 40));
  const ProgramResult result = run_program({"predict", run(), cut, folder_->path("missing.png"), image()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out.rfind(image() + ": ", 0), 0u) << result.out;
  for (const char* part : {"cut.png", "missing.png", "2 of 3 images could not be processed"})
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 3) << result.err;
}

TEST_F(PredictVerb, SaysWhatIsWrongWithAMissingModelAndExchangedArguments) {
  expect_failure(run_program({"predict", folder_->path("vit.safetensors"), image()}), 1,
                 "vit.safetensors: no such file or folder; name a run folder");
  expect_failure(run_program({"predict", image(), run()}), 2, "the model comes first, then the images");
  expect_failure(run_program({"predict", folder_->path("images"), folder_->path("vit.pth")}), 2,
                 "the model comes first, then the images");
  expect_failure(run_program({"predict", run(), image(), "--labels", "imagenet1k"}), 2,
                 "--labels is for files of weights alone");
  expect_failure(run_program({"eval", folder_->path("vit.safetensors")}), 1, "no such file or folder");
}

TEST_F(PredictVerb, TakesPicturesOfAnySizeAndColour) {
  const std::string tall = folder_->write("tall.png", encode_png(at::full({3, 40, 23}, 90, at::kByte)));
  const std::string small = folder_->write("small.png", encode_png(at::full({1, 5, 7}, 90, at::kByte)));
  const ProgramResult result = run_program({"predict", run(), tall, small, image()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find("are resized by the shorter side and cropped to the model's 16x16"), std::string::npos)
      << result.err;
}

// A line in, its prediction out, before the next line is written.
TEST_F(PredictVerb, AnswersEachLineAsItComes) {
  const std::string talk = R"(mkfifo "$3/in" "$3/out"
    "$0" predict "$1" - --json < "$3/in" > "$3/out" &
    exec 3> "$3/in" 4< "$3/out"
    for i in 1 2 3; do echo "$2" >&3; read -r line <&4 || exit 9; echo "$line"; done
    exec 3>&-; wait $!)";
  const TemporaryFolder pipes;
  Program program({"-c", talk, test::program_path(), run(), image(), pipes.path()}, {}, "/bin/sh");
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(json_lines(result.out).size(), 3u);
}

TEST_F(PredictVerb, CtrlCStopsBetweenImages) {
  constexpr size_t kImages = 50000;
  std::string lines;
  for (size_t i = 0; i < kImages; ++i) lines += image() + "\n";
  const std::string list = folder_->write("list", lines), outputs = folder_->path("answers.jsonl");
  Program program(
      {"-c", R"(exec "$0" predict "$1" - --json < "$2" > "$3")", test::program_path(), run(), list, outputs}, {},
      "/bin/sh");
  std::error_code absent;
  for (int i = 0; i < 30000; ++i) {
    if (const auto size = std::filesystem::file_size(outputs, absent); !absent && size > 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  program.send(SIGINT);
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const size_t predicted = json_lines(read_file(outputs, 100 << 20)).size();
  EXPECT_GT(predicted, 0u);
  EXPECT_NE(result.err.find(cat("error: interrupted after ", predicted, " images\n")), std::string::npos) << result.err;
}

TEST_F(PredictVerb, TakesTheLastWeightsUnderBothNames) {
  const std::string last = run_program({"predict", run(), "--checkpoint", "last", image()}).out;
  EXPECT_NE(last, "");
  EXPECT_EQ(run_program({"predict", run(), "--checkpoint", "last", image()}).out, last);
  EXPECT_EQ(run_program({"predict", run(), "--checkpoint", "first", image()}).exit_code, 2);
}

TEST_F(PredictVerb, SettingsReachTheModel) {
  const auto experts = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"predict", run(), "--json", image()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json_lines(result.out).at(0)["experts"]["blocks.1.mlp"];
  };
  const Json all = experts({"--set", "router.eval_k=4"});
  ASSERT_EQ(all.size(), 4u);
  for (const Json& entry : all) EXPECT_EQ(entry["share"], 0.25);  // every patch goes to every expert
  EXPECT_NE(experts({}), all);
  EXPECT_EQ(run_program({"predict", run(), "--set", "router.evalk=1", image()}).exit_code, 2);
}

TEST_F(PredictVerb, RefusesWhatIsNoRun) {
  expect_failure(run_program({"predict", folder_->path("nothing"), image()}), 1, "nothing");
  expect_failure(run_program({"predict", folder_->path("images"), image()}), 1, "is not a run folder");
  expect_failure(run_program({"predict", run(), folder_->path("run/checkpoints")}), 1, "contains no .jpg");
  EXPECT_EQ(run_program({"predict", run(), image(), "--top", "0"}).exit_code, 2);
  EXPECT_EQ(run_program({"predict", run()}).exit_code, 2);
}

TEST_F(PredictVerb, RefusesDamagedCheckpoints) {
  const std::string good = folder_->path("run/checkpoints/best.safetensors"), bad = folder_->path("bad.safetensors");
  TensorFile file = read_safetensors(good);
  file.metadata["version"] = "99";
  write_safetensors(bad, file);
  expect_failure(run_program({"predict", bad, image()}), 1, "of version 99, newer than");
  const std::string bytes = read_file(good, 100 << 20);
  folder_->write("bad.safetensors", bytes.substr(0, bytes.size() - 1));
  expect_failure(run_program({"predict", bad, image()}), 1, "it is truncated or damaged");
  folder_->write("bad.safetensors", bytes.substr(0, 100));
  expect_failure(run_program({"predict", bad, image()}), 1, "beyond the file");
}

// A safetensors file with this header and four bytes of data.
std::string with_header(const std::string& header) {
  uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + "abcd";
}

TEST_F(PredictVerb, TrainingRefusesDamagedWeightsAndWritesNothing) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const std::string golden = test::source_path("tests/golden/io/");
  const auto refuse = [&](const std::string& path, const std::string& part) {
    const std::string out = folder_->path("never");
    expect_failure(run_program({"train", tiny_config(*folder_), "--init-from", path, "--out", out}), 1, part);
    EXPECT_FALSE(std::filesystem::exists(out));
  };
  const std::string bad = folder_->path("weights");
  const auto refuse_header = [&](const std::string& header, const std::string& part) {
    folder_->write("weights", with_header(header));
    refuse(bad, part);
  };
  refuse_header("{\"a\":" + entry + ",\"a\":" + entry + "}", "the key \"a\" twice");
  refuse_header("{\"a\":" + entry + ",\"b\":" + entry + "}", "overlaps");
  refuse_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "the file has 4 bytes");
  refuse_header(R"({"a":{"dtype":"X32","shape":[1],"data_offsets":[0,4]}})", "unknown type \"X32\"");
  folder_->write("weights", with_header("{}").replace(0, 4, "\xff\xff\xff\x02"));
  refuse(bad, "beyond the file");
  folder_->write("weights", read_file(golden + "plain.pt", 1 << 20).substr(0, 900));
  refuse(bad, "is not a zip archive or is damaged");
  refuse(golden + "evil.pt", "posix.system");
  refuse(golden + "plain.pt", "no tensor of the file fits");
}

}  // namespace
}  // namespace sparsight::testing::predict_test
