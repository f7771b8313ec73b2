#include "sparsight/dg/dg_models.h"

namespace sparsight {
namespace {

// What the code of GMoE's authors has: learning rate and weight decay by dataset; the first line is for those that they
// do not name. Random search has no weight decay.
std::vector<ProtocolDefault> gmoe_defaults() {
  const struct {
    const char* set;
    double lr, weight_decay;
  } rows[] = {{"", 3e-5, 0},
              {"pacs", 3e-5, 1e-6},
              {"vlcs", 3e-5, 1e-6},
              {"office_home", 1e-5, 1e-6},
              {"terra_incognita", 5e-5, 1e-4},
              {"domain_net", 5e-5, 0},
              {"cub_dg", 5e-5, 0}};
  std::vector<ProtocolDefault> all{{"domain_net", "train.max_steps", 15001}, {"domain_net", "train.eval_every", 500}};
  for (const auto& row : rows) {
    all.push_back({row.set, "optimizer.lr", row.lr});
    all.push_back({row.set, "optimizer.weight_decay", row.weight_decay, "{0.0}"});
  }
  return all;
}

}  // namespace

const std::vector<DgModel>& dg_models() {
  static const std::vector<DgModel> all = [] {
    // Drop path as in GMoE, so that the two differ in the MoE layers only.
    const std::vector<std::string> vit{"model.name=vit", "model.size=small", "model.patch=16", "model.drop_path=0.1"};
    // Gates are the router's also where the experts are copies of a dense MLP, as in the authors' code.
    const std::vector<std::string> of_gmoe{"moe.blocks=[8,10]",
                                           "moe.experts=6",
                                           "moe.gates=router",
                                           "router.name=cosine",
                                           "router.k=1",
                                           "experts.dropout=0.1",
                                           "capacity.factor=1.5",
                                           "capacity.eval_factor=0",
                                           "capacity.priority=max_gate",
                                           "capacity.rounding=floor_per_choice"};
    const std::vector<std::string> of_parity{"capacity.eval_factor=1.5", "losses.vmoe_load_of=scores",
                                             "losses.unbiased_variance=true"};
    const auto joined = [](std::vector<std::string> settings, const std::vector<std::string>& more) {
      settings.insert(settings.end(), more.begin(), more.end());
      return settings;
    };
    const auto resnet = [](const char* depth) {
      return std::vector<std::string>{"model.name=resnet", depth, "model.frozen_batch_norm=true"};
    };
    const std::vector<std::string> gmoe = joined(vit, of_gmoe);
    return std::vector<DgModel>{
        {"mnist_cnn", "DomainBed's CNN for images of 28 x 28 pixels", {"model.name=mnist_cnn"}},
        {"resnet18", "ResNet-18 with frozen batch norm", resnet("model.depth=18")},
        {"resnet50", "ResNet-50 with frozen batch norm", resnet("model.depth=50")},
        {"resnet101", "ResNet-101 with frozen batch norm", resnet("model.depth=101")},
        {"vit", "ViT-S/16", vit},
        {"gmoe", "GMoE-S/16: 6 experts in blocks 8 and 10, cosine router", gmoe, gmoe_defaults()},
        {"gmoe_parity", "GMoE-S/16 with everything as in its authors' code", joined(gmoe, of_parity), gmoe_defaults()}};
  }();
  return all;
}

}  // namespace sparsight
