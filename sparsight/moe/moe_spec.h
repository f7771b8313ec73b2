// The configuration of a model's MoE layers: sections [moe], [experts], [router], [capacity] and [losses].
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/dist/expert_ranks.h"
#include "sparsight/moe/capacity.h"
#include "sparsight/moe/dispatch/dispatcher.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/gate_sums.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/router.h"

namespace sparsight {

struct MoeOptions {
  std::vector<int64_t> blocks;
  int64_t experts = 8;
  int64_t hidden = 0;
  int64_t shared = 0;
  int64_t shared_hidden = 0;
  bool output_sigmoid = false;
  std::string gates = "auto";
  Json layer, schedule;  // lists of tables
  void declare(OptionSet& set);
  GateRule gate_rule() const;
  // Hidden widths of the routed and of the shared experts in place of an MLP of `mlp_hidden`.
  int64_t hidden_for(int64_t mlp_hidden) const { return hidden > 0 ? hidden : mlp_hidden; }
  int64_t shared_hidden_for(int64_t mlp_hidden) const {
    return shared_hidden > 0 ? shared_hidden : hidden_for(mlp_hidden);
  }
};

// Settings of the section [router] for every router.
struct RouterScopeOptions {
  std::string scope = "auto";
  void declare(OptionSet& set);
};

struct MoeSpec {
  MoeOptions options;
  RouterScopeOptions router;
  CapacityOptions capacity;
  LossOptions losses;
  std::function<std::shared_ptr<Router>(RouterShape)> make_router;
  std::function<std::shared_ptr<Experts>(ExpertShape)> make_kind;  // of [experts] name
  std::shared_ptr<Dispatcher> dispatcher = local_dispatcher();

  // Whether one router decides for all MoE layers of a model that can hand its routing to them: [router] scope, where
  // "auto" asks the router itself (Router::decides_for_model). Raises UsageError for settings that make no router.
  bool shares_router() const;

  // The layer's routed experts for tokens of `width`, those of this rank, and the shared ones (null without). [moe]
  // hidden = 0 means
  // `mlp_hidden`, shared_hidden = 0 for the hidden width of a routed expert, outputs = 0 for `width`.
  std::shared_ptr<Experts> make_experts(int64_t width, int64_t mlp_hidden, int64_t outputs = 0) const;
  std::shared_ptr<Experts> make_shared_experts(int64_t width, int64_t mlp_hidden, int64_t outputs = 0) const;

  // A [[moe.layer]] entry for some blocks, as a complete specification.
  struct Override {
    std::vector<int64_t> blocks;
    std::shared_ptr<const MoeSpec> spec;
  };
  std::vector<Override> overrides = {};

  // Who has which of each layer's routed experts. Without a call of spread_experts() all are in this process.
  dist::ExpertRanks ranks = {};
  void spread_experts(const dist::ExpertRanks& over);

  // For each of `depth` blocks the specification of its MoE layer, or null. Raises UsageError for a block that does not
  // exist or is listed twice, and for layers with different numbers of experts that share a router.
  std::vector<const MoeSpec*> layers(int64_t depth) const;
};

// From a resolved configuration with the sections [moe], [experts], [router], [capacity] and [losses].
MoeSpec read_moe_spec(const Json& resolved);

// No MoE layers, or those of the default router in `blocks`: for programs without a configuration file.
MoeSpec default_moe_spec(const std::vector<int64_t>& blocks = {});

}  // namespace sparsight
