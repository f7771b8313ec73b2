// Results that several figures, or several jobs of one, share: each is computed once and kept in a folder.
#pragma once

#include <functional>
#include <string>

#include "sparsight/io/file_lock.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight::robust_moe {

// The folder `models` beside that of the run, if that has its usual name (runs/reproduce/robust_moe/f1-small); else in
// it. Created if it is missing.
std::string kept_folder(const FigureRun& run);

// A short text that tells two identities apart. Changes when what the experiments measure changes, so that files of
// earlier versions are not used.
std::string kept_name(const Json& identity);

// Waits until no other process makes this file, and then keeps others from it. Raises Error on an interrupt.
FileLock kept_lock(const std::string& file);

// What `compute` returned for this identity, which must name everything that the result depends on. Raises Error on an
// interrupt.
Json kept_result(const std::string& folder, const Json& identity, const std::function<Json()>& compute);

}  // namespace sparsight::robust_moe
