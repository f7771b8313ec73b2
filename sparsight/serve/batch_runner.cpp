#include "sparsight/serve/batch_runner.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "sparsight/core/error.h"

namespace sparsight::serve {

std::vector<ImageAnswer> BatchRunner::run(const std::vector<const ImageRequest*>& batch) {
  const auto begin = std::chrono::steady_clock::now();
  const int64_t images = std::ssize(batch), numbers = program_->pixels().numbers();
  pixels_.resize(static_cast<size_t>(images * numbers));
  for (int64_t i = 0; i < images; ++i) {
    const std::vector<float>& pixels = batch[static_cast<size_t>(i)]->pixels;
    SPARSIGHT_CHECK(std::ssize(pixels) == numbers);
    std::ranges::copy(pixels, pixels_.begin() + i * numbers);
  }
  numbers_.assign(static_cast<size_t>(images), 0);
  groups_.resize(static_cast<size_t>(images));
  std::iota(groups_.begin(), groups_.end(), 0);
  const engine::Answer answer =
      program_->run(session_, threads_, {pixels_.data(), images, numbers_.data(), groups_.data()});
  std::vector<ImageAnswer> answers;
  for (int64_t i = 0; i < images; ++i)
    answers.push_back(copy_answer(*program_, answer, i, images, batch[static_cast<size_t>(i)]->wanted));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  metrics_.add_batch(images, seconds.count());
  for (const ImageAnswer& each : answers)
    for (const LayerAnswer& layer : each.layers) metrics_.add_expert_load(layer.layer, layer.counts);
  return answers;
}

}  // namespace sparsight::serve
