// A training step of ViT-S/16 on 224 x 224 images: on a batch in memory, and fed by the loader from JPEG files on the
// same cores. The difference is what the loader costs a training run.
#include <torch/nn/functional/loss.h>

#include "bench/data/drain.h"
#include "bench/data/photograph.h"
#include "sparsight/models/vit.h"
#include "sparsight/nn/init.h"
#include "sparsight/optim/optimizer.h"

namespace sparsight {
namespace {

constexpr int64_t kBatch = 8;

// workers -1: the same batch in every step, without the loader.
void vit_s16_step(benchmark::State& state) {
  const int64_t workers = state.range(0);
  VitOptions options;
  options.size = "small";
  options.patch = 16;
  Vit model(options, {{3, 224, 224, 10}, default_moe_spec()});
  initialize(model, 1);
  std::vector<OptimizedParameter> parameters;
  for (const auto& item : model.named_parameters()) parameters.push_back({item.key(), item.value()});
  const auto optimizer = optimizers().make("adamw", Json::object(), "optimizer", parameters);

  LoaderOptions loading;
  loading.batch = kBatch;
  loading.workers = std::max<int64_t>(workers, 0);
  const char* steps = R"([{"op": "random_resized_crop", "size": 224}, {"op": "flip"},
                          {"op": "normalize", "preset": "imagenet"}])";
  Loader loader(std::make_shared<JpegSet>(375, 500), TransformPipeline(Json::parse(steps), "transforms.train"), {},
                loading, 1);
  loader.start(0);
  Batch batch = next_of_endless(loader);
  uint64_t step = 0;
  for (auto _ : state) {
    if (workers >= 0) batch = next_of_endless(loader);
    optimizer->zero_grad();
    const at::Tensor logits = model.forward({batch.images, ForwardMode::training(), {1, step++}}).logits;
    torch::nn::functional::cross_entropy(logits, batch.labels).backward();
    optimizer->step(1e-4);
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(vit_s16_step)->ArgName("workers")->Arg(-1)->Arg(0)->Arg(1)->Arg(2)->UseRealTime()->MinTime(5);

}  // namespace
}  // namespace sparsight
