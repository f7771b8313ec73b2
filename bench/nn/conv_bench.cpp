#include "bench/nn/conv_bench.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

#include "bench/limits/peak.h"
#include "bench/measure/interference.h"
#include "bench/measure/ratio_interval.h"
#include "bench/measure/rounds.h"
#include "bench/measure/table.h"
#include "sparsight/core/machine.h"
#include "sparsight/kernels/conv/conv_depth.h"
#include "sparsight/models/cnn.h"
#include "sparsight/models/program_model.h"
#include "sparsight/models/wide_resnet.h"
#include "sparsight/nn/packed_convs.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::bench {
namespace {

struct ConvSettings {
  std::vector<int64_t> batches = {1, 32};
  int64_t threads = 2, rounds = 7;
};

struct ConvSize {
  int64_t in, out, kernel, stride, side;
};

constexpr ConvSize kConvSizes[] = {
    // of wide residual networks: 16 to 256 channels
    {3, 16, 3, 1, 32},
    {16, 16, 3, 1, 32},
    {16, 64, 1, 1, 32},
    {64, 64, 3, 1, 32},
    {64, 128, 3, 2, 32},
    {128, 128, 3, 1, 16},
    {256, 256, 3, 1, 8},
    // of a ResNet-50
    {3, 64, 7, 2, 224},
    {64, 64, 1, 1, 56},
    {64, 64, 3, 1, 56},
    {64, 256, 1, 1, 56},
    {512, 128, 1, 1, 28},
    {128, 128, 3, 1, 28},
    {256, 256, 3, 1, 14},
    {512, 512, 3, 1, 7},
    {512, 2048, 1, 1, 7},
};

// oneDNN's convolution as torch.compile calls it on packed weights.
class OnednnConv {
 public:
  OnednnConv(const ConvImpl& conv, const at::Tensor& x) : bias_(conv.bias), shape_(conv.options()) {
    using Signature = at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                                 at::OptionalIntArrayRef);
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_reorder_convolution_weight", "").typed<Signature>();
    const int64_t zeros = shape_.kernel / 2;
    weight_ = op.call(conv.weight.detach(), {zeros, zeros}, {shape_.stride, shape_.stride}, {1, 1}, 1, x.sizes());
  }
  at::Tensor operator()(const at::Tensor& x) const {
    using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                 at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view,
                                 c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_convolution_pointwise", "").typed<Signature>();
    const int64_t zeros = shape_.kernel / 2;
    return op.call(x, weight_, bias_, {zeros, zeros}, {shape_.stride, shape_.stride}, {1, 1}, 1, "none",
                   c10::List<std::optional<at::Scalar>>(), std::nullopt);
  }

 private:
  at::Tensor weight_, bias_;
  ConvOptions shape_;
};

std::string conv_name(const ConvSize& size) {
  const std::string kernel = std::to_string(size.kernel);
  return std::to_string(size.in) + "-" + std::to_string(size.out) + ", " + kernel + "x" + kernel +
         (size.stride > 1 ? "/" + std::to_string(size.stride) : "") + ", " + std::to_string(size.side) + " px";
}

// Along one axis, of all outputs: the zeros around the map need no multiply-adds.
int64_t taps_on_map(const ConvSize& size, int64_t outputs) {
  int64_t taps = 0;
  for (int64_t tap = 0; tap < size.kernel; ++tap)
    taps += cpu::reached({tap, tap + 1}, size.stride, size.kernel / 2, size.side, {0, outputs}).size();
  return taps;
}

// A single thread is timed on the processor, so that other processes disturb it less.
Timed timed(std::function<void()> work) {
  return {[work = std::move(work)](int) { work(); }, at::get_num_threads() == 1 ? thread_seconds : seconds_now};
}

