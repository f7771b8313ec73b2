// A small trained model, and the attack verb on it.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/io/atomic_file.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing {

class AttackFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult trained = run_program({"train", tiny_config(*folder_), "--out", run(), "--quiet", "--set",
                                               "train.epochs=10", "--set", "optimizer.lr=0.005"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string run() { return folder_->path("run"); }
  static std::string at(const std::string& name) { return folder_->path(name); }
  // Words after the run, separated by spaces.
  static std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> all{"attack", run(), "--quiet"};
    std::istringstream stream(text);
    for (std::string word; stream >> word;) all.push_back(word);
    return all;
  }
  static ProgramResult attack(const std::string& text) { return run_program(words(text)); }
  static Json result(const std::string& text) {
    const ProgramResult ended = attack(text + " --json");
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return Json::parse(ended.out, nullptr, false);
  }
  static std::string bytes(const std::string& path) { return read_file(path, size_t{1} << 30); }
  // All files that do not contain times.
  static void expect_same_records(const std::string& a, const std::string& b) {
    for (const char* file :
         {"/adversarial.safetensors", "/images.csv", "/routing.safetensors", "/clean_routing.safetensors",
          "/records/records.safetensors", "/records/index.json", "/clean_records/records.safetensors"})
      EXPECT_TRUE(bytes(a + file) == bytes(b + file)) << file;
  }
  inline static TemporaryFolder* folder_ = nullptr;
};

}  // namespace sparsight::testing
