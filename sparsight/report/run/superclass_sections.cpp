#include "sparsight/report/run/superclass_sections.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/report/html.h"
#include "sparsight/report/run/superclass_text.h"

namespace sparsight {

bool is_guided(const RunSummary& run) {
  return !run.super_classes.empty() && std::ranges::any_of(run.log.evals, [](const Json& eval) {
    return number(eval, "router_accuracy").has_value();
  });
}

void add_superclasses(Page& page, const RunSummary& run) {
  const Rows rows = superclass_rows(run.super_class_of, run.super_classes, run.classes);
  if (rows.size() <= 1) return;
  const bool guided = is_guided(run);
  page.open_section("superclasses", "Super-classes",
                    cat(rows.size() - 1, guided ? ", each with an expert of its own" : ", which guide no router"),
                    guided);
  page.body += html_rows(rows);
  page.close_section();
}

void add_router_measures(Page& page, const Json& eval) {
  if (const Rows rows = router_measure_rows(member(eval, "layers")); rows.size() > 1) page.body += html_rows(rows);
  if (const std::string touched = touched_text(eval); !touched.empty())
    page.body += "<p>" + escape_html(touched) + "</p>\n";
}

}  // namespace sparsight
