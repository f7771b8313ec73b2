// Which library computes a kind of layer in fp32 on a CPU: the kernels of ops/, or oneDNN where a measurement says that
// it is faster (models/engine_rates.h).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>

namespace sparsight {

enum class Engine { kernels, onednn };
const char* engine_name(Engine engine);  // "kernels", "oneDNN"

// linear_inference: without gradients; conv_inference: of models whose convolutions are packed. Training
// convolves with oneDNN.
enum class EngineUse { linear_training, linear_inference, conv_inference };
inline constexpr std::array kEngineUses{EngineUse::linear_training, EngineUse::linear_inference,
                                        EngineUse::conv_inference};
const char* engine_use_name(EngineUse use);  // "linear_training", ...

// GFLOP/s of one thread.
struct EngineRate {
  double kernels = 0, onednn = 0;
  // oneDNN where it is at least a tenth faster: below, the kernels' fused norms and residuals, and the same bits for
  // any number of threads, are worth more.
  Engine faster() const { return onednn > 1.1 * kernels ? Engine::onednn : Engine::kernels; }
};

// One entry per use, in the order of the enumeration.
using EngineRates = std::array<EngineRate, kEngineUses.size()>;
using Engines = std::array<Engine, kEngineUses.size()>;
Engines faster_engines(const EngineRates& rates);

// Those of the calling thread's innermost EngineScope, else those of the process: the kernels, unless it was told how
// to choose. Results depend on them only by rounding, and are the same bits for the same engines and number of threads.
Engines engines();
Engine engine_of(EngineUse use);

// How the process chooses; called once, when first asked.
void choose_engines_by(std::function<Engines()> choose);

// Forces engines on the calling thread while it lives.
class EngineScope {
 public:
  explicit EngineScope(const Engines& engines);
  ~EngineScope();
  EngineScope(const EngineScope&) = delete;
  EngineScope& operator=(const EngineScope&) = delete;

 private:
  std::optional<Engines> before_;
};

// All uses on one.
Engines all_on(Engine engine);

}  // namespace sparsight
