// What most algorithms of domain generalisation share (Gulrajani and Lopez-Paz 2021, "In Search of Lost Domain
// Generalization", DomainBed): a step takes a batch from each training domain, passes all of them through the model at
// once, and minimises an objective of the features, logits and risks by domain, plus the auxiliary losses of routed
// layers. Letters: moe/axes.md; E training domains, B_e images of domain e, R_e its risk (mean cross entropy).
//
// Differs from DomainBed: where it passes the domains through the network one by one, batch norm (if it is in training)
// and the capacity of experts see all domains here.
#pragma once

#include "sparsight/dg/algorithms/domain_batches.h"
#include "sparsight/train/loss_step.h"

namespace sparsight {

// A pass over the batches of all domains.
struct DomainPass {
  std::vector<Batch> domains;  // E
  Batch joined;                // B images
  ModelOutput output;          // of `joined`
  const UpdateContext& update;

  int64_t step() const { return static_cast<int64_t>(update.random.step); }                   // updates before this one
  std::vector<at::Tensor> logits() const { return split_by_domain(output.logits, domains); }  // [B_e,K]
  std::vector<at::Tensor> features() const { return split_by_domain(output.features, domains); }  // [B_e,D]
  at::Tensor risks() const;                                                                       // [E]
  at::Tensor risk() const;  // [], of all images at once
};

// Raises UsageError where [loader] per_domain is off, or the data have fewer than `domains` domains.
void check_domains(const AlgorithmContext& context, size_t domains);

// An algorithm of one pass and one update per step.
class DomainAlgorithm : public Algorithm {
 public:
  // domains: how many training domains it needs at least. Raises UsageError as check_domains() does.
  DomainAlgorithm(const AlgorithmContext& context, size_t domains, const WeightUpdateOptions& options = {});

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override;
  AlgorithmState state() const override { return weights_.state(); }
  void load_state(const AlgorithmState& state) override { weights_.load_state(state); }
  WeightAverage* weight_average() override { return weights_.average(); }

 protected:
  // Called first in an update.
  virtual void begin(const UpdateContext& /*update*/) {}
  // The loss to minimise, [], without auxiliary losses. Puts other numbers worth logging into `log`.
  virtual at::Tensor objective(const DomainPass& pass, NamedMeans& log) = 0;
  // Called after an update that was finite: state that objective() has prepared becomes current.
  virtual void accept() {}

  // The step's batches, for algorithms that override update().
  std::vector<Batch> split_domains(Minibatches& minibatches) const { return batches_by_domain(minibatches, domains_); }
  // The head in the run's precision. features: [B,D] -> [B,K].
  at::Tensor classify(ImageModel& model, const at::Tensor& features) const;
  WeightUpdate& weights() { return weights_; }
  const WeightUpdate& weights() const { return weights_; }

 private:
  size_t domains_;
  bool bf16_;
  WeightUpdate weights_;
};

// The parameters that ImageModel::classify() reads, such as head.weight.
NamedTensors head_parameters(ImageModel& model, const at::Tensor& features);

// Adds a number to the log; does nothing with one that is not finite.
void log_value(NamedMeans& log, const std::string& name, const at::Tensor& value);

}  // namespace sparsight
