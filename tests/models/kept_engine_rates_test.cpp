#include "sparsight/models/kept_engine_rates.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "sparsight/core/input_file.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/nn/onednn_linear.h"
#include "tests/support/engine_rates.h"
#include "tests/support/environment_variable.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::kept_engine_rates_test {
namespace {

class KeptEngineRates : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  test::EnvironmentVariable cache_{"XDG_CACHE_HOME", folder_.path().c_str()}, engines_{"SPARSIGHT_ENGINES", nullptr},
      isa_{"SPARSIGHT_ISA", nullptr};

  std::string file() const { return *engine_rates_file(); }
  static std::string text(const std::string& path) { return read_file(path, 1 << 16); }
};

TEST_F(KeptEngineRates, AreMeasuredOnceAndReadAfterwards) {
  const std::optional<EngineRates> first = kept_engine_rates();
  ASSERT_TRUE(first);
  for (const EngineRate& rate : *first) {
    EXPECT_GT(rate.kernels, 0.1);
    EXPECT_LT(rate.kernels, 1e4);
    EXPECT_EQ(rate.onednn > 0, has_onednn());
  }
  const std::string kept = text(file());
  const auto written = std::filesystem::last_write_time(file());
  const std::optional<EngineRates> second = kept_engine_rates();
  ASSERT_TRUE(second);
  for (size_t i = 0; i < first->size(); ++i) EXPECT_EQ((*first)[i].kernels, (*second)[i].kernels);
  EXPECT_EQ(text(file()), kept);
  EXPECT_EQ(std::filesystem::last_write_time(file()), written);
  EXPECT_EQ(environment_engines(), faster_engines(*first));
}

TEST_F(KeptEngineRates, TheFileDecides) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  test::write_engine_rates("111");
  EXPECT_EQ(environment_engines(), all_on(Engine::onednn));
  test::write_engine_rates("109");
  EXPECT_EQ(environment_engines(), all_on(Engine::kernels));
}

TEST_F(KeptEngineRates, TheEnvironmentOverridesThem) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  test::write_engine_rates("200");
  {
    const test::EnvironmentVariable wanted("SPARSIGHT_ENGINES", "kernels");
    EXPECT_EQ(environment_engines(), all_on(Engine::kernels));
  }
  {
    const test::EnvironmentVariable level("SPARSIGHT_ISA", "baseline");  // who asks for a level means the kernels
    EXPECT_EQ(environment_engines(), all_on(Engine::kernels));
  }
  test::write_engine_rates("1");
  const test::EnvironmentVariable wanted("SPARSIGHT_ENGINES", "onednn");
  EXPECT_EQ(environment_engines(), all_on(Engine::onednn));
  const test::EnvironmentVariable wrong("SPARSIGHT_ENGINES", "mkl");
  EXPECT_EQ(testing::message_of<UsageError>(environment_engines),
            "SPARSIGHT_ENGINES is \"mkl\"; it must be measured (the default), kernels or onednn");
}

TEST_F(KeptEngineRates, ABrokenFileIsAWarningAndLeftAlone) {
  for (const std::string broken : {"null", "-1", "\"fast\"", "1e999", "[1]"}) {
    test::write_engine_rates(broken);
    const std::string before = text(file());
    EXPECT_FALSE(kept_engine_rates()) << broken;
    EXPECT_EQ(environment_engines(), all_on(Engine::kernels)) << broken;
    EXPECT_EQ(text(file()), before);
  }
  for (const std::string broken : {"", "{", "[]", "{\"gflops\": 3}"}) {
    write_file_atomically(file(), broken);
    EXPECT_FALSE(kept_engine_rates()) << broken;
  }
  write_file_atomically(file(), std::string(1 << 17, ' '));
  EXPECT_FALSE(kept_engine_rates());
}

TEST_F(KeptEngineRates, WithoutAPlaceForTheFileTheKernelsRun) {
  folder_.write("file", "");
  const std::string below_file = folder_.path() + "/file/cache";
  {
    const test::EnvironmentVariable cache("XDG_CACHE_HOME", below_file.c_str());
    EXPECT_FALSE(kept_engine_rates());
    EXPECT_EQ(environment_engines(), all_on(Engine::kernels));
  }
  const test::EnvironmentVariable cache("XDG_CACHE_HOME", nullptr), home("HOME", nullptr);
  EXPECT_FALSE(engine_rates_file());
  EXPECT_EQ(environment_engines(), all_on(Engine::kernels));
}

}  // namespace
}  // namespace sparsight::kept_engine_rates_test
