// The sections of a run's report about super-classes and what was measured of its routers.
#pragma once

#include "sparsight/report/page.h"
#include "sparsight/report/run/run_summary.h"

namespace sparsight {

// Whether the run's routers are guided: then expert e is for super-class e.
bool is_guided(const RunSummary& run);

// A table of the super-classes: size and members. Nothing for a run without.
void add_superclasses(Page& page, const RunSummary& run);

// Entropy of usage, experts and weights per image, router accuracy, inside of the section of the experts.
void add_router_measures(Page& page, const Json& eval);

}  // namespace sparsight
