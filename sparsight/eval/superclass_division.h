// The division of a dataset's classes into super-classes that a run uses: the dataset's own, that of a file, or a
// random one ([superclasses]). Daxberger et al. 2023, "Mobile V-MoEs", sections 3 and 4. Letters: moe/axes.md; G
// super-classes.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

// `data` with the super-classes that [superclasses] asks for: super_class_of [K] and super_classes [G]. Those of a file
// or of chance are named after their first classes. Random ones of equal sizes are as many as the guided routers have
// experts. Raises Error and UsageError for a map that does not fit: another number of classes, numbers out of range, a
// super-class without a class.
DataInfo with_superclasses(const Json& resolved, const DataInfo& data);

// The same for a run that goes on and began with the division `recorded` [K] (empty: none), which needs no file. Raises
// Error if [superclasses] gives another one now.
DataInfo with_recorded_superclasses(const Json& resolved, const DataInfo& data, const std::vector<int64_t>& recorded);

// Raises Error if `data` has another division than a checkpoint's `state`, of a run that goes on.
void check_trained_superclasses(const Json& state, const DataInfo& data);

// [G] "beaver, dolphin, otter, ...": the first three classes of each super-class.
std::vector<std::string> names_by_classes(const std::vector<int64_t>& super_class_of,
                                          const std::vector<std::string>& classes);

}  // namespace sparsight
