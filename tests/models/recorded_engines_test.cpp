#include "sparsight/models/recorded_engines.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/nn/onednn_linear.h"
#include "tests/support/environment_variable.h"
#include "tests/support/program.h"
#include "tests/support/warnings.h"

namespace sparsight::recorded_engines_test {
namespace {

class RecordedEngines : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  test::EnvironmentVariable engines_{"SPARSIGHT_ENGINES", nullptr}, isa_{"SPARSIGHT_ISA", nullptr};
  std::string file_ = folder_.path("env.json");

  // The environment of a run that began on `engine`.
  Json begun_on(Engine engine) const {
    const EngineScope scope(all_on(engine));
    return describe_environment();
  }
  void record(const Json& environment) const { write_file_atomically(file_, environment.dump()); }
  // The engines while the scope of the file lives, and what it says.
  Engines resumed(std::string& said) const {
    Engines used;
    said = testing::warnings_of([&] {
      const RecordedEngineScope scope(file_);
      used = engines();
    });
    return used;
  }
};

TEST_F(RecordedEngines, AreUsedAgainWhateverIsChosenNow) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  std::string said;
  record(begun_on(Engine::onednn));
  EXPECT_EQ(resumed(said), all_on(Engine::onednn));
  EXPECT_NE(said.find("linear_training on oneDNN"), std::string::npos) << said;
  EXPECT_EQ(engines(), all_on(Engine::kernels));  // only while the scope lives

  const EngineScope faster_now(all_on(Engine::onednn));
  record(begun_on(Engine::kernels));
  EXPECT_EQ(resumed(said), all_on(Engine::kernels));
  record(begun_on(Engine::onednn));
  EXPECT_EQ(resumed(said), all_on(Engine::onednn));
  EXPECT_EQ(said, "");
}

TEST_F(RecordedEngines, AMismatchThatTheEnvironmentAsksForIsAWarning) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  record(begun_on(Engine::onednn));
  const test::EnvironmentVariable forced("SPARSIGHT_ENGINES", "kernels");
  std::string said;
  EXPECT_EQ(resumed(said), all_on(Engine::kernels));
  EXPECT_NE(said.find("warning"), std::string::npos) << said;
  EXPECT_NE(said.find("not that of an unbroken run"), std::string::npos) << said;
}

TEST_F(RecordedEngines, AnotherLevelIsAWarning) {
  Json environment = begun_on(Engine::kernels);
  EXPECT_EQ(environment.at("kernel_level"), isa_name(active_isa()));
  environment["kernel_level"] = "quantum";
  record(environment);
  std::string said;
  resumed(said);
  EXPECT_NE(said.find("began with quantum kernels"), std::string::npos) << said;
}

TEST_F(RecordedEngines, FilesWithoutThemChangeNothing) {
  std::string said;
  EXPECT_EQ(resumed(said), all_on(Engine::kernels));  // no file
  EXPECT_EQ(said, "");
  for (const char* content : {"{}", R"({"engines": 3})", R"({"engines": {"linear_training": "abacus"}})", "{\"engi"}) {
    write_file_atomically(file_, content);
    EXPECT_EQ(resumed(said), all_on(Engine::kernels)) << content;
  }
  EXPECT_NE(said.find("are not known"), std::string::npos) << said;  // of the last, which is cut off
}

}  // namespace
}  // namespace sparsight::recorded_engines_test
