// Images per second from JPEG files: decoding alone, and with the usual training transforms of 224 x 224 models.
#include "bench/data/drain.h"
#include "bench/data/photograph.h"

namespace sparsight {
namespace {

void jpeg_decode(benchmark::State& state) {
  const JpegSet data(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(data.get(0));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(jpeg_decode)->Args({256, 256})->Args({375, 500});

void loader_jpeg(benchmark::State& state) {
  LoaderOptions options;
  options.batch = 32;
  options.workers = state.range(2);
  const char* steps = R"([{"op": "random_resized_crop", "size": 224}, {"op": "flip"},
                          {"op": "normalize", "preset": "imagenet"}])";
  Loader loader(std::make_shared<JpegSet>(static_cast<int>(state.range(0)), static_cast<int>(state.range(1))),
                TransformPipeline(Json::parse(steps), "transforms.train"), {}, options, 1);
  drain(state, loader, options.batch);
}
BENCHMARK(loader_jpeg)
    ->ArgNames({"height", "width", "workers"})
    ->Args({256, 256, 0})
    ->Args({256, 256, 1})
    ->Args({256, 256, 2})
    ->Args({375, 500, 0})
    ->Args({375, 500, 1})
    ->Args({375, 500, 2})
    ->UseRealTime();

}  // namespace
}  // namespace sparsight
