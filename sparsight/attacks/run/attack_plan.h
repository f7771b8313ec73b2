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

  std::string target;         // as requested: "cat", "3", "random"; "": the attack is untargeted
  int64_t target_class = -1;  // once fit_to_target() has found it; -1: each image has a target of its own
  std::string target_name;    // of that class

  bool is_cascade() const { return !version.empty(); }
  bool targeted() const { return !target.empty(); }
};

// Raises UsageError for an unknown attack or setting, a norm that a stage does not take, an epsilon that is not a
// number of at least 0, one that covers the whole range of pixels, fp64 with packed weights, and a target of an attack
// that cannot be targeted. A setting of a cascade goes to all stages that have it.
AttackPlan plan_attack(const AttackRequest& request);

// Raises UsageError, naming attacks that can, where the attack cannot be targeted.
void check_takes_target(const AttackPlan& plan);

// Finds the class that `target` names, by name or number, if it is one class. Raises UsageError if there is none.
// classes: names, in label order.
void fit_to_target(AttackPlan& plan, const std::vector<std::string>& classes);

// {"given", "class", "name"} of a targeted plan; the last two are null where each image has a target of its own.
Json target_json(const AttackPlan& plan);

// Chooses the loss of stages with loss = "auto". Raises UsageError where a stage does not take several labels per
// image, or the attack is targeted, but the images have several.
void fit_to_labels(AttackPlan& plan, bool several_labels);

// Replaces losses that need more classes than there are by the margin, with a note: dlr needs 3, targeted dlr, which a
// targeted attack takes instead, 4.
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

// Fills in the settings of stages that attacks did not have yet when `attack`, {"stages": [{"attack", "settings"}]},
// was written: with their defaults, which are what it did. Leaves what is damaged as it is.
void add_missing_settings(Json& attack);

// A text as part of a folder's name: "4_255" of "4/255".
std::string plain_name(std::string text);

// "autoattack_linf_4_255": of a folder. Of a list of epsilons: "pgd_linf_1_255-2_255".
std::string attack_name(const AttackRequest& request);

}  // namespace sparsight
