// Images per second: glyphs, each transform, and the loader on images in memory and on glyphs.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include "bench/data/drain.h"
#include "sparsight/catalogue/recipes.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {
namespace {

at::Tensor noise_image(int64_t channels, int64_t height, int64_t width) {
  at::Tensor image = at::empty({channels, height, width}, at::kByte);
  RandomStream random(1, "bench");
  for (int64_t i = 0; i < image.numel(); ++i) image.data_ptr<uint8_t>()[i] = static_cast<uint8_t>(random.bits());
  return image;
}

// Holds as many images as MNIST's training split has, in memory.
class MemorySet : public DataSet {
 public:
  explicit MemorySet(at::Tensor image) : image_(std::move(image)) {
    info_.classes.resize(10);
    info_.domains.resize(1);
  }
  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return 60000; }
  int64_t label(int64_t index) const override { return index % 10; }
  Sample get(int64_t index) const override { return {image_, label(index), 0, {}, cat("train/", index)}; }

 private:
  at::Tensor image_;
  DataInfo info_;
};

void run_loader(benchmark::State& state, const DataSetPtr& data, const Json& steps, int64_t batch,
                const BatchTransform& batch_transform = {}) {
  LoaderOptions options;
  options.batch = batch;
  options.workers = state.range(0);
  Loader loader(data, TransformPipeline(steps, "transforms.train"), batch_transform, options, 1);
  drain(state, loader, batch);
}

void glyphs_picture(benchmark::State& state) {
  const DataSplits glyphs = data_sets().make("glyphs", {{"side", state.range(0)}}, "data", DataContext{});
  int64_t index = 0;
  for (auto _ : state) benchmark::DoNotOptimize(glyphs.train->get(index++ % glyphs.train->size()));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(glyphs_picture)->Arg(32)->Arg(64)->Arg(224);

void loader_mnist_normalize(benchmark::State& state) {
  run_loader(state, std::make_shared<MemorySet>(noise_image(1, 28, 28)),
             Json::parse(R"([{"op": "normalize", "preset": "mnist"}])"), 128);
}
BENCHMARK(loader_mnist_normalize)->ArgName("workers")->Arg(0)->Arg(1)->Arg(2)->UseRealTime();

void loader_glyphs_crop_normalize(benchmark::State& state) {
  const DataSplits glyphs = data_sets().make("glyphs", Json::object(), "data", DataContext{});
  run_loader(state, glyphs.train,
             Json::parse(R"([{"op": "random_crop", "size": 32, "padding": 4}, {"op": "normalize", "preset": "half"}])"),
             128);
}
BENCHMARK(loader_glyphs_crop_normalize)->ArgName("workers")->Arg(0)->Arg(1)->Arg(2)->UseRealTime();

// CIFAR-sized images through everything that a training recipe does to them.
void loader_recipe(benchmark::State& state, const std::string& recipe) {
  const Json transforms = recipe_preset({{"train", {{"recipe", recipe}}}}).settings.at("transforms");
  TransformOptions options;
  options.label_smoothing = transforms.at("label_smoothing");
  options.mixup = transforms.at("mixup");
  options.cutmix = transforms.at("cutmix");
  run_loader(state, std::make_shared<MemorySet>(noise_image(3, 32, 32)), transforms.at("train"), 128,
             BatchTransform(options, 10));
}
BENCHMARK_CAPTURE(loader_recipe, deit_32, "deit")->ArgName("workers")->Arg(0)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(loader_recipe, vit_32, "vit")->ArgName("workers")->Arg(0)->Arg(1)->Arg(2)->UseRealTime();

// One transform with its usual settings on a 256 x 256 colour image, with one compute thread as in the loader.
void transform(benchmark::State& state, const std::string& name, const Json& settings) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const TransformOp op = transform_ops().make(name, settings, "bench");
  const at::Tensor image = noise_image(3, 256, 256);
  uint64_t step = 0;
  for (auto _ : state) {
    ViewRandom random(RandomStream(1, "bench", step++));
    benchmark::DoNotOptimize(op(image, random));
  }
  at::set_num_threads(threads);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(transform, resize_224, "resize", Json{{"size", {224, 224}}});
BENCHMARK_CAPTURE(transform, resize_224_bicubic, "resize", Json{{"size", {224, 224}}, {"filter", "bicubic"}});
BENCHMARK_CAPTURE(transform, random_resized_crop_224, "random_resized_crop", Json{{"size", 224}});
BENCHMARK_CAPTURE(transform, random_crop_padded, "random_crop", Json{{"size", 256}, {"padding", 16}});
BENCHMARK_CAPTURE(transform, flip, "flip", Json{{"probability", 1}});
BENCHMARK_CAPTURE(transform, color_jitter, "color_jitter",
                  Json{{"brightness", 0.4}, {"contrast", 0.4}, {"saturation", 0.4}, {"hue", 0.1}});
BENCHMARK_CAPTURE(transform, rand_augment, "rand_augment", Json::object());
BENCHMARK_CAPTURE(transform, rand_augment_deit, "rand_augment",
                  Json{{"operations", "increasing"}, {"sigma", 0.5}, {"probability", 0.5}});
BENCHMARK_CAPTURE(transform, random_erasing, "random_erasing", Json{{"probability", 1}});
BENCHMARK_CAPTURE(transform, normalize, "normalize", Json{{"preset", "imagenet"}});

}  // namespace
}  // namespace sparsight
