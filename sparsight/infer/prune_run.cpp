#include "sparsight/infer/prune_run.h"

#include <algorithm>
#include <limits>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/machine.h"
#include "sparsight/core/printable.h"
#include "sparsight/eval/guidance.h"
#include "sparsight/infer/model_path.h"
#include "sparsight/infer/pruned_folder.h"
#include "sparsight/infer/split_answers.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/pruned_config.h"

namespace sparsight {
namespace {

constexpr int64_t kSimilarityImages = 64, kSimilarityTokens = 1024;

using Plans = std::map<std::string, ExpertPlan>;

// A model, the checkpoint that holds no more than its weights, and its answers.
struct Original {
  LoadedModel loaded;
  Checkpoint checkpoint;
  std::vector<RoutedLayers> routed;
  int64_t blocks = 0;
  CalibrationSplit on;
  SplitAnswers answers;
};

Checkpoint weights_alone(const LoadedModel& loaded) {
  const auto metadata = read_checkpoint_metadata(loaded.path);
  Checkpoint checkpoint;
  checkpoint.config = try_parse_json_object(metadata.at("config")).value();
  checkpoint.state = try_parse_json_object(metadata.at("state")).value();
  for (const char* const of_training : {"average", "algorithm"}) checkpoint.state.erase(of_training);
  checkpoint.state["weights"] = loaded.weights;
  checkpoint.weights = named_weights(*loaded.model);
  return checkpoint;
}

int64_t count_model_blocks(const ImageModel& model, const std::vector<RoutedLayers>& routed) {
  std::vector<std::string> modules;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) modules.push_back(item.key());
  int64_t blocks = 0;
  for (const RoutedLayers& each : routed)
    for (const auto& [path, layer] : each.layers) blocks = std::max(blocks, count_blocks(path, modules));
  return blocks;
}

SplitAnswers compiled_answers(LoadedModel loaded, const CalibrationSplit& on, const std::string& title) {
  compile(loaded, std::numeric_limits<int64_t>::max());
  return split_answers(loaded, on, title);
}

Original load_original(const PruneRequest& request, const std::function<void(const LoadedModel&)>& check) {
  check_model_exists(request.path);
  Original original;
  LoadedModel& loaded = original.loaded = load_model(request.path, request.checkpoint, request.overrides);
  apply_threads(read_section<RunOptions>(loaded.config, "run"));
  const std::string path = printable(request.path);
  if (!loaded.model)
    fail(path, " is a frozen model, whose experts stay; prune the run that it is of, then export that");
  if (check) check(loaded);
  original.routed = routed_layers(*loaded.model);
  if (original.routed.empty()) fail(path, " is a dense model: it has no experts to remove");
  for (const RoutedLayers& each : original.routed) check_removal(each, request.merge);
  if (is_guided(loaded.config))
    fail("the routers of ", path, " are guided: each expert is for one super-class, and none can leave without it");
  original.checkpoint = weights_alone(loaded);
  original.blocks = count_model_blocks(*loaded.model, original.routed);
  const std::vector<std::string> splits =
      request.split.empty() ? std::vector<std::string>{"val", "test"} : std::vector{request.split};
  original.on = calibration_split(loaded, splits, request.images);
  if (!original.on.data)
    fail("the dataset has no ", request.split.empty() ? "validation or test" : request.split,
         " images to measure experts on; choose another --split");
  return original;
}

// "blocks.3.mlp: 1 of 4".
std::string left_counts(const Original& original, const ExpertPruner& pruner) {
  std::vector<std::string> counts;
  for (const RoutedLayers& each : original.routed)
    if (const int64_t left = pruner.experts().at(each.layers.begin()->first); left < each.experts)
      counts.push_back(cat(each.routing, ": ", left, " of ", each.experts));
  return join(counts);
}

// The model without the experts. Raises UsageError where its settings do not allow so few.
LoadedModel without_experts(const Original& original, const PruneRequest& request, const ExpertPruner& pruner) {
  try {
    return load_checkpoint(pruned_checkpoint(original.checkpoint, pruner, original.blocks), original.loaded.path,
                           request.overrides);
  } catch (const UsageError& error) {
    fail_usage("the model does not work with the experts that are left (", left_counts(original, pruner),
               "): ", error.what());
  }
}

const Json& measured_layer(const SplitAnswers& answers, const std::string& routing) {
  for (const Json& layer : answers.evaluation.layers)
    if (text(layer, "layer") == routing) return layer;
  SPARSIGHT_CHECK(false);
  throw std::logic_error("unreachable");
}

ExpertPlan plan_for(const std::vector<bool>& kept, const std::vector<double>& load) {
  ExpertPlan plan{{}, load};
  for (int64_t e = 0; e < std::ssize(kept); ++e)
    plan.into.push_back(kept[static_cast<size_t>(e)] ? e : ExpertPlan::kRemoved);
  return plan;
}

// {"accuracy", "loss"} of the model without this expert; null where its settings do not allow that.
Json measure_without(const Original& original, const PruneRequest& request, const RoutedLayers& routed,
                     int64_t expert) {
  std::vector<bool> kept(static_cast<size_t>(routed.experts), true);
  kept[static_cast<size_t>(expert)] = false;
  if (routed.experts == 1) return Json();
  const std::vector<double> load(kept.size(), 0);
  try {
    const ExpertPruner pruner(*original.loaded.model, {{routed.routing, plan_for(kept, load)}});
    const SplitAnswers answers = compiled_answers(without_experts(original, request, pruner), original.on,
                                                  cat("without expert ", expert, " of ", routed.routing));
    return {{"accuracy", answers.evaluation.accuracy}, {"loss", answers.evaluation.loss}};
  } catch (const UsageError&) {
    if (request.by == "damage") throw;
    return Json();
  }
}

// The tokens of each MoE layer, [T,D], at most kSimilarityTokens, evenly spaced over those of a few images.
std::map<std::string, at::Tensor> sample_tokens(const Original& original, const PruneRequest& request) {
  const torch::NoGradGuard no_grad;
  const CalibrationSplit few =
      calibration_split(original.loaded, {original.on.split},
                        request.images > 0 ? std::min(request.images, kSimilarityImages) : kSimilarityImages);
  std::map<std::string, std::vector<at::Tensor>> seen;
  const auto loader = calibration_loader(original.loaded, few);
  loader->start(0);
  while (auto batch = loader->next()) {
    ModelInput input{.images = batch->images};
    input.pre_experts_hook = [&](MoeLayer& layer, MoeInput& moe, Routing&) {
      seen[layer.path()].push_back(moe.tokens.detach());
    };
    original.loaded.model->forward(input);
  }
  std::map<std::string, at::Tensor> tokens;
  for (const auto& [layer, batches] : seen) {
    const at::Tensor all = at::cat(batches);
    const int64_t count = std::min(all.size(0), kSimilarityTokens);
    tokens[layer] = all.index_select(0, at::arange(count, torch::kLong).mul(all.size(0)).floor_divide(count));
  }
  return tokens;
}

// [E,T,O]: what each expert makes of all tokens, [T,D].
at::Tensor all_outputs(MoeLayer& layer, const at::Tensor& tokens) {
  const torch::NoGradGuard no_grad;
  const int64_t experts = layer.expert_count(), count = tokens.size(0);
  const at::Tensor outputs =
      layer.experts().forward(tokens.repeat({experts, 1}), at::arange(experts + 1, torch::kLong) * count);
  return outputs.view({experts, count, -1});
}

// Merges the experts that a plan removes into the most similar ones that stay, on average over the layers.
void merge_removed(const Original& original, const PruneRequest& request, Plans& plans) {
  const std::map<std::string, at::Tensor> tokens = sample_tokens(original, request);
  for (const RoutedLayers& each : original.routed) {
    at::Tensor similarity = at::zeros({each.experts, each.experts}, torch::kDouble);
    for (const auto& [path, layer] : each.layers)
      if (const auto own = tokens.find(layer->path()); own != tokens.end())
        similarity = similarity + output_similarity(all_outputs(*layer, own->second));
    ExpertPlan& plan = plans.at(each.routing);
    std::vector<bool> kept;
    for (int64_t e = 0; e < each.experts; ++e) kept.push_back(plan.stays(e));
    plan.into = nearest_kept(similarity, kept);
  }
}

// Measures the experts, chooses, and describes each router's in `layers`.
Plans choose_experts(const Original& original, const PruneRequest& request, Json& layers) {
  const auto named = parse_experts(request.experts, original.routed);
  Plans plans;
  for (const RoutedLayers& each : original.routed) {
    const Json& layer = measured_layer(original.answers, each.routing);
    MeasuredExperts measured{numbers(layer.at("load")), numbers(layer.at("importance")), {}};
    Json without = Json::array();
    if (request.each || request.by == "damage")
      for (int64_t e = 0; e < each.experts; ++e) {
        without.push_back(measure_without(original, request, each, e));
        measured.damage.push_back(number(without.back(), "loss").value_or(0) - original.answers.evaluation.loss);
      }
    plans[each.routing] = plan_for(kept_experts(request, each, measured, named), measured.load);
    double all = 0;
    for (const double load : measured.load) all += load;
    Json paths = Json::array(), experts = Json::array();
    for (const auto& [path, module] : each.layers) paths.push_back(path);
    for (size_t e = 0; e < measured.load.size(); ++e) {
      experts.push_back({{"expert", e},
                         {"load", measured.load[e]},
                         {"share", all > 0 ? measured.load[e] / all : 0},
                         {"importance", measured.importance[e]}});
      if (!without.empty()) experts.back()["without"] = without[e];
    }
    layers.push_back(
        {{"layer", each.routing}, {"of", paths}, {"router", each.router->registered_name()}, {"experts", experts}});
  }
  if (request.merge) merge_removed(original, request, plans);
  return plans;
}

// Whether the plan leaves the answers of these images as they are, up to rounding.
bool is_exact(const Original& original, const RoutedLayers& routed, const ExpertPlan& plan) {
  if (std::ssize(plan.kept()) == routed.experts) return true;
  for (int64_t e = 0; e < routed.experts; ++e)
    if (!plan.stays(e) && plan.weight[static_cast<size_t>(e)] > 0) return false;
  const double dropped = number(measured_layer(original.answers, routed.routing), "dropped").value_or(0);
  return keeps_answers(routed) && dropped == 0 && !original.answers.sampled;
}

// Adds what became of each expert.
bool describe_plans(const Original& original, const Plans& plans, Json& layers) {
  bool exact = true;
  for (size_t i = 0; i < original.routed.size(); ++i) {
    const RoutedLayers& routed = original.routed[i];
    const ExpertPlan& plan = plans.at(routed.routing);
    const std::vector<int64_t> kept = plan.kept();
    for (size_t e = 0; e < plan.into.size(); ++e) {
      const auto place = std::ranges::find(kept, plan.into[e]);
      layers[i]["experts"][e]["into"] = place == kept.end() ? Json() : Json(place - kept.begin());
      layers[i]["experts"][e]["stays"] = plan.stays(static_cast<int64_t>(e));
    }
    layers[i]["exact"] = is_exact(original, routed, plan);
    exact = exact && layers[i]["exact"].get<bool>();
  }
  return exact;
}

int64_t count_bytes(const NamedTensors& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

int64_t count_parameters_of(const LoadedModel& loaded) {
  int64_t count = 0;
  for (const at::Tensor& parameter : loaded.model->parameters()) count += parameter.numel();
  return count;
}

void put_comparison(const Original& original, const LoadedModel& pruned, const SplitAnswers& after, Json& result) {
  const SplitAnswers& before = original.answers;
  const double was = before.evaluation.accuracy, now = after.evaluation.accuracy;
  result.update({{"accuracy_before", was},
                 {"accuracy_after", now},
                 {"drop", 100 * (was - now)},
                 {"agreement", class_agreement(before, after)},
                 {"largest_difference", largest_difference(before, after)},
                 {"parameters_before", count_parameters_of(original.loaded)},
                 {"parameters_after", count_parameters_of(pruned)},
                 {"bytes_before", count_bytes(original.checkpoint.weights)},
                 {"bytes_after", count_bytes(named_weights(*pruned.model))}});
}

}  // namespace

Json prune_run(const PruneRequest& request, const std::function<void(const LoadedModel&)>& check) {
  check_request(request);
  if (!request.out.empty()) check_out(request.out);
  Original original = load_original(request, check);
  parse_experts(request.experts, original.routed);  // before the images are read
  original.answers = compiled_answers(original.loaded, original.on, "all experts");
  Json result{
      {"run", printable(request.path)}, {"split", original.on.split}, {"images", original.answers.evaluation.images}},
      layers = Json::array();
  const Plans plans = choose_experts(original, request, layers);
  const ExpertPruner pruner(*original.loaded.model, plans);
  const LoadedModel pruned = without_experts(original, request, pruner);
  const SplitAnswers after = compiled_answers(pruned, original.on, "fewer experts");
  const bool exact = describe_plans(original, plans, layers);
  result["layers"] = layers;
  result["exact"] = exact;
  put_comparison(original, pruned, after, result);
  const double drop = result["drop"];
  if (request.max_drop && drop > *request.max_drop)
    fail("without these experts the model loses ", drop, " points of accuracy (",
         100 * result["accuracy_before"].get<double>(), " to ", 100 * result["accuracy_after"].get<double>(), " % of ",
         after.evaluation.images, " images), more than --max-drop ", *request.max_drop, "; nothing was written");
  result["out"] = request.out.empty() ? Json() : Json(printable(request.out));
  if (request.out.empty()) return result;
  write_pruned_folder({.source = request.path,
                       .out = request.out,
                       .best = pruned_checkpoint(original.checkpoint, pruner, original.blocks),
                       .split = original.on.split,
                       .evaluation = after.evaluation,
                       .provenance = {{"run", result["run"]},
                                      {"checkpoint", printable(original.loaded.path)},
                                      {"step", original.loaded.step},
                                      {"layers", layers}}},
                      pruned, pruner, original.blocks);
  return result;
}

}  // namespace sparsight
