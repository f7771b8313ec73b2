// Which attacks a request means, with every setting, and whether a model can be attacked that way. Nothing is silent:
// what is replaced is a note, what cannot mean anything an error.
#pragma once

#include <string>
#include <vector>

#include "sparsight/attacks/cascade.h"
#include "sparsight/runs/attack_request.h"

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

// Raises UsageError for an unknown attack or setting, an epsilon that is not a number of at least 0, one that covers
// the whole range of pixels, and fp64 with packed weights. A setting of a cascade goes to all stages that have it.
AttackPlan plan_attack(const AttackRequest& request);

// Replaces losses that need more classes than there are by the margin, with a note: dlr needs 3, targeted dlr 4.
void fit_to_classes(AttackPlan& plan, int64_t classes);

// Raises UsageError where the stages need what the model does not have. packed: its weights have no gradients.
// randomised: its passes have noise, so that gradients must be averages over passes.
void check_stages(const AttackPlan& plan, const std::string& packed, bool randomised);

// Raises UsageError for an l2 epsilon beyond the diagonal of images of `values` pixel values.
void check_radius(const ThreatModel& threat, int64_t values);

// A text as part of a folder's name: "4_255" of "4/255".
std::string plain_name(std::string text);

// "autoattack_linf_4_255": of a folder. Of a list of epsilons: "pgd_linf_1_255-2_255".
std::string attack_name(const AttackRequest& request);

}  // namespace sparsight
