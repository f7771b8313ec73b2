#include "sparsight/train/minibatch_report.h"

#include "sparsight/core/error.h"
#include "sparsight/eval/routing_message.h"

namespace sparsight {
namespace {

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

Json to_json(const BatchMoments& moments, const Averages& averages, dist::TensorMessage& message) {
  const BatchNormOptions& options = moments.options;
  return {{"mean", message.add(moments.mean)},
          {"variance", message.add(moments.variance)},
          {"running_mean", averages.place(moments.norm.running_mean)},
          {"running_var", averages.place(moments.norm.running_var)},
          {"batches", averages.place(moments.norm.batches)},
          {"channels", options.channels},
          {"momentum", options.momentum},
          {"debias", options.debias}};
}

BatchMoments moments_from(const Json& json, const Averages& averages, const dist::TensorMessage& message) {
  BatchMoments moments;
  moments.mean = message.get(json.at("mean")), moments.variance = message.get(json.at("variance"));
  moments.norm.running_mean = averages.find(json.at("running_mean"), moments.mean.sizes());
  moments.norm.running_var = averages.find(json.at("running_var"), moments.mean.sizes());
  moments.norm.batches = averages.find(json.at("batches"), {});
  moments.options.channels = json.at("channels"), moments.options.momentum = json.at("momentum");
  moments.options.debias = json.at("debias");
  return moments;
}

std::string to_bytes(const MinibatchReport& report, const Averages& averages) {
  dist::TensorMessage message;
  message.json = {{"loss", report.loss},
                  {"task", report.task},
                  {"not_finite", report.not_finite},
                  {"means", report.means.to_json()},
                  {"details", report.details},
                  {"routings", Json::array()},
                  {"moments", Json::array()}};
  for (const Routing& routing : report.routings) message.json["routings"].push_back(to_json(routing, message));
  for (const BatchMoments& moments : report.moments)
    message.json["moments"].push_back(to_json(moments, averages, message));
  return message.bytes();
}

MinibatchReport report_from(const std::string& bytes, const Averages& averages) {
  const dist::TensorMessage message = dist::TensorMessage::from_bytes(bytes);
  const Json& json = message.json;
  MinibatchReport report;
  report.loss = json.at("loss"), report.task = json.at("task");
  report.not_finite = json.at("not_finite").get<std::set<std::string>>();
  report.means = NamedMeans::from_json(json.at("means"));
  report.details = json.at("details");
  for (const Json& routing : json.at("routings")) report.routings.push_back(routing_from(routing, message));
  for (const Json& moments : json.at("moments")) report.moments.push_back(moments_from(moments, averages, message));
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
