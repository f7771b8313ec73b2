#include "sparsight/core/engines.h"

#include <gtest/gtest.h>

#include <thread>

namespace sparsight {
namespace {

TEST(Engines, OnednnIsChosenWhereItIsMoreThanATenthFaster) {
  EngineRates rates;
  rates[0] = {100, 109};  // 1.09 times
  rates[1] = {100, 111};
  rates[2] = {100, 0};  // not there
  EXPECT_EQ(faster_engines(rates), (Engines{Engine::kernels, Engine::onednn, Engine::kernels}));
}

TEST(Engines, AScopeForcesThoseOfItsThreadAlone) {
  EXPECT_EQ(engines(), all_on(Engine::kernels));
  {
    const EngineScope outer(all_on(Engine::onednn));
    EXPECT_EQ(engine_of(EngineUse::conv_inference), Engine::onednn);
    {
      const EngineScope inner({Engine::kernels, Engine::onednn, Engine::kernels});
      EXPECT_EQ(engine_of(EngineUse::linear_training), Engine::kernels);
      EXPECT_EQ(engine_of(EngineUse::linear_inference), Engine::onednn);
    }
    EXPECT_EQ(engine_of(EngineUse::linear_training), Engine::onednn);
    Engine elsewhere = Engine::onednn;
    std::thread([&] { elsewhere = engine_of(EngineUse::linear_training); }).join();
    EXPECT_EQ(elsewhere, Engine::kernels);
  }
  EXPECT_EQ(engines(), all_on(Engine::kernels));
}

TEST(Engines, TheProcessChoosesOnceWhenAsked) {
  int calls = 0;
  choose_engines_by([&] {
    ++calls;
    return all_on(Engine::onednn);
  });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(engine_of(EngineUse::linear_training), Engine::onednn);
  EXPECT_EQ(engine_of(EngineUse::conv_inference), Engine::onednn);
  EXPECT_EQ(calls, 1);
  choose_engines_by([] { return Engines{}; });
  EXPECT_EQ(engines(), all_on(Engine::kernels));
}

}  // namespace
}  // namespace sparsight
