#include "sparsight/train/initial_weights.h"

#include "sparsight/core/log.h"
#include "sparsight/io/weight_names.h"
#include "sparsight/models/adapt_weights.h"

namespace sparsight {

void load_initial_weights(ImageModel& model, const std::string& path, const UpcycleOptions& upcycle) {
  LoadOptions options;
  options.adapt = weight_adapter(model);
  options.derive = upcycle_dense_mlps(model, upcycle);
  log_info(path, ": ", describe(load_weights(model, read_weights(path), options)));
}

}  // namespace sparsight
