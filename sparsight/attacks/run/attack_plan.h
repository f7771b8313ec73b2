// Which attacks a request means, with every setting, and whether a model can be attacked that way. Nothing is silent:
// what is replaced is a note, what cannot mean anything an error.
#pragma once

#include <string>
#include <vector>

#include "sparsight/attacks/cascade.h"
#include "sparsight/attacks/run/attack_request.h"

namespace sparsight {

struct AttackPlan {
  std::string attack;                // as requested: "autoattack", "pgd"
  std::string version;               // of the cascade: "standard"; "" for a single attack
  std::vector<CascadeStage> stages;  // one for a single attack; with all settings
  ThreatModel threat;                // of pixels in 0..1
  std::vector<std::string> model_overrides;
  std::vector<std::string> notes;  // what the report has to say: replaced losses, changed settings

  bool is_cascade() const { return !version.empty(); }
};

// Raises UsageError for an unknown attack or setting, a norm that a stage does not take, an epsilon that is not a
// number of at least 0, one that covers the whole range of pixels, and fp64 with packed weights. A setting of a cascade
// goes to all stages that have it.
AttackPlan plan_attack(const AttackRequest& request);

// Chooses the loss of stages with loss = "auto". Raises UsageError where a stage does not take several labels per
// image, but the images have several.
void fit_to_labels(AttackPlan& plan, bool several_labels);

// Replaces losses that need more classes than there are by the margin, with a note: dlr needs 3, targeted dlr 4.
void fit_to_classes(AttackPlan& plan, int64_t classes);

// Whether it is a single attack that says how small the perturbations are, and whether also beyond epsilon.
bool measures_distances(const AttackPlan& plan);
bool measures_beyond_epsilon(const AttackPlan& plan);

// Whether a stage needs gradients.
bool has_gradients(const AttackPlan& plan);
// Raises UsageError where a stage needs gradients that weights packed as `packed` do not have; "": they are not packed.
void check_gradients(const AttackPlan& plan, const std::string& packed);
// Raises UsageError where passes of the model differ, but a stage does not average over several.
void check_passes(const AttackPlan& plan, bool randomised);

// A text as part of a folder's name: "4_255" of "4/255".
std::string plain_name(std::string text);

// "autoattack_linf_4_255": of a folder. Of a list of epsilons: "pgd_linf_1_255-2_255".
std::string attack_name(const AttackRequest& request);

}  // namespace sparsight
