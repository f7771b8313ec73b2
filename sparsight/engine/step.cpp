#include "sparsight/engine/step.h"

#include "sparsight/engine/file/fields.h"

namespace sparsight::engine {

void Step::visit(Fields& fields) {
  fields.output("to", to_);
  visit_fields(fields);
}

}  // namespace sparsight::engine
