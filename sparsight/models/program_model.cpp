#include "sparsight/models/program_model.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "sparsight/core/error.h"
#include "sparsight/nn/linear.h"
#include "sparsight/ops/product_type.h"
#include "sparsight/ops/sort_by_expert.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
namespace {

at::Tensor copied(const float* values, at::IntArrayRef sizes) {
  return at::from_blob(const_cast<float*>(values), sizes, at::kFloat).clone();
}
template <class T>
at::Tensor copied(const engine::Array<T>& values, at::ScalarType type) {
  at::Tensor out = at::empty({values.size()}, type);
  std::copy_n(values.data(), values.size(), static_cast<T*>(out.data_ptr()));
  return out;
}
at::Tensor matrix(const engine::Array<float>& values, at::IntArrayRef sizes) {
  return values.empty() && sizes[0] > 0 ? at::Tensor() : copied(values, at::kFloat).view(sizes);
}

template <class T>
void fill(engine::Array<T>& to, const at::Tensor& from, at::ScalarType type) {
  if (!from.defined()) return to.clear();
  const at::Tensor values = from.detach().to(at::kCPU, type).contiguous();
  std::copy_n(static_cast<const T*>(values.const_data_ptr()), values.numel(), to.resize(values.numel()));
}

const int64_t* number_data(const at::Tensor& numbers) {
  return numbers.defined() ? numbers.const_data_ptr<int64_t>() : nullptr;
}

}  // namespace

Routing to_routing(const engine::Routing& from, const std::string& layer) {
  Routing routing;
  routing.layer = layer;
  routing.layout = from.layout;
  routing.tokens = from.tokens;
  routing.experts = from.experts;
  if (from.mixes_tokens()) {
    auto soft = std::make_shared<SoftRouting>();
    const std::vector<int64_t> sizes{from.layout.images, from.layout.per_image, from.experts * from.slots};
    soft->layer = layer;
    soft->layout = from.layout;
    soft->experts = from.experts;
    soft->slots = from.slots;
    soft->logits = matrix(from.logits, sizes);
    soft->dispatch = matrix(from.scores, sizes);
    soft->combine = matrix(from.combine, sizes);
    routing.soft = std::move(soft);
    return routing;
  }
  const std::vector<int64_t> dense{from.tokens, from.experts};
  routing.clean_logits = routing.noisy_logits = matrix(from.logits, dense);
  routing.scores = matrix(from.scores, dense);
  routing.token = copied(from.token, at::kLong);
  routing.expert = copied(from.expert, at::kLong);
  routing.rank = copied(from.rank, at::kLong);
  routing.gate = copied(from.gate, at::kFloat);
  routing.kept = copied(from.kept, at::kBool);
  routing.order = copied(from.order, at::kLong);
  routing.offsets = copied(from.offsets, at::kLong);
  if (!from.capacity.empty()) {
    routing.capacity = copied(from.capacity, at::kLong);
    routing.position = copied(from.position, at::kLong);
  }
  routing.chosen_count = count_by_expert(routing.expert, from.experts);
  routing.per_token = from.per_token;
  routing.varying = from.varying;
  routing.skips = from.skips;
  return routing;
}

void set_routing(engine::Routing& to, const Routing& from) {
  to.start(to.layout, from.experts);
  if (from.soft) {
    to.slots = from.soft->slots;
    fill(to.logits, from.soft->logits, at::kFloat);
    fill(to.scores, from.soft->dispatch, at::kFloat);
    fill(to.combine, from.soft->combine, at::kFloat);
    return;
  }
  to.per_token = from.per_token, to.varying = from.varying, to.skips = from.skips;
  fill(to.logits, from.clean_logits, at::kFloat);
  fill(to.scores, from.scores, at::kFloat);
  fill(to.token, from.token, at::kLong);
  fill(to.expert, from.expert, at::kLong);
  fill(to.rank, from.rank, at::kLong);
  fill(to.gate, from.gate, at::kFloat);
  fill(to.kept, from.kept, at::kBool);
  fill(to.capacity, from.capacity, at::kLong);
  fill(to.position, from.position, at::kLong);
  to.group_kept();
}

bool ProgramModel::takes(const ModelInput& input) {
  const ForwardMode& mode = input.mode;
  const ImageInfo& info = input.info;
  if (mode != ForwardMode::evaluation() || !input.taps.empty() || input.pre_experts_hook) return false;
  if (info.token_id.defined() || info.priority.defined() || info.target.defined()) return false;
  return !(at::GradMode::is_enabled() && input.images.requires_grad()) && suits_kernels(input.images) &&
         !multiplies_bf16();
}

ModelOutput ProgramModel::forward(const ModelInput& input) const {
  check_input(input, image_);
  std::unique_ptr<engine::Session> session;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) session = std::move(idle_.back()), idle_.pop_back();
  }
  if (!session) session = std::make_unique<engine::Session>();
  const at::Tensor images = input.images.contiguous();
  const int64_t count = images.size(0);
  size_t given = 0;
  const auto replay = [&](const engine::RouteStep& step, engine::Routing& routing) {
    const auto found = input.routings.find(step.layer());
    if (found == input.routings.end()) return;
    ++given;
    const TokenLayout &own = routing.layout, &other = found->second.layout;
    if (found->second.soft && (other.images != own.images || other.per_image != own.per_image))
      fail("the MoE layer ", step.layer(), " has ", own.images, " images of ", own.per_image,
           " tokens, but the soft routing has ", other.images, " images of ", other.per_image, " tokens");
    if (found->second.tokens != routing.tokens || found->second.experts != routing.experts)
      fail("the MoE layer ", step.layer(), " has ", routing.tokens, " tokens and ", routing.experts,
           " experts, but the routing has ", found->second.tokens, " tokens and ", found->second.experts, " experts");
    set_routing(routing, found->second);
  };
  const engine::Answer answer = program_.run(*session, cpu::torch_threads(),
                                             {.pixels = images.const_data_ptr<float>(),
                                              .images = count,
                                              .image_numbers = number_data(input.info.image),
                                              .image_groups = number_data(input.info.group)},
                                             replay);
  if (given < input.routings.size()) {
    std::vector<std::string> known;
    for (const engine::RouteStep* route : program_.routes()) known.push_back(route->layer());
    check_routings(input.routings, known);
  }
  ModelOutput output;
  output.logits = copied(answer.logits, {count, program_.classes()});
  output.features = copied(answer.features, {count, program_.feature_width()});
  for (size_t i = 0; i < answer.routings.size(); ++i) {
    Routing routing = to_routing(answer.routings[i], program_.routes()[i]->layer());
    if (routing.soft)
      output.soft_routings.push_back(*routing.soft);
    else
      output.routings.push_back(std::move(routing));
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
  return output;
}

}  // namespace sparsight
