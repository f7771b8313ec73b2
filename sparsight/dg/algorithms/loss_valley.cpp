#include "sparsight/dg/algorithms/loss_valley.h"

#include <algorithm>
#include <limits>

#include "sparsight/core/error.h"
#include "sparsight/io/checkpoint.h"

namespace sparsight {
namespace {

NamedTensors copied(const NamedTensors& tensors) {
  NamedTensors copy;
  for (const auto& [name, tensor] : tensors) copy.emplace_back(name, tensor.detach().clone());
  return copy;
}

std::string segment_prefix(int64_t number) { return cat("swad/segment.", number, "/"); }

}  // namespace

void LossValley::add(WeightSegment segment) {
  if (ended_) return;
  segment.number = segments_++;
  queue_.push_back(std::move(segment));
  const auto length = static_cast<size_t>(std::max(options_.start, options_.end));
  if (queue_.size() > length) queue_.pop_front();
  if (!has_started()) return try_to_start();
  const auto end = static_cast<size_t>(options_.end);
  if (queue_.size() < end) return;
  const size_t head = queue_.size() - end;
  if (is_averaged(queue_[head]) || queue_[head].number < start_) return;
  if (min_loss(head) > threshold_) {
    ended_ = true;
  } else {
    include(queue_[head]);
  }
}

void LossValley::try_to_start() {
  const auto count = static_cast<size_t>(options_.start);
  if (queue_.size() < count) return;
  const size_t first = queue_.size() - count;
  double sum = 0;
  for (size_t i = first; i < queue_.size(); ++i) {
    if (queue_[i].loss < queue_[first].loss) return;
    sum += queue_[i].loss;
  }
  start_ = queue_[first].number;
  threshold_ = sum / static_cast<double>(count) * (1 + options_.tolerance);
  size_t oldest = first;
  while (oldest > 0 && queue_[oldest - 1].loss <= threshold_) --oldest;
  for (size_t i = oldest; i <= first; ++i) include(queue_[i]);
  // A longer N_s queue: segments that the N_e queue has already lost.
  for (size_t i = first + 1; i + static_cast<size_t>(options_.end) <= queue_.size(); ++i) include(queue_[i]);
}

double LossValley::min_loss(size_t from) const {
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = from; i < queue_.size(); ++i) least = std::min(least, queue_[i].loss);
  return least;
}

bool LossValley::is_averaged(const WeightSegment& segment) const {
  return std::find(averaged_.begin(), averaged_.end(), segment.number) != averaged_.end();
}

void LossValley::include(const WeightSegment& segment) {
  const at::NoGradGuard no_grad;
  averaged_.push_back(segment.number);
  if (average_.empty()) {
    average_ = copied(segment.mean);
    return;
  }
  const double share = 1 / static_cast<double>(averaged_.size());
  for (size_t i = 0; i < average_.size(); ++i) {
    at::Tensor& mean = average_[i].second;
    if (mean.is_floating_point()) {
      mean.lerp_(segment.mean[i].second, share);
    } else {
      mean.copy_(segment.mean[i].second);
    }
  }
}

LossValley LossValley::finished() const {
  LossValley end = *this;
  end.average_ = copied(average_);
  end.take_rest();
  return end;
}

void LossValley::take_rest() {
  if (!has_started()) {
    if (!queue_.empty()) average_ = copied(queue_.back().mean);
  } else if (!ended_) {
    for (size_t i = 0; i < queue_.size(); ++i) {
      if (queue_[i].number < start_ || is_averaged(queue_[i])) continue;
      if (min_loss(i) > threshold_) break;
      include(queue_[i]);
    }
  }
}

void LossValley::save(AlgorithmState& state) const {
  Json segments = Json::array();
  for (const WeightSegment& segment : queue_) {
    segments.push_back({{"number", segment.number}, {"loss", segment.loss}});
    add_tensors(state, segment_prefix(segment.number), segment.mean);
  }
  add_tensors(state, "swad/average/", average_);
  state.values["valley"] = {{"queue", segments}, {"averaged", averaged_},   {"segments", segments_},
                            {"start", start_},   {"threshold", threshold_}, {"ended", ended_}};
}

void LossValley::load(const AlgorithmState& state) {
  const Json& valley = state.values.at("valley");
  queue_.clear();
  for (const Json& segment : valley.at("queue")) {
    const auto number = segment.at("number").get<int64_t>();
    queue_.push_back(
        {copied(tensors_under(segment_prefix(number), state.tensors)), segment.at("loss").get<double>(), number});
  }
  average_ = copied(tensors_under("swad/average/", state.tensors));
  averaged_ = valley.at("averaged").get<std::vector<int64_t>>();
  segments_ = valley.at("segments").get<int64_t>();
  start_ = valley.at("start").get<int64_t>();
  threshold_ = valley.at("threshold").get<double>();
  ended_ = valley.at("ended").get<bool>();
}

}  // namespace sparsight
