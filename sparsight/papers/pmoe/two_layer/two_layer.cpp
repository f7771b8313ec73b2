#include "sparsight/papers/pmoe/two_layer/two_layer.h"

#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/two_layer/value_function.h"

namespace sparsight::pmoe {

void TwoLayerSetting::declare(OptionSet& set) {
  set.choice("form", &form, {"cnn", "separate", "joint"},
             "one expert for all patches, or experts with routers trained separately or jointly");
  set.integer("experts", &experts, {1, 4096}, "experts");
  set.integer("filters", &filters, {1, 1 << 20}, "filters of each expert");
  set.integer("patches", &patches, {1, 1 << 20}, "patches of each sample that each expert takes");
  set.choice("average", &average, {"taken", "all"}, "divide the sum over patches by the patches taken or by all");
  set.choice("output", &output, {"normal", "signs"}, "fixed output weights: samples of N(0,1), or +1 and -1 by expert");
  set.real("init_std", &init_std, {0, 1000}, "standard deviation of the initial filters");
  set.real("router_std", &router_std, {0, 1000}, "standard deviation of the initial routers");
  set.real("threshold", &threshold, {-1e6, 1e6}, "two classes: predict class 1 if f is above it");
  sgd.declare(set);
}

double router_start_std(int64_t patches, int64_t width) {
  if (patches < 2 || width < 1)
    fail_usage("initial routers need at least 2 patches of width at least 1, got ", patches, " of width ", width);
  const auto n = static_cast<double>(patches), d = static_cast<double>(width);
  return 1 / (n * n * std::log(n) * std::sqrt(d));
}

TwoLayerSetting two_layer_preset(const std::string& preset, const std::string& form, const PatchSet& data) {
  if (preset != "paper" && preset != "code")
    fail_usage("unknown preset \"", preset, "\"; choose \"paper\" or \"code\"");
  const bool paper = preset == "paper";
  constexpr int64_t kFilters = 40;
  TwoLayerSetting setting;
  setting.form = form;
  int64_t all = kFilters;
  if (form == "cnn") {
    if (!paper) all = 4;
    setting.experts = 1;
    setting.patches = data.patches;
  } else if (form == "separate") {
    setting.experts = data.classes;
    setting.patches = 2;
    all = kFilters / 2 * data.classes;
    if (!paper) setting.output = "signs";
  } else if (form != "joint") {
    fail_usage("unknown form \"", form, "\"; choose \"cnn\", \"separate\" or \"joint\"");
  }
  setting.filters = filters_of_each(all, setting.experts);
  if (paper) {
    setting.init_std = 1 / std::sqrt(static_cast<double>(all));
    setting.router_std = data.patches > 1 ? router_start_std(data.patches, data.width()) : 0;
  } else {
    setting.average = "all";
    setting.init_std = form == "joint" ? 0.01 : 0.1;
    setting.router_std = form == "joint" ? 1e-4 : 0.1;
    setting.threshold = 0.5;
    setting.sgd.stop = "epochs";
  }
  return setting;
}

std::shared_ptr<PatchCnn> make_two_layer(const TwoLayerSetting& setting, const PatchSet& data,
                                         const TwoLayerSeeds& seeds) {
  if (setting.patches > data.patches)
    fail_usage("each expert takes ", setting.patches, " patches but a sample has ", data.patches, "; lower it");
  const bool routed = setting.form != "cnn";
  const MoeSpec spec = read_moe_spec(
      {{"moe",
        {{"blocks", routed ? Json{0} : Json::array()}, {"experts", setting.experts}, {"hidden", setting.filters}}},
       {"experts", {{"name", "conv"}, {"channels", 0}, {"output", setting.output}, {"init_std", setting.init_std}}},
       {"capacity", Json::object()},
       {"losses", Json::object()},
       {"router",
        {{"name", "patch_choice"},
         {"patches", setting.patches},
         {"gate", setting.form == "separate" ? "ones" : "topl_softmax"},
         {"init_std", setting.router_std}}}});
  PatchCnnOptions options;
  options.patch = 1;  // a sample is a row of n pixels of d channels
  options.average = setting.average;
  auto model = std::make_shared<PatchCnn>(options, ModelContext{{data.width(), 1, data.patches, data.classes}, spec});
  initialize(*model, seeds.filters);
  if (PatchChoiceRouter* const router = model->parts().router) router->initialize({seeds.routers, "moe.router"});
  return model;
}

TwoLayerResult train_two_layer(const TwoLayerSetting& setting, const PatchSet& train, const PatchSet& test,
                               const TwoLayerSeeds& seeds, bool test_epochs) {
  TwoLayerResult result;
  result.model = make_two_layer(setting, train, seeds);
  if (setting.form == "separate") PatchSgd(result.model, train, setting.sgd, seeds.routers).train_routers();
  std::function<void(const PatchEpoch&)> on_epoch;
  if (test_epochs)
    on_epoch = [&](const PatchEpoch&) {
      const at::Tensor f = patch_outputs(*result.model, test);
      result.test_accuracies.push_back(patch_accuracy(f, test.labels, setting.threshold));
    };
  result.epochs = PatchSgd(result.model, train, setting.sgd, seeds.filters).train(on_epoch);
  result.zero_error = result.epochs.back().wrong == 0;
  const at::Tensor w2 = result.model->parts().experts->w2;
  result.one_signed = w2.size(2) == 1 && ((w2 > 0).all().item<bool>() || (w2 < 0).all().item<bool>());
  const at::Tensor f = patch_outputs(*result.model, test);
  if (f.size(1) == 1 && f.isfinite().all().item<bool>())
    value_function(f.select(1, 0), test.labels);  // asserts its bounds
  result.accuracy = patch_accuracy(f, test.labels, setting.threshold);
  result.other_accuracy = patch_accuracy(f, test.labels, setting.threshold == 0 ? 0.5 : 0);
  const at::Tensor logits = f.size(1) == 1 ? two_class_logits(f) : f;
  result.test_loss = at::cross_entropy_loss(logits, test.labels).item<double>();
  return result;
}

}  // namespace sparsight::pmoe