void conv_row(const ConvSize& size, int64_t batch, int64_t rounds, const Peak& peak) {
  Conv conv(ConvOptions{size.in, size.out, size.kernel, size.stride, /*bias=*/true});
  initialize(*conv, 1);
  const at::Tensor x = at::randn({batch, size.in, size.side, size.side}),
                   last = x.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor weight_last = conv->weight.detach().contiguous(at::MemoryFormat::ChannelsLast);
  const OnednnConv onednn(*conv, last);
  std::vector<engine::ConvStep> steps;
  steps.push_back(conv_step(*conv, WeightType::fp32));
  const engine::ConvChain ours(std::move(steps));
  const engine::ConvChain::Map map{size.side, size.side, size.in};
  at::Tensor out = at::empty({batch, ours.output(map).positions() * size.out});
  const int64_t zeros = size.kernel / 2;
  const RoundTimes times = time_rounds(
      {timed([&] { at::conv2d(x, conv->weight, conv->bias, size.stride, zeros); }),
       timed([&] { at::conv2d(last, weight_last, conv->bias, size.stride, zeros); }),
       timed([&] { onednn(last); }),
       timed([&] { ours.run(cpu::torch_threads(), last.const_data_ptr<float>(), out.data_ptr<float>(), batch, map); }),
       {[&](int) { peak.run(); }, [&] { return peak.seconds(); }}},
      rounds);
  const int64_t taps = taps_on_map(size, conv->output({size.side, size.side}).height);
  const double operations = 2.0 * static_cast<double>(batch * taps * taps * size.out * size.in);
  std::vector<double> limit;
  for (const double time : times[4]) limit.push_back(operations / peak.operations() * time);
  const auto& fastest = *std::min_element(times.begin(), times.begin() + 3,
                                          [](const auto& a, const auto& b) { return median(a) < median(b); });
  print_row({conv_name(size), std::to_string(batch), milliseconds(median(times[0])), milliseconds(median(times[1])),
             milliseconds(median(times[2])), milliseconds(median(times[3])), text(ratio_interval(limit, times[3])),
             text(ratio_interval(times[3], fastest))});
}

std::shared_ptr<ImageModel> network(const std::string& name) {
  std::shared_ptr<ImageModel> model;
  if (name == "cnn")
    model = std::make_shared<Cnn>(CnnOptions{}, ModelContext{{3, 32, 32, 10}, {}});
  else
    model = std::make_shared<WideResnet>(WideResnetOptions{.widen = name == "WRN-10-1" ? 1 : 4},
                                         ModelContext{{3, 32, 32, 10}, {}});
  initialize(*model, 1);
  return model;
}

void network_row(const std::string& name, int64_t batch, int64_t rounds, double peak) {
  const std::shared_ptr<ImageModel> layers = network(name);
  const ProgramModel program(layers->compile(), {3, 32, 32, 10});
  const at::Tensor x = at::rand({batch, 3, 32, 32});
  const RoundTimes times = time_rounds(
      {timed([&] { layers->forward({.images = x}); }), timed([&] { program.forward({.images = x}); })}, rounds);
  double multiply_adds = 0;
  for (const PartCost& part : layers->cost({})) multiply_adds += static_cast<double>(part.cost.multiply_adds);
  const double limit = 2 * multiply_adds * static_cast<double>(batch) / peak;
  print_row({name, std::to_string(batch), milliseconds(median(times[0])), milliseconds(median(times[1])),
             text(ratio_interval(times[1], times[0])),
             text(ratio_interval(std::vector<double>(times[1].size(), limit), times[1]))});
}

void run_conv(const ConvSettings& settings) {
  at::set_num_threads(static_cast<int>(settings.threads));
  const c10::AutoGradMode no_gradients(false);
  const Peaks peaks = Peaks::of_active_isa();
  const PeakRates rates = measure_peaks(peaks);
  std::printf("%s; forward, fp32, with bias, ms; ratio: %s\n", machine_line(rates).c_str(),
              interval_note(static_cast<int>(settings.rounds)).c_str());
  InterferenceWatch watch;
  print_header({"convolution", "images", "conv2d", "conv2d, channels last", "oneDNN packed, channels last", "ours",
                "peak / ours", "ours / fastest other"});
  for (const ConvSize& size : kConvSizes)
    for (const int64_t batch : settings.batches) conv_row(size, batch, settings.rounds, peaks.fp32);
  print_header({"network, 32 px", "images", "layers", "program", "program / layers", "peak / program"});
  for (const char* name : {"WRN-10-1", "WRN-10-4", "cnn"})
    for (const int64_t batch : settings.batches) network_row(name, batch, settings.rounds, rates.for_fp32());
  watch.print();
}

}  // namespace

void add_conv_bench(CLI::App& app) {
  const auto settings = std::make_shared<ConvSettings>();
  app.description("Times convolutions and convolutional networks in inference.");
  app.add_option("--batch", settings->batches, "Numbers of images")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--threads", settings->threads, "Number of threads")->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--rounds", settings->rounds, "Number of rounds")->check(CLI::Range(1, 1000))->capture_default_str();
  app.callback([settings] { run_conv(*settings); });
}

}  // namespace sparsight::bench
