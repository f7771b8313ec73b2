// General behaviour of the command line: exit codes, help, and one clear line per error.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace sparsight::testing::command_line_test {
namespace {

// A wrong command line: exit 2, nothing on stdout, one line on stderr that contains `part`.
void expect_usage_error(const std::vector<std::string>& arguments, const std::string& part) {
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

}  // namespace

TEST(CommandLine, VersionGoesToStdout) {
  const ProgramResult result = run_program({"version"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.rfind("sparsight ", 0), 0u) << result.out;
  EXPECT_EQ(result.err, "");
}

TEST(CommandLine, HelpListsTheVerbs) {
  const ProgramResult result = run_program({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("version"), std::string::npos);
}

TEST(CommandLine, AnAnswerThatCannotBeWrittenIsAnError) {
  for (const std::string verb : {"version", "--help", "data list", "bench pmoe --samples 10 --epochs 1"}) {
    Program program({"-c", "exec '" + test::program_path() + "' " + verb + " > /dev/full"}, {}, "/bin/sh");
    const ProgramResult result = program.wait();
    if (result.err.find("are not built") != std::string::npos) continue;
    EXPECT_EQ(result.exit_code, 1) << verb;
    EXPECT_EQ(result.err, "error: cannot write to standard output; is it closed, or is the disk full?\n") << verb;
  }
}

TEST(CommandLine, LongInputIsNotEchoedWhole) {
  const std::string words(60000, 'x');
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{words},
                                                    {"version", "--" + words},
                                                    {"config", "show", "--set", "model.name=" + words},
                                                    {"config", "show", "--set", words},
                                                    {"eval", words}}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_GT(result.exit_code, 0);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
    EXPECT_LT(result.err.size(), 1100u) << arguments[0].substr(0, 20);
    EXPECT_NE(result.err.find(" bytes left out) ..."), std::string::npos) << result.err.substr(0, 2000);
  }
}

// The system refuses names of more than 255 bytes.
TEST(CommandLine, ANameThatIsTooLongIsAnErrorOfTheUser) {
  for (const std::string verb : {"train", "eval", "report", "inspect", "explain", "export", "prune"}) {
    const ProgramResult result = run_program({verb, std::string(5000, 'x')});
    EXPECT_GE(result.exit_code, 1) << verb;
    EXPECT_LE(result.exit_code, 2) << verb;
    EXPECT_EQ(result.err.find("internal error"), std::string::npos) << verb << ": " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << verb << ": " << result.err;
  }
}

TEST(CommandLine, UnknownVerbNamesTheNearest) { expect_usage_error({"versoin"}, "did you mean \"version\"?"); }

TEST(CommandLine, UnknownFlagNamesTheNearest) {
  expect_usage_error({"version", "--quite"}, "did you mean \"--quiet\"?");
}

TEST(CommandLine, AFlagThatIsLikeNoOtherComesWithoutAGuess) {
  for (const std::string flag : {"--checkpoint", "-x"}) {
    const ProgramResult result = run_program({"version", flag});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err, "error: unknown flag " + flag + "; see sparsight version --help\n");
  }
  expect_usage_error({"frobnicate"}, "unknown verb \"frobnicate\" after sparsight (known: demo, train, ");
}

TEST(CommandLine, AFlagNamedAsASettingIsAnsweredWithTheSet) {
  const auto error = [](const std::vector<std::string>& arguments) { return run_program(arguments).err; };
  EXPECT_EQ(error({"train", "a.toml", "--epochs", "2"}),
            "error: unknown flag --epochs; did you mean \"--set train.epochs=2\"?; see sparsight train --help\n");
  EXPECT_NE(error({"train", "a.toml", "--clip-norm=1"}).find("--set train.clip_norm=1"), std::string::npos);
  EXPECT_NE(error({"train", "--lr"}).find("--set optimizer.lr=VALUE"), std::string::npos);
  EXPECT_EQ(error({"report", "--epochs", "2"}).find("--set"), std::string::npos);  // takes no settings
}

