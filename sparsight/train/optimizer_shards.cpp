#include "sparsight/train/optimizer_shards.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "sparsight/dist/rank_zero.h"
#include "sparsight/dist/tensor_message.h"

namespace sparsight {
namespace {

// Each rank overwrites the tensors of the others with what these have. tensors: the same everywhere, by owner.
void exchange_tensors(dist::Group& group, const std::vector<std::vector<at::Tensor>>& tensors) {
  int64_t most = 0;
  for (const std::vector<at::Tensor>& list : tensors)
    most = std::max(most, std::accumulate(list.begin(), list.end(), int64_t{0},
                                          [](int64_t sum, const at::Tensor& t) { return sum + t.numel(); }));
  const std::vector<at::Tensor>& own = tensors[static_cast<size_t>(group.rank())];
  const at::Tensor some = std::ranges::find_if(tensors, [](const auto& list) { return !list.empty(); })->front();
  const at::Tensor sent = at::zeros({most}, some.options().requires_grad(false));
  int64_t at = 0;
  for (const at::Tensor& tensor : own) {
    sent.narrow(0, at, tensor.numel()).copy_(tensor.reshape({-1}));
    at += tensor.numel();
  }
  const at::Tensor received = group.all_gather(sent);  // [R,most]
  for (size_t rank = 0; rank < tensors.size(); ++rank) {
    if (static_cast<int64_t>(rank) == group.rank()) continue;
    at = 0;
    for (at::Tensor tensor : tensors[rank]) {
      tensor.copy_(received[static_cast<int64_t>(rank)].narrow(0, at, tensor.numel()).view(tensor.sizes()));
      at += tensor.numel();
    }
  }
}

std::string to_bytes(const NamedTensors& tensors) {
  dist::TensorMessage message;
  message.json = Json::array();
  for (const auto& [name, tensor] : tensors) message.json.push_back({name, message.add(tensor)});
  return message.bytes();
}

// "exp_avg" of "blocks.0.norm1.weight/exp_avg".
std::string slot_of(const std::string& state) { return state.substr(state.rfind('/') + 1); }

}  // namespace

OptimizerShards::OptimizerShards(dist::GroupPtr group, std::vector<OptimizedParameter> parameters)
    : group_(std::move(group)), parameters_(std::move(parameters)), owner_(parameters_.size()) {
  std::vector<size_t> order(parameters_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return parameters_[i].value.numel(); });
  std::vector<int64_t> numbers(static_cast<size_t>(group_->size()), 0);
  for (const size_t i : order) {
    const auto fewest = std::ranges::min_element(numbers);
    owner_[i] = fewest - numbers.begin();
    *fewest += parameters_[i].value.numel();
  }
}

std::vector<OptimizedParameter> OptimizerShards::own() const {
  std::vector<OptimizedParameter> own;
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (owner_[i] == group_->rank()) own.push_back(parameters_[i]);
  return own;
}

void OptimizerShards::exchange(bool averages) {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<at::Tensor>> values(static_cast<size_t>(group_->size())), means = values;
  bool has_averages = false;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto owner = static_cast<size_t>(owner_[i]);
    values[owner].push_back(parameters_[i].value);
    if (parameters_[i].average.defined()) means[owner].push_back(parameters_[i].average), has_averages = true;
  }
  exchange_tensors(*group_, values);
  if (averages && has_averages) exchange_tensors(*group_, means);
}

size_t OptimizerShards::find(const std::string& state) const {
  const std::string name = state.substr(0, state.rfind('/'));
  return static_cast<size_t>(std::ranges::find(parameters_, name, [](const OptimizedParameter& p) { return p.name; }) -
                             parameters_.begin());
}

NamedTensors OptimizerShards::gather(const NamedTensors& own) const {
  NamedTensors all;
  std::vector<std::string> slots;
  for (const std::string& bytes : dist::gather_bytes(*group_, to_bytes(own))) {
    const auto message = dist::TensorMessage::from_bytes(bytes);
    for (const Json& entry : message.json) {
      all.emplace_back(entry[0].get<std::string>(), message.get(entry[1]));
      if (std::ranges::find(slots, slot_of(all.back().first)) == slots.end())
        slots.push_back(slot_of(all.back().first));
    }
  }
  if (!group_->leads()) return own;
  std::map<std::string, std::pair<std::ptrdiff_t, size_t>> place;  // slot, parameter
  for (const auto& [name, tensor] : all)
    place[name] = {std::ranges::find(slots, slot_of(name)) - slots.begin(), find(name)};
  std::ranges::sort(all, std::less<>(), [&](const auto& named) { return place.at(named.first); });
  return all;
}

NamedTensors OptimizerShards::own_part(const NamedTensors& all) const {
  NamedTensors own;
  for (const auto& [name, tensor] : all) {
    const size_t parameter = find(name);
    if (parameter == parameters_.size() || owner_[parameter] == group_->rank()) own.emplace_back(name, tensor);
  }
  return own;
}

}  // namespace sparsight
