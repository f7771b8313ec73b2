// All answers of a model to a split, to compare two models by.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "sparsight/eval/evaluate.h"
#include "sparsight/infer/calibration_split.h"

namespace sparsight {

struct SplitAnswers {
  Evaluation evaluation;
  at::Tensor logits;     // [images,K]
  bool sampled = false;  // some router drew random numbers
};

// title: of the progress bar. Raises Error for logits that are not finite, and after an interrupt.
SplitAnswers split_answers(const LoadedModel& loaded, const CalibrationSplit& on, const std::string& title);

// The share of images for which both have the same best class.
double class_agreement(const SplitAnswers& a, const SplitAnswers& b);

// The largest difference of a logit.
double largest_difference(const SplitAnswers& a, const SplitAnswers& b);

}  // namespace sparsight
