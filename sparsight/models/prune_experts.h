// Removes experts of a trained model, or merges them into others: in its weights, and in all tensors of its training
// state that belong to them. Letters: moe/axes.md.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/io/safetensors.h"
#include "sparsight/models/image_model.h"
#include "sparsight/models/merge_experts.h"
#include "sparsight/moe/moe_layer.h"

namespace sparsight {

// A router, and the MoE layers that follow it: one, or with a model-wide router all of them.
struct RoutedLayers {
  std::string routing = {};  // Routing::layer of its decisions
  int64_t experts = 0;
  std::string router_path = {};  // of its tensors: "blocks.3.mlp.router"
  const Router* router = nullptr;
  GateRule gates = GateRule::router;
  std::map<std::string, MoeLayer*> layers = {};  // by the path of their tensors: "blocks.3.mlp"
};

// In the order of the model's modules. The model must stay.
std::vector<RoutedLayers> routed_layers(const ImageModel& model);

// Raises Error, saying why, where experts of these layers cannot be removed, or with `merges` not be merged.
void check_removal(const RoutedLayers& routed, bool merges);

// Whether the answers stay, up to rounding, when experts leave that no token chooses; while capacity drops nothing, and
// the router draws no random numbers in evaluation.
bool keeps_answers(const RoutedLayers& routed);

// What becomes of the experts of one router.
struct ExpertPlan {
  std::vector<int64_t> into;   // [E]: itself where it stays, another one that stays where it is merged into that, or
                               // kRemoved
  std::vector<double> weight;  // [E]: of an expert in a mean: its load

  static constexpr int64_t kRemoved = -1;
  bool stays(int64_t expert) const { return into[static_cast<size_t>(expert)] == expert; }
  bool merges() const;
  std::vector<int64_t> kept() const;  // those that stay, in order
};

class ExpertPruner {
 public:
  // plans: by RoutedLayers::routing; routers without one keep their experts. An expert of weight 0 leaves the one that
  // it is merged into as it is, unless all of them have it: then the one that stays does not change either. Hidden
  // units of merged experts are matched by the weights of the model.
  ExpertPruner(const ImageModel& model, const std::map<std::string, ExpertPlan>& plans);

  // The experts that each layer is left with, by its path.
  const std::map<std::string, int64_t>& experts() const { return experts_; }

  // The tensors under their names in the pruned model. A name may have parts before and after the parameter's,
  // separated by slashes: "ema/<parameter>", "optimizer/<parameter>/exp_avg". Tensors of experts and routers must have
  // the shape of their parameter, or be a single number (a count of steps).
  NamedTensors prune(const NamedTensors& tensors) const;
  // The name of a tensor that has another shape, as an optimiser may keep; nothing if prune() can be called.
  std::optional<std::string> find_foreign_shape(const NamedTensors& tensors) const;

 private:
  // The order of hidden units of a layer's experts that are merged: by expert.
  struct MatchedUnits {
    std::vector<HiddenUnits> hidden;
    std::map<int64_t, UnitOrder> order;
  };
  struct Change {
    std::shared_ptr<const ExpertPlan> plan = {};
    std::vector<int64_t> sizes = {};                   // of the tensor in the model
    std::string tensor = {};                           // its name in its module
    int64_t axis = 0;                                  // of experts
    std::shared_ptr<const MatchedUnits> matched = {};  // null for routers
    bool is_module = false;                            // of one expert alone, whose name changes
    std::optional<std::string> renamed = {};           // null: the expert leaves
  };
  void add_router(const RoutedLayers& routed, const std::shared_ptr<const ExpertPlan>& plan);
  void add_experts(const std::string& path, MoeLayer& layer, const std::shared_ptr<const ExpertPlan>& plan);
  void add_modules(const std::string& prefix, const NamedTensors& tensors,
                   const std::shared_ptr<const ExpertPlan>& plan);
  // The change of the parameter in the name, with where it begins and ends there; null for other tensors.
  struct Place {
    const Change* change = nullptr;
    size_t begin = 0, end = 0;
  };
  Place find(const std::string& name) const;
  static at::Tensor changed(const Change& change, const at::Tensor& tensor);

  std::map<std::string, Change> changes_;  // by parameter or buffer
  std::map<std::string, int64_t> experts_;
};

}  // namespace sparsight
