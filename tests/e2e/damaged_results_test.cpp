// Results in text files whose digits changed on a disk: every flipped bit is noticed, no verb goes on with them, and
// jobs that left them run again.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <random>

#include "sparsight/dg/results/results.h"
#include "sparsight/eval/records.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/io/metrics_log.h"
#include "tests/e2e/attack_fixture.h"
#include "tests/e2e/dg_verb.h"
#include "tests/e2e/output.h"

namespace sparsight::testing::damaged_results_test {
namespace {

namespace fs = std::filesystem;
using dg_verb_test::DgVerb;
using dg_verb_test::kSmall;

constexpr int kFlips = 300;
constexpr size_t kMaxFile = size_t{1} << 24;

using Read = std::function<void(const std::string& path)>;

// Flips one random bit of the file at a time: `read` must raise an error. The file is then as it was.
void expect_every_flip_is_noticed(const std::string& path, const Read& read) {
  const std::string whole = read_file(path, kMaxFile);
  ASSERT_NO_THROW(read(path)) << path;
  std::mt19937 random(1);
  for (int flip = 0; flip < kFlips; ++flip) {
    std::string damaged = whole;
    const size_t at = random() % whole.size();
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    write_file_atomically(path, damaged);
    ASSERT_THROW(read(path), Error) << path << ", byte " << at << ": " << damaged.substr(at, 20);
  }
  write_file_atomically(path, whole);
}

void read_object(const std::string& path) { parse_checked_object(read_file(path, kMaxFile), path); }

void read_lines(const std::string& path) {
  std::istringstream text(read_file(path, kMaxFile));
  for (std::string line; std::getline(text, line);) parse_checked_object(line, path);
}

// Changes the first digit after `key` to another.
void change_digit(const std::string& path, const std::string& key) {
  std::string text = read_file(path, kMaxFile);
  const size_t found = text.find(key);
  ASSERT_NE(found, std::string::npos) << path;
  const size_t at = text.find_first_of("0123456789", found + key.size());
  text[at] = text[at] == '7' ? '8' : '7';
  write_file_atomically(path, text);
}

class DamagedRun : public AttackFixture {};
class DamagedSweep : public DgVerb {};

TEST_F(DamagedRun, EveryFlipOfItsResultsIsNoticed) {
  ASSERT_EQ(run_program({"eval", run(), "--records", at("records"), "--quiet"}).exit_code, 0);
  result("--attack fgsm --eps 4/255 --images 16 --out " + at("attacked"));
  expect_every_flip_is_noticed(run() + "/metrics.jsonl", [](const std::string& path) { read_metrics(path); });
  expect_every_flip_is_noticed(at("records/index.json"), [](const std::string&) { read_records(at("records")); });
  for (const char* file : {"/attack.json", "/result.json"})
    expect_every_flip_is_noticed(at("attacked") + file, read_object);
}

TEST_F(DamagedRun, VerbsNameTheDamage) {
  const std::string copy = at("copy"), log = copy + "/metrics.jsonl";
  fs::copy(run(), copy, fs::copy_options::recursive);
  change_digit(log, "\"kind\":\"eval\"");
  const std::string text = read_file(log, kMaxFile);
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(text.find("\"eval\"")), '\n');
  for (const char* format : {"html", "table"}) {
    const ProgramResult report = run_program({"report", copy, "--format", format});
    EXPECT_NE(
        report.err.find(cat("1 line of metrics.jsonl could not be read and was left out; the first is line ", line)),
        std::string::npos)
        << report.err;
  }
  const ProgramResult baseline = run_program({"report", run(), "--baseline", copy, "--format", "table"});
  EXPECT_NE(baseline.err.find(cat("warning: ", copy, ": 1 line of metrics.jsonl")), std::string::npos) << baseline.err;
  fs::remove(copy + "/done");
  const ProgramResult resumed = run_program({"train", "--resume", copy, "--quiet"});
  expect_failure(resumed, 1, cat(log, ":", line, " does not match its checksum; remove the line or restore the file"));

