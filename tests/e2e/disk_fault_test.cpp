// Verbs that write files survive a kill and a full disk at any of their file operations: the same command, started
// again, ends with what an unbroken one leaves. The operations are sampled; SPARSIGHT_EVERY_DISK_FAULT=1 tries all.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "tests/data/readers/fixtures.h"
#include "tests/support/disk_faults.h"
#include "tests/support/folder_contents.h"
#include "tests/support/sanitizers.h"

namespace sparsight::testing::disk_fault_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr size_t kSampledKills = 10, kSampledFull = 4;

// Glyphs, and a ViT of a single block, in six steps.
constexpr const char* kSmallestConfig = R"(
[run]
seed = 3
threads = 1
[data]
name = "glyphs"
classes = 3
side = 16
train = 24
validation = 12
test = 12
[transforms]
train = [{op = "normalize", mean = [0.5], std = [0.5]}]
eval = [{op = "normalize", mean = [0.5], std = [0.5]}]
[loader]
batch = 8
workers = 1
[model]
name = "vit"
size = "custom"
width = 8
depth = 1
heads = 2
patch = 8
[moe]
blocks = [0]
experts = 3
[train]
epochs = 2
ema_decay = 0.9
log_every = 1
[optimizer]
name = "adamw"
lr = 0.002
)";

