// Attacks that are killed or interrupted, and go on.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "sparsight/attacks/run/run_attack.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/io/atomic_file.h"
#include "tests/e2e/attack_fixture.h"
#include "tests/e2e/output.h"
#include "tests/support/errors.h"

namespace sparsight::testing::attack_resume_test {
namespace {

namespace fs = std::filesystem;

class AttackResume : public AttackFixture {};

}  // namespace

TEST_F(AttackResume, KilledAttacksGoOnAndGiveTheSameRecords) {
  const std::string settings = "--attack apgd --eps 4/255 --batch 32 --set data.test=256 --set attack.steps=8 --out ";
  const Json whole = result(settings + at("whole"));
  for (size_t pieces = 1; pieces <= 3; ++pieces) {
    Program killed(words(settings + at("killed")));
    const auto saved = [&] {
      std::error_code error;
      size_t count = 0;
      for (const auto& entry : fs::directory_iterator(at("killed/pieces"), error))
        count += !entry.path().filename().string().ends_with(".tmp");
      return count;
    };
    for (int wait = 0; wait < 3000 && saved() < pieces; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    killed.send(SIGKILL);
    EXPECT_EQ(killed.wait().exit_code, 128 + SIGKILL);
    EXPECT_GE(saved(), pieces);
    EXPECT_FALSE(fs::exists(at("killed/result.json")));
  }
  expect_failure(run_program({"compare", at("killed"), at("whole")}), 1, "is not finished");
  Json resumed = result(settings + at("killed"));
  expect_same_records(at("whole"), at("killed"));
  for (const char* key : {"robust_accuracy", "queries", "gradients", "gradient_counts", "saved_images", "data"})
    EXPECT_EQ(resumed[key], whole[key]) << key;
  EXPECT_FALSE(fs::exists(at("killed/pieces")));
  EXPECT_FALSE(fs::exists(at("killed/lock")));
  EXPECT_EQ(result(settings + at("killed")), resumed);  // read, not repeated
}

// Interrupted within the first piece of images, whose attack goes on where it was.
TEST_F(AttackResume, AnAttackWithinAPieceIsSaved) {
  AttackRequest request;
  request.path = run();
  request.attack = "apgd";
  request.epsilon = "4/255";
  request.batch = 32;
  request.overrides = {"attack.steps=300"};
  request.out = at("unbroken");
  const Json whole = run_attack(request);
  request.out = at("interrupted");
  request.save_every = 0;
  const std::string state = at("interrupted/pieces/000000000-000000064.state");
  std::thread interrupt([&] {
    for (int wait = 0; wait < 6000 && !fs::exists(state); ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    set_interrupted(true);
  });
  const std::string message = error_text([&] { run_attack(request); });
  interrupt.join();
  set_interrupted(false);
  EXPECT_NE(message.find("interrupted; run the same command again"), std::string::npos) << message;
  EXPECT_TRUE(fs::exists(state));
  // It is what the attack goes on from: a damaged one is refused.
  const std::string saved = read_file(state, 1 << 28);
  write_file_atomically(state, saved.substr(0, saved.size() / 2));
  const std::string damaged = error_text([&] { run_attack(request); });
  EXPECT_NE(damaged.find("000000000-000000064.state of the attack is damaged ("), std::string::npos) << damaged;
  write_file_atomically(state, saved);
  const Json resumed = run_attack(request);
  expect_same_records(at("unbroken"), at("interrupted"));
  for (const char* key : {"robust_accuracy", "queries", "gradients", "gradient_counts"})
    EXPECT_EQ(resumed[key], whole[key]) << key;
  EXPECT_FALSE(fs::exists(at("interrupted/pieces")));
}

}  // namespace sparsight::testing::attack_resume_test
