// Figure 13: sample images of CIFAR-10 and of the two datasets made from it.
#include <algorithm>

#include <ATen/core/Tensor.h>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/data/register_data.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/papers/pmoe/figures/wrn_data.h"
#include "sparsight/papers/pmoe/figures/wrn_figures.h"

namespace sparsight::pmoe {
namespace {

constexpr int64_t kShown = 8, kScale = 4;

struct Pictured {
  const char* name;
  WrnData data;
};
constexpr Pictured kSets[] = {{"CIFAR-10", WrnData::cifar10},
                              {"CIFAR-10 with noise", WrnData::cifar_noise},
                              {"CIFAR-Vehicles", WrnData::cifar_vehicles}};

std::string picture_file(const Pictured& set) {
  std::string file = cat(set.name, ".png");
  std::replace(file.begin(), file.end(), ' ', '_');
  return file;
}

// [3,H,W] -> [3,kScale*H,kScale*W].
at::Tensor enlarged(const at::Tensor& image) { return image.repeat_interleave(kScale, 1).repeat_interleave(kScale, 2); }

// The first images of the training split side by side, with white between them.
at::Tensor make_strip(const DataSet& set) {
  at::Tensor strip;
  for (int64_t i = 0; i < kShown; ++i) {
    const at::Tensor picture = enlarged(set.get(i).image);
    const int64_t step = picture.size(2) + kScale;
    if (i == 0) strip = picture.new_full({3, picture.size(1), kShown * step - kScale}, 255);
    strip.narrow(2, i * step, picture.size(2)).copy_(picture);
  }
  return strip;
}

}  // namespace

Figure fig13() {
  Figure figure;
  figure.name = "pmoe/fig13";
  figure.title = "sample images of CIFAR-10, CIFAR-10 with noise and CIFAR-Vehicles";
  figure.needs = wrn_needs(WrnData::cifar_noise);
  figure.duration = "seconds at any scale";
  figure.axes = {"set"};
  figure.measures = {{"pictures", "images in the file", 0}};
  figure.data = wrn_choices(WrnData::cifar_noise);
  figure.jobs = [](const FigureRun&) {
    std::vector<Json> jobs;
    for (const Pictured& set : kSets) jobs.push_back({{"set", set.name}});
    return jobs;
  };
  figure.measure = [](const Json& settings, const FigureRun& run) {
    for (const Pictured& set : kSets) {
      if (settings.at("set") != set.name) continue;
      Json sections;
      set_data(sections, set.data, {10 * kShown, 10 * kShown}, run);
      const DataSplits splits = make_component(data_sets(), sections, "data", DataContext{});
      write_file_atomically(run.folder + "/" + picture_file(set), encode_png(make_strip(*splits.train)));
    }
    return Json{{"pictures", kShown}};
  };
  for (const Pictured& set : kSets) figure.pictures.push_back({picture_file(set), set.name});
  return figure;
}

}  // namespace sparsight::pmoe