template <class T>
std::vector<T> joined(std::vector<T> values, const std::vector<T>& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

// What the verbs read: made once.
class Inputs {
 public:
  Inputs() {
    config_ = folder_.write("smallest.toml", kSmallestConfig);
    tokens_ = folder_.write(
        "tokens.npy", npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (8, 4), }\n", std::string(128, 1)));
    made_ = run_program({"train", config_, "--out", run(), "--quiet"}).exit_code +
            run_program({"data", "make", domains(), "--layout", "domain", "--set", "side=16", "--set", "classes=2",
                         "--set", "train=32", "--set", "validation=16", "--set", "test=16", "--quiet"})
                .exit_code +
            run_program(joined({"dg", "sweep", "--trials", "1", "--hparams", "1", "--no-pairs", "--algorithms", "erm",
                                "--out", sweep()},
                               dg()))
                .exit_code +
            run_program({"weights", "shard", run(), "--files", "2", "--out", shards()}).exit_code;
  }
  bool are_made() const { return made_ == 0; }
  std::string config() const { return config_; }
  std::string run() const { return folder_.path("run"); }
  std::string domains() const { return folder_.path("domains"); }
  std::string tokens() const { return tokens_; }
  std::string sweep() const { return folder_.path("sweep"); }
  std::string shards() const { return folder_.path("shards"); }
  Words dg() const {
    return {"--dataset",    "folder",
            "--data",       domains(),
            "--image-size", "16",
            "--model",      "vit",
            "--steps",      "4",
            "--eval-every", "2",
            "--set",        "model.size=custom",
            "--set",        "model.width=8",
            "--set",        "model.depth=1",
            "--set",        "model.heads=2",
            "--set",        "model.patch=8",
            "--set",        "loader.batch=4",
            "--set",        "moe.blocks=[0]",
            "--set",        "moe.experts=2",
            "--set",        "run.threads=1",
            "--quiet"};
  }

 private:
  TemporaryFolder folder_;
  std::string config_, tokens_;
  int made_ = -1;
};

struct Verb {
  std::string name;
  std::function<Words(const Inputs& inputs, const std::string& out)> command;
  std::function<Words(const std::string& out)> resume = {};  // where it is not the same command that goes on
  bool in_run = false;                                       // `out` is a copy of the run, into which it writes
  std::string ending = {};                                   // of `out` where it is a file
};

std::ostream& operator<<(std::ostream& out, const Verb& verb) { return out << verb.name; }

Words data_make(const Inputs&, const std::string& out) {
  return {"data",      "make",  out,       "--quiet", "--set",        "side=16", "--set",
          "classes=2", "--set", "train=4", "--set",   "validation=2", "--set",   "test=2"};
}

// Verbs that write a trained model in another form.
std::vector<Verb> verbs_that_export() {
  const auto export_as = [](const std::string& format) {
    return [format](const Inputs& inputs, const std::string& out) {
      return Words{"export", inputs.run(), "--format", format, "--out", out, "--quiet"};
    };
  };
  return {
      {.name = "export_frozen", .command = export_as("sparsight"), .ending = ".sparsight"},
      {.name = "export_onnx", .command = export_as("onnx"), .ending = ".onnx"},
      {"weights_publish",
       [](const Inputs& inputs, const std::string& out) {
         return Words{"weights", "publish", inputs.run(), "--out", out};
       }},
      {"weights_shard",
       [](const Inputs& inputs, const std::string& out) {
         return Words{"weights", "shard", inputs.run(), "--files", "2", "--out", out};
       }},
      {.name = "weights_merge",
       .command =
           [](const Inputs& inputs, const std::string& out) {
             return Words{"weights", "merge", inputs.shards(), "--out", out};
           },
       .ending = ".safetensors"},
  };
}

std::vector<Verb> verbs() {
  const auto resume = [](const std::string& out) { return Words{"train", "--resume", out, "--quiet"}; };
  const auto train = [](const Words& more) {
    return [more](const Inputs& inputs, const std::string& out) {
      return joined({"train", inputs.config(), "--out", out, "--quiet"}, more);
    };
  };
  const auto dg = [](const Words& words) {
    return [words](const Inputs& inputs, const std::string& out) {
      return joined(joined(joined({"dg"}, words), {"--out", out}), inputs.dg());
    };
  };
  const auto prune = [](const Inputs& inputs, const std::string& out) {
    return Words{"prune", inputs.run(), "--experts", "blocks.0.mlp:0", "--out", out, "--quiet"};
  };
  const auto in_run = [](const Words& verb) {
    return [verb](const Inputs&, const std::string& run) { return joined(verb, {run, "--quiet"}); };
  };
  return {
      {"train", train({}), resume},
      {"train_with_rare_checkpoints", train({"--set", "train.checkpoint_every=5"}), resume},
      {"dg_train", dg({"train", "--algorithm", "erm", "--test-envs", "1"})},
      {"dg_train_swad", dg({"train", "--algorithm", "swad", "--test-envs", "1"})},
      {"dg_sweep", dg({"sweep", "--trials", "1", "--hparams", "1", "--no-pairs"})},
      {"attack",
       [](const Inputs& inputs, const std::string& out) {
         return Words{"attack", inputs.run(), "--out",          out,       "--quiet", "--attack", "pgd", "--eps",
                      "4/255",  "--set",      "attack.steps=2", "--batch", "8"};
       }},
      {"reproduce",
       [](const Inputs&, const std::string& out) {
         return Words{"reproduce", "robust_moe/t8", "--scale", "smoke", "--run", out, "--jobs", "1", "--quiet"};
       }},
      {"prune", prune},
      {"data_make", data_make},
      {"superclass_train",
       [](const Inputs& inputs, const std::string& out) {
         return Words{"superclass", "train", inputs.config(),         "--out",  out, "--experts",
                      "2",          "--set", "router.name=per_image", "--quiet"};
       }},
      {.name = "superclass", .command = in_run({"superclass", "--experts", "2"}), .in_run = true},
      {.name = "explain", .command = in_run({"explain"}), .in_run = true},
      {.name = "report", .command = in_run({"report"}), .in_run = true},
      {"eval",
       [](const Inputs& inputs, const std::string& out) {
         return Words{"eval", inputs.run(), "--records", out, "--quiet"};
       }},
      {.name = "moe",
       .command =
           [](const Inputs& inputs, const std::string& out) {
             return Words{"moe", inputs.tokens(), "--set", "moe.experts=4", "--out", out, "--quiet"};
           },
       .ending = ".safetensors"},
      {"dg_export",
       [](const Inputs& inputs, const std::string& out) {
         return Words{"dg", "export", inputs.sweep(), "--out", out, "--quiet"};
       }},
  };
}

class SurvivesDiskFaults : public ::testing::TestWithParam<Verb> {
 protected:
  static void SetUpTestSuite() { inputs_ = new Inputs; }
  static void TearDownTestSuite() { delete inputs_; }

  // After a fault: ends as the unbroken command did.
  void expect_goes_on(const Words& command, const std::string& out) {
    ProgramResult again = run_program(command, retry_options());
    if (again.exit_code != 0 && GetParam().resume) {
      EXPECT_NE(again.err.find("go on with --resume"), std::string::npos) << again.err;
      again = run_program(GetParam().resume(out), retry_options());
    }
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(find_difference(folder_contents(out), expected_), "") << again.err;
  }
  static ProgramOptions retry_options() {
    ProgramOptions options;
    options.timeout_seconds = 120;
    options.environment = {{"SPARSIGHT_PYTHON", "/bin/false"}};
    return options;
  }

  inline static Inputs* inputs_ = nullptr;
  std::map<std::string, std::string> expected_;
};

TEST_P(SurvivesDiskFaults, AtEveryFileOperation) {
  if (test::kAddressSanitizer) GTEST_SKIP() << "a preloaded library comes before the sanitizer's";
  ASSERT_TRUE(inputs_->are_made());
  const TemporaryFolder folder;
  const std::string place = folder.path("place"), out = place + "/out" + GetParam().ending;
  const Words command = GetParam().command(*inputs_, out);
  const auto clear = [&] {
    fs::remove_all(place);
    fs::create_directory(place);
    if (GetParam().in_run) fs::copy(inputs_->run(), out, fs::copy_options::recursive);
  };
  clear();
  DiskFaults faults(place);
  const ProgramResult unbroken = faults.run_and_count(command);
  ASSERT_EQ(unbroken.exit_code, 0) << unbroken.err;
  expected_ = folder_contents(out);
  ASSERT_GT(faults.operations().size(), 3u);
  const bool all = std::getenv("SPARSIGHT_EVERY_DISK_FAULT");
  for (const FileOperation& operation : faults.sampled(all ? faults.operations().size() : kSampledKills)) {
    SCOPED_TRACE("killed at operation " + std::to_string(operation.number) + ": " + operation.text);
    clear();
    const ProgramResult killed = faults.run_with(DiskFault::kill, operation.number, command);
    EXPECT_NE(killed.exit_code, 0);
    expect_goes_on(command, out);
    if (HasFatalFailure()) return;
  }
  for (const FileOperation& operation : faults.sampled(all ? faults.operations().size() : kSampledFull)) {
    SCOPED_TRACE("disk full from operation " + std::to_string(operation.number) + ": " + operation.text);
    clear();
    const ProgramResult full = faults.run_with(DiskFault::full, operation.number, command);
    EXPECT_LE(full.exit_code, 1) << full.err;
    EXPECT_EQ(full.exit_code == 1, full.err.find("error: ") != std::string::npos) << full.err;
    expect_goes_on(command, out);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Verbs, SurvivesDiskFaults, ::testing::ValuesIn(joined(verbs(), verbs_that_export())),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sparsight::testing::disk_fault_test