  ASSERT_EQ(run_program({"eval", run(), "--records", at("named"), "--quiet"}).exit_code, 0);
  change_digit(at("named/index.json"), "\"step\"");
  expect_failure(run_program({"compare", at("named"), at("named")}), 1,
                 at("named/index.json") + " is no index of records: it does not match its checksum");

  const std::string fgsm = "--attack fgsm --eps 2/255 --images 16 --out " + run() + "/attacks/fgsm";
  result(fgsm);
  for (const char* file : {"attack.json", "result.json"}) {
    const std::string path = run() + "/attacks/fgsm/" + file, whole = read_file(path, kMaxFile);
    change_digit(path, "\"seed\"");
    expect_failure(attack(fgsm), 1, path + " is damaged (does not match its checksum)");
    if (file == std::string("result.json")) {
      const ProgramResult report = run_program({"report", run(), "--format", "table"});
      EXPECT_NE(report.err.find("result.json does not match its checksum"), std::string::npos) << report.err;
    }
    write_file_atomically(path, whole);
  }
}

TEST_F(DamagedSweep, EveryFlipOfItsResultsIsNoticedAndItsJobsRunAgain) {
  const std::string sweep = std::string("sweep --trials 1 --hparams 1 --no-pairs --format csv") + kSmall;
  const std::vector<std::string> out{"--out", at("sweep")};
  const ProgramResult first = dg(sweep, out);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string job = fs::directory_iterator(at("sweep/jobs"))->path(), log = job + "/run/results.jsonl";
  expect_every_flip_is_noticed(log, [](const std::string& path) { read_dg_result(path); });
  expect_every_flip_is_noticed(job + "/result.json", read_object);
  const auto accuracies = [](const std::string& table) {  // the rows before those of times
    return table.substr(0, table.find("time and memory"));
  };
  ASSERT_NE(accuracies(first.out), first.out);

  change_digit(log, "\"env0_in_acc\"");
  const ProgramResult table = run_program({"dg", "table", at("sweep")});
  EXPECT_NE(table.err.find("warning: " + log + " is left out: line 1 does not match its checksum"), std::string::npos)
      << table.err;
  const auto runs_again = [&](const std::string& says) {
    const ProgramResult again = dg(sweep, out);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_NE(again.err.find(says), std::string::npos) << again.err;
    EXPECT_EQ(accuracies(again.out), accuracies(first.out));
    EXPECT_EQ(dg(sweep, out).err, "") << "nothing is left to do";
  };
  runs_again("warning: the results of a job are damaged (" + log +
             ": line 1 does not match its checksum): the job will run again");
  change_digit(job + "/result.json", "\"seconds\"");
  runs_again("warning: the job file " + job +
             "/result.json is damaged (the file does not match its checksum): the job will run again");

  // With a damaged log there is nothing to make results of.
  change_digit(log, "\"env0_in_acc\"");
  change_digit(job + "/run/metrics.jsonl", "\"kind\":\"eval\"");
  runs_again("of metrics.jsonl could not be read");
}

TEST(DamagedFigure, EveryFlipOfItsResultsIsNoticedAndItsJobsRunAgain) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  const std::vector<std::string> command{"reproduce", "pmoe/bounds", "--run", run, "--jobs", "1", "--json", "--quiet"};
  const ProgramResult first = run_program(command);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  expect_every_flip_is_noticed(run + "/result.json", read_object);
  expect_every_flip_is_noticed(run + "/trials.jsonl", read_lines);
  const std::string job = fs::directory_iterator(run + "/jobs")->path();
  expect_every_flip_is_noticed(job + "/result.json", read_object);
  change_digit(job + "/result.json", "\"result\"");
  const ProgramResult again = run_program(command);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("result.json is damaged (the file does not match its checksum): the job will run again"),
            std::string::npos)
      << again.err;
  EXPECT_EQ(Json::parse(again.out).at("rows"), Json::parse(first.out).at("rows"));
}

}  // namespace
}  // namespace sparsight::testing::damaged_results_test
