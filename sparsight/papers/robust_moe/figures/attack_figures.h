// The experiments of Puigcerver et al. 2022, section 4, with small models that train here: errors and routing under
// attack, on CIFAR-10, CIFAR-100, MNIST and a generated task. experiments/ has the models, the attacks and the
// measurements.
#pragma once

#include "sparsight/papers/robust_moe/experiments/attack_cells.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight::robust_moe {

// On CIFAR-100; those on CIFAR-10 and MNIST have "_cifar10" and "_mnist" after their names.
Figure error_figure(VisionData data);             // robust_moe/f1: error against epsilon, PGD
Figure routing_figure(VisionData data);           // robust_moe/f2: change of the routing against epsilon, by layer
Figure auxiliary_figure(VisionData data);         // robust_moe/f3_aux: attacks on the balance loss too
Figure expert_number_figure(VisionData data);     // robust_moe/f3_experts: numbers of experts
Figure adaptive_error_figure(VisionData data);    // robust_moe/f4a: as f1, with AutoPGD
Figure adaptive_routing_figure(VisionData data);  // robust_moe/f4b: as f2, with AutoPGD to the largest loss
Figure error_cost_figure(VisionData data);        // robust_moe/cost: error at one epsilon against operations
Figure sweep_figure(VisionData data);             // robust_moe/sweep: a row with all measures for each cell
Figure transfer_figure(VisionData data);          // robust_moe/transfer: adversarial images of one model on another
Figure batch_damage_figure(VisionData data);      // robust_moe/damage: one attacked image and the rest of its batch
Figure attacked_parts_figure(VisionData data);    // robust_moe/parts: attacks on the experts or the router alone
Figure generated_task_figure();                   // robust_moe/smoke: models that train in seconds, without data

// Building blocks of all but the last.

// A figure that measures cells, without its jobs, measures and claims. Appends the data to name and title.
Figure cell_figure(const std::string& name, const std::string& title, VisionData data);

// Notes that follow from the settings: attacks, capacity, models and their training.
std::vector<std::string> cell_notes(const CellOptions& options);
// Declares the settings of a figure and its notes about them. defaults: a function from a scale to options, which are
// CellOptions or more. own: a function from these options to the figure's own notes.
template <class Defaults, class Notes>
void set_options(Figure& figure, const Defaults& defaults, const Notes& own) {
  figure.settings = make_settings(defaults);
  figure.run_notes = [defaults, own](const FigureRun& run) {
    const auto options = chosen(defaults, run);
    std::vector<std::string> notes = cell_notes(options);
    for (std::string& note : own(options)) notes.push_back(std::move(note));
    return notes;
  };
}
// Measures of the share of assignments that capacity drops, of layer_summary().
std::vector<Measure> drop_measures();
// What a layer drops, how even the load of its experts is and how much their outputs differ.
std::vector<Measure> balance_measures();

// "MoE", "MoE, adversarial": the name of a model's curve.
std::string curve_name(const VisionModel& model);
// The three models, trained as usual and adversarially.
std::vector<VisionModel> all_models(const CellOptions& options);
// Raises an internal error for a name that none of them has.
VisionModel model_of_curve(const std::string& curve, const CellOptions& options);

// The largest value of the axis "epsilon"; 0 without any.
double largest_epsilon(const ResultTable& table);

// Claims about rows of the axes "model" (a curve) and "epsilon".
Claim vmoe_never_worse(const ResultTable& table, const std::string& than);
std::vector<Claim> claims_about_errors(const ResultTable& table);
std::vector<Claim> claims_about_adversarial_training(const ResultTable& table);

}  // namespace sparsight::robust_moe
