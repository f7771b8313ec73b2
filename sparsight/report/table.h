// The results of a run as text: pure functions of the records of metrics.jsonl (schema: docs/file_formats.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/report/run/run_metrics.h"

namespace sparsight {

// The table printed at the end of a run: one line per (split, weights) with accuracy and loss of the last evaluation,
// then its accuracy by class (and domain if there are several), or only the worst if there are many, its most frequent
// confusions, then the layer_table. Ends with a newline; "" without evaluations.
std::string result_table(const RunMetrics& log);

// From the "layers" of a record: one line per MoE layer with the load of its experts, what routers chose and, if
// capacity dropped tokens, what was kept; then what the experts tell about the class and
// what their routers report themselves. "" without layers.
std::string layer_table(const Json& layers);

// "1,234 images/s, peak memory 0.35 GB" of an "eval" record; "" where it does not say so.
std::string evaluation_speed_text(const Json& eval);

// "sparsity 0.52, l1_coefficient 0.001": what the router of an entry of "layers" reports; "" if nothing.
std::string router_metrics(const Json& layer);

// The experts that the images of each class used most, from the "class_expert" of a record; title: of the column of
// classes. "" without any. experts: names of the experts, or none.
std::string class_expert_table(const Json& class_expert, const std::vector<std::string>& classes,
                               const std::string& title, const std::vector<std::string>& experts = {});

// Which experts took the relevant patches, from the "patch_routing" of explain.json: for each layer, each attribute
// that names patches and each class, the shares of its images whose patch each expert took, and gave its largest gate;
// the share of such patches that any expert took; and the share of dropped patches that are irrelevant. "" without
// reports.
std::string patch_routing_table(const Json& reports, const std::vector<std::string>& classes);

// The MoE layers of the two sides of compare_records(). "" without layers.
std::string routing_comparison_table(const Json& comparison);

// The last evaluation of every (split, weights): split, weights, step, epoch, images, accuracy (0 to 1), loss, seconds.
std::string result_csv(const RunMetrics& log);
// The same with the load of the experts in a second table.
std::string result_markdown(const RunMetrics& log);

// The entries of `load` as eighth-height blocks, relative to the largest or to `most`: "▃▅█". More than 64 entries are
// divided into 64 groups of neighbours, each a block as high as its largest entry.
std::string load_bars(const std::vector<double>& load, double most = 0);

}  // namespace sparsight
