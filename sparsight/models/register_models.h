// Every model that a configuration can name.
#pragma once

#include <memory>

#include "sparsight/core/registry.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

Registry<std::shared_ptr<ImageModel>, ModelContext>& models();

}  // namespace sparsight
