#include "sparsight/report/run/expert_map_sections.h"

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/report/charts/expert_map_chart.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/class_information_text.h"
#include "sparsight/report/run/superclass_sections.h"
#include "sparsight/report/run/superclass_text.h"

namespace sparsight {
namespace {

constexpr size_t kMaxMaps = 64;  // of one section
constexpr size_t kMaxSectionCells = size_t{1} << 20;

const ExpertMapWords kClassWords{"classes", "class", "assignments of tokens", /*numbered=*/true};
const ExpertMapWords kDomainWords{"domains", "domain", "assignments of tokens"};
const ExpertMapWords kPartWords{"parts, the last the patches of no part", "part", "patches"};

// The maps of a section as long as it has room for them.
class Maps {
 public:
  bool full() const { return charts_.size() == kMaxMaps || cells_ > kMaxSectionCells; }
  void add(Chart chart, const std::string& note) {
    if (chart.spec.is_null()) return;
    cells_ += chart.spec["data"]["values"].size();
    chart.note += note;
    charts_.push_back(std::move(chart));
  }
  void show(Page& page, const std::string& id, const std::string& title, const std::string& caption) const {
    if (charts_.empty()) return;
    page.open_section(id, title, caption, true);
    page.charts(charts_);
    page.close_section();
  }

 private:
  std::vector<Chart> charts_;
  size_t cells_ = 0;
};

// The map of each layer. note: what else to say of it.
template <class Note>
Maps maps_of_layers(const Json& by_layer, const std::string& title, const std::vector<std::string>& names,
                    const ExpertMapWords& words, Note note) {
  Maps maps;
  if (by_layer.is_object())
    for (const auto& [layer, counts] : by_layer.items())
      if (!maps.full()) maps.add(expert_map_chart(title + ": " + layer, counts, names, words), note(layer));
  return maps;
}

// " Class information: 0.16 bits (...)."
std::string information_note(const Json& layers, const std::string& layer) {
  if (layers.is_array())
    for (const Json& entry : layers)
      if (text(entry, "layer") == layer)
        if (const std::string information = class_information_text(entry); !information.empty())
          return " Class information: " + information + ".";
  return "";
}

void add_class_maps(Page& page, const RunSummary& run) {
  const bool explained = run.explain.class_expert.is_object() && !run.explain.class_expert.empty();
  const Json eval = final_eval(run.log, true);
  const Json& maps = explained ? run.explain.class_expert : member(eval, "class_expert");
  const Json& layers = explained ? run.explain.layers : member(eval, "layers");
  const bool predicted = explained && run.explain.by_predicted_class;
  const auto note = [&](const std::string& layer) {
    return " Rows also differ by chance." + information_note(layers, layer);
  };
  ExpertMapWords words = kClassWords;
  if (is_guided(run)) words.experts = expert_names(run.super_classes);
  maps_of_layers(maps, predicted ? "Predicted class by expert" : "Class by expert", run.classes, words, note)
      .show(page, "classes", "Classes and experts", explained ? run.explain.caption : part_of_eval(eval));
}

void add_domain_maps(Page& page, const ExplainSummary& explain) {
  const auto note = [&](const std::string& layer) {
    const std::string found = information_text(member(explain.domain_information, layer), "domains");
    return found.empty() ? found : " Information on the domain: " + found + ".";
  };
  maps_of_layers(explain.domain_expert, "Domain by expert", explain.domains, kDomainWords, note)
      .show(page, "domains", "Domains and experts", explain.caption);
}

// " Left and right go mostly to the same expert in 1 of 2 pairs (eye)."
std::string pairs_note(const Json& pairs) {
  if (!pairs.is_array() || pairs.empty()) return "";
  std::vector<std::string> same;
  for (const Json& pair : pairs)
    if (member(pair, "same") == Json(true)) same.push_back(text(pair, "pair"));
  return cat(" Left and right go mostly to the same expert in ", same.size(), " of ", pairs.size(), " pairs",
             same.empty() ? "" : " (" + join(same) + ")", ".");
}

// " Information on the part: 0.16 bits (...), 10.0 % of the parts' entropy." and what left and right have in common.
std::string part_note(const Json& report) {
  std::string note = information_text(member(report, "information"), "parts");
  if (!note.empty()) {
    const auto share = number(report, "of_part_entropy");
    note = " Information on the part: " + note +
           (share ? ", " + percent(*share, 1) + " of the parts' entropy." : std::string("."));
  }
  return note + pairs_note(member(report, "pairs"));
}

void add_part_maps(Page& page, const ExplainSummary& explain) {
  Maps maps;
  for (size_t i = 0; explain.part_experts.is_array() && i < explain.part_experts.size() && !maps.full(); ++i) {
    const Json& report = explain.part_experts[i];
    const std::string domain = text(report, "domain");
    maps.add(expert_map_chart("Part by expert: " + text(report, "layer") + (domain.empty() ? "" : ", only " + domain),
                              member(report, "counts"), explain.parts, kPartWords),
             part_note(report));
  }
  maps.show(page, "parts", "Parts and experts", explain.caption);
}

}  // namespace

void add_expert_maps(Page& page, const RunSummary& run) {
  add_class_maps(page, run);
  add_domain_maps(page, run.explain);
  add_part_maps(page, run.explain);
}

}  // namespace sparsight
