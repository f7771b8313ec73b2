#include "sparsight/attacks/run/attacked_images.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "sparsight/attacks/run/named_classes.h"
#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/checksum.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/decorators/stratified.h"
#include "sparsight/data/decorators/subset.h"
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

// The numbers of the images that have one of `classes`, or of all where there are none.
std::vector<int64_t> images_of(const DataSet& data, const std::vector<int64_t>& classes) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < data.size(); ++i) {
    const auto labels = data.info().multi_label ? data.labels(i) : std::vector<int64_t>{data.label(i)};
    const auto chosen = [&](int64_t label) { return std::ranges::find(classes, label) != classes.end(); };
    if (classes.empty() || std::ranges::any_of(labels, chosen)) numbers.push_back(i);
  }
  return numbers;
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

AttackedImages::AttackedImages(const LoadedModel& loaded, const AttackRequest& request)
    : loaded_(loaded),
      data_(load_split(loaded, request.split)),
      type_(request.precision == "fp64" ? at::kDouble : at::kFloat) {
  const std::string &only = request.only_classes, split = split_name(request.split);
  if (!only.empty()) classes_ = class_numbers(only, info().classes, "--only-classes");
  const std::vector<int64_t> among = images_of(*data_, classes_);
  eligible_ = std::ssize(among);
  const int64_t count = request.images > 0 ? request.images : eligible_;
  if (among.empty())
    fail("the ", split, " split has no images of the classes of --only-classes; choose others, or another --split");
  if (count > eligible_)
    fail("the ", split, " split has ", eligible_, " images", only.empty() ? "" : " of these classes", ", not ", count,
         "; lower --images");
  for (const int64_t index : balanced_subset(SubsetDataSet(data_, among), count, /*seed=*/0))
    chosen_.push_back(among[static_cast<size_t>(index)]);
}

Json AttackedImages::only_classes() const {
  if (classes_.empty()) return {};
  Json names = Json::array();
  for (const int64_t label : classes_) names.push_back(printable(info().classes.at(static_cast<size_t>(label))));
  return names;
}

bool AttackedImages::has_label_other_than(int64_t label) const {
  return std::ranges::any_of(chosen_, [&](int64_t number) { return data_->label(number) != label; });
}

Json AttackedImages::preprocessing() const {
  const ImageShape& shape = loaded_.shape;
  return {{"transforms", loaded_.config.at("transforms").at("eval")},
          {"resized_to", loaded_.resize_logged->load() ? Json({shape.height, shape.width}) : Json()}};
}

AttackedBatch AttackedImages::read(int64_t first, int64_t last) const {
  SPARSIGHT_CHECK(0 <= first && first < last && last <= size());
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
