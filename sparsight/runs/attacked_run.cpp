#include "sparsight/runs/attacked_run.h"

#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/loader.h"
#include "sparsight/infer/bare_weights.h"
#include "sparsight/io/checksum.h"
#include "sparsight/io/weights.h"

namespace sparsight {
namespace {

std::string weights_fingerprint(const ImageModel& model) {
  Checksum sum;
  for (const auto& [name, tensor] : named_weights(model)) {
    const at::Tensor values = tensor.detach().contiguous();
    sum.update(name.data(), name.size());
    sum.update(values.const_data_ptr(), values.nbytes());
  }
  return sum.hex();
}

LoadedModel load_model_of(const AttackRequest& request, std::vector<std::string> overrides) {
  // As TOML, whose text is UTF-8; what is no TOML is taken as it is.
  if (!request.data.empty())
    overrides.push_back("data.root=" + (is_utf8(request.data) ? Json(request.data).dump() : request.data));
  check_model_exists(request.path);
  if (is_bare_weights(request.path))
    return load_bare_weights({request.path, request.config, overrides, request.normalize, request.classes});
  for (const auto& [flag, given] : {std::pair{"--config", !request.config.empty()},
                                    {"--normalize", !request.normalize.empty()},
                                    {"--classes", request.classes > 0}})
    if (given) fail_usage(flag, " is for files of weights alone; a run and a checkpoint know it themselves");
  return load_model(request.path, request.checkpoint, overrides);
}

}  // namespace

AttackedRun load_attacked(const AttackRequest& request, const AttackPlan& plan) {
  AttackedRun run{load_model_of(request, plan.model_overrides), ""};
  apply_threads(read_section<RunOptions>(run.loaded.config, "run"));
  run.fingerprint = weights_fingerprint(*run.loaded.model);
  if (request.precision == "fp64") run.loaded.model->to(at::kDouble);
  if (!request.weights.empty()) pack_weights(run.loaded, request.weights);
  return run;
}

int64_t shared_batch(const LoadedModel& loaded) {
  return read_section<LoaderOptions>(loaded.config, "loader").eval_batch;
}

}  // namespace sparsight
