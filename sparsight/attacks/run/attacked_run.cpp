#include "sparsight/attacks/run/attacked_run.h"

#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/checksum.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/loader.h"
#include "sparsight/infer/bare_weights.h"
#include "sparsight/infer/model_path.h"
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

LoadedModel load_attacked_model(const AttackRequest& request, std::vector<std::string> overrides) {
  if (!request.data.empty()) overrides.push_back(data_root_override(request.data));
  return load_model_or_weights({request.path, request.checkpoint, std::move(overrides), request.bare});
}

}  // namespace

AttackedRun load_attacked(const AttackRequest& request, const AttackPlan& plan) {
  AttackedRun run{load_attacked_model(request, plan.model_overrides), "", {}};
  if (!run.loaded.model)
    fail(printable(request.path), " is an exported model, which has no gradients; attack the run that it is of");
  apply_threads(read_section<RunOptions>(run.loaded.config, "run"));
  run.fingerprint = weights_fingerprint(*run.loaded.model);
  if (request.precision == "fp64")
    run.loaded.model->to(at::kDouble);
  else if (!has_gradients(plan) || !request.weights.empty())
    run.program = compile_program(run.loaded, request.weights);
  return run;
}

int64_t shared_batch(const LoadedModel& loaded) {
  return read_section<LoaderOptions>(loaded.config, "loader").eval_batch;
}

}  // namespace sparsight