TEST(CommandLine, AFlagOfAnotherProgramIsAnsweredWithTheSetting) {
  expect_usage_error({"train", "a.toml", "--batch-size", "8"}, "did you mean \"--set loader.batch=8\"?");
  expect_usage_error({"train", "a.toml", "--imgsz=64"}, "did you mean \"--set data.side=64\"?");
  expect_usage_error({"train", "a.toml", "-j", "4"}, "did you mean \"--set loader.workers=4\"?");
  expect_usage_error({"attack", "run", "--epsilon", "0.1"}, "did you mean \"--eps\"?");
  expect_usage_error({"train", "a.toml", "--device", "cuda"}, "unknown flag --device; the program computes on the CPU");
}

TEST(CommandLine, APositionalArgumentGivenAsAFlagIsShownInItsPlace) {
  expect_usage_error({"train", "--config", "a.toml"}, "unknown flag --config; it needs none: sparsight train a.toml");
}

TEST(CommandLine, AFlagBeforeItsVerbIsToldItsPlace) {
  expect_usage_error({"--set", "train.epochs=2", "train"}, "the flag --set belongs behind its verb: sparsight train");
}

TEST(CommandLine, ASettingWithoutItsSectionIsFound) {
  expect_usage_error({"train", "a.toml", "--set", "epochs=2"}, "did you mean \"train.epochs=2\"?");
  expect_usage_error({"config", "show", "--set", "router.name=topk"}, "did you mean \"softmax_topk\"?");
}

TEST(CommandLine, AFolderIsNoConfiguration) {
  expect_usage_error({"train", "/tmp"}, "configs/own_images.toml --set data.root=/tmp");
}

TEST(CommandLine, AMisspelledAttackIsFoundAmongAll) {
  const ProgramResult result = run_program({"attack", "run", "--attack", "autoatack"});
  EXPECT_NE(result.err.find("did you mean \"autoattack\"?"), std::string::npos) << result.err;
}

TEST(CommandLine, HelpIsAVerbToo) {
  EXPECT_EQ(run_program({"help", "train"}).out, run_program({"train", "--help"}).out);
  EXPECT_EQ(run_program({"help", "dg", "sweep"}).out, run_program({"dg", "sweep", "--help"}).out);
  EXPECT_EQ(run_program({"help"}).out, run_program({"--help"}).out);
  EXPECT_EQ(run_program({"val", "--help"}).out, run_program({"eval", "--help"}).out);
  expect_usage_error({"help", "tarin"}, "did you mean \"train\"?");
}

TEST(CommandLine, BenchHandsItsOptionsOn) {
  const ProgramResult unknown = run_program({"bench", "nosuch"});
  if (unknown.err.find("are not built") != std::string::npos) GTEST_SKIP() << "needs the benchmarks";
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_NE(unknown.err.find("no benchmark matches \"nosuch\" (known: "), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find("random_uniform"), std::string::npos) << unknown.err;
  EXPECT_TRUE(run_program({"bench", "--help"}).out.starts_with("Run the benchmarks"));
  EXPECT_TRUE(run_program({"bench", "moe", "--help"}).out.starts_with("Times the experts of one MoE layer"));
  expect_usage_error({"bench", "moe", "--tokens", "1", "--sizes", "2"},
                     "unknown flag --sizes; see sparsight_bench moe");
  expect_usage_error({"bench", "moe", "--tokens", "1,many"}, "--tokens: ");
  expect_usage_error({"bench", "moe", "--rounds", "0"}, "--rounds: ");
  expect_usage_error({"bench", "moe", "--packed", "perhaps"}, "--packed: ");
  expect_usage_error({"bench", "moe", "--experts", "8,1", "--k", "2"}, "--k 2 is more than --experts 1");
  expect_usage_error({"bench", "pmoe", "--form", "round"}, "unknown form \"round\"");
}

TEST(CommandLine, UnexpectedArgumentIsNamed) { expect_usage_error({"version", "now"}, "\"now\""); }

TEST(CommandLine, NoVerbIsAUsageError) { expect_usage_error({}, "--help"); }

TEST(CommandLine, GlobalFlagsMayFollowTheVerb) {
  EXPECT_EQ(run_program({"version", "--quiet"}).exit_code, 0);
  EXPECT_EQ(run_program({"--log-json", "version"}).exit_code, 0);
}

}  // namespace sparsight::testing::command_line_test
