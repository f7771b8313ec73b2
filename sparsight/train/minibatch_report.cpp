#include "sparsight/train/minibatch_report.h"

#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// Every tensor of a decision.
std::vector<at::Tensor*> tensors_in(Routing& r) {
  return {&r.group,       &r.valid,     &r.priority, &r.target,   &r.clean_logits, &r.noisy_logits, &r.noise_scale,
          &r.scores,      &r.threshold, &r.token,    &r.expert,   &r.rank,         &r.gate,         &r.chosen_count,
          &r.smooth_load, &r.kept,      &r.capacity, &r.position, &r.order,        &r.offsets};
}

// The tensors of a message: what they belong to is JSON.
class TensorList {
 public:
  // Returns its number, or -1 if it is undefined.
  int64_t add(const at::Tensor& tensor) {
    if (!tensor.defined()) return -1;
    all_.push_back(tensor.detach().contiguous());
    return static_cast<int64_t>(all_.size()) - 1;
  }
  at::Tensor get(const Json& number) const {
    const auto i = number.get<int64_t>();
    return i < 0 ? at::Tensor() : all_.at(static_cast<size_t>(i));
  }
  std::string bytes() const {
    const std::vector<char> pickled = torch::jit::pickle_save(c10::IValue(all_));
    return {pickled.begin(), pickled.end()};
  }
  static TensorList from_bytes(const std::string& bytes) {
    TensorList list;
    list.all_ = torch::jit::pickle_load({bytes.begin(), bytes.end()}).toTensorVector();
    return list;
  }

 private:
  std::vector<at::Tensor> all_;
};

Json to_json(const Routing& routing, TensorList& tensors) {
  Routing copy = routing;
  Json numbers = Json::array(), metrics = Json::array();
  for (const at::Tensor* const tensor : tensors_in(copy)) numbers.push_back(tensors.add(*tensor));
  for (const RoutingMetric& metric : routing.metrics) metrics.push_back({metric.name, metric.value});
  const TokenLayout& layout = routing.layout;
  return {{"layer", routing.layer},
          {"layout", {layout.images, layout.per_image, layout.prefix, layout.grid_height, layout.grid_width}},
          {"numbers", {routing.tokens, routing.experts, routing.group_count, routing.per_token}},
          {"flags", {routing.varying, routing.skips, routing.sampled}},
          {"metrics", std::move(metrics)},
          {"tensors", std::move(numbers)},
          {"groups", routing.groups ? to_json(*routing.groups, tensors) : Json()}};
}

Routing routing_from(const Json& json, const TensorList& tensors) {
  Routing routing;
  routing.layer = json.at("layer");
  const Json &layout = json.at("layout"), &numbers = json.at("numbers"), &flags = json.at("flags");
  routing.layout = {layout.at(0), layout.at(1), layout.at(2), layout.at(3), layout.at(4)};
  routing.tokens = numbers.at(0), routing.experts = numbers.at(1);
  routing.group_count = numbers.at(2), routing.per_token = numbers.at(3);
  routing.varying = flags.at(0), routing.skips = flags.at(1), routing.sampled = flags.at(2);
  for (const Json& metric : json.at("metrics")) routing.metrics.push_back({metric.at(0), metric.at(1)});
  size_t i = 0;
  for (at::Tensor* const tensor : tensors_in(routing)) *tensor = tensors.get(json.at("tensors").at(i++));
  if (!json.at("groups").is_null())
    routing.groups = std::make_shared<const Routing>(routing_from(json.at("groups"), tensors));
  return routing;
}

// The running averages of a model, each a buffer or a part of one.
class Averages {
 public:
  explicit Averages(const ImageModel& model) : buffers_(model.buffers()) {}

  Json place(const at::Tensor& average) const {
    for (size_t b = 0; b < buffers_.size(); ++b)
      if (buffers_[b].is_alias_of(average)) return {b, average.storage_offset()};
    fail("the running averages of a batch norm are no buffer of the model");
  }
  at::Tensor find(const Json& place, at::IntArrayRef sizes) const {
    const at::Tensor& buffer = buffers_.at(place.at(0).get<size_t>());
    const auto first = place.at(1).get<int64_t>();
    return buffer.view({-1}).narrow(0, first - buffer.storage_offset(), c10::multiply_integers(sizes)).view(sizes);
  }

 private:
  std::vector<at::Tensor> buffers_;
};

Json to_json(const BatchMoments& moments, const Averages& averages, TensorList& tensors) {
  const BatchNormOptions& options = moments.options;
  return {{"mean", tensors.add(moments.mean)},
          {"variance", tensors.add(moments.variance)},
          {"running_mean", averages.place(moments.norm.running_mean)},
          {"running_var", averages.place(moments.norm.running_var)},
          {"batches", averages.place(moments.norm.batches)},
          {"channels", options.channels},
          {"momentum", options.momentum},
          {"debias", options.debias}};
}

BatchMoments moments_from(const Json& json, const Averages& averages, const TensorList& tensors) {
  BatchMoments moments;
  moments.mean = tensors.get(json.at("mean")), moments.variance = tensors.get(json.at("variance"));
  moments.norm.running_mean = averages.find(json.at("running_mean"), moments.mean.sizes());
  moments.norm.running_var = averages.find(json.at("running_var"), moments.mean.sizes());
  moments.norm.batches = averages.find(json.at("batches"), {});
  moments.options.channels = json.at("channels"), moments.options.momentum = json.at("momentum");
  moments.options.debias = json.at("debias");
  return moments;
}

std::string to_bytes(const MinibatchReport& report, const Averages& averages) {
  TensorList tensors;
  Json json{{"loss", report.loss},
            {"task", report.task},
            {"not_finite", report.not_finite},
            {"means", report.means.to_json()},
            {"details", report.details},
            {"routings", Json::array()},
            {"moments", Json::array()}};
  for (const Routing& routing : report.routings) json["routings"].push_back(to_json(routing, tensors));
  for (const BatchMoments& moments : report.moments) json["moments"].push_back(to_json(moments, averages, tensors));
  const std::string pickled = tensors.bytes();
  json["tensors"] = Json::binary({pickled.begin(), pickled.end()});
  const std::vector<uint8_t> packed = Json::to_msgpack(json);  // keeps every bit of numbers, NaN too
  return {packed.begin(), packed.end()};
}

MinibatchReport report_from(const std::string& bytes, const Averages& averages) {
  const Json json = Json::from_msgpack(bytes.begin(), bytes.end());
  const auto& pickled = json.at("tensors").get_binary();
  const TensorList tensors = TensorList::from_bytes({pickled.begin(), pickled.end()});
  MinibatchReport report{json.at("loss"), json.at("task"), json.at("not_finite"),
                         NamedMeans::from_json(json.at("means")), json.at("details")};
  for (const Json& routing : json.at("routings")) report.routings.push_back(routing_from(routing, tensors));
  for (const Json& moments : json.at("moments")) report.moments.push_back(moments_from(moments, averages, tensors));
  return report;
}

}  // namespace

std::vector<MinibatchReport> all_reports(dist::Group& group, MinibatchReport own, const ImageModel& model) {
  std::vector<MinibatchReport> reports;
  if (group.size() == 1) {
    reports.push_back(std::move(own));
    return reports;
  }
  const Averages averages(model);
  for (const std::string& bytes : group.all_gather_bytes(to_bytes(own, averages)))
    reports.push_back(report_from(bytes, averages));
  return reports;
}

}  // namespace sparsight
