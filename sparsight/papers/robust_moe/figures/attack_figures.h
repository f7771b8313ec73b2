// The experiments of Puigcerver et al. 2022, section 4, with small models that train here: errors and routing under
// attack, on CIFAR-100, MNIST and a generated task. experiments/ has the models, the attacks and the measurements.
#pragma once

#include "sparsight/papers/robust_moe/experiments/attack_cells.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight::robust_moe {

// On CIFAR-100; those on MNIST have "_mnist" after their names.
Figure error_figure(VisionData data);             // robust_moe/f1: error against epsilon, PGD
Figure routing_figure(VisionData data);           // robust_moe/f2: change of the routing against epsilon, by layer
Figure auxiliary_figure(VisionData data);         // robust_moe/f3_aux: attacks on the balance loss too
Figure expert_number_figure(VisionData data);     // robust_moe/f3_experts: numbers of experts
Figure adaptive_error_figure(VisionData data);    // robust_moe/f4a: as f1, with AutoPGD
Figure adaptive_routing_figure(VisionData data);  // robust_moe/f4b: as f2, with AutoPGD
Figure error_cost_figure(VisionData data);        // robust_moe/cost: error at one epsilon against operations
Figure sweep_figure(VisionData data);             // robust_moe/sweep: a row with all measures for each cell
Figure generated_task_figure();                   // robust_moe/smoke: models that train in seconds, without data

// Building blocks of all but the last.

// A figure that measures cells, without its jobs, measures and claims. Appends the data to name and title.
Figure cell_figure(const std::string& name, const std::string& title, VisionData data);

// "V-MoE", "V-MoE, adversarial": the name of a model's curve.
std::string curve_name(const VisionModel& model);
// The three models, trained as usual and adversarially.
std::vector<VisionModel> all_models(const CellOptions& options);
// Raises an internal error for a name that none of them has.
VisionModel model_of_curve(const std::string& curve, const CellOptions& options);

// Claims about rows of the axes "model" (a curve) and "epsilon".
Claim vmoe_never_worse(const ResultTable& table, const std::string& than);
std::vector<Claim> claims_about_errors(const ResultTable& table);
std::vector<Claim> claims_about_adversarial_training(const ResultTable& table);

}  // namespace sparsight::robust_moe
