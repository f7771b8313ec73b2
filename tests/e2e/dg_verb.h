// A folder of generated domains, and the verb dg run on it.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "tests/support/program.h"
#include "tests/support/unchecked_json.h"

namespace sparsight::testing::dg_verb_test {

using Json = nlohmann::ordered_json;

class DgVerb : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult made =
        run_program({"data", "make", domains(), "--layout", "domain", "--set", "side=16", "--set", "classes=3", "--set",
                     "train=240", "--set", "validation=24", "--set", "test=24", "--quiet"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string domains() { return folder_->path("domains"); }
  static std::string at(const std::string& name) { return folder_->path(name); }
  static std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> all{"dg"};
    std::istringstream stream(text);
    for (std::string word; stream >> word;) all.push_back(word == "DOMAINS" ? domains() : word);
    return all;
  }
  static ProgramResult dg(const std::string& text, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = words(text);
    all.insert(all.end(), more.begin(), more.end());
    all.emplace_back("--quiet");
    ProgramOptions options;
    options.timeout_seconds = 300;  // a sweep of 16 runs took more than 60 on a busy machine
    return run_program(all, options);
  }
  static std::vector<Json> results(const std::string& run) {
    std::istringstream text(read_file(run + "/results.jsonl", size_t{1} << 20));
    std::vector<Json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(unchecked_json(line));
    return lines;
  }

  // Lines of results but for what was measured with a clock, and memory.
  static std::vector<Json> without_times(std::vector<Json> lines) {
    for (Json& line : lines)
      for (const char* measured : {"step_time", "mem_gb", "images_per_s", "eval_images_per_s", "eval_mem_gb"})
        EXPECT_EQ(line.erase(measured), 1u) << measured;
    return lines;
  }
  static std::string find_row(const std::string& table, const std::string& begin) {
    const size_t at = table.find(begin);
    return at == std::string::npos ? "" : table.substr(at, table.find('\n', at) - at);
  }

  static inline TemporaryFolder* folder_ = nullptr;
};

inline const char* const kSmall =
    " --dataset folder --data DOMAINS --model vit --image-size 16 --set model.size=custom --set model.width=16 "
    "--set model.depth=2 --set model.heads=2 --set model.patch=4 --set loader.batch=8 --set moe.blocks=[1] "
    "--set moe.experts=2 --steps 6 --eval-every 2 ";

// A GMoE of six blocks and two experts.
inline const char* const kAblated =
    " --dataset folder --data DOMAINS --image-size 16 --set model.size=custom --set model.width=16 --set model.depth=6 "
    "--set model.heads=2 --set model.patch=4 --set loader.batch=8 --set moe.experts=2 --set router.width=8 --steps 2 "
    "--eval-every 2 ";

}  // namespace sparsight::testing::dg_verb_test
