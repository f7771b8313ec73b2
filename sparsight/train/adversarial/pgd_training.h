// Adversarial training with PGD (Madry et al. 2018, "Towards Deep Learning Models Resistant to Adversarial Attacks"): a
// step first replaces its images by attacked ones, at the current weights, and then is one of empirical risk
// minimisation on these alone. The defaults are those of Puigcerver et al. 2022: 10 steps of epsilon / 10 from the
// image itself, epsilon 8/255, router noise in the attack, auxiliary losses trained but not attacked.
#pragma once

#include "sparsight/train/adversarial/adversary.h"
#include "sparsight/train/erm.h"

namespace sparsight {

struct PgdTrainingOptions {
  AdversaryOptions adversary = {};
  std::string preset = "paper";
  int64_t steps = 10;
  double relative_step = 0;  // step size / epsilon; 0: as the preset
  std::string start = "none";
  std::string loss = "auto";  // that of the training
  RouterLossOptions router = {};
  void declare(OptionSet& set);
  PgdOptions attack() const;
};

// The logged accuracy is that on the attacked images. The attack knows labels only, no soft targets (mixup).
class PgdTraining : public Erm {
 public:
  // Raises UsageError for what Pgd refuses.
  PgdTraining(const PgdTrainingOptions& options, const AlgorithmContext& context);

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override;

 protected:
  PgdTraining(const PgdOptions& attack, const AdversaryOptions& adversary, const AlgorithmContext& context);

 private:
  PgdOptions attack_;
  Adversary adversary_;
};

}  // namespace sparsight
