// The kinds of steps, routers and experts that a frozen file names. A new kind is one line in kinds.cpp.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "sparsight/engine/experts.h"
#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/router.h"
#include "sparsight/engine/step.h"

namespace sparsight::engine {

template <class Base>
struct Kind {
  std::string_view name;  // as kind() says
  std::unique_ptr<Base> (*make)();
};

const std::vector<Kind<Step>>& step_kinds();
const std::vector<Kind<Router>>& router_kinds();
const std::vector<Kind<Experts>>& expert_kinds();

// A part of one of the kinds: its kind, and then its fields.
template <class Base, class... Place>
void visit_kind(Fields& fields, const std::vector<Kind<Base>>& kinds, std::unique_ptr<Base>& part,
                const Place&... place) {
  std::string name = part ? part->kind() : "";
  fields.text("kind", name);
  if (fields.reads()) {
    part.reset();
    for (const Kind<Base>& kind : kinds)
      if (kind.name == name) part = kind.make();
  }
  fields.require(part != nullptr, "a kind that this version knows (a newer one may have written the file)");
  part->visit(fields, place...);
}

}  // namespace sparsight::engine
