#include "sparsight/infer/mixed_types.h"

#include <algorithm>
#include <array>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/progress.h"
#include "sparsight/ops/torch_threads.h"
#include "sparsight/ops/weight_type.h"

namespace sparsight {
namespace {

struct Answers {
  std::vector<float> logits;
  int64_t right = 0, images = 0;
  double accuracy() const { return 100 * static_cast<double>(right) / static_cast<double>(images); }
};

Answers answers(const engine::Program& program, const std::vector<Batch>& batches) {
  Answers all;
  engine::Session session;
  for (const Batch& batch : batches) {
    if (interrupted()) fail("interrupted while choosing types; nothing was written");
    const at::Tensor pixels = batch.images.contiguous(), labels = batch.labels.contiguous();
    const int64_t count = pixels.size(0), classes = program.classes();
    const engine::Answer answer =
        program.run(session, cpu::torch_threads(), {.pixels = pixels.const_data_ptr<float>(), .images = count});
    for (int64_t i = 0; i < count; ++i) {
      const float* const logits = answer.logits + i * classes;
      all.right += std::max_element(logits, logits + classes) - logits == labels.const_data_ptr<int64_t>()[i] ? 1 : 0;
    }
    all.images += count;
    all.logits.insert(all.logits.end(), answer.logits, answer.logits + count * classes);
  }
  return all;
}

double mean_square(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

// A program whose steps can be exchanged for those of others.
class Mixture {
 public:
  Mixture(engine::Program fp32, engine::Program bf16, engine::Program int8)
      : programs_{std::move(fp32), std::move(bf16), std::move(int8)}, types_(programs_[0].steps().size()) {}

  const engine::Program& program() const { return programs_[0]; }
  engine::Program take() { return std::move(programs_[0]); }
  WeightType type(size_t step) const { return types_[step]; }

  // Steps that are smaller in int8.
  std::vector<size_t> choices() const {
    std::vector<size_t> steps;
    for (size_t i = 0; i < types_.size(); ++i)
      if (programs_[2].steps()[i]->bytes() < programs_[0].steps()[i]->bytes()) steps.push_back(i);
    return steps;
  }
  void set(size_t step, WeightType type) {
    if (types_[step] == type) return;
    // The step of each type is where the one in use was taken from.
    exchange(step, types_[step]);
    exchange(step, type);
    types_[step] = type;
  }

 private:
  void exchange(size_t step, WeightType type) {
    if (type != WeightType::fp32) programs_[0].swap_step(programs_[static_cast<size_t>(type)], step);
  }

  std::array<engine::Program, 3> programs_;  // by WeightType
  std::vector<WeightType> types_;            // of the steps in programs_[0]
};

// The steps by the error that each alone makes in int8, the smallest first.
std::vector<size_t> by_error(Mixture& mixture, const std::vector<float>& expected, const std::vector<Batch>& batches) {
  std::vector<std::pair<double, size_t>> errors;
  const std::vector<size_t> choices = mixture.choices();
  Progress progress("int8, step by step", static_cast<int64_t>(choices.size()), "steps");
  for (const size_t step : choices) {
    mixture.set(step, WeightType::int8);
    errors.emplace_back(mean_square(answers(mixture.program(), batches).logits, expected), step);
    mixture.set(step, WeightType::fp32);
    progress.add();
  }
  progress.finish();
  std::ranges::sort(errors);
  std::vector<size_t> steps;
  for (const auto& [error, step] : errors) steps.push_back(step);
  return steps;
}

}  // namespace

MixedTypes mix_types(engine::Program fp32, engine::Program bf16, engine::Program int8,
                     const std::vector<Batch>& batches, double max_drop) {
  Mixture mixture(std::move(fp32), std::move(bf16), std::move(int8));
  const Answers expected = answers(mixture.program(), batches);
  const std::vector<size_t> order = by_error(mixture, expected.logits, batches);
  const auto set = [&](size_t count, WeightType others) {
    for (size_t i = 0; i < order.size(); ++i) mixture.set(order[i], i < count ? WeightType::int8 : others);
  };
  const auto fits = [&](size_t count, WeightType others) {
    set(count, others);
    return expected.accuracy() - answers(mixture.program(), batches).accuracy() <= max_drop;
  };
  for (const WeightType others : {WeightType::bf16, WeightType::fp32}) {
    size_t low = 0, high = order.size();  // the most steps in int8 that fit are among low .. high
    if (!fits(0, others)) continue;
    while (low < high) {
      const size_t middle = (low + high + 1) / 2;
      if (fits(middle, others))
        low = middle;
      else
        high = middle - 1;
    }
    set(low, others);
    break;
  }
  MixedTypes mixed{engine::Program(mixture.take()), {}};
  mixed.types.resize(mixed.program.steps().size());
  for (const size_t step : order) mixed.types[step] = weight_type_names()[static_cast<size_t>(mixture.type(step))];
  return mixed;
}

}  // namespace sparsight
