// Images a second from JPEG files: decoding alone, and with the ordinary training transforms of 224 x 224 models.
#include <benchmark/benchmark.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sparsight/data/loader.h"
#include "sparsight/data/readers/image.h"

namespace sparsight {
namespace {

// A JPEG of quality 90 with soft shapes and a little grain, so that it has about the bytes per pixel of a photograph.
std::vector<uint8_t> photograph(int height, int width) {
  std::vector<uint8_t> pixels;
  RandomStream random(1, "bench");
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const double shape = 128 + 70 * std::sin(x / (9.0 + c) + y / 31.0) + 40 * std::cos(y / 5.0 - x / 17.0);
        pixels.push_back(static_cast<uint8_t>(std::clamp(shape + random.uniform(-12, 12), 0.0, 255.0)));
      }
  const tjhandle encoder = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long size = 0;
  if (tjCompress2(encoder, pixels.data(), width, 0, height, TJPF_RGB, &data, &size, TJSAMP_420, 90, 0) != 0)
    throw std::runtime_error("cannot encode a JPEG");
  std::vector<uint8_t> bytes(data, data + size);
  tjFree(data);
  tjDestroy(encoder);
  return bytes;
}

class JpegSet : public DataSet {
 public:
  JpegSet(int height, int width) : bytes_(photograph(height, width)) {
    info_.classes.resize(10);
    info_.domains.resize(1);
  }
  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return 4096; }
  int64_t label(int64_t index) const override { return index % 10; }
  Sample get(int64_t index) const override {
    return {decode_image({bytes_.data(), bytes_.size()}, "bench.jpg", {3}), label(index), 0, {}, "bench.jpg"};
  }

 private:
  std::vector<uint8_t> bytes_;
  DataInfo info_;
};

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
  int64_t epoch = 0;
  loader.start(epoch);
  for (auto _ : state) {
    std::optional<Batch> next = loader.next();
    if (!next) {
      loader.start(++epoch);
      next = loader.next();
    }
    benchmark::DoNotOptimize(next);
  }
  state.SetItemsProcessed(state.iterations() * options.batch);
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
