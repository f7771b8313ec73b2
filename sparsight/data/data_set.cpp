#include "sparsight/data/data_set.h"

#include "sparsight/core/error.h"

namespace sparsight {

void need_single_labels(const DataInfo& info, const std::string& what) {
  if (info.multi_label)
    fail_usage(what, " needs one label per image, but images of ", info.name,
               " have several; use data with one label per image for it");
}

}  // namespace sparsight
