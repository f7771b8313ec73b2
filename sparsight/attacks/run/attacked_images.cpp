#include "sparsight/attacks/run/attacked_images.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/checksum.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/decorators/stratified.h"
#include "sparsight/data/register_data.h"
#include "sparsight/infer/named_split.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

constexpr double kRounding = 1e-5;  // of pixels that transforms normalise and restore

DataSetPtr load_split(const LoadedModel& loaded, const std::string& split) {
  const auto seed = static_cast<uint64_t>(read_section<RunOptions>(loaded.config, "run").seed);
  const DataSplits splits = make_component(data_sets(), loaded.config, "data", DataContext{seed});
  DataSetPtr data = named_split(splits, split);
  if (!data || data->size() == 0) fail("the dataset has no ", split_name(split), " images; choose another --split");
  check_classes(loaded, data->info());
  return data;
}

at::Tensor attacked_pixels(const LoadedModel& loaded, const Sample& sample) {
  try {
    const at::Tensor pixels = model_image(loaded, sample.image);
    const at::Tensor clamped = pixels.clamp(0, 1);
    if ((pixels - clamped).abs().max().item<double>() > kRounding)
      fail("its pixels are in ", pixels.min().item<double>(), " to ", pixels.max().item<double>(),
           " after [transforms] eval, an attack needs 0 to 1");
    return clamped;
  } catch (const Error& error) {
    fail("image ", printable(sample.id), ": ", error.what());
  }
}

}  // namespace

AttackedImages::AttackedImages(const LoadedModel& loaded, const std::string& split, int64_t count, at::ScalarType type)
    : loaded_(loaded), data_(load_split(loaded, split)), count_(count > 0 ? count : data_->size()), type_(type) {
  if (count_ > data_->size())
    fail("the ", split_name(split), " split has ", data_->size(), " images, not ", count_, "; lower --images");
  chosen_ = balanced_subset(*data_, count_, /*seed=*/0);
}

Json AttackedImages::preprocessing() const {
  const ImageShape& shape = loaded_.shape;
  return {{"transforms", loaded_.config.at("transforms").at("eval")},
          {"resized_to", loaded_.resize_logged->load() ? Json({shape.height, shape.width}) : Json()}};
}

AttackedBatch AttackedImages::read(int64_t first, int64_t last) const {
  SPARSIGHT_CHECK(0 <= first && first < last && last <= count_);
  std::vector<at::Tensor> pixels;
  std::vector<int64_t> labels, numbers, domains;
  at::Tensor sets;
  if (info().multi_label) sets = at::zeros({last - first, std::ssize(info().classes)}, at::kBool);
  AttackedBatch read;
  for (int64_t i = first; i < last; ++i) {
    const int64_t number = chosen_[static_cast<size_t>(i)];
    const Sample sample = data_->get(number);
    pixels.push_back(attacked_pixels(loaded_, sample));
    labels.push_back(sample.label);
    for (const int64_t label : sample.labels) sets[i - first][label] = true;
    domains.push_back(sample.domain);
    numbers.push_back(number);
    read.ids.push_back(sample.id);
  }
  read.batch = {
      at::stack(pixels), {sets.defined() ? sets : at::tensor(labels, at::kLong)}, at::tensor(numbers, at::kLong)};
  read.domains = at::tensor(domains, at::kLong);
  Checksum sum;
  for (const at::Tensor& values : {read.batch.pixels, read.batch.labels.label})
    sum.update(values.const_data_ptr(), values.nbytes());
  read.checksum = sum.hex();
  read.batch.pixels = read.batch.pixels.to(type_);
  return read;
}

}  // namespace sparsight
