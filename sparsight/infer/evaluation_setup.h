// A trained model beside the split that it is evaluated on.
#pragma once

#include "sparsight/data/data_set.h"
#include "sparsight/dist/group.h"
#include "sparsight/eval/evaluate.h"
#include "sparsight/infer/evaluate_run.h"
#include "sparsight/infer/loaded_model.h"

namespace sparsight {

struct EvaluationSetup {
  // Loads model and data, and sets the number of threads. Raises Error if the split is empty, or its classes are not
  // those of the model.
  EvaluationSetup(const EvaluateRunOptions& options, const MakePredictor& make_predictor);
  EvaluationSetup(const EvaluationSetup&) = delete;  // the predictor refers to the model
  EvaluationSetup& operator=(const EvaluationSetup&) = delete;

  LoadedModel loaded;
  Predictor predictor;
  DataSplits splits;
  DataSetPtr data;
  bool bf16 = false;
};

// Raises Error after an interrupt, and for a loss that is not finite. warn: of images that could not be read.
void check_evaluation(const Evaluation& evaluation, const EvaluationSetup& setup, const std::string& split,
                      bool warn = true);

}  // namespace sparsight
