#include "python/csrc/attack_operator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>

#include <nlohmann/json.hpp>

#include "python/csrc/checked_arguments.h"
#include "sparsight/attacks/cascade_warnings.h"
#include "sparsight/attacks/run/attack_distances.h"
#include "sparsight/attacks/run/attack_shard.h"
#include "sparsight/attacks/run/attack_summary.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/progress.h"

namespace sparsight::python {
namespace {

thread_local int (*python_pass)() = nullptr;
thread_local Tensor* given_pixels = nullptr;
thread_local Tensor* given_logits = nullptr;

// The pixels and logits of a pass, while it lasts.
class Exchange {
 public:
  explicit Exchange(Tensor pixels) : pixels_(std::move(pixels)), outer_pixels_(given_pixels), outer_(given_logits) {
    given_pixels = &pixels_;
    given_logits = &logits_;
  }
  ~Exchange() {
    given_pixels = outer_pixels_;
    given_logits = outer_;
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  const Tensor& logits() const { return logits_; }

 private:
  Tensor pixels_, logits_;
  Tensor *outer_pixels_, *outer_;  // of an attack whose model runs another one
};

void check_logits(const Tensor& logits, const Tensor& pixels) {
  if (!logits.defined()) fail("the model gave no logits");
  if (logits.dim() != 2 || logits.size(0) != pixels.size(0) || logits.size(1) < 2 || !logits.is_floating_point())
    fail("the model must return logits [B,classes] of floating point, with B = ", pixels.size(0),
         " and at least 2 classes, got ", logits.sizes(), " of type ", c10::toString(logits.scalar_type()));
  if (pixels.requires_grad() && at::GradMode::is_enabled() && !logits.requires_grad())
    fail(
        "the logits have no gradient with respect to the pixels: the model must not run under torch.no_grad(), nor "
        "detach them; attacks without gradients, such as square, need none");
}

ModelOutput python_output(const Tensor& pixels) {
  const Exchange exchange(pixels);
  if (!python_pass || python_pass() != 0) fail("the model raised an exception during the attack");
  check_logits(exchange.logits(), pixels);
  ModelOutput out;
  out.logits = exchange.logits();
  return out;
}

// ["attack.steps=20"]
std::vector<std::string> as_overrides(const Json& settings) {
  std::vector<std::string> overrides;
  for (const auto& [key, value] : settings.items()) overrides.push_back(cat("attack.", key, "=", json_text(value)));
  return overrides;
}

AttackRequest read_request(const Json& json, const Tensor& pixels) {
  AttackRequest request;
  request.attack = text(json, "attack");
  request.norm = text(json, "norm");
  request.epsilon = text(json, "epsilon");
  request.precision = pixels.scalar_type() == at::kDouble ? "fp64" : "fp32";
  request.overrides = as_overrides(member(json, "settings"));
  request.target = text(json, "target");
  request.seed = json.value("seed", uint64_t{0});
  request.batch = json.value("batch", int64_t{250});
  if (request.batch < 1) fail_usage("batch must be at least 1, got ", request.batch);
  return request;
}

// What an attack that measures distances says of them: distances_json() with "per_image", null where none was found.
Json measured_distances(const CascadeResult& result, const AttackPlan& plan, const Tensor& labels) {
  const Tensor counted = counted_images(result.clean, labels, result.target);
  std::vector<double> distances;
  Json all = Json::array();
  for (int64_t i = 0; i < result.distance.size(0); ++i) {
    const double distance = result.distance[i].item<double>();
    all.push_back(std::isfinite(distance) ? Json(distance) : Json());
    if (counted[i].item<bool>()) distances.push_back(distance);
  }
  Json json = distances_json(std::move(distances), measures_beyond_epsilon(plan));
  json["per_image"] = std::move(all);
  return json;
}

int64_t count_classes(AttackedModel& model, const AttackBatch& batch) {
  const at::NoGradGuard no_grad;
  return model.forward(batch.pixels, {.image = at::arange(batch.pixels.size(0))}).logits.size(1);
}

// Raise UsageError unless `values` are a class of each of `images` images, and 0 .. K-1.
void check_classes_given(const Tensor& values, const char* what, int64_t images) {
  if (values.dim() != 1 || values.size(0) != images || values.scalar_type() != at::kLong)
    fail_usage(what, " must be [B] int64 with B = ", images, ", got ", values.sizes(), " of type ",
               c10::toString(values.scalar_type()));
}

void check_class_range(const Tensor& values, const char* what, int64_t classes) {
  const int64_t low = values.min().item<int64_t>(), high = values.max().item<int64_t>();
  if (low < 0 || high >= classes)
    fail_usage(what, " must be 0 to ", classes - 1, ", the classes of the model's logits, got ", low, " to ", high);
}

// The labels with the targets of a targeted attack that are known before its first pass. The plan gets the number of
// its class.
AttackLabels make_labels(AttackPlan& plan, const Tensor& labels, const OptionalTensor& targets, int64_t classes) {
  check_class_range(labels, "labels", classes);
  AttackLabels made{labels.clone()};
  if (targets) {
    check_class_range(*targets, "target", classes);
    made.target = targets->clone();
  } else if (plan.targeted() && is_one_class(plan.target)) {
    std::vector<std::string> names;
    for (int64_t k = 0; k < classes; ++k) names.push_back(std::to_string(k));
    fit_to_target(plan, names);
    made.target = at::full_like(labels, plan.target_class);
  }
  made.targeted = made.target.defined();
  if (made.targeted && made.target.equal(made.label))
    fail_usage("the label of every image is its target, so that there is nothing to attack; choose another target");
  return made;
}

// Adds to `report`, of a targeted attack, what its success was; stage is 0 where the model predicts the target.
void report_target(Json& report, const AttackPlan& plan, const CascadeResult& result, const Tensor& labels) {
  if (!result.target.defined()) return;
  const int64_t counted = counted_images(result.clean, labels, result.target).sum().item<int64_t>();
  report["target"] = target_json(plan);
  report["target"]["left_out"] = labels.size(0) - counted;
  report["success_rate"] = share_json((result.stage >= 0).sum().item<int64_t>(), counted);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, std::string> attack(Text request_json, const Tensor& pixels,
                                                                       const Tensor& labels,
                                                                       const OptionalTensor& targets) {
  if (!python_pass) fail("torch.ops.sparsight.attack has no model; call sparsight.attack(model, images, labels)");
  const Json json = parse_json_object(std::string(request_json), "request");
  const AttackRequest request = read_request(json, pixels);
  if (pixels.dim() < 2 || pixels.size(0) == 0)
    fail_usage("images must be [B,...] with at least one image, got ", pixels.sizes());
  check_classes_given(labels, "labels", pixels.size(0));
  if (targets) check_classes_given(*targets, "target", pixels.size(0));
  AttackPlan plan = plan_attack(request);
  if (targets) {
    plan.target = "given";
    check_takes_target(plan);
  }
  if (!plan.model_overrides.empty()) fail_usage("settings of an attack have no sections");
  fit_to_labels(plan, /*several_labels=*/false);
  check_radius(plan.threat, pixels[0].numel());
  AttackBatch batch{pixels.detach().clone(), {labels.clone()}, at::arange(pixels.size(0), at::kLong)};
  const at::AutoGradMode with_gradients(true);
  AttackedFunction function([](const Tensor& x, const AttackPass&) { return python_output(x); },
                            json.value("randomised", false));
  ObservedModel model(function, /*exact=*/false);
  const AttackBatch first = batch.select(at::arange(std::min({int64_t{32}, request.batch, pixels.size(0)})));
  const int64_t classes = count_classes(model, first);
  batch.labels = make_labels(plan, labels, targets, classes);
  fit_to_classes(plan, classes);
  check_passes(plan, model.randomised());
  const AttackContext context{.threat = plan.threat, .seed = request.seed};
  std::unique_ptr<Progress> progress;
  if (json.value("progress", false)) progress = std::make_unique<Progress>("attack", pixels.size(0), "images");
  PieceAttack how{plan, context, request.batch};
  if (progress) how.progress = show_stages(*progress, plan.stages, 0, pixels.size(0));
  CascadeResult result = run_plan(model, batch, how);
  if (progress) progress->finish();
  result.warnings = model_warnings(model, first, plan.stages, has_gradients(plan));
  for (std::string& warning : stage_warnings(result.stages, pixels.size(0)))
    result.warnings.push_back(std::move(warning));
  Json report = to_json(result, context);
  report["attack"] = request.attack;
  report["notes"] = plan.notes;
  report_target(report, plan, result, labels);
  if (result.distance.defined()) report["distances"] = measured_distances(result, plan, labels);
  if (!result.target.defined()) result.target = at::arange(0, at::kLong);
  return {result.pixels, result.clean, result.robust, result.stage, result.target, json_text(report)};
}

Tensor attacked_pixels() {
  if (!given_pixels) fail("attacked_pixels() is called by the model of an attack alone");
  return *given_pixels;
}

void answer_attack(const Tensor& logits) {
  if (!given_logits) fail("answer_attack() is called by the model of an attack alone");
  *given_logits = logits;
}

}  // namespace

void define_attack_operators(torch::Library& m) {
  m.def(
      "attack(str request, Tensor pixels, Tensor labels, Tensor? targets=None) -> (Tensor pixels, Tensor clean, Tensor "
      "robust, Tensor stage, Tensor target, str report)",
      [](Text request, const Tensor& pixels, const Tensor& labels, const OptionalTensor& targets) {
        return run_operator([&] { return attack(request, checked(pixels), checked(labels), checked(targets)); });
      });
  m.def("attacked_pixels() -> Tensor", [] { return run_operator(attacked_pixels); });
  m.def("answer_attack(Tensor logits) -> ()",
        [](const Tensor& logits) { run_operator([&] { answer_attack(logits); }); });
}

}  // namespace sparsight::python

sparsight_pass sparsight_set_attacked_model(sparsight_pass pass) {
  return std::exchange(sparsight::python::python_pass, pass);
}
